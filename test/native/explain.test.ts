import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Context, type ExplainRequest, Model, quantise } from "../../src/native/index.js";
import { tinyVocabulary, writeTinyModel } from "../inference/support/tiny-models.js";
import { tokenEmbedding } from "../support/embeddings.js";
import { writeExpertsModel } from "../support/experts-model.js";
import { writeInF32 } from "../support/f32-model.js";
import { demo, rejects, scratch } from "./demo-model.js";

const folder = scratch();

interface Subject {
  path: string;
  model: Model;
  context: Context;
  before: Int32Array;
  after: Int32Array;
}
const subjects: Subject[] = [];

async function open(path: string): Promise<Subject> {
  const model = await Model.open(path, { gpuLayers: 0 });
  const context = await model.createContext({ threads: 1, nCtx: 128, nBatch: 16 });
  const before = await model.tokenize("The capital of");
  const after = await model.tokenize(" is", { special: false });
  return { path, model, context, before, after };
}

test.before(async () => {
  const paths = ["f32", "q8", "experts"].map((name) => join(folder, `${name}.gguf`));
  const [f32, q8, experts] = paths as [string, string, string];
  writeInF32(demo, f32);
  await quantise({ from: demo, to: q8, form: "Q8_0", threads: 1 });
  await writeExpertsModel(experts, {
    ...{ groups: 1, groupsUsed: 1, gate: "softmax", biased: false, normed: false, scale: 1 },
  });
  for (const path of [demo, ...paths]) subjects.push(await open(path));
});
test.after(async () => {
  for (const { model } of subjects) await model.close();
});

const first = () => subjects[0] as Subject;

/** To the bit; a list of differences would be long. */
function same(a: Float32Array | undefined, b: Float32Array | undefined): boolean {
  const bytes = (list: Float32Array = new Float32Array(0)) =>
    Buffer.from(list.buffer, list.byteOffset, list.byteLength);
  return (a?.length ?? 0) > 0 && bytes(a).equals(bytes(b));
}

/** Greedy continuation behind some tokens' logits, by passes of one token each. */
async function continued({ model, context }: Subject, logits: Float32Array, most: number) {
  const tokens: number[] = [];
  for (let row = logits; ; ) {
    const best = row.indexOf(Math.max(...row));
    if (model.info.endOfGeneration.includes(best)) return { tokens, ended: true };
    tokens.push(best);
    if (tokens.length === most) return { tokens, ended: false };
    row = (await context.advance({ tokens: Int32Array.of(best), layers: [], logits: true })).logits!;
  }
}

test("a token's own embedding gives what typing the token gives, to the bit", async () => {
  for (const subject of subjects) {
    const { context, model, path } = subject;
    assert.equal(await context.embeddingInput(), { supported: true, reason: "", tokenScale: 1 }, path);
    const long = Int32Array.from({ length: 40 }, (_, i) => (i * 7 + 3) % model.info.nVocab);
    const none = new Int32Array(0);
    for (const [before, after] of [
      [subject.before, subject.after],
      [none, subject.after],
      [subject.before, none],
      [none, none],
      [long, long], // several batches each
    ] as const) {
      for (const token of [subject.before[1] as number, 5, model.info.nVocab - 3]) {
        const row = await tokenEmbedding(path, token, model.info.nEmbd);
        const other = await tokenEmbedding(path, token - 1, model.info.nEmbd);
        const [given, typed, another] = await context.explain({
          ...{ before, after, fillings: [{ row }, { token }, { row: other }], maxTokens: 12, logits: true },
        });
        const where = `${path}, token ${token} after ${before.length}`;
        assert.ok(same(given!.logits, typed!.logits), where);
        assert.equal(given!.answers, typed!.answers, where);
        assert.not.ok(same(another!.logits, typed!.logits), where);
        // Typed by hand, with the same passes.
        await context.reset();
        if (before.length > 16) continue;
        if (before.length > 0) await context.advance({ tokens: before, layers: [] });
        const place = await context.advance({ tokens: Int32Array.of(token), layers: [], logits: true });
        const last =
          after.length === 0 ? place : await context.advance({ tokens: after, layers: [], logits: true });
        assert.ok(same(last.logits, typed!.logits), where);
        const expected = await continued(subject, last.logits!, 12);
        assert.equal({ ...typed!.answers[0]!, tokens: [...typed!.answers[0]!.tokens] }, expected);
      }
    }
  }
});

