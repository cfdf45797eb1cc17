import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Context, points as known, Model, type Point } from "../../src/native/index.js";
import { apart, demo, layersOf, logitsOf, rejects } from "./demo-model.js";

/** Those that are one vector of the hidden size a token. */
const points = known.filter((point) => !["attention", "head_out", "router"].includes(point));

let model: Model;
let context: Context;
let tokens: Int32Array;
let layers: number[];
let width: number;
test.before(async () => {
  model = await Model.open(demo);
  context = await model.createContext({ threads: 1, nCtx: 128, maxSequences: 8 });
  tokens = await model.tokenize("The capital of France is Paris, and the capital of Japan is");
  layers = layersOf(model);
  width = model.info.nEmbd;
});
test.after(() => model.close());

/** float32 [tokens, hidden] of a place. */
type At = (layer: number, point: Point) => Float32Array;

async function capture(more: Partial<Parameters<Context["advance"]>[0]> = {}): Promise<At> {
  await context.reset();
  const result = await context.advance({ tokens, layers, points, ...more });
  return (layer, point) =>
    result.layers.find((found) => found.layer === layer && found.point === point)!.states!.data;
}

const sum = (a: Float32Array, b: Float32Array) => a.map((value, i) => value + b[i]!);

test("a block is its input, what attention adds and what the MLP adds, to the bit", async () => {
  for (const point of points) assert.is(context.points[point].supported, true, context.points[point].reason);
  assert.equal(context.form, { parallel: false, normed: false, scaled: false });
  const at = await capture();
  for (const layer of layers) {
    assert.equal(sum(at(layer, "block_in"), at(layer, "attn_out")), at(layer, "mid"));
    assert.equal(sum(at(layer, "mid"), at(layer, "ffn_out")), at(layer, "block_out"));
    if (layer > 0) assert.equal(at(layer, "block_in"), at(layer - 1, "block_out"));
    // Neither half is nothing, and they are not the same.
    assert.ok(apart(at(layer, "mid"), at(layer, "block_in")) > 1e-3);
    assert.ok(apart(at(layer, "attn_out"), at(layer, "ffn_out")) > 0.1);
  }
});

test("the MLP reads the norm of the stream, and nothing else", async () => {
  const at = await capture();
  for (const layer of layers) {
    const [stream, input] = [at(layer, "mid"), at(layer, "ffn_in")];
    // One weight per dimension, whatever the token: an RMS norm's, from the first token alone.
    const scale = (row: Float32Array) => Math.sqrt(row.reduce((sum, x) => sum + x * x, 0) / width + 1e-5);
    const rows = tokens.length;
    const part = (of: Float32Array, row: number) => of.subarray(row * width, (row + 1) * width);
    const weights = Array.from(part(input, 0), (y, i) => (y * scale(part(stream, 0))) / stream[i]!);
    for (let row = 1; row < rows; row++) {
      const expected = Float32Array.from(
        part(stream, row),
        (x, i) => (weights[i]! * x) / scale(part(stream, row)),
      );
      assert.ok(apart(expected, part(input, row)) < 1e-5, `block ${layer}, token ${row}`);
    }
  }
  const all = [[0, tokens.length - 1]] as const;
  const edit = { layer: 3, point: "ffn_in" as const, positions: all };
  const same = await capture({ edits: [{ ...edit, scale: 1 }] });
  for (const point of points) assert.equal(same(7, point), at(7, point), point);
  const zeroed = await capture({ edits: [{ ...edit, scale: 0 }] });
  assert.equal(zeroed(3, "mid"), at(3, "mid"));
  // An MLP without biases makes nothing of zeros.
  assert.ok(zeroed(3, "ffn_out").every((value) => value === 0));
  // With another token's input, a token gets that token's output.
  const from = at(3, "ffn_in").slice(0, width);
  const patched = await capture({ edits: [{ ...edit, positions: [[5, 5]], scale: 0, vector: from }] });
  assert.equal(patched(3, "ffn_out").slice(5 * width, 6 * width), at(3, "ffn_out").slice(0, width));
});

test("the first half reads other tokens, the second its own row only", async () => {
  const other = tokens.slice();
  other[1] = (other[1] as number) + 1;
  const [one, two] = [await capture(), await capture({ tokens: other })];
  const last = (rows: Float32Array) => rows.slice(-width);
  // In the first block, before anything has moved, the last token's input is the same in both texts.
  assert.equal(last(one(0, "block_in")), last(two(0, "block_in")));
  assert.ok(apart(last(one(0, "attn_out")), last(two(0, "attn_out"))) > 1e-4);
  const place = [[tokens.length - 1, tokens.length - 1]] as const;
  const edits = [
    { layer: 0, point: "mid" as const, positions: place, scale: 0, vector: last(one(0, "mid")) },
  ];
  const patched = await capture({ tokens: other, edits });
  assert.equal(last(patched(0, "ffn_out")), last(one(0, "ffn_out")));
});

