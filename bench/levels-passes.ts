/** One side of bench/levels.ts: computes a pass for each message, and answers its milliseconds. */
import { Model } from "../src/native/index.js";

const model = await Model.open(process.argv[2]!);
const context = await model.createContext({ nCtx: 256, nBatch: 128 });
const prompt = Int32Array.from({ length: 128 }, (_, i) => 7 + 13 * i);

process.on("message", async () => {
  await context.reset();
  const started = performance.now();
  await context.advance({ tokens: prompt, layers: [], nextTopK: 1 });
  const between = performance.now();
  for (let i = 0; i < 16; i++)
    await context.advance({ tokens: prompt.subarray(i, i + 1), layers: [], nextTopK: 1 });
  process.send!({ prompt: between - started, tokens: performance.now() - between });
});
