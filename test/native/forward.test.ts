/** Forward passes over whole texts, compared with `advance`, `features` and results computed here. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Context, type Edit, type ForwardResult, Model, type Point } from "../../src/native/index.js";
import { apart, demo, layersOf, logitsOf, rejects, someTokens } from "./demo-model.js";

const hidden = 128;
let model: Model;
let context: Context;
let texts: Int32Array[];
let vocabulary: number;

test.before(async () => {
  model = await Model.open(demo);
  vocabulary = model.info.nVocab;
  context = await model.createContext({ nCtx: 256, nBatch: 64, maxSequences: 16 });
  texts = await Promise.all(
    ["The capital of France is", "Tom", "The capital of Japan is a city that Lucy likes."].map((text) =>
      model.tokenize(text),
    ),
  );
});
test.after(() => model.close());

const sequences = (edits?: Edit[][]) =>
  texts.map((tokens, i) => ({ tokens, ...(edits && { edits: edits[i]! }) }));
/** What `advance` returns for one text by itself. */
async function alone(tokens: Int32Array, layer: number, point: Point): Promise<Float32Array> {
  await context.reset();
  const { layers } = await context.advance({ tokens, layers: [layer], points: [point], logits: true });
  return layers[0]!.states!.data;
}
const valuesOf = ({ captures }: ForwardResult, capture = 0) => captures[capture]!.values as Float32Array;
const logitsIn = ({ logits }: ForwardResult) => logits!.data as Float32Array;
/** The rows of one text in the result. */
function rowsOf(found: ForwardResult, capture: number, text: number): Float32Array {
  const { width } = found.captures[capture]!;
  const values = valuesOf(found, capture);
  const before = texts.slice(0, text).reduce((sum, { length }) => sum + length, 0);
  return values.subarray(before * width, (before + texts[text]!.length) * width);
}
const vector = Float32Array.from({ length: hidden }, (_, i) => Math.sin(i));

test("rows of packed texts equal those of each text alone", async () => {
  const captures = layersOf(model).flatMap((layer) =>
    (["block_in", "head_out", "attn_out", "mid", "ffn_out", "block_out"] as const).map((point) => ({
      layer,
      point,
    })),
  );
  const found = await context.forward({ sequences: sequences(), captures, logits: "last" });
  for (const [i, { layer, point }] of captures.entries()) {
    for (const [text, tokens] of texts.entries()) {
      const far = apart(rowsOf(found, i, text), await alone(tokens, layer, point));
      assert.ok(far < 2e-6, `${point} of block ${layer}, text ${text}: ${far}`);
    }
  }
});

test("one text's rows and last logits are those of advance, to the bit", async () => {
  const [tokens] = texts as [Int32Array];
  for (const [layer, point] of [
    [3, "attn_out"],
    [7, "block_out"],
    [7, "ffn_out"],
    [0, "block_in"],
  ] as const) {
    const found = await context.forward({
      sequences: [{ tokens }],
      captures: [{ layer, point }],
      logits: "last",
    });
    assert.equal(valuesOf(found, 0), await alone(tokens, layer, point), `${point} of block ${layer}`);
    assert.equal(logitsIn(found), await logitsOf(context, { tokens, layers: [] }));
    assert.equal(found.logits!.shape, [1, vocabulary]);
  }
});

test("rows without logits are those of features, to the bit", async () => {
  const rows = await context.features({ sequences: texts, layers: [2, 7], rows: "all" });
  const captures = [2, 7].map((layer) => ({ layer, point: "block_out" as const }));
  const found = await context.forward({ sequences: sequences(), captures });
  assert.is(found.logits, undefined);
  for (const [i, layer] of [2, 7].entries()) assert.equal(valuesOf(found, i), rows.get(layer)!.data);
});

test("logits of all positions are those after each beginning of the text", async () => {
  const found = await context.forward({ sequences: sequences(), logits: "all" });
  let row = 0;
  for (const tokens of texts) {
    for (let end = 1; end <= tokens.length; ++end, ++row) {
      const beginning = await logitsOf(context, { tokens: tokens.slice(0, end), layers: [] });
      const logits = logitsIn(found).slice(row * vocabulary, (row + 1) * vocabulary);
      assert.ok(apart(logits, beginning) < 1e-5, `row ${row}`);
    }
  }
  assert.equal(found.logits!.shape, [row, vocabulary]);
});

test("positions choose rows and logits, from the end if they are negative", async () => {
  const captures = [{ layer: 7, point: "block_out" as const }];
  const all = await context.forward({ sequences: sequences(), captures, logits: "all" });
  const some = await context.forward({
    sequences: sequences(),
    captures,
    positions: Int32Array.of(-1, 0),
    logits: Int32Array.of(1, -1),
  });
  let start = 0;
  for (const [text, { length }] of texts.entries()) {
    const row = (values: Float32Array, index: number, width: number) =>
      values.slice(index * width, (index + 1) * width);
    const last = start + length - 1;
    for (const [j, index] of [last, start].entries()) {
      const expected = row(valuesOf(all, 0), index, hidden);
      assert.ok(apart(row(valuesOf(some, 0), 2 * text + j, hidden), expected) < 1e-6);
    }
    for (const [j, index] of [start + 1, last].entries()) {
      assert.ok(
        apart(row(logitsIn(some), 2 * text + j, vocabulary), row(logitsIn(all), index, vocabulary)) < 1e-5,
      );
    }
    start += length;
  }
});

