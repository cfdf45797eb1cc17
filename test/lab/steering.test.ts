/** The documented steering example, against NumPy's forward pass of the embedded model. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Compile } from "typebox/compile";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type CompareResult, Job } from "../../src/contracts/index.js";
import { demoModelPath } from "../../src/models/resolve.js";
import { Model } from "../../src/native/index.js";
import { pythonWith } from "../support/python.js";
import { type Harness, openHarness } from "./harness.js";

const texts = (name: string) =>
  readFileSync(new URL(`../../docs/examples/${name}.txt`, import.meta.url), "utf8")
    .split("\n")
    .filter((line) => line !== "");
const [real, invented] = [texts("real-countries-held-out"), texts("invented-countries-held-out")];
const base = {
  operation: "compare",
  model: "demo",
  prompt: "x",
  prompts: [...real, ...invented],
  layers: [5],
  positives: texts("invented-countries"),
  negatives: texts("real-countries"),
  target_token: " unknown",
  max_tokens: 1,
  seed: 0,
};

let harness: Harness;
test.before(async () => {
  harness = await openHarness();
});
test.after(() => harness.close());

async function run(more: object): Promise<CompareResult> {
  const { id } = await harness.submit({ ...base, ...more });
  const job = await harness.finished(id);
  if (job.status !== "completed") throw new Error(job.error);
  assert.ok(Compile(Job).Check(job), JSON.stringify(Compile(Job).Errors(job)).slice(0, 500));
  return job.result as CompareResult;
}

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

test("invented against real countries: the model forgets what it knows, and claims what it does not", async () => {
  const { trials, note } = await run({
    intervention: "steer",
    strength_unit: "vector",
    strengths: [-2, 0, 2],
    controls: true,
  });
  const probability = (prompts: string[], strength: number, whose: "direction" | "control") =>
    mean(
      trials
        .filter((trial) => prompts.includes(trial.prompt) && trial.strength === strength)
        .map((trial) => (whose === "direction" ? trial.probability : trial.control!.probability)),
    );
  assert.ok(probability(real, 0, "direction") < 0.01);
  assert.ok(probability(real, 2, "direction") > 0.5, "real countries are unknown now");
  assert.ok(probability(real, 2, "control") < 0.02, "a random vector does not do it");
  assert.ok(probability(invented, 0, "direction") > 0.7);
  assert.ok(probability(invented, -2, "direction") < 0.1, "invented countries are known now");
  assert.ok(probability(invented, -2, "control") > 0.7, "a random vector does not do it");
  const answers = trials.filter((trial) => trial.strength === 2 && real.includes(trial.prompt));
  assert.ok(answers.filter(({ output }) => output === " unknown").length >= 6);
  assert.not.match(note, "1 %");
});

const python = pythonWith("numpy");
(python === undefined ? test.skip : test)("every kind and unit is what NumPy computes", async () => {
  const strengths = [-1, 0.4, 1];
  const kinds = [
    { name: "steer", unit: "unit" },
    { name: "steer", unit: "vector" },
    { name: "steer", unit: "row_norm" },
    { name: "project_out" },
    { name: "clamp", unit: "unit", min: -20, max: 10 },
    { name: "clamp", unit: "vector", min: -0.5, max: 0.25 },
    { name: "clamp", unit: "row_norm", min: -0.1, max: 0.05 },
  ];
  const prompts = [...real.slice(0, 4), ...invented.slice(0, 4)];
  const model = await Model.open(demoModelPath);
  const tokens = (all: string[]) => Promise.all(all.map(async (text) => [...(await model.tokenize(text))]));
  const [target] = await model.tokenize(" unknown", { special: false });
  const asked = {
    model: demoModelPath,
    layer: 5,
    target,
    seed: base.seed,
    strengths,
    kinds,
    prompts: await tokens(prompts),
    positives: await tokens(base.positives),
    negatives: await tokens(base.negatives),
  };
  await model.close();
  const script = fileURLToPath(new URL("./fixtures/steering.py", import.meta.url));
  const { stdout, stderr } = spawnSync(python as string, ["-B", script], {
    input: JSON.stringify(asked),
    encoding: "utf8",
  });
  const oracle = JSON.parse(stdout || `"${stderr}"`) as { length: number; rows: number[][] };
  const close = (a: number, b: number, share: number, what: string) =>
    assert.ok(Math.abs(a - b) <= share * Math.max(1, Math.abs(b)), `${what}: ${a} and ${b}`);
  for (const [k, { name, unit, ...bounds }] of kinds.entries()) {
    const result = await run({
      prompts,
      intervention: name,
      strengths,
      controls: true,
      ...(unit === undefined ? {} : { strength_unit: unit }),
      ...bounds,
    });
    close(result.vector_length!, oracle.length, 2e-3, "the vector's length");
    assert.is(result.control_seed, base.seed);
    for (const [t, trial] of result.trials.entries()) {
      const [probability, change, row, control] = oracle.rows[k * result.trials.length + t] as [
        number,
        number,
        number,
        number,
      ];
      const what = `${name} ${unit}, trial ${t}`;
      // The model's weights are packed; docs/verification.md names what that costs.
      close(trial.probability, probability, 0.01, what);
      close(trial.control!.probability, control, 0.01, `${what}, control`);
      assert.is(trial.change!.rows, 1);
      close(trial.change!.length / row, change / row, 5e-3, `${what}, change`);
      close(trial.change!.row_length, row, 5e-3, `${what}, row`);
    }
  }
});

test("a change that is too small to matter is named, and one that meets no row", async () => {
  const small = await run({ intervention: "steer", strengths: [-1, 0, 2, 5], prompts: real.slice(0, 1) });
  // The row is 276 long, so 2 is under and 5 over a hundredth of it.
  assert.match(
    small.note,
    "At strengths -1, 2 the change is less than 1 % of the row's length (at most 0.73 %)",
  );
  assert.match(small.note, "strength_unit vector or row_norm");
  const none = await run({
    intervention: "steer",
    strengths: [0, 5],
    prompts: real.slice(0, 1),
    positions: [[100, 200]],
  });
  assert.match(none.note, "At strength 5 the intervention changed nothing.");
  assert.equal(none.trials[1]!.change, { rows: 0, length: 0, row_length: 0 });
  assert.is(none.position, "tokens 100 to 200");
});

test("positions: what reads an edited prompt answers otherwise; generated tokens leave the first answer alone", async () => {
  const zero = {
    intervention: "scale",
    strengths: [0],
    positives: undefined,
    negatives: undefined,
    max_tokens: 4,
  };
  const at = async (positions: unknown) =>
    (await run({ ...zero, prompts: real.slice(0, 1), positions })).trials[0]!;
  const generated = await at("generated");
  const all = await at("all");
  const prompt = await at("prompt");
  const last = await at("last");
  // Six tokens of the prompt; of four generated ones three are computed further.
  assert.equal(
    [prompt, generated, all, last].map(({ change }) => change!.rows),
    [6, 3, 9, 4],
  );
  assert.is(generated.probability, generated.baseline_probability);
  assert.is(generated.output.slice(0, 5), generated.baseline.slice(0, 5));
  assert.is.not(generated.output, generated.baseline);
  assert.ok(Math.abs(prompt.probability - all.probability) < 1e-5);
  assert.ok(Math.abs(last.probability - all.probability) > 1e-4);
});

test.run();
