/**
 * Every level of the addon of `npm run release` that this processor can run, beside the addon compiled for it: how far block
 * outputs and logits of the same tokens are from those of the same weights in F32, for each type of weights that has
 * separate kernels. `npm run verify:levels`, after `npm run release`, or with the folder of its tarballs. The models are of random weights, 14 million,
 * quantised by llama.cpp's program.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeRandomModel } from "../../bench/models/random-model.js";
import { buildTools } from "../../scripts/build/tools.js";
import { addonFiles } from "../../src/native/index.js";
import { releasedLevels } from "../support/released.js";
import { relativeDistance } from "./architectures/arithmetic.js";

const types = ["F16", "BF16", "Q8_0", "Q4_0", "Q5_1", "IQ4_NL", "Q2_K", "Q4_K", "Q6_K", "IQ3_S"];
const shape = { blocks: 4, hidden: 512, feedForward: 1536, heads: 8, kvHeads: 2, vocabulary: 512 };

/**
 * How much further than the native build an addon may be from the exact product with the same weights. Kernels round
 * activations to eight bits before they meet quantised weights, and round ties in other directions: two right answers
 * are as far apart as each is from the exact one, and the exact one says how far that is.
 */
const tolerance = 1.5;

const outputs = fileURLToPath(new URL("./levels/outputs.ts", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tapline-levels-"));

function outputsOf(addon: string, models: string[], level = ""): Float32Array[] {
  const into = join(folder, "outputs");
  const args = ["--import", "tsx", outputs, into, ...models];
  const env = { ...process.env, TAPLINE_ADDON: addon, TAPLINE_LEVEL: level };
  execFileSync(process.execPath, args, { env, stdio: "pipe" });
  return models.map((_, i) => {
    const bytes = readFileSync(`${into}.${i}`);
    return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  });
}

function line(verdict: string, name: string, figures: number[]): string {
  const shown = figures.map((error, i) => `${types[i]} ${error.toExponential(1)}`).join("  ");
  return `${verdict.padEnd(8)}${name.padEnd(16)}${shown}`;
}

try {
  const native = addonFiles().files[0]!.path;
  const levels = releasedLevels(folder, process.argv[2]);
  const { "llama-quantize": quantize } = await buildTools(["llama-quantize"]);
  const plain = join(folder, "random-f16.gguf");
  await writeRandomModel(plain, "f16", shape);
  const made = (from: string, name: string, type: string) => {
    const path = join(folder, `random-${name}.gguf`);
    execFileSync(quantize!, ["--allow-requantize", from, path, type], { stdio: "pipe" });
    return path;
  };
  const models = types.map((type) => made(plain, type, type));
  // The same weights, read back: nothing is rounded on the way through these.
  const whole = models.map((path, i) => made(path, `${types[i]}-whole`, "F32"));
  const exact = outputsOf(native, whole);
  const errors = (found: Float32Array[]) => found.map((values, i) => relativeDistance(values, exact[i]!));
  const computed = outputsOf(native, models);
  const expected = errors(computed);
  // The check can fail: Q4_0's weights instead of Q8_0's are further away than any level may be.
  const [eight, four] = [types.indexOf("Q8_0"), types.indexOf("Q4_0")];
  const apart = relativeDistance(computed[four]!, exact[eight]!);
  if (!(apart > 1.5 * tolerance * expected[eight]!)) {
    throw new Error(`Q4_0 is only ${apart} from Q8_0: a wrong kernel would not be seen.`);
  }
  console.log(line("", "native", expected));
  let failed = 0;
  for (const { level, path } of levels) {
    const found = errors(outputsOf(path, models, level));
    const wrong = found.filter((error, i) => !(error <= tolerance * expected[i]! + 1e-6)).length;
    failed += wrong;
    console.log(line(wrong === 0 ? "holds" : "FAILED", level, found));
  }
  const checks = levels.length * types.length;
  console.log(`${checks - failed} passed, ${failed} failed`);
  if (failed > 0) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
