/**
 * Every addon of `npm run release` that this processor can run, against the one that is compiled for it: the block
 * outputs of the same tokens, for each type of weights that has kernels of its own. `npm run verify:levels`, after
 * `npm run release`. The types are the models': a random model of 14 million weights, quantised by llama.cpp's program.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeRandomModel } from "../../bench/models/random-model.js";
import { buildTools } from "../../scripts/build/tools.js";
import { addonFiles } from "../../src/native/index.js";
import { releasedAddons } from "../support/released.js";
import { relativeDistance } from "./architectures/arithmetic.js";

const types = ["F16", "BF16", "Q8_0", "Q4_0", "Q5_1", "IQ4_NL", "Q2_K", "Q4_K", "Q6_K", "IQ3_S"];
const shape = { blocks: 4, hidden: 512, feedForward: 1536, heads: 8, kvHeads: 2, vocabulary: 512 };

/**
 * What the same sums may differ by in another order. Where activations are rounded to eight bits before they meet the
 * weights, a last bit before may become a step of 1/127 after: then the mean over rows counts, not the worst value.
 */
const tolerance = 2e-3;

const outputs = fileURLToPath(new URL("./levels/outputs.ts", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tapline-levels-"));

function outputsOf(addon: string, models: string[]): Float32Array[] {
  const into = join(folder, "outputs");
  const args = ["--import", "tsx", outputs, into, ...models];
  execFileSync(process.execPath, args, { env: { ...process.env, TAPLINE_ADDON: addon }, stdio: "pipe" });
  return models.map((_, i) => {
    const bytes = readFileSync(`${into}.${i}`);
    return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  });
}

try {
  const native = addonFiles().files[0]!.path;
  const addons = releasedAddons(folder);
  const { "llama-quantize": quantize } = await buildTools(["llama-quantize"]);
  const plain = join(folder, "random-f16.gguf");
  await writeRandomModel(plain, "f16", shape);
  const models = types.map((type) => {
    const path = join(folder, `random-${type}.gguf`);
    execFileSync(quantize!, [plain, path, type], { stdio: "pipe" });
    return path;
  });
  const expected = outputsOf(native, models);
  // The comparison can fail: another type of the same weights is further away than any level may be.
  const apart = relativeDistance(expected[2]!, expected[0]!);
  if (!(apart > 2 * tolerance))
    throw new Error(`Q8_0 and F16 are only ${apart} apart: nothing would be seen.`);
  let failed = 0;
  for (const { level, path } of addons) {
    const found = outputsOf(path, models);
    const distances = found.map((values, i) => relativeDistance(values, expected[i]!));
    const wrong = distances.filter((distance) => !(distance <= tolerance)).length;
    failed += wrong;
    const figures = distances.map((distance, i) => `${types[i]} ${distance.toExponential(0)}`).join("  ");
    console.log(`${(wrong === 0 ? "holds" : "FAILED").padEnd(8)}${level.padEnd(16)}${figures}`);
  }
  const checks = addons.length * types.length;
  console.log(`${checks - failed} passed, ${failed} failed`);
  if (failed > 0) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