test("capturing points changes no logit, alone or together, in one pass or in chunks", async () => {
  const plain = await logitsOf(context, { tokens, layers: [] });
  for (const point of points) {
    const watched = await logitsOf(context, { tokens, layers, points: [point], rows: "last" });
    assert.equal(watched, plain, point);
  }
  assert.equal(await logitsOf(context, { tokens, layers, points }), plain);
  const whole = await capture();
  await context.reset();
  const rows: Float32Array[] = [];
  for (const chunk of [tokens.slice(0, 5), tokens.slice(5, 6), tokens.slice(6)]) {
    const { layers: found } = await context.advance({ tokens: chunk, layers: [3], points: ["attn_out"] });
    rows.push(found[0]!.states!.data);
  }
  const chunked = Float32Array.from(rows.flatMap((part) => [...part]));
  assert.ok(apart(chunked, whole(3, "attn_out")) < 1e-3);
});

test("every order of layers and points is returned as requested", async () => {
  const at = await capture();
  await context.reset();
  const { layers: found } = await context.advance({
    tokens,
    layers: [5, 0, 4],
    points: ["mid", "block_in", "block_out"],
    rows: "last",
  });
  assert.equal(
    found.map(({ layer, point }) => `${layer} ${point}`),
    [5, 0, 4].flatMap((layer) => ["mid", "block_in", "block_out"].map((point) => `${layer} ${point}`)),
  );
  for (const { layer, point, states } of found) {
    assert.ok(apart(states!.data, at(layer, point).subarray(-width)) < 1e-3, `${layer} ${point}`);
  }
});

test("packed texts have the same points as each alone", async () => {
  const texts = [tokens, tokens.slice(0, 4), tokens.slice(2, 9)];
  for (const point of points) {
    const packed = await context.features({ sequences: texts, layers: [7, 0, 3], point });
    for (const [i, text] of texts.entries()) {
      const alone = await capture({ tokens: text });
      for (const layer of [7, 0, 3]) {
        const row = packed.get(layer)!.data.subarray(i * width, (i + 1) * width);
        assert.ok(apart(row, alone(layer, point).subarray(-width)) < 2e-3, `${point} ${layer}, text ${i}`);
      }
    }
  }
});

test("two points of packed texts are those of two calls", async () => {
  const texts = [tokens, tokens.slice(0, 4), tokens.slice(2, 9)];
  for (const rows of ["last", "all", "mean"] as const) {
    const request = { sequences: texts, layers: [7, 0, 3], rows };
    for (const [point, target] of [
      ["ffn_in", "ffn_out"],
      ["block_out", "attn_out"],
    ] as const) {
      const both = await context.features({ ...request, point, target });
      const [first, second] = [
        await context.features({ ...request, point }),
        await context.features({ ...request, point: target }),
      ];
      for (const layer of [7, 0, 3]) {
        const what = `${rows}, ${point} and ${target} of ${layer}`;
        assert.equal(both.get(layer)!.data, first.get(layer)!.data, what);
        assert.equal(both.get(layer)!.target!.data, second.get(layer)!.data, what);
        assert.is(first.get(layer)!.target, undefined);
      }
    }
  }
  const request = { sequences: texts, layers: [3, 2] };
  await rejects(
    context.features({ ...request, point: "mid", target: "mid" }),
    "INVALID_ARGUMENT",
    /^The point and the target are the same place: mid of block 3\.$/,
  );
  // A block's input is the output of the one before.
  await rejects(
    context.features({ ...request, point: "block_out", target: "block_in" }),
    "INVALID_ARGUMENT",
    /^The point and the target are the same place: block_in of block 3\.$/,
  );
});

test("an ablated half adds nothing, and later points change accordingly", async () => {
  const at = await capture();
  const without = async (point: "attn_out" | "ffn_out") =>
    capture({ edits: [{ layer: 3, point, positions: "all", scale: 0 }] });
  const noAttention = await without("attn_out");
  // The reading is the computed row, before the edit.
  assert.equal(noAttention(3, "attn_out"), at(3, "attn_out"));
  assert.equal(noAttention(3, "mid"), at(3, "block_in"));
  assert.ok(apart(noAttention(7, "block_out"), at(7, "block_out")) > 0.01);
  const noMlp = await without("ffn_out");
  assert.equal(noMlp(3, "block_out"), at(3, "mid"));
  assert.equal(noMlp(4, "block_in"), at(3, "mid"));
});