test("each filling and each sample is answered as if it were the only one", async () => {
  for (const { path, model, context, before, after } of subjects) {
    const { nEmbd } = model.info;
    const rows = [3, 77, 200].map((seed) =>
      Float32Array.from({ length: nEmbd }, (_, i) => Math.sin(seed * i)),
    );
    const fillings = [{ row: rows[0]! }, {}, { row: rows[1]! }, { token: 9 }, { row: rows[2]! }];
    const draws = Float64Array.from({ length: 3 * 8 }, (_, i) => (i * 0.618) % 1);
    const request = { before, after, maxTokens: 8, samples: 3, temperature: 1.5, draws, logits: true };
    const together = await context.explain({ ...request, fillings });
    for (const [i, filling] of fillings.entries()) {
      const [alone] = await context.explain({ ...request, fillings: [filling] });
      assert.equal(together[i], alone, `${path}, filling ${i}`);
      for (const sample of [0, 1, 2]) {
        const [one] = await context.explain({
          ...request,
          ...{ fillings: [filling], samples: 1, draws: draws.slice(sample * 8, sample * 8 + 8) },
        });
        assert.equal(one!.answers[0], alone!.answers[sample], `${path}, filling ${i}, sample ${sample}`);
      }
    }
    // Nothing in the place: the tokens behind it follow those before it.
    await context.reset();
    await context.advance({ tokens: before, layers: [] });
    const bare = await context.advance({ tokens: after, layers: [], logits: true });
    assert.equal(together[1]!.logits, bare.logits);
  }
});

test("a drawn token is the one at its share of the probabilities", async () => {
  const { context, before, after } = first();
  const draws = Float64Array.of(0.02, 0.5, 0.98, 0.999999, 0, 0.7);
  const temperature = 2;
  const [explained] = await context.explain({
    ...{
      before,
      after,
      fillings: [{ token: 300 }],
      maxTokens: draws.length,
      temperature,
      draws,
      logits: true,
    },
  });
  await context.reset();
  await context.advance({ tokens: before, layers: [] });
  await context.advance({ tokens: Int32Array.of(300), layers: [] });
  let { logits } = await context.advance({ tokens: after, layers: [], logits: true });
  for (const [i, token] of explained!.answers[0]!.tokens.entries()) {
    const highest = Math.max(...logits!);
    const weights = [...logits!].map((logit) => Math.exp((logit - highest) / temperature));
    const total = weights.reduce((a, b) => a + b);
    const below = weights.slice(0, token).reduce((a, b) => a + b, 0) / total;
    const draw = draws[i] as number;
    assert.ok(below <= draw + 1e-9, `${below} is beyond ${draw}`);
    assert.ok(below + weights[token]! / total > draw - 1e-9, `token ${token} ends before ${draw}`);
    ({ logits } = await context.advance({ tokens: Int32Array.of(token), layers: [], logits: true }));
  }
  assert.ok(explained!.answers[0]!.tokens.length > 2);
});

test("a token that has no share at all is never drawn, also not by the lowest number", async () => {
  const { context, before, after } = first();
  const request = { before, after, fillings: [{ token: 300 }], maxTokens: 4 };
  const [likeliest] = await context.explain(request);
  // Divided by this, whatever is a little less likely has a share that no number holds.
  const draws = Float64Array.of(0, 0, 0, 0);
  const [drawn] = await context.explain({ ...request, draws, temperature: 1e-6 });
  assert.equal(drawn!.answers, likeliest!.answers);
});

test("where positions have four axes, and images more numbers than an embedding, a row stands as a token does", async () => {
  const path = join(folder, "axes.gguf");
  const sizes = { block_count: 2, context_length: 512, embedding_length: 32, feed_forward_length: 32 };
  const attention = { head_count: 1, head_count_kv: 1, key_length: 16, value_length: 16 };
  const keys = {
    ...sizes,
    ...Object.fromEntries(Object.entries(attention).map(([key, value]) => [`attention.${key}`, value])),
    "attention.layer_norm_rms_epsilon": { f32: 1e-6 },
    "rope.freq_base": { f32: 100 },
    // Each axis turns two of a head's eight pairs.
    "rope.dimension_sections": Int32Array.of(2, 2, 2, 2),
    n_deepstack_layers: 1,
  };
  await writeTinyModel(path, {
    metadata: {
      "general.architecture": "qwen3vl",
      ...Object.fromEntries(Object.entries(keys).map(([key, value]) => [`qwen3vl.${key}`, value])),
    },
  });
  const subject = await open(path);
  try {
    const { context } = subject;
    assert.equal(await context.embeddingInput(), { supported: true, reason: "", tokenScale: 1 });
    const [before, after] = [Int32Array.of(40, 90, 60, 70), Int32Array.of(50, 45)];
    for (const token of [5, 66, tinyVocabulary - 3]) {
      const row = await tokenEmbedding(path, token, 32);
      const [given, typed] = await context.explain({
        ...{ before, after, fillings: [{ row }, { token }], maxTokens: 3, logits: true },
      });
      assert.ok(same(given?.logits, typed?.logits), `token ${token}`);
      await context.reset();
      const whole = Int32Array.of(...before, token, ...after);
      const { logits } = await context.advance({ tokens: whole, layers: [], logits: true });
      const apart = logits!.map((logit, i) => Math.abs(logit - given!.logits![i]!));
      assert.ok(Math.max(...apart) < 1e-4, `token ${token}: ${Math.max(...apart)}`);
    }
  } finally {
    await subject.model.close();
  }
});