test("a text longer than a batch has the rows and logits of a larger batch", async () => {
  const tokens = someTokens(150, vocabulary);
  const large = await model.createContext({ nCtx: 256, nBatch: 256 });
  const request = {
    sequences: [{ tokens: texts[0]! }, { tokens }, { tokens: texts[1]! }],
    captures: layersOf(model).map((layer) => ({ layer, point: "block_out" as const })),
    logits: "all" as const,
  };
  const chunked = await context.forward(request);
  const whole = await large.forward(request);
  for (const i of layersOf(model)) {
    assert.ok(apart(valuesOf(chunked, i), valuesOf(whole, i)) < 1e-5, `block ${i}`);
  }
  assert.ok(apart(logitsIn(chunked), logitsIn(whole)) < 1e-4);
  const last = await context.forward({ ...request, logits: "last" });
  for (const i of layersOf(model)) {
    assert.ok(apart(valuesOf(last, i), valuesOf(whole, i)) < 1e-5, `block ${i}, second pass`);
  }
  await large.close();
});

test("captures in the last block change no logit, and logits no captured row", async () => {
  const edits: Edit[] = [
    { layer: 2, strength: 2, vector, positions: "all" },
    { layer: 7, point: "attn_out", strength: 1, vector, positions: [[-2, -1]] },
    { layer: 7, point: "ffn_out", scale: 0.5, positions: [[-1, -1]] },
    { layer: 7, strength: 1, vector, positions: "all" },
  ];
  const captures = (["attn_out", "mid", "ffn_out", "block_out"] as const).map((point) => ({
    layer: 7,
    point,
  }));
  for (const plans of [undefined, [edits, [], edits]]) {
    for (const logits of ["last", Int32Array.of(0, -1)] as const) {
      const request = { sequences: sequences(plans), logits };
      const found = await context.forward({ ...request, captures });
      const plain = await context.forward(request);
      const rows = await context.forward({ ...request, captures, logits: "none" });
      assert.equal(logitsIn(found), logitsIn(plain));
      assert.equal(found.effects, rows.effects);
      const chosen = (row: number, text: number) =>
        row + 1 === texts[text]!.length || (row === 0 && typeof logits !== "string");
      for (const [i, { point }] of captures.entries()) {
        for (const [text, { length }] of texts.entries()) {
          const [own, expected] = [rowsOf(found, i, text), rowsOf(rows, i, text)];
          for (let row = 0; row < length; row++) {
            const part = (values: Float32Array) => values.slice(row * hidden, (row + 1) * hidden);
            const far = apart(part(own), part(expected));
            assert.ok(
              chosen(row, text) ? far < 1e-5 : far === 0,
              `${point}, text ${text}, row ${row}: ${far}`,
            );
          }
        }
      }
    }
  }
});

test("edits change their own text only, and equal those of advance", async () => {
  const edits: Edit[] = [
    { layer: 3, strength: 2, vector, positions: "all" },
    { layer: 5, point: "attn_out", scale: 0, positions: [[1, 2]] },
  ];
  const captures = [{ layer: 6, point: "block_out" as const }];
  const found = await context.forward({
    sequences: sequences([[], edits.slice(0, 0), edits]),
    captures,
    logits: "last",
  });
  const plain = await context.forward({ sequences: sequences(), captures, logits: "last" });
  assert.equal(rowsOf(found, 0, 0), rowsOf(plain, 0, 0));
  assert.equal(rowsOf(found, 0, 1), rowsOf(plain, 0, 1));
  assert.ok(apart(rowsOf(found, 0, 2), rowsOf(plain, 0, 2)) > 0.01);
  await context.reset();
  const tokens = texts[2]!;
  const { logits, effects } = await context.advance({
    tokens,
    layers: [3, 5],
    points: ["attn_out", "block_out"],
    edits,
    logits: true,
  });
  assert.ok(apart(logitsIn(found).slice(2 * vocabulary), logits!) < 1e-5);
  assert.equal(found.effects.slice(0, 2), [[], []]);
  assert.equal(
    found.effects[2]!.map(({ rows }) => rows),
    [tokens.length, 2],
  );
  for (const [i, { changeLength }] of effects!.entries()) {
    assert.ok(Math.abs(found.effects[2]![i]!.changeLength / changeLength - 1) < 1e-4);
  }
});

test("a row that is edited and captured is the next block's input", async () => {
  const [tokens] = texts as [Int32Array];
  const captures = [
    { layer: 4, point: "block_out" as const },
    { layer: 5, point: "block_in" as const },
  ];
  const plain = await context.forward({ sequences: [{ tokens }], captures });
  const edits = [{ layer: 4, strength: 3, vector, positions: "all" as const }];
  const edited = await context.forward({ sequences: [{ tokens, edits }], captures });
  const expected = valuesOf(plain, 0).map((value, i) => value + 3 * vector[i % hidden]!);
  assert.ok(apart(valuesOf(edited, 0), expected) < 1e-6);
  assert.equal(valuesOf(edited, 1), valuesOf(edited, 0));
});

