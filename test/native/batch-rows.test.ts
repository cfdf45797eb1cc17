import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { backendInfo, type Context, Model, quantise } from "../../src/native/index.js";
import { demo, scratch } from "./demo-model.js";

/**
 * Where a row's products are added up in one order whatever is in its batch, its bits are the same. ggml's own products,
 * on processors without AVX-512 VNNI, are not all so; there a row stays within what eight bits amplify.
 */
const features = new Set([...backendInfo().systemInfo.matchAll(/\b(\w+) = 1/g)].map(([, name]) => name));
const bound = features.has("AVX512_VNNI") ? 0 : 0.1;

for (const form of ["Q8_0", "Q4_K_M"] as const) {
  test(`a ${form} model's rows do not depend on the batch they are in`, async () => {
    const path = join(scratch(), `${form}.gguf`);
    await quantise({ from: demo, to: path, form, threads: 1 });
    const model = await Model.open(path, { gpuLayers: 0 });
    try {
      const layers = [0, model.info.nLayer - 1];
      const tokens = Int32Array.from({ length: 90 }, (_, i) => (i * 37 + 11) % model.info.nVocab);
      const width = model.info.nEmbd;
      const open = () => model.createContext({ nCtx: 256, nBatch: 256, maxSequences: 4, threads: 2 });
      // 64 rows and more were ggml's tiles, fewer were its F16 sums, and one was split among threads.
      const whole = await inPieces(await open(), tokens, layers, 90);
      for (const size of [64, 21, 4, 2, 1]) {
        const pieces = await inPieces(await open(), tokens, layers, size);
        for (const [i, rows] of pieces.entries()) same(rows, whole[i]!, width, `pieces of ${size}`);
      }
      const context = await open();
      const others = [7, 30].map((length) => tokens.slice(length, 2 * length));
      const packed = await context.features({ sequences: [...others, tokens], layers, rows: "all" });
      for (const [i, layer] of layers.entries())
        same(packed.get(layer)!.data.slice(37 * width), whole[i]!, width, "packed");
    } finally {
      await model.close();
    }
  });
}

async function inPieces(context: Context, tokens: Int32Array, layers: number[], size: number) {
  const rows = layers.map(() => [] as number[]);
  for (let start = 0; start < tokens.length; start += size) {
    const found = await context.advance({ tokens: tokens.slice(start, start + size), layers });
    for (const [i, { states }] of found.layers.entries()) rows[i]!.push(...states!.data);
  }
  await context.close();
  return rows.map((values) => Float32Array.from(values));
}

function same(found: Float32Array, expected: Float32Array, width: number, what: string): void {
  assert.is(found.length, expected.length);
  for (let at = 0; at < found.length; at += width) {
    const [a, b] = [found.subarray(at, at + width), expected.subarray(at, at + width)];
    const apart = Math.hypot(...a.map((value, k) => value - b[k]!)) / Math.hypot(...b);
    assert.ok(apart <= bound, `${what}: row ${at / width} differs by ${apart}`);
  }
}

test.run();