test("sweeps patch attention and MLP as a forward pass for each site does", async () => {
  const [clean, corrupted] = (await Promise.all(
    ["The capital of France is", "The capital of Japan is"].map((text) => model.tokenize(text)),
  )) as [Int32Array, Int32Array];
  const [target, foil] = [7, 300];
  const request = {
    clean,
    corrupted,
    layers: [6, 2],
    points: ["ffn_out", "attn_out", "mid"] as Point[],
    target,
    foil,
  };
  const positions = [5, 4];
  const sweep = await (
    await model.createContext({ threads: 1, nCtx: 128, nBatch: 64, maxSequences: 16 })
  ).patchSweep({
    ...request,
    positions,
  });
  const donor = await capture({ tokens: clean });
  let place = 0;
  for (const layer of request.layers) {
    for (const point of request.points) {
      for (const position of positions) {
        const vector = donor(layer, point).slice(position * width, (position + 1) * width);
        const edits = [{ layer, point, positions: [[position, position]] as const, scale: 0, vector }];
        const logits = await logitsOf(context, {
          tokens: corrupted,
          layers: [layer],
          points: [point],
          rows: "last",
          edits,
        });
        const expected = logits[target]! - logits[foil]!;
        assert.ok(Math.abs(sweep.patched[place]! - expected) < 2e-4, `${layer} ${point} ${position}`);
        place++;
      }
    }
  }
  assert.is(sweep.patched.length, place);
});

test("a logit's direction agrees with the model's head", async () => {
  await context.reset();
  const { layers: found, logits } = await context.advance({
    tokens,
    layers: [7],
    rows: "last",
    logits: true,
  });
  const state = found[0]!.states!.data;
  for (const token of [0, 300, model.info.nVocab - 1]) {
    const { direction, constant } = await context.logitDirection(state, token);
    const own = direction.reduce((all, value, i) => all + value * state[i]!, constant);
    // The head's product rounds its other side to F16.
    assert.ok(Math.abs(own - logits![token]!) < 2e-2, `${token}: ${own}, ${logits![token]}`);
  }
  await rejects(
    context.logitDirection(state.slice(1), 0),
    "INVALID_ARGUMENT",
    /A state must have 128 values, got 127/,
  );
  await rejects(
    context.logitDirection(state, model.info.nVocab),
    "INVALID_ARGUMENT",
    /outside the vocabulary/,
  );
});

test("a lens reads the stream before, inside and after a block, but not additions", async () => {
  await context.reset();
  const points: Point[] = ["block_in", "attn_out", "mid", "ffn_in", "ffn_out", "block_out"];
  const { layers: found } = await context.advance({ tokens, layers: [3], points, lensTopK: 1 });
  for (const { point, states, lens } of found) {
    const read = ["block_in", "mid", "block_out"].includes(point);
    assert.is(lens !== undefined, read, point);
    if (!lens) continue;
    for (let row = 0; row < tokens.length; ++row) {
      const logits = await context.lensLogits(states!.data.slice(row * width, (row + 1) * width));
      assert.is(lens.tokenIds[row], logits.indexOf(Math.max(...logits)), `${point}, row ${row}`);
    }
  }
});

