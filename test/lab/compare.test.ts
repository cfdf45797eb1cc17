import { join } from "node:path";
import { Compile } from "typebox/compile";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type CompareResult, Job } from "../../src/contracts/index.js";
import { randomVector } from "../../src/library/index.js";
import { demoModelPath } from "../../src/models/resolve.js";
import { type Context, type Edit, Model } from "../../src/native/index.js";
import { meanDifference } from "../../src/operations/compare/run-intervention.js";
import { writeWideModel } from "../support/wide-model.js";
import { type Harness, openHarness } from "./harness.js";

const base = { operation: "compare", model: "demo", prompt: "The capital of France is", layers: [4] };
let harness: Harness;
let model: Model;
let context: Context;

test.before(async () => {
  harness = await openHarness();
  model = await Model.open(demoModelPath);
  context = await model.createContext({ nCtx: 128, threads: 1 });
});
test.after(async () => {
  await model.close();
  await harness.close();
});

async function run(more: object): Promise<CompareResult> {
  const { id } = await harness.submit({ ...base, ...more });
  const job = await harness.finished(id);
  if (job.status !== "completed") throw new Error(job.error);
  assert.ok(Compile(Job).Check(job), JSON.stringify(Compile(Job).Errors(job)).slice(0, 500));
  return job.result as CompareResult;
}

async function failure(more: object): Promise<string> {
  const { id } = await harness.submit({ ...base, ...more });
  const job = await harness.finished(id);
  assert.is(job.status, "failed");
  return job.error as string;
}

/** Output of block 4 at a text's last token. */
async function state(text: string): Promise<Float32Array> {
  await context.reset();
  const { layers } = await context.advance({ tokens: await model.tokenize(text), layers: [4], rows: "last" });
  return layers[0]!.states!.data.slice();
}

/** Probability of a token after a prompt, with one edit of the last token at block 4. */
async function probability(text: string, token: number, edit: Edit) {
  await context.reset();
  const tokens = await model.tokenize(text);
  const { logits } = await context.advance({
    tokens,
    layers: [4],
    rows: "last",
    logits: true,
    edits: [edit],
  });
  const most = Math.max(...logits!);
  const total = logits!.reduce((sum, value) => sum + Math.exp(value - most), 0);
  return Math.exp(logits![token]! - most) / total;
}

test("trials are ordered by prompt, then strength, with every field of the contract", async () => {
  const prompts = ["The capital of France is", "The capital of Italy is", "The capital of France is"];
  const result = await run({ prompts, strengths: [1.5, 0, 1], max_tokens: 4 });
  assert.equal(
    result.trials.map(({ prompt, strength }) => [prompt, strength]),
    prompts.flatMap((prompt) => [1.5, 0, 1].map((strength) => [prompt, strength])),
  );
  assert.is(result.intervention, "scale");
  assert.is(result.position, "last token");
  assert.equal(result.artifacts, []);
  for (const trial of result.trials) {
    assert.is(trial.layer, 4);
    assert.is(trial.delta, trial.probability - trial.baseline_probability);
  }
  assert.equal(result.trials[0], result.trials[6], "equal prompts give equal trials");
});

const vectors: Record<string, object> = {
  scale: {},
  ablate: {},
  patch: { donor_prompt: "The capital of Japan is" },
  steer: { positive: "The capital of Japan is", negative: "The capital of Spain is" },
};

for (const [intervention, texts] of Object.entries(vectors)) {
  test(`${intervention} is the documented change of the last token's block output`, async () => {
    const strengths = [0, 1, 0.5, -2, 3];
    const { trials } = await run({ intervention, strengths, max_tokens: 2, ...texts });
    const donor = await state("The capital of Japan is");
    const minus = await state("The capital of Spain is");
    const difference = donor.map((value, i) => value - minus[i]!);
    const length = Math.hypot(...difference);
    // Each replaces one row with another, written out as in the contract.
    const plain = await state(base.prompt);
    const row: Record<string, (s: number) => Float32Array> = {
      scale: (s) => plain.map((h) => s * h),
      ablate: (s) => plain.map((h) => (1 - s) * h),
      patch: (s) => plain.map((h, i) => (1 - s) * h + s * donor[i]!),
      steer: (s) => plain.map((h, i) => h + (s * difference[i]!) / length),
    };
    for (const trial of trials) {
      const edit = { layer: 4, scale: 0, vector: row[intervention]!(trial.strength) };
      const expected = await probability(base.prompt, trial.target_token_id, edit);
      assert.ok(
        Math.abs(trial.probability - expected) < 1e-4,
        `strength ${trial.strength}: ${trial.probability} and ${expected}`,
      );
    }
    const neutral = trials[intervention === "scale" ? 1 : 0]!;
    assert.is(neutral.probability, neutral.baseline_probability);
    assert.is(neutral.delta, 0);
    assert.is(neutral.output, neutral.baseline);
    assert.ok(trials.some(({ delta }) => delta !== 0));
  });
}

test("a direction is the difference of two means", () => {
  const rows = Float32Array.of(1, 2, 3, 6, 10, 20);
  assert.equal([...meanDifference(rows, 2, 2)], [-8, -16]);
});

