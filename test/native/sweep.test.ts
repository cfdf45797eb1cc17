import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Edit, Model, NativeError, type SweepRow } from "../../src/native/index.js";
import { sequentialSweep } from "../support/sequential-sweep.js";

const demo = fileURLToPath(new URL("../../models/demo/tapline-demo.gguf", import.meta.url));
const strengths = [0, 0.5, 1, 1.5, -2, 1];
const maxTokens = 12;

let model: Model;
test.before(async () => {
  model = await Model.open(demo);
});
test.after(() => model.close());

function prompts(): Promise<Int32Array[]> {
  const texts = [
    "The capital of France is",
    "The language spoken in Germany is",
    "Anna gave the book to Tom. Tom gave",
  ];
  return Promise.all(texts.map((text) => model.tokenize(text)));
}

/** A fixed direction of length 1. */
function direction(): Float32Array {
  const raw = Float32Array.from({ length: model.info.nEmbd }, (_, i) => Math.sin(i * 1.7));
  const norm = Math.hypot(...raw);
  return raw.map((x) => x / norm);
}

const kinds: Record<string, (s: number) => Omit<Edit, "layer">> = {
  scale: (s) => ({ scale: s }),
  ablate: (s) => ({ scale: 1 - s }),
  patch: (s) => ({ scale: 1 - s, vector: direction().map((x) => 10 * s * x) }),
  steer: (s) => ({ scale: 1, vector: direction().map((x) => 4 * s * x) }),
};

for (const [kind, edit] of Object.entries(kinds)) {
  test(`a batched sweep agrees with one sequence at a time: ${kind}`, async () => {
    const layer = 2;
    const batched = await model.createContext({ nCtx: 1024, maxSequences: 32 });
    const single = await model.createContext({ nCtx: 128 });
    const texts = await prompts();
    const plans = strengths.map((strength) => [{ layer, ...edit(strength) }]);
    const trials = await batched.sweep({ prompts: texts, plans, maxTokens });
    for (const [p, trial] of trials.entries()) {
      const prompt = texts[p] as Int32Array;
      assert.is(trial.rows.length, strengths.length);
      for (const [e, row] of [trial.baseline, ...trial.rows].entries()) {
        const expected = await sequentialSweep(
          single,
          prompt,
          layer,
          e === 0 ? [] : (plans[e - 1] as Edit[]),
          trial.target,
          maxTokens,
        );
        const gap = Math.abs(row.probability - expected.probability);
        assert.ok(gap <= 1e-4, `prompt ${p} row ${e}: ${row.probability} against ${expected.probability}`);
        // The batch stops at an end-of-generation token; up to there the texts are equal, ties apart.
        for (const [i, token] of row.continuation.entries()) {
          if (token === expected.continuation[i]) continue;
          const logits = expected.logits[i] as Float32Array;
          const tie = Math.abs((logits[token] ?? 0) - (logits[expected.continuation[i] ?? 0] ?? 0));
          assert.ok(tie <= 1e-4, `prompt ${p} row ${e} differs at token ${i} by ${tie}`);
          break;
        }
      }
    }
    await batched.close();
    await single.close();
  });
}

/** Everything of a row but what was measured of its edits. */
function outcome(row: SweepRow | undefined) {
  return { ...row, effects: [] };
}

test("a neutral edit is the baseline itself, and equal edits give equal rows", async () => {
  const context = await model.createContext({ nCtx: 512, maxSequences: 16 });
  const [prompt] = await prompts();
  const [trial] = await context.sweep({
    prompts: [prompt as Int32Array],
    plans: [
      [{ layer: 1 }],
      [{ layer: 1, scale: 0.5 }],
      [{ layer: 1, vector: new Float32Array(model.info.nEmbd) }],
      [{ layer: 1, scale: 0.5 }],
      [],
    ],
    maxTokens: 8,
  });
  for (const neutral of [0, 2, 4]) assert.equal(outcome(trial?.rows[neutral]), outcome(trial?.baseline));
  assert.equal(trial?.rows[1], trial?.rows[3]);
  assert.is.not(trial?.rows[1]?.probability, trial?.baseline.probability);
  await context.close();
});

test("prompts that do not fit at once are swept in chunks with the same result", async () => {
  const wide = await model.createContext({ nCtx: 2048, maxSequences: 64 });
  const narrow = await model.createContext({ nCtx: 64, maxSequences: 4 });
  const texts = await prompts();
  const request = { prompts: texts, plans: [0, 2].map((scale) => [{ layer: 3, scale }]), maxTokens: 8 };
  const [all, chunked] = [await wide.sweep(request), await narrow.sweep(request)];
  for (const [p, trial] of all.entries()) {
    assert.is(chunked[p]?.target, trial.target);
    for (const [r, row] of trial.rows.entries()) {
      assert.ok(Math.abs(row.probability - (chunked[p]?.rows[r]?.probability ?? 9)) <= 1e-5);
    }
  }
  await wide.close();
  await narrow.close();
});