test("attention rows sum to 1, and times the values give the heads' inputs", async () => {
  assert.is(context.points.attention.supported, false, "flash attention keeps none");
  const whole = await model.createContext({ threads: 1, nCtx: 64, nBatch: 64, keepAttention: true });
  assert.equal(whole.points.attention.layers, layers);
  const plain = await logitsOf(whole, { tokens, layers: [] });
  await whole.reset();
  const found = await whole.advance({
    tokens,
    layers,
    points: ["head_out"],
    attention: { layers, prove: true },
    logits: true,
  });
  assert.equal(found.logits, plain, "keeping it changes nothing");
  const n = tokens.length;
  const heads = context.points.head_out.heads[0]!;
  for (const [i, { layer, heads: told, weights, apart: off }] of found.attention!.entries()) {
    assert.equal([layer, [...told]], [layers[i], [0, 1, 2, 3]]);
    assert.equal(weights.shape, [heads, n, n]);
    // K and V are kept in F16.
    assert.ok(off > 0 && off < 1e-3, `block ${layer}: ${off}`);
    for (let row = 0; row < heads * n; ++row) {
      const values = weights.data.subarray(row * n, (row + 1) * n);
      assert.ok(Math.abs(values.reduce((all, value) => all + value, 0) - 1) < 1e-5);
      assert.ok(
        values.subarray((row % n) + 1).every((weight) => weight === 0),
        "later tokens are never read",
      );
    }
  }
  // One head alone, of one layer alone, is the same.
  await whole.reset();
  const one = await whole.advance({ tokens, layers: [], attention: { layers: [4], heads: [3] } });
  assert.equal(one.attention![0]!.weights.data, found.attention![4]!.weights.data.slice(3 * n * n));
  await rejects(
    whole.advance({ tokens, layers: [], attention: { layers: [4] } }),
    "INVALID_ARGUMENT",
    /in one pass/,
  );
  await whole.reset();
  const refused = (attention: { layers: number[]; heads?: number[] }) =>
    whole.advance({ tokens, layers: [], attention });
  await rejects(
    refused({ layers: [4], heads: [4] }),
    "INVALID_ARGUMENT",
    /Head 4 does not exist: block 4 has 4 heads, 0 to 3/,
  );
  await rejects(refused({ layers: [4], heads: [3, 3] }), "INVALID_ARGUMENT", /Head 3 is listed twice/);
  await rejects(refused({ layers: [8] }), "LAYER_OUT_OF_RANGE");
  await rejects(
    context.advance({ tokens, layers: [], attention: { layers: [4] } }),
    "UNSUPPORTED_ARCHITECTURE",
    /does not store attention weights/,
  );
});

test("one head removed is its part of the row, and no other's", async () => {
  const size = width / 4;
  const at = async (edits: Parameters<Context["advance"]>[0]["edits"]) => {
    await context.reset();
    const points: Point[] = ["head_out", "attn_out"];
    const { layers: found } = await context.advance({ tokens, layers: [4], points, edits: edits ?? [] });
    return found.map(({ states }) => states!.data);
  };
  const [heads, plain] = await at([]);
  const out = await at([{ layer: 4, point: "head_out", positions: "all", scale: 0 }]);
  assert.ok(
    out[1]!.every((value) => value === 0),
    "without heads, attention adds nothing",
  );
  let all = new Float32Array(plain!.length);
  for (const head of [0, 1, 2, 3]) {
    const [, without] = await at([
      { layer: 4, point: "head_out", heads: [head], positions: "all", scale: 0 },
    ]);
    all = all.map((value, i) => value + plain![i]! - without![i]!);
    // Its own values put back give what was there.
    const last = tokens.length - 1;
    const vector = heads!.slice(last * width + head * size, last * width + (head + 1) * size);
    const edit = { layer: 4, point: "head_out" as const, heads: [head], positions: [[last, last]] as const };
    const [, same] = await at([{ ...edit, scale: 0, vector }]);
    assert.equal(same, plain);
  }
  // The output projection is linear: what each head adds makes up what attention adds.
  assert.ok(apart(all, plain!) < 5e-3, `${apart(all, plain!)}`);
  const wrong = (more: object) => at([{ layer: 4, point: "head_out", ...more }]);
  await rejects(
    wrong({ heads: [4] }),
    "INVALID_ARGUMENT",
    /^Head 4 does not exist at head_out of block 4, which has 4\.$/,
  );
  await rejects(
    wrong({ heads: [0], vector: new Float32Array(width) }),
    "INVALID_ARGUMENT",
    /128 values; there are 32/,
  );
  await rejects(wrong({ heads: [1, 0, 1] }), "INVALID_ARGUMENT", /An edit lists head 1 twice\./);
  await rejects(at([{ layer: 4, heads: [0] }]), "INVALID_ARGUMENT", /head_out/);
});

test("an unknown point is refused", async () => {
  const wrong = (value: unknown) => context.advance({ tokens, layers: [0], points: value as Point[] });
  await rejects(wrong(["heads"]), "INVALID_ARGUMENT", /A point must be block_in.*got "heads"/);
  await rejects(wrong(["mid", "mid"]), "INVALID_ARGUMENT", /mid is listed twice/);
  await rejects(wrong("mid"), "INVALID_ARGUMENT", /Points must be an array/);
  const edits = [{ layer: 0, point: "heads" as Point }];
  await rejects(
    context.advance({ tokens, layers: [0], points: ["mid"], edits }),
    "INVALID_ARGUMENT",
    /A point must be/,
  );
});

test.run();
