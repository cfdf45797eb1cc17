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
import { compareNote } from "../../src/operations/compare/run-note.js";
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

const steering = {
  intervention: "steer",
  strength_unit: "vector",
  strengths: [-2, 0, 2],
  controls: true,
};
let steered: CompareResult;

test("invented versus real countries: the model forgets facts and claims false ones", async () => {
  steered = await run(steering);
  const probability = (prompts: string[], strength: number, whose: "direction" | "control") =>
    mean(
      steered.trials
        .filter((trial) => prompts.includes(trial.prompt) && trial.strength === strength)
        .map((trial) => (whose === "direction" ? trial.probability : trial.control!.probability)),
    );
  assert.ok(probability(real, 0, "direction") < 0.01);
  assert.ok(probability(real, 2, "direction") > 0.5, "real countries are unknown now");
  assert.ok(probability(real, 2, "control") < 0.02, "a random vector does not do it");
  assert.ok(probability(invented, 0, "direction") > 0.7);
  assert.ok(probability(invented, -2, "direction") < 0.1, "invented countries are known now");
  assert.ok(probability(invented, -2, "control") > 0.7, "a random vector does not do it");
  const answers = steered.trials.filter((trial) => trial.strength === 2 && real.includes(trial.prompt));
  assert.ok(answers.filter(({ output }) => output === " unknown").length >= 6);
  assert.not.match(steered.note, "1 %");
  assert.is(steered.control_seed, base.seed);
});

const python = pythonWith("numpy");
(python === undefined ? test.skip : test)("the numbers are those of NumPy", async () => {
  const { strengths } = steering;
  const kinds = [
    { name: "steer", unit: "vector", strengths },
    { name: "project_out", strengths },
    { name: "clamp", unit: "row_norm", min: -0.1, max: 0.05, strengths: [0, 0.5, 1] },
  ];
  const model = await Model.open(demoModelPath);
  const tokens = (all: string[]) => Promise.all(all.map(async (text) => [...(await model.tokenize(text))]));
  const [target] = await model.tokenize(" unknown", { special: false });
  const asked = {
    model: demoModelPath,
    layer: 5,
    target,
    seed: base.seed,
    kinds,
    prompts: await tokens(base.prompts),
    positives: await tokens(base.positives),
    negatives: await tokens(base.negatives),
  };
  await model.close();
  const script = fileURLToPath(new URL("./fixtures/steering.py", import.meta.url));
  const { stdout, stderr } = spawnSync(python as string, ["-B", script], {
    input: JSON.stringify(asked),
    encoding: "utf8",
  });
  assert.is(stderr, "");
  const oracle = JSON.parse(stdout) as { length: number; rows: Array<[number, number, number, number]> };
  const close = (a: number, b: number, within: number, what: string) =>
    assert.ok(Math.abs(a - b) <= within, `${what}: ${a} and ${b}`);
  for (const [k, { name, unit, ...bounds }] of kinds.entries()) {
    const more = { ...steering, intervention: name, strength_unit: unit, ...bounds };
    const { trials, vector_length } = k === 0 ? steered : await run(more);
    close(vector_length! / oracle.length, 1, 2e-3, "the vector's length");
    for (const [t, trial] of trials.entries()) {
      const [probability, change, row, control] = oracle.rows[k * trials.length + t]!;
      const what = `${name}, ${trial.prompt} ${trial.strength}`;
      // The model's weights are packed; docs/architecture.md describes the cost.
      close(trial.probability, probability, 0.02, what);
      close(trial.control!.probability, control, 0.02, `${what}, control`);
      assert.is(trial.change!.rows, 1);
      close(trial.change!.length / row, change / row, 5e-3, `${what}, change`);
      close(trial.change!.row_length / row, 1, 5e-3, `${what}, row`);
    }
  }
});

test("a negligible change is named; generated tokens leave the first answer unchanged", async () => {
  const { trials, note, position } = await run({
    intervention: "steer",
    strengths: [-1, 0, 2, 5],
    prompts: real.slice(0, 1),
    positions: "generated",
    max_tokens: 4,
  });
  assert.is(position, "generated tokens");
  assert.match(
    note,
    /At strengths? [-125, ]+ the change is less than 1 % of the activation's norm \(at most 0\.\d+ %\)/,
  );
  assert.match(note, "strength_unit vector or row_norm");
  for (const { probability, baseline_probability, change } of trials) {
    assert.is(probability, baseline_probability);
    // Of a name, a full stop and the end, the first two are computed further.
    assert.is(change!.rows, 2);
  }
  assert.equal(
    trials.map(({ change }) => Math.round(1000 * change!.length) / 1000),
    [1, 0, 2, 5],
  );
});

test("an edit that matches no row is named", () => {
  const trial = { strength: 5, change: { rows: 0, length: 0, row_length: 0 } };
  const config = { intervention: "steer", strengths: [0, 5], layers: [5], positions: [[100, 200]] };
  const note = compareNote(config as never, [trial] as never, "");
  assert.match(note, "At strength 5 the intervention changed nothing.");
  assert.match(note, "applies to tokens 100 to 200");
});

test.run();
