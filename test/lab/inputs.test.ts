import { test } from "uvu";
import * as assert from "uvu/assert";
import { exampleTokens } from "../../src/lab/rows/example-tokens.js";
import { headSize, headsOf } from "../../src/lab/rows/heads.js";
import { packedContext, tokensOfBatch } from "../../src/lab/rows/packing.js";
import {
  checkLayers,
  checkPositions,
  pieceLookup,
  rawTokens,
  spaceNote,
  targetToken,
  tokenizeInput,
} from "../../src/lab/rows/tokens.js";
import type { Context, Model } from "../../src/native/index.js";
import { editsFor } from "../../src/operations/compare/run-intervention.js";
import { swapPositions } from "../../src/operations/compare/run-swap.js";
import { checkAttention } from "../../src/operations/inspect/run-attention.js";
import { readMarks } from "../../src/operations/patch_sweep/contract-marked-text.js";
import { lastTokens } from "../../src/operations/patch_sweep/run-aligned-spans.js";
import { refusal } from "../support/refusal.js";
import { wordModel } from "./word-model.js";

test("marks: their text, the end of each span, and malformed marks", async () => {
  assert.equal(readMarks("[[a b]] c [[d]]", "clean"), {
    text: "a b c d",
    spans: [
      { text: "a b", end: 3 },
      { text: "d", end: 7 },
    ],
  });
  for (const [marked, message] of [
    ["a [[b [[c]]", "clean opens a span with [[ inside another span."],
    ["a]] b", "clean has ]] without a matching [[."],
    ["[[a]]]]", "clean has ]] without a matching [[."],
    ["a [[]] b", "clean contains an empty span: [[]]."],
    ["[[a]] [[b", "clean opens a span with [[ but does not close it."],
    ["[[", "clean opens a span with [[ but does not close it."],
    ["plain", "clean contains no span: with aligned positions, mark each span to patch with [[ and ]]."],
  ] as const) {
    assert.is(await refusal(() => readMarks(marked, "clean")), message);
  }
  assert.is(readMarks("[[a]]".repeat(64), "x").spans.length, 64);
  assert.is(await refusal(() => readMarks("[[a]]".repeat(65), "x")), "x contains 65 spans; the limit is 64.");
});

test("a span's last token, with or without a BOS token, never half a token", async () => {
  const model = wordModel();
  const marked = readMarks("[[the old]] man [[went]] home", "clean");
  for (const special of [true, false]) {
    const tokens = await model.tokenize(marked.text, { special });
    const shift = special ? 1 : 0;
    assert.equal(await lastTokens(model, tokens, marked, "clean"), [1 + shift, 3 + shift]);
  }
  // Different text comes before and after it.
  const within = Int32Array.of(0, 99, ...(await model.tokenize(marked.text, { special: false })), 98);
  assert.equal(await lastTokens(model, within, marked, "clean"), [3, 5]);
  const half = readMarks("the [[ol]]d man", "clean");
  const says =
    'clean: span 0, "ol", does not end at a token boundary. End it after a whole word, before the space of the next one.';
  assert.is(
    await refusal(async () => lastTokens(model, await model.tokenize(half.text), half, "clean")),
    says,
  );
  const foreign = Int32Array.of(0, 97, 96, 95, 94, 93);
  assert.match(
    await refusal(() => lastTokens(model, foreign, marked, "clean")),
    /^clean: span 0, "the old", does not end/,
  );
  const bytes = {
    ...model,
    tokenize: async (text: string) => Int32Array.of(...(text === "" ? [] : [7])),
  } as unknown as Model;
  const twice = readMarks("[[a]][[b]]", "clean");
  assert.is(
    await refusal(() => lastTokens(bytes, Int32Array.of(7), twice, "clean")),
    "clean: spans 0 and 1 end with the same token.",
  );
});

test("a target without its leading space is asked about", async () => {
  // "ab" is two tokens here, " ab" one.
  const spaced = {
    ...wordModel(),
    tokenize: async (text: string) => Int32Array.of(...(text === " ab" ? [1] : Array.from(text, () => 2))),
  } as unknown as Model;
  assert.match(
    await refusal(() => targetToken(spaced, "ab")),
    /^target_token must encode to exactly one token; "ab" yields 2: .* Did you mean " ab"\?$/,
  );
  assert.not.match(await refusal(() => targetToken(spaced, "cd")), /Did you mean/);
  assert.is(
    spaceNote("Paris", " Paris"),
    'The target token "Paris" differs from the model\'s answer by its leading space. Did you mean " Paris"?',
  );
  assert.match(spaceNote(" Paris", "Paris"), /Did you mean "Paris"\?$/);
  assert.equal(
    [spaceNote(" Paris", " Paris"), spaceNote("Rome", " Paris"), spaceNote("", " ")],
    ["", "", ""],
  );
});