test("attention of several texts equals that of each alone", async () => {
  const whole = await model.createContext({ nCtx: 256, keepAttention: true, maxSequences: 4 });
  const captures = [0, 6].map((layer) => ({ layer, point: "attention" as const }));
  const found = await whole.forward({ sequences: sequences(), captures, logits: "last" });
  for (const [i, { layer }] of captures.entries()) {
    let start = 0;
    for (const tokens of texts) {
      await whole.reset();
      const { attention } = await whole.advance({ tokens, layers: [], attention: { layers: [layer] } });
      const { data } = attention![0]!.weights;
      assert.equal(valuesOf(found, i).slice(start, start + data.length), data);
      start += data.length;
    }
    assert.is(valuesOf(found, i).length, start);
  }
  await whole.close();
});

test("a request that cannot be computed is refused with a sentence", async () => {
  const captures = [{ layer: 2, point: "block_out" as const }];
  const refused = (request: object, sentence: RegExp, code = "INVALID_ARGUMENT") =>
    rejects(
      context.forward({ sequences: sequences(), captures, ...request } as never),
      code as "INVALID_ARGUMENT",
      sentence,
    );
  await refused({ sequences: [] }, /^At least one sequence is needed\.$/);
  await refused({ captures: [] }, /^A forward pass needs captures or logits\.$/);
  await refused({ captures: [...captures, ...captures] }, /^The output of block 2 is listed twice\.$/);
  await refused({ captures: [{ layer: 2, point: "router" }] }, /router/i, "UNSUPPORTED_ARCHITECTURE");
  await refused({ captures: [{ layer: 8, point: "mid" }] }, /Layer 8 does not exist/, "LAYER_OUT_OF_RANGE");
  await refused({ captures: [{ layer: 2, point: "attention" }] }, /attention/, "UNSUPPORTED_ARCHITECTURE");
  await refused(
    { positions: Int32Array.of(12) },
    /^Position 12 does not exist in sequence 0, which has 6 tokens\.$/,
  );
  await refused({ positions: Int32Array.of(1, 1) }, /^Position 1 is listed twice\.$/);
  await refused(
    { sequences: [{ tokens: someTokens(257, vocabulary) }] },
    /has 257 tokens; at most 256/,
    "TOKEN_LIMIT",
  );
  await refused({ sequences: [{ tokens: Int32Array.of(vocabulary) }] }, /vocabulary/);
  const edits = [{ layer: 2, vector: new Float32Array(3) }];
  await refused({ sequences: [{ tokens: texts[0]!, edits }] }, /3 values/);
});

test("16-bit results are the rounded 32-bit ones", async () => {
  const request = {
    sequences: sequences(),
    captures: [{ layer: 2, point: "mid" as const }],
    logits: "last" as const,
  };
  const found = await context.forward(request);
  const half = await context.forward({ ...request, half: true });
  for (const [values, halves] of [
    [valuesOf(found), half.captures[0]!.values],
    [logitsIn(found), half.logits!.data],
  ] as const) {
    assert.instance(halves, Uint16Array);
    for (const [i, value] of values.entries()) {
      assert.ok(Math.abs(float16(halves[i]!) - value) <= Math.abs(value) / 2048 + 2 ** -25, `${value}`);
    }
  }
});

/** The number that 16 bits stand for, for numbers that are neither infinite nor NaN. */
function float16(bits: number): number {
  const exponent = (bits >> 10) & 31;
  const fraction = (bits & 1023) / 1024;
  const size = exponent === 0 ? fraction * 2 ** -14 : (1 + fraction) * 2 ** (exponent - 15);
  return bits >> 15 ? -size : size;
}

test("a result larger than the limit is refused before the computation", async () => {
  const tokens = texts[0]!;
  const request = { sequences: [{ tokens }], captures: [{ layer: 2, point: "mid" as const }] };
  const bytes = tokens.length * hidden * 4;
  await context.forward({ ...request, maxBytes: bytes });
  const sentence = `The result would have ${bytes} bytes; at most ${bytes - 1} are possible in one call.`;
  await rejects(context.forward({ ...request, maxBytes: bytes - 1 }), "TOKEN_LIMIT", new RegExp(sentence));
  await context.forward({ ...request, maxBytes: bytes / 2, half: true });
});

test("a cancelled forward call leaves a context that works", async () => {
  const signal = AbortSignal.timeout(0);
  const many = Array.from({ length: 64 }, () => ({ tokens: someTokens(200, vocabulary) }));
  await rejects(context.forward({ sequences: many, logits: "last", signal }), "CANCELLED");
  const [tokens] = texts as [Int32Array];
  const found = await context.forward({ sequences: [{ tokens }], logits: "last" });
  assert.equal(logitsIn(found), await logitsOf(context, { tokens, layers: [] }));
});

test.run();
