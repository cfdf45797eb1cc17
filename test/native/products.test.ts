import { rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { TensorType } from "../../bench/models/gguf-writer.js";
import { type Shape, writeModel } from "../../bench/models/random-model.js";
import { bytesOf, floatsOf, toHalf } from "../../src/formats/float.js";
import { backendInfo, type Context, Model } from "../../src/native/index.js";
import { TestRandom } from "../support/random.js";
import { apart, layersOf, scratch, someTokens } from "./demo-model.js";

/**
 * With AVX2 and with AVX-512, native/products computes passes of any number of tokens with quantized
 * weights, in two ways: tokens packed side by side, and up to four tokens unpacked. Both must give the same bits. Passes of
 * few tokens with F32 weights, and everything elsewhere, use ggml's products, which round differently. A processor that
 * multiplies tiles of bytes (AMX) does so with packed tokens: the same bits again.
 */
const { systemInfo } = backendInfo();
const oneArithmetic = /\bAVX2 = 1/.test(systemInfo);
const folder = scratch();

/** Weights that are the same in every run, in a type's own form. */
function weightsOf(type: TensorType): (size: number, deviation: number) => Buffer {
  const random = new TestRandom(14);
  if (type === "f32") {
    return (size, deviation) =>
      Buffer.from(random.normals(size / 4).map((value) => value * deviation).buffer);
  }
  // Bytes of a block, the deviation of its numbers before they are scaled, and what takes their mean away.
  const [bytes, spread, least] = {
    q8_0: [34, 74, undefined],
    q4_1: [20, 4.6, -7.5],
    q5_0: [22, 9.2, undefined],
    q5_1: [24, 9.2, -15.5],
  }[type as "q8_0" | "q4_1" | "q5_0" | "q5_1"] as [number, number, number | undefined];
  return (size, deviation) => {
    const buffer = Buffer.from(Uint8Array.from({ length: size }, () => random.below(256)));
    const scale = 2 ** Math.round(Math.log2(deviation / spread));
    for (let at = 0; at < size; at += bytes) {
      buffer.writeUInt16LE(halfBits(scale), at);
      if (least !== undefined) buffer.writeUInt16LE(halfBits(least * scale), at + 2);
    }
    return buffer;
  };
}

/** Bits of a number in half precision that it holds exactly, in its normal range. */
function halfBits(value: number): number {
  const exponent = Math.floor(Math.log2(Math.abs(value)));
  const fraction = (Math.abs(value) / 2 ** exponent - 1) * 1024;
  return (value < 0 ? 0x8000 : 0) | ((exponent + 15) << 10) | fraction;
}

async function withModel(
  type: TensorType,
  shape: Shape,
  run: (model: Model, open: (threads: number) => Promise<Context>) => Promise<void>,
  weights = weightsOf(type),
): Promise<void> {
  const path = join(folder, `${type}.gguf`);
  await writeModel(path, type, shape, weights);
  const model = await Model.open(path, { gpuLayers: 0 });
  try {
    await run(model, (threads) => model.createContext({ nCtx: 512, nBatch: 512, threads }));
  } finally {
    await model.close();
    rmSync(path);
  }
}

/** Block outputs of all tokens, in passes of the given length. */
async function states(
  context: Context,
  model: Model,
  tokens: Int32Array,
  each: number,
): Promise<Float32Array[]> {
  await context.reset();
  const { nEmbd } = model.info;
  const all = layersOf(model).map(() => new Float32Array(tokens.length * nEmbd));
  for (let start = 0; start < tokens.length; start += each) {
    const chunk = tokens.slice(start, start + each);
    const { layers } = await context.advance({ tokens: chunk, layers: layersOf(model) });
    for (const [at, layer] of layers.entries()) all[at]!.set(layer.states!.data, start * nEmbd);
  }
  return all;
}

// Rows and depths that no tile divides; in blocks of 32 a depth is a multiple of that.
const inBlocks = { blocks: 1, hidden: 160, feedForward: 96, heads: 8, kvHeads: 1, vocabulary: 320 };
const shapes = [
  ["f32", { blocks: 2, hidden: 100, feedForward: 300, heads: 2, kvHeads: 1, vocabulary: 320 }, 2e-6],
  // Where the last bit of a sum lets one activation be rounded to another of 255 steps, that is seen; a wrong product is
  // ten times as far off.
  ["q8_0", inBlocks, 0.02],
  ["q4_1", inBlocks, 0.02],
  ["q5_0", inBlocks, 0.02],
  ["q5_1", inBlocks, 0.02],
] as const;

for (const [type, shape, bound] of shapes) {
  test(`${type}: tokens in one pass equal those one by one, for any number`, async () => {
    await withModel(type, shape, async (model, open) => {
      const context = await open(1);
      const tokens = someTokens(70, model.info.nVocab);
      const alone = await states(context, model, tokens, 1);
      for (const each of [2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 33, 70]) {
        const together = await states(context, model, tokens, each);
        for (const [layer, values] of together.entries()) {
          const off = apart(values, alone[layer]!);
          assert.ok(off <= bound, `block ${layer}, ${each} at a time: ${off}`);
        }
      }
    });
  });

  test(`${type}: the number of threads changes no bit`, async () => {
    await withModel(type, shape, async (model, open) => {
      const tokens = someTokens(70, model.info.nVocab, 2);
      const one = await open(1);
      const three = await open(3);
      for (const each of [7, 70]) {
        assert.equal(await states(three, model, tokens, each), await states(one, model, tokens, each));
      }
    });
  });
}

// Heads of a width that native/products has an attention for, which does not depend on the batch either.
const wideHeads = { blocks: 1, hidden: 96, feedForward: 160, heads: 3, kvHeads: 1, vocabulary: 320 };

for (const type of oneArithmetic ? (["q8_0", "q4_1", "q5_0", "q5_1"] as const) : []) {
  test(`${type}: a token has the same bits for any number of tokens in a pass`, async () => {
    await withModel(type, wideHeads, async (model, open) => {
      const context = await open(1);
      const tokens = someTokens(70, model.info.nVocab, 4);
      const alone = await states(context, model, tokens, 1);
      for (const each of [2, 3, 4, 5, 8, 9, 17, 25, 70])
        assert.equal(await states(context, model, tokens, each), alone, `${each} at a time`);
    });
  });
}

/** Of a square matrix of Q8_0: a half on the diagonal, from blocks of 34 bytes with 64 times a scale of 2^-7. */
function halves(size: number): Buffer {
  const bytes = Buffer.alloc((size * size * 34) / 32);
  for (let row = 0; row < size; row++) {
    for (let block = 0; block < size / 32; block++) {
      const at = ((row * size) / 32 + block) * 34;
      bytes.writeUInt16LE(halfBits(2 ** -7), at);
      if (Math.floor(row / 32) === block) bytes[at + 2 + (row % 32)] = 64;
    }
  }
  return bytes;
}

/** A block of 32 numbers in eight bits: multiples of a scale in half precision that lets the largest be 127. */
function rounded(block: Float32Array): Float32Array {
  const most = Math.max(...block.map(Math.abs));
  const scale = floatsOf("F16", bytesOf(toHalf(Float32Array.of(most / 127))))![0]!;
  const factor = most === 0 ? 0 : Math.fround(127 / most);
  return block.map((value) => {
    const product = Math.fround(value * factor);
    const below = Math.floor(product);
    const up = product - below > 0.5 || (product - below === 0.5 && below % 2 !== 0);
    return (below + (up ? 1 : 0)) * scale;
  });
}

test("q8_0: activations are rounded as ggml rounds them, bit for bit", async () => {
  // Five blocks: four together, and one alone.
  const shape = { ...inBlocks, heads: 5 };
  const random = weightsOf("q8_0");
  const weights = (size: number, deviation: number) =>
    size === (shape.hidden * shape.hidden * 34) / 32 ? halves(shape.hidden) : random(size, deviation);
  const check = async (model: Model, open: (threads: number) => Promise<Context>) => {
    const context = await open(2);
    for (const count of [1, 3, 40]) {
      const tokens = someTokens(count, model.info.nVocab, 6);
      const points = ["head_out", "attn_out"] as const;
      const { captures } = await context.forward({
        sequences: [{ tokens }],
        captures: points.map((point) => ({ layer: 0, point })),
        logits: "none",
      });
      const [read, written] = captures.map(({ values }) => values as Float32Array);
      assert.equal(read!.length, count * shape.hidden);
      for (let at = 0; at < read!.length; at += 32) {
        const expected = rounded(read!.subarray(at, at + 32)).map((value) => value / 2);
        assert.equal(written!.subarray(at, at + 32), expected, `${count} tokens, from number ${at}`);
      }
    }
  };
  await withModel("q8_0", shape, check, weights);
});

test("f32: rows in groups and tokens in parts equal passes of few tokens", async () => {
  // Four groups of sixteen rows are multiplied together, and 300 tokens of 576 numbers in parts of 224. With AMX, three of
  // 32 rows and 300 tokens of 1,536 numbers in parts of 32.
  const shape = { blocks: 1, hidden: 576, feedForward: 1536, heads: 9, kvHeads: 3, vocabulary: 320 };
  await withModel("f32", shape, async (model, open) => {
    const context = await open(1);
    const tokens = someTokens(300, model.info.nVocab, 5);
    const [whole] = await states(context, model, tokens, 300);
    const [parts] = await states(context, model, tokens, 12);
    assert.ok(apart(whole!, parts!) <= 1e-5, `${apart(whole!, parts!)}`);
  });
});

test("more tokens than fit into one packing", async () => {
  const shape = { blocks: 1, hidden: 64, feedForward: 8200, heads: 2, kvHeads: 1, vocabulary: 320 };
  await withModel("f32", shape, async (model, open) => {
    const context = await open(2);
    // 16 panels of 8200 numbers by 16 tokens are 8 MiB.
    const tokens = someTokens(300, model.info.nVocab, 3);
    const [whole] = await states(context, model, tokens, 300);
    const [parts] = await states(context, model, tokens, 100);
    assert.ok(apart(whole!, parts!) <= 1e-5, `${apart(whole!, parts!)}`);
  });
});

test.run();