test("inputs need one target token, trained positions and existing blocks", async () => {
  const model = wordModel();
  assert.is(await targetToken(model, " x"), 1);
  assert.is(
    await refusal(() => targetToken(model, " x y")),
    'target_token must encode to exactly one token; " x y" yields 2: " x" " y".',
  );
  assert.is(
    await refusal(() => targetToken(model, "", "pairs[0].foil_token")),
    'pairs[0].foil_token must encode to exactly one token; "" yields 0: .',
  );
  checkPositions(model, 8, "It");
  assert.is(
    await refusal(() => checkPositions(model, 9, "It")),
    "It; the model was trained on at most 8 positions.",
  );
  checkPositions(wordModel({ nCtxTrain: 0 }), 9, "It");
  checkPositions(wordModel({ nCtxTrain: 1 }), 1, "It");
  assert.match(
    await refusal(() => checkPositions(wordModel({ nCtxTrain: 1 }), 2, "It")),
    "at most 1 positions",
  );
  checkLayers(model, [0, 3]);
  assert.is(
    await refusal(() => checkLayers(model, [3, 4])),
    "layers: 4 does not exist; the model has 4 blocks, 0 to 3.",
  );
  assert.is(
    await refusal(() => checkLayers(model, [4, 9])),
    "layers: 4, 9 do not exist; the model has 4 blocks, 0 to 3.",
  );
  let asked = 0;
  const pieces = async (ids: Int32Array) => {
    asked += ids.length;
    return Array.from(ids, String);
  };
  const counting = { pieces } as unknown as Model;
  const piece = await pieceLookup(counting, [5, 6, 5]);
  assert.equal([piece(5), piece(6), asked], ["5", "6", 2]);
  await pieceLookup(counting, []);
  assert.is(asked, 2);
});

test("only whole prompts get control tokens and a chat template, never raw texts", async () => {
  const asked: [string, object][] = [];
  const own = wordModel();
  const { tokenize } = own;
  own.tokenize = (async (text: string, options: object) => {
    asked.push([text, options]);
    return tokenize(text, options);
  }) as typeof tokenize;
  await rawTokens(own, "a", "It");
  await targetToken(own, " b");
  await tokenizeInput(own, "c", 9, "It");
  await lastTokens(own, await rawTokens(own, "d e", "It"), readMarks("[[d]] e", "It"), "It");
  await exampleTokens(own, { text: " g", prompt: "f" }, "response", "It");
  const [whole, part] = [true, false].map((special) => ({ special, parseSpecial: false }));
  assert.equal(asked, [
    ...[
      ["a", whole],
      [" b", part],
      ["c", whole],
      ["d e", whole],
      ["d e", part],
      ["d", part],
    ],
    ...[
      ["f g", whole],
      ["f", whole],
    ],
  ]);
  const none = { ...own, tokenize: async () => new Int32Array() } as unknown as Model;
  assert.is(
    await refusal(() => rawTokens(none, "", "It")),
    "It yields no tokens with this model's vocabulary.",
  );
});

test("heads: the requested ones, or all if blocks have equally many; a head's numbers", async () => {
  const points = {
    head_out: { layers: [1, 2, 4], heads: [4, 4, 2], widths: [32, 64, 32] },
    attention: { supported: true, reason: "", layers: [1, 2, 4], heads: [4, 4, 2] },
  };
  const context = { points } as unknown as Context;
  assert.equal(headsOf(context, [1, 2]), [0, 1, 2, 3]);
  assert.equal(headsOf(context, [1, 4], [1, 0]), [1, 0]);
  assert.equal(headsOf(context, [4]), [0, 1]);
  assert.equal(
    [1, 2, 4].map((layer) => headSize(context, layer)),
    [8, 16, 16],
  );
  for (const [layers, asked, message] of [
    [[1, 3], undefined, "Block 3 has no attention heads."],
    [[2, 4], [1, 2], "heads: 2 does not exist; block 4 has 2 heads, 0 to 1."],
    [[4], [3, 2], "heads: 3, 2 do not exist; block 4 has 2 heads, 0 to 1."],
    [
      [1, 2, 4],
      undefined,
      "Block 1 has 4 heads and block 4 2: specify heads that all of them have, or other layers.",
    ],
  ] as const) {
    assert.is(await refusal(() => headsOf(context, layers, asked)), message);
  }
  const attention = (layers: number[], heads?: number[]) =>
    refusal(() => checkAttention(context, layers, heads, 8));
  // 256 MiB: one head of 8192 tokens, or eight of 2896 (7 kB less).
  const bytes = (heads: number[] | undefined, tokens: number) =>
    refusal(() => checkAttention(context, [1, 2], heads, tokens));
  checkAttention(context, [1], [0], 8192); // 256 MiB to the byte
  assert.is(
    await refusal(() => checkAttention(context, [1], [0], 8193)),
    "attention: 1 heads of 1 layers over 8193 tokens take 257 MiB; the limit is 256 MiB. Choose fewer layers or heads.",
  );
  checkAttention(context, [1, 2], undefined, 2896);
  assert.match(
    await bytes(undefined, 2897),
    /^attention: 8 heads of 2 layers over 2897 tokens take 257 MiB;/,
  );
  checkAttention(context, [1, 2], [0, 3], 4096);
  assert.match(await bytes([0, 3], 4097), /^attention: 4 heads of 2 layers over 4097 tokens take 257 MiB;/);
  assert.is(await attention([4], [2]), "attention.heads: 2 does not exist; block 4 has 2 heads, 0 to 1.");
  assert.is(
    await attention([1, 4], [9, 2, 1]),
    "attention.heads: 9 does not exist; block 1 has 4 heads, 0 to 3.",
  );
  assert.is(await attention([4], [2, 3]), "attention.heads: 2, 3 do not exist; block 4 has 2 heads, 0 to 1.");
  assert.is(
    await attention([0, 3]),
    "attention: blocks 0, 3 mix tokens without attention weights; the model has them in blocks 1, 2, 4.",
  );
  const one = {
    points: { attention: { ...points.attention, layers: [2], heads: [4] } },
  } as unknown as Context;
  assert.match(await refusal(() => checkAttention(one, [0], undefined, 8)), /has them in block 2\.$/);
  const none = {
    points: { attention: { ...points.attention, supported: false, reason: "None." } },
  } as unknown as Context;
  assert.is(await refusal(() => checkAttention(none, [1], undefined, 8)), "None.");
});