test("what cannot be swept is refused with the numbers", async () => {
  const context = await model.createContext({ nCtx: 32, maxSequences: 2 });
  const [prompt] = await prompts();
  const refused = async (request: object, code: string, words: RegExp) => {
    try {
      await context.sweep({ prompts: [prompt as Int32Array], plans: [], maxTokens: 4, ...request });
      assert.unreachable();
    } catch (error) {
      assert.instance(error, NativeError);
      assert.is((error as NativeError).code, code);
      assert.match((error as NativeError).message, words);
    }
  };
  await refused({ plans: [[{ layer: 99 }]] }, "LAYER_OUT_OF_RANGE", /Layer 99 .* 0 to /);
  await refused(
    { plans: [0, 2].map((scale) => [{ layer: 0, scale }]) },
    "INVALID_ARGUMENT",
    /3 sequences.* 2 at once/,
  );
  await refused({ maxTokens: 1000 }, "TOKEN_LIMIT", new RegExp(`holds ${context.nCtx}`));
  await refused({ plans: [[{ layer: 0, vector: new Float32Array(3) }]] }, "INVALID_ARGUMENT", /3 values/);
  await refused({ targets: Int32Array.of(1 << 30) }, "INVALID_ARGUMENT", /vocabulary/);
  await refused({ signal: AbortSignal.abort() }, "CANCELLED", /cancelled/);
  await context.close();
});

test("a row whose logits are not finite says so, and the others go on", async () => {
  const context = await model.createContext({ nCtx: 256, maxSequences: 3 });
  const [prompt] = await prompts();
  const [trial] = await context.sweep({
    prompts: [prompt as Int32Array],
    plans: [[{ layer: 2, scale: 3e38 }], [{ layer: 2 }]],
    maxTokens: 4,
  });
  assert.equal(
    [trial?.baseline, ...(trial?.rows ?? [])].map((row) => [row?.finite, row?.continuation.length]),
    [
      [true, trial?.rows[1]?.continuation.length],
      [false, 0],
      [true, trial?.baseline.continuation.length],
    ],
  );
  assert.equal(outcome(trial?.rows[1]), outcome(trial?.baseline));
  await context.close();
});

test("plans that differ in one field only are computed apart, equal ones give the same", async () => {
  const context = await model.createContext({ nCtx: 512, maxSequences: 32 });
  const vector = direction().map((x) => 30 * x);
  const plain: Edit = { layer: 0, strength: 20, unit: "unit", vector };
  const clamp: Edit = { ...plain, kind: "clamp", min: 10, max: 40 };
  const plans: Edit[] = [
    plain,
    { ...plain, vector: vector.slice() },
    { ...plain, unit: "vector" },
    { ...plain, unit: "row_norm" },
    { ...plain, scale: 0.5 },
    clamp,
    { ...clamp, min: 30 },
  ];
  const [prompt] = (await prompts()) as [Int32Array];
  const [trial] = await context.sweep({
    prompts: [prompt],
    plans: plans.map((edit) => [edit]),
    maxTokens: 0,
  });
  const targets = Int32Array.of(trial?.target as number);
  const alone: number[] = [];
  for (const edit of plans) {
    const [one] = await context.sweep({ prompts: [prompt], plans: [[edit]], targets, maxTokens: 0 });
    alone.push(one?.rows[0]?.probability as number);
  }
  trial?.rows.forEach(({ probability }, at) => {
    assert.ok(Math.abs(probability - (alone[at] as number)) < 1e-3, `plan ${at}`);
  });
  // They do differ, so that a plan that was taken for another would show.
  const gap = (one: number, other: number) => Math.abs((alone[one] as number) - (alone[other] as number));
  assert.ok(gap(0, 1) < 1e-3);
  for (const other of [2, 3, 4]) assert.ok(gap(0, other) > 2e-3, `plan ${other}`);
  assert.ok(gap(5, 6) > 2e-3);
  await context.close();
});

test("each prompt has the target that was named for it, or its own most probable token", async () => {
  const context = await model.createContext({ nCtx: 256, maxSequences: 8 });
  const single = await model.createContext({ nCtx: 128 });
  const texts = await prompts();
  const edit: Edit = { layer: 3, scale: 0.5 };
  const named = [300, -1, 17];
  const trials = await context.sweep({
    prompts: texts,
    plans: [[edit]],
    targets: Int32Array.from(named),
    maxTokens: 0,
  });
  assert.is(trials.length, 3);
  for (const [index, { target, baseline, rows }] of trials.entries()) {
    for (const [seen, edits] of [
      [baseline.probability, []],
      [rows[0]?.probability, [edit]],
    ] as const) {
      await single.reset();
      const tokens = texts[index] as Int32Array;
      const { logits } = await single.advance({ tokens, layers: [3], logits: true, edits: [...edits] });
      const all = logits as Float32Array;
      if (edits.length === 0) {
        assert.is(target, named[index] === -1 ? all.indexOf(Math.max(...all)) : (named[index] as number));
      }
      const most = Math.max(...all);
      const total = all.reduce((sum, value) => sum + Math.exp(value - most), 0);
      const expected = Math.exp((all[target] as number) - most) / total;
      assert.ok(Math.abs((seen as number) - expected) < 1e-4, `prompt ${index}: ${seen} and ${expected}`);
    }
  }
  await context.close();
  await single.close();
});

test.run();