test("an answer that the model ends is distinguished from a truncated one", async () => {
  const { context, model } = first();
  const [ending] = model.info.endOfGeneration;
  const before = await model.tokenize("The capital of France is Paris", { special: true });
  const seen = new Set<boolean>();
  for (const maxTokens of [1, 64]) {
    let told = "";
    const [{ answers } = { answers: [] }] = await context.explain({
      ...{ before: before.slice(0, -1), after: before.slice(-1), fillings: [{}], maxTokens },
      onProgress: (done, total) => {
        told = `${done} of ${total}`;
      },
    });
    // What an answer does not say counts as done.
    assert.is(told, `${maxTokens} of ${maxTokens}`);
    const [{ tokens, ended } = { tokens: new Int32Array(0), ended: true }] = answers;
    assert.ok(ended ? tokens.length < maxTokens : tokens.length === maxTokens);
    assert.not.ok(tokens.includes(ending as number));
    seen.add(ended);
  }
  assert.is(seen.size, 2, "one was cut, one ended");
});

test("an impossible explanation is refused, and the context stays usable", async () => {
  const { context, before, after, model } = first();
  const row = new Float32Array(model.info.nEmbd).fill(0.1);
  const request: ExplainRequest = { before, after, fillings: [{ row }], maxTokens: 2 };
  const refused = async (change: Partial<ExplainRequest>, says: RegExp, code = "INVALID_ARGUMENT") =>
    rejects(context.explain({ ...request, ...change }), code as "INVALID_ARGUMENT", says);
  await refused(
    { fillings: [{ row: row.slice(1) }] },
    /^A row must have 128 values, as a token's embedding, got 127\.$/,
  );
  await refused({ fillings: [{ row: row.map((v, i) => (i === 5 ? Number.NaN : v)) }] }, /must be finite/);
  await refused({ fillings: [{ token: 1792 }] }, /Token id 1792 is outside/);
  await refused({ before: Int32Array.of(-4) }, /Token id -4 is outside/);
  await refused({ fillings: [] }, /at least one row/);
  await refused({ fillings: [{}], after: new Int32Array(0) }, /^An empty filling needs tokens after it\.$/);
  await refused({ maxTokens: 0 }, /maxTokens must be an integer from 1/);
  await refused({ maxTokens: 300 }, /needs 30\d tokens; the context holds 256/, "TOKEN_LIMIT");
  // One that fills the context is answered, one more token is too many.
  const filled = (length: number) => ({ before: new Int32Array(length).fill(300), maxTokens: 1 });
  const room = 256 - 1 - after.length - 1;
  assert.is((await context.explain({ ...request, ...filled(room) })).length, 1);
  await refused(filled(room + 1), /needs 257 tokens; the context holds 256/, "TOKEN_LIMIT");
  // Nothing in the place takes none of it.
  const nothing = { ...filled(room + 1), fillings: [{}] };
  assert.is((await context.explain({ ...request, ...nothing })).length, 1);
  await refused({ draws: Float64Array.of(0.1, 0.2), temperature: 0 }, /temperature above 0/);
  await refused({ draws: Float64Array.of(0.1, 1), temperature: 1 }, /0 to below 1/);
  await refused(
    { draws: Float64Array.of(0.1), temperature: 1 },
    /^Sampling needs a temperature above 0, and for each token a number from 0 to below 1\.$/,
  );
  const controller = new AbortController();
  controller.abort();
  await refused({ signal: controller.signal }, /./, "CANCELLED");
  assert.is((await context.explain(request)).length, 1);
});

test("an explanation that is cancelled among its tokens ends there, and the context works on", async () => {
  const path = join(scratch(), "long.gguf");
  await writeTinyModel(path, { metadata: { "qwen3.context_length": 32_768 } });
  const model = await Model.open(path, { gpuLayers: 0 });
  const context = await model.createContext({ threads: 1, nCtx: 32_768 });
  const request = { before: Int32Array.of(40, 41), after: Int32Array.of(42), fillings: [{ token: 43 }] };
  const before = await context.explain({ ...request, maxTokens: 200 });
  assert.is(before[0]!.answers[0]!.tokens.length, 200, "the answer does not end by itself");
  // More tokens than are made while this process waits for a processor.
  const stop = new AbortController();
  const { signal } = stop;
  const cancelled = context.explain({
    ...request,
    maxTokens: 30_000,
    signal,
    onProgress: () => stop.abort(),
  });
  await rejects(cancelled, "CANCELLED", /cancelled/);
  assert.equal(await context.explain({ ...request, maxTokens: 200 }), before);
  await model.close();
});

test.run();