test("a swap's tokens are the last, all, or ranges from either end; all are counted", async () => {
  const at = (positions: unknown, length: number, layers = [1]) =>
    swapPositions({ positions, layers } as Parameters<typeof swapPositions>[0], length);
  assert.equal(at(undefined, 3), [2]);
  assert.equal(at("last", 3), [2]);
  assert.equal(at("all", 3), [0, 1, 2]);
  assert.equal(at([[0, 0]], 3), [0]);
  assert.equal(at([[0, 1]], 3), [0, 1]);
  assert.equal(at([[-1, -1]], 3), [2]);
  assert.equal(at([[-2, 9]], 3), [1, 2]);
  assert.equal(
    at(
      [
        [3, 3],
        [0, 0],
      ],
      5,
    ),
    [0, 3],
  );
  assert.is(await refusal(() => at([[3, 9]], 3)), "positions: none of them is within the prompt's 3 tokens.");
  assert.is(at("all", 256, [1]).length, 256);
  assert.is(
    await refusal(() => at("all", 86, [1, 2, 3])),
    "swap: 86 tokens at 3 blocks are 258 places; the limit is 256.",
  );
});

test("a plan is one edit of several heads together", () => {
  const config = { intervention: "steer" } as Parameters<typeof editsFor>[0];
  const vector = Float32Array.of(1, 2, 3, 4);
  const edit = { layer: 2, positions: "last", vector, strength: 3, unit: "unit" };
  assert.equal(editsFor(config, 2, 3, vector), [edit]);
  assert.equal(editsFor({ ...config, point: "mid" }, 2, 3, vector), [{ ...edit, point: "mid" }]);
  assert.equal(editsFor({ ...config, point: "head_out", heads: [5, 1] }, 2, 3, vector), [
    { ...edit, point: "head_out", heads: [5, 1] },
  ]);
  const ablated = editsFor({ intervention: "ablate", point: "head_out", heads: [0, 3] }, 1, 1, undefined);
  assert.equal(ablated, [{ layer: 1, positions: "last", scale: 0, point: "head_out", heads: [0, 3] }]);
});

test("a packed batch holds the longest text, or 64 texts of efficient length", () => {
  const gpu = wordModel({ devices: [{ host: true }, { host: false }] });
  const most = (model: Model, everyToken = false, layers = [0]) =>
    tokensOfBatch(model, { layers, everyToken });
  assert.equal([most(wordModel()), most(gpu), most(gpu, true)], [256, 2048, 2048]);
  // Logits of every token of the last block: 40 Mi numbers, 276 times 151,936.
  const wide = wordModel({ devices: [{ host: false }], nVocab: 151_936 });
  assert.equal([most(wide, true, [1, 3]), most(wide, true, [2]), most(wide, false, [3])], [276, 2048, 2048]);
  const of = (count: number, tokens: number, longest: number) =>
    packedContext({ count, tokens, longest }, 256);
  assert.equal(of(3, 30, 12), { nCtx: 30, nBatch: 30, maxSequences: 3 });
  assert.equal(of(65, 3000, 12), { nCtx: 256, nBatch: 256, maxSequences: 64 });
  assert.equal(of(64, 3000, 1000), { nCtx: 1000, nBatch: 1000, maxSequences: 64 });
});

test.run();
