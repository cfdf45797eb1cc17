import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { byteTokenizer } from "../../bench/models/byte-tokenizer.js";
import { Model } from "../../src/native/index.js";
import { writeTinyModel } from "../inference/support/tiny-models.js";
import { character, fc } from "../support/fc.js";
import { demo, rejects, scratch } from "./demo-model.js";

let model: Model;
test.before(async () => {
  model = await Model.open(demo);
});
test.after(() => model.close());

async function roundTrip(text: string): Promise<string> {
  return model.detokenize(await model.tokenize(text, { special: false }));
}

test("any text is restored from its tokens", async () => {
  const text = fc.oneof(
    fc.string({ unit: character, maxLength: 60 }),
    fc.string({ unit: "grapheme", maxLength: 40 }),
    fc.lorem(),
    fc.constantFrom(
      "",
      " ",
      "\n\n",
      "🏳️‍🌈 naïve 漢字 \u0000 tab\t",
      "a\u0301",
      "👩‍👩‍👧‍👦",
      "<|im_start|>",
      "\uFEFFx",
    ),
  );
  await fc.assert(
    fc.asyncProperty(text, async (each) => {
      assert.is(await roundTrip(each), each);
    }),
    { numRuns: 300 },
  );
});

test("lone surrogates count as the replacement character", async () => {
  assert.is(await roundTrip("a\uD800b"), "a\uFFFDb");
  assert.is(await roundTrip("\uDC00"), "\uFFFD");
  assert.is(await roundTrip("\uDE00\uD83D"), "\uFFFD\uFFFD");
  assert.is(await roundTrip("x\uD83D\uDE00y"), "x😀y");
});

test("pieces of plain text join to the text", async () => {
  await fc.assert(
    fc.asyncProperty(fc.lorem(), async (text) => {
      const tokens = await model.tokenize(text, { special: false });
      const pieces = await model.pieces(tokens);
      assert.is(pieces.length, tokens.length);
      assert.is(pieces.join(""), text);
    }),
    { numRuns: 100 },
  );
});

test("a piece that is not UTF-8 alone becomes U+FFFD", async () => {
  const tokens = await model.tokenize("漢", { special: false });
  const pieces = await model.pieces(tokens);
  assert.is(await model.detokenize(tokens), "漢");
  if (pieces.length > 1) assert.ok(pieces.some((piece) => piece.includes("\uFFFD")));
});

test("special adds BOS, parseSpecial reads control tokens", async () => {
  const [plain, special] = [
    await model.tokenize("x", { special: false }),
    await model.tokenize("x", { special: true }),
  ];
  assert.is(special.length, plain.length + (model.info.addBos ? 1 : 0));
  const spelled = await model.tokenize("<|im_end|>", { special: false });
  const parsed = await model.tokenize("<|im_end|>", { special: false, parseSpecial: true });
  assert.is(parsed.length, 1);
  assert.ok(spelled.length > 1);
  assert.is((await model.pieces(parsed))[0], "<|im_end|>");
});

test("a long text is one call", async () => {
  const text = "the quick brown fox ".repeat(5000);
  assert.is(await roundTrip(text), text);
});

test("ids outside the vocabulary and other types are refused", async () => {
  const { nVocab } = model.info;
  for (const id of [-1, nVocab, 2 ** 31 - 1, -(2 ** 31)]) {
    await rejects(model.pieces(Int32Array.of(0, id)), "INVALID_ARGUMENT", new RegExp(`${id}.*${nVocab}`));
    await rejects(model.detokenize(Int32Array.of(id)), "INVALID_ARGUMENT", new RegExp(`${id}.*${nVocab}`));
  }
  await rejects(model.pieces([1, 2] as unknown as Int32Array), "INVALID_ARGUMENT", /Int32Array/);
  await rejects(model.tokenize(7 as unknown as string), "INVALID_ARGUMENT", /string/);
  assert.equal(await model.pieces(new Int32Array()), []);
  assert.is(await model.detokenize(new Int32Array()), "");
});

test("a piece and a text may be as long as a token is", async () => {
  const folder = scratch();
  const lengths = [63, 64, 65, 500];
  const words = lengths.map((length) => `w${"o".repeat(length - 1)}`);
  const names = [...(byteTokenizer(320)["tokenizer.ggml.tokens"] as string[])];
  names.splice(300, words.length, ...words);
  const path = join(folder, "long.gguf");
  await writeTinyModel(path, { metadata: { "tokenizer.ggml.tokens": names } });
  const long = await Model.open(path);
  try {
    const ids = Int32Array.from(lengths, (_, i) => 300 + i);
    const pieces = (await long.pieces(ids)).map((piece) => piece.length);
    assert.equal(pieces, lengths);
    assert.is(await long.detokenize(ids), words.join(""));
  } finally {
    await long.close();
  }
});

test("metadata describes the file", () => {
  const { info } = model;
  assert.is(info.path, demo);
  assert.is(info.architecture, "qwen3");
  assert.is(info.quantization, "F16");
  assert.match(info.chatTemplate, /enable_thinking/);
  assert.ok(info.hasDecoder && !info.hasEncoder && !info.recurrent && !info.hybrid);
  assert.ok(info.nLayer >= 6 && info.nLayer <= 10);
  assert.ok(info.nVocab > 1000 && info.nEmbd > 0 && info.nCtxTrain >= 256);
  assert.ok(info.nParams > 1e5 && info.bytes > info.nParams && info.bytes < 6e6);
});

test.run();