test("a random vector has the requested length and depends on the seed alone", () => {
  const one = randomVector(1000, 7, 3);
  assert.ok(Math.abs(Math.hypot(...one) - 7) < 1e-5);
  assert.equal(randomVector(1000, 7, 3), one);
  const other = randomVector(1000, 7, 4);
  const cosine = one.reduce((sum, value, i) => sum + value * other[i]!, 0) / 49;
  assert.ok(Math.abs(cosine) < 0.15, `${cosine}`);
});

test("target_token is one token without special tokens, else the baseline's top token", async () => {
  const chosen = await run({ target_token: " Rome", max_tokens: 1 });
  assert.is(chosen.trials[0]?.target_token, " Rome");
  const [expected] = await model.tokenize(" Rome", { special: false });
  assert.is(chosen.trials[0]?.target_token_id, expected);
  const top = await run({ max_tokens: 1 });
  assert.is(top.trials[0]?.target_token, top.trials[0]?.baseline);
  // The model continues the prompt with " is".
  const asked = { prompts: ["The capital of France"], max_tokens: 1 };
  assert.match(
    (await run({ ...asked, target_token: "is" })).note,
    /^The target token "is" .* Did you mean " is"\?/,
  );
  assert.not.match((await run({ ...asked, target_token: " is" })).note, /Did you mean/);
  assert.match(await failure({ target_token: "Paris" }), / Did you mean " Paris"\?$/);
  assert.match(
    await failure({ target_token: " Rome is" }),
    'target_token must encode to exactly one token; " Rome is" yields 2: ',
  );
});

test("only the first of several selected layers is changed", async () => {
  const change = (layers: number[]) => run({ layers, strengths: [0.5], max_tokens: 1 });
  const { trials } = await change([4, 2]);
  assert.equal(trials, (await change([4])).trials);
  assert.not.equal(trials[0]!.probability, (await change([2])).trials[0]!.probability);
});

test("errors that only the model can detect fail the job and name the numbers", async () => {
  const long = "Paris ".repeat(30);
  assert.match(
    await failure({ max_input_tokens: 8, prompts: ["x", long] }),
    /^prompts\[1\] has \d+ tokens; max_input_tokens allows 8\.$/,
  );
  assert.match(
    await failure({ intervention: "patch", donor_prompt: long, max_input_tokens: 8 }),
    /^donor_prompt has \d+ tokens; max_input_tokens allows 8\.$/,
  );
  assert.match(
    await failure({
      prompt: "Paris ".repeat(model.info.nCtxTrain - 90),
      max_input_tokens: 1024,
      max_tokens: 128,
    }),
    /^prompt has \d+ tokens and max_tokens adds 128; the model was trained on at most \d+ positions\.$/,
  );
  assert.match(
    await failure({ layers: [4, model.info.nLayer] }),
    `layers: ${model.info.nLayer} does not exist`,
  );
});

test("the contract's maximum of 32 prompts, 9 strengths and 128 tokens is accepted", async () => {
  const prompts = Array.from({ length: 32 }, (_, index) => `${index}: the capital of France is`);
  const strengths = [-5, -2, -1, 0, 0.5, 1, 1.5, 2, 5];
  // How many there are is the point, not how large the model is.
  const small = join(harness.home, "small.gguf");
  await writeWideModel(small, { hidden: 64, blocks: 4 });
  const { trials, note } = await run({
    model: small,
    prompts,
    strengths,
    max_tokens: 128,
    layers: [2, 3],
    target_token: "a",
  });
  assert.is(trials.length, 288);
  assert.equal([...new Set(trials.map(({ layer }) => layer))], [2]);
  assert.match(note, "Only the first layer (2) was changed; 3 was ignored.");
});

test("at the last block, every edited prompt token is counted and measured", async () => {
  const tokens = await model.tokenize(base.prompt);
  const layer = model.info.nLayer - 1;
  await context.reset();
  const { layers } = await context.advance({ tokens, layers: [layer], rows: "all" });
  const norms = [...layers[0]!.norms];
  const mean = (of: number[]) => of.reduce((sum, norm) => sum + norm, 0) / of.length;
  const more = { layers: [layer], intervention: "scale", strengths: [1, 0.5], max_tokens: 1 };
  const last = (await run({ ...more, positions: "last" })).trials[1]!;
  for (const [positions, expected] of [
    ["prompt", norms],
    [[[0, 1]], norms.slice(0, 2)],
  ] as const) {
    const { trials } = await run({ ...more, positions });
    for (const [i, share] of [0, 0.5].entries()) {
      const { rows, length, row_length } = trials[i]!.change!;
      assert.is(rows, expected.length);
      assert.ok(Math.abs(row_length / mean(expected) - 1) < 1e-3, `${row_length}, ${mean(expected)}`);
      assert.ok(Math.abs(length - share * mean(expected)) < 1e-3 * mean(expected));
    }
    // What no later block reads changes nothing but itself.
    const moved = positions === "prompt" ? last.probability : last.baseline_probability;
    assert.ok(Math.abs(trials[1]!.probability - moved) < 1e-5);
  }
});

test("accepts prompts without a prompt", async () => {
  const both = await run({ prompts: ["The capital of France is"], strengths: [0.5], max_tokens: 1 });
  const alone = { prompt: undefined, prompts: [base.prompt], strengths: [0.5], max_tokens: 1 };
  assert.equal((await run(alone)).trials, both.trials);
});

test.run();
