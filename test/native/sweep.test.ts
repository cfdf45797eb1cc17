import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Edit, Model, NativeError, type SweepRow } from "../../src/native/index.js";
import { writeTinyModel } from "../inference/support/tiny-models.js";
import { sequentialSweep } from "../support/sequential-sweep.js";
import { rejects, scratch } from "./demo-model.js";

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
    const batched = await model.createContext({ threads: 1, nCtx: 1024, maxSequences: 32 });
    const single = await model.createContext({ threads: 1, nCtx: 128 });
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
  const context = await model.createContext({ threads: 1, nCtx: 512, maxSequences: 16 });
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

test("a context of as many sequences as there are different rows is enough", async () => {
  const [prompt] = (await prompts()) as [Int32Array];
  const vector = direction();
  const neutral: Edit[] = [
    { layer: 1 },
    { layer: 1, kind: "clamp", vector, min: 50, strength: 0 },
    { layer: 1, kind: "project_out", vector, strength: 0 },
    { layer: 1, vector: new Float32Array(vector.length), strength: 3, unit: "row_norm" },
  ];
  const half: Edit[] = [0, 1].map((layer) => ({ layer, scale: 0.5 }));
  const context = await model.createContext({ threads: 1, nCtx: 128, maxSequences: 3 });
  const plans = [...neutral, ...half, ...half].map((edit) => [edit]);
  const [trial] = await context.sweep({ prompts: [prompt], plans, maxTokens: 3 });
  // Neutral plans are the baseline, equal ones one row: with it there are three.
  for (const at of neutral.keys()) assert.equal(outcome(trial?.rows[at]), outcome(trial?.baseline));
  for (const at of half.keys()) assert.equal(trial?.rows[4 + at], trial?.rows[6 + at]);
  const more = [...plans, [{ layer: 2, scale: 0.5 }]];
  const refused = await context.sweep({ prompts: [prompt], plans: more, maxTokens: 3 }).catch(String);
  assert.match(String(refused), /9 plans of edits needs 4 sequences; this context computes 3 at once\./);
  await context.close();
});

test("prompts that do not fit at once are swept in chunks with the same result", async () => {
  const wide = await model.createContext({ threads: 1, nCtx: 2048, maxSequences: 64 });
  const narrow = await model.createContext({ threads: 1, nCtx: 64, maxSequences: 4 });
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
  const context = await model.createContext({ threads: 1, nCtx: 32, maxSequences: 2 });
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
  // A cell for each of 10 tokens, for 9 of them once more where they are changed, and for n tokens of each row.
  const exact = await model.createContext({ threads: 1, nCtx: 256, maxSequences: 2 });
  const all = {
    prompts: [new Int32Array(10).fill(300)],
    plans: [[{ layer: 0, scale: 0.5, positions: "all" as const }]],
  };
  await rejects(
    exact.sweep({ ...all, maxTokens: 119 }),
    "TOKEN_LIMIT",
    /needs 257 tokens; the context holds 256/,
  );
  assert.is((await exact.sweep({ ...all, maxTokens: 118 })).length, 1);
  await exact.close();
});

test("a row whose logits are not finite says so, and the others go on", async () => {
  const context = await model.createContext({ threads: 1, nCtx: 256, maxSequences: 3 });
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

test("plans that differ in one field are separate; equal ones agree", async () => {
  const context = await model.createContext({ threads: 1, nCtx: 1024, maxSequences: 32 });
  const vector = direction().map((x) => 30 * x);
  const plain: Edit = { layer: 0, strength: 20, unit: "unit", vector };
  const clamp: Edit = { ...plain, kind: "clamp", min: 10, max: 40 };
  const head: Edit = { layer: 3, point: "head_out", heads: [0], scale: 0 };
  // Each beside the edit from which it differs in one field.
  const pairs: [one: Edit, other: Edit][] = [
    [plain, { ...plain, layer: 1 }],
    [plain, { ...plain, point: "attn_out" }],
    [plain, { ...plain, positions: [[0, 2]] }],
    [plain, { ...plain, strength: 10 }],
    [plain, { ...plain, unit: "vector" }],
    [plain, { ...plain, unit: "row_norm" }],
    [plain, { ...plain, scale: 0.5 }],
    [plain, { ...plain, vector: vector.map((x) => -x) }],
    [plain, { ...plain, kind: "project_out" }],
    [clamp, { ...clamp, min: 30 }],
    [
      { ...clamp, min: -40, max: -10 },
      { ...clamp, min: -40, max: -30 },
    ],
    [head, { ...head, heads: [1] }],
    [head, { ...head, heads: [0, 1] }],
  ];
  const plans = [plain, { ...plain, vector: vector.slice() }, ...pairs.flat()];
  const [prompt] = (await prompts()) as [Int32Array];
  const [trial] = await context.sweep({
    prompts: [prompt],
    plans: plans.map((edit) => [edit]),
    maxTokens: 0,
  });
  const targets = Int32Array.of(trial?.target as number);
  const told = (row: SweepRow | undefined) => {
    const [effect] = row?.effects ?? [];
    return [row?.probability, effect?.rows, effect?.rowLength, effect?.changeLength] as number[];
  };
  const apart = (one: number[], other: number[]) =>
    Math.max(...one.map((value, i) => Math.abs(value - (other[i] as number)) / Math.max(1, Math.abs(value))));
  const alone: number[][] = [];
  for (const [at, edit] of plans.entries()) {
    const [one] = await context.sweep({ prompts: [prompt], plans: [[edit]], targets, maxTokens: 0 });
    alone.push(told(one?.rows[0]));
    const gap = apart(alone[at] as number[], told(trial?.rows[at]));
    assert.ok(gap < 1e-4, `plan ${at} is ${gap} from what it is alone`);
  }
  assert.equal(trial?.rows[1], trial?.rows[0]);
  // They do differ, so that a plan that was taken for another would show.
  for (const [at, [, { vector: _, ...other }]] of pairs.entries()) {
    const gap = apart(alone[2 + 2 * at] as number[], alone[3 + 2 * at] as number[]);
    assert.ok(gap > 1e-3, `${JSON.stringify(other)} is ${gap} from its neighbour`);
  }
  await context.close();
});

test("each prompt has its named target, or its most probable next token", async () => {
  const context = await model.createContext({ threads: 1, nCtx: 256, maxSequences: 8 });
  const single = await model.createContext({ threads: 1, nCtx: 128 });
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

test("a sweep that is cancelled among its tokens ends there, and the context works on", async () => {
  const path = join(scratch(), "long.gguf");
  await writeTinyModel(path, { metadata: { "qwen3.context_length": 32_768 } });
  const long = await Model.open(path);
  const context = await long.createContext({ threads: 1, nCtx: 32_768, maxSequences: 2 });
  const sweep = (maxTokens: number, more: object = {}) =>
    context.sweep({
      ...{ prompts: [Int32Array.of(40, 41, 42)], plans: [[{ layer: 0, scale: 0.5 }]], maxTokens, ...more },
    });
  const before = await sweep(200);
  assert.is(before[0]!.baseline.continuation.length, 200, "the text does not end by itself");
  // More tokens than are made while this process waits for a processor.
  const stop = new AbortController();
  const cancelled = sweep(15_000, { signal: stop.signal, onProgress: () => stop.abort() });
  await rejects(cancelled, "CANCELLED", /cancelled/);
  assert.equal(await sweep(200), before);
  await long.close();
});

test.run();
