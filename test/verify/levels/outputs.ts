/**
 * Writes what the addon in use computes: `TAPLINE_ADDON=… node --import tsx test/verify/levels/outputs.ts OUT MODEL…`
 * leaves OUT.0, OUT.1, … with the block outputs and the logits of each model as float32.
 */
import { writeFileSync } from "node:fs";
import { Model } from "../../../src/native/index.js";
import { randomSource } from "../architectures/arithmetic.js";

const [, , out, ...paths] = process.argv;
for (const [i, path] of paths.entries()) {
  const model = await Model.open(path);
  const { nLayer, nVocab } = model.info;
  const random = randomSource(12);
  // As a batch, which takes the kernels for matrices, and then one by one, which takes those for vectors.
  const tokens = Int32Array.from({ length: 40 }, () => Math.floor(random() * nVocab));
  const context = await model.createContext({ nCtx: 64, nBatch: 64, threads: 1 });
  const layers = Array.from({ length: nLayer }, (_, layer) => layer);
  const parts: Uint8Array[] = [];
  for (const piece of [
    tokens.subarray(0, 36),
    ...[36, 37, 38, 39].map((at) => tokens.subarray(at, at + 1)),
  ]) {
    const { layers: captured, logits } = await context.advance({ tokens: piece, layers, logits: true });
    for (const values of [...captured.map(({ states }) => states!.data), logits!]) {
      parts.push(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
    }
  }
  writeFileSync(`${out}.${i}`, Buffer.concat(parts));
  await model.close();
}
