import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheFolder } from "../../scripts/build/source.js";
import { realFolder } from "../../test/support/real/cache.js";
import { smolLm2 } from "../../test/support/real/sources.js";
import { eightBillion, type LargeType, writeLargeModel } from "./large-model.js";
import { randomModel } from "./random-model.js";

/**
 * The models that the suites capture, extract and live measure:
 * - `usual`: the 0.5B shape, for processors; capture and live add the embedded model
 * - `card`: SmolLM2 and the 8B shape in Q8_0 and Q4_K_M, for a GPU
 * - `small`: as `card` with a much smaller shape, to see that everything works
 */
export const modelSets = ["usual", "card", "small"] as const;
export type ModelSet = (typeof modelSets)[number];

export interface BenchModel {
  label: string;
  path: string;
}

export const demoModel = fileURLToPath(new URL("../../models/demo/tapline-demo.gguf", import.meta.url));

/** SmolLM2 in Q8_0; none where `npm run real:models` has not prepared it. */
export function smolLm2Form(): BenchModel | undefined {
  const path = join(realFolder, smolLm2.name, "SmolLM2-135M-Instruct.Q8_0.gguf");
  return existsSync(path) ? { label: "SmolLM2-135M, Q8_0", path } : undefined;
}

export async function halfBillionModel(): Promise<BenchModel> {
  return { label: "0.5B shape, Q8_0", path: await randomModel("q8_0") };
}

/** Models for a card, made where they are not there: SmolLM2 if there is one, and a large shape in two types. */
export async function modelsForCard(set: "card" | "small"): Promise<BenchModel[]> {
  const real = smolLm2Form();
  const large: BenchModel[] = [];
  for (const type of ["q8_0", "q4_k_m"] as const) large.push(await largeModel(set, type));
  return [...(real ? [real] : []), ...large];
}

/** Of the same architecture and types as the 8B shape, with a hundredth of its weights. */
const smallShape = {
  ...{ blocks: 8, hidden: 512, feedForward: 1792, heads: 8, kvHeads: 2, vocabulary: 32_000 },
};

async function largeModel(set: "card" | "small", type: LargeType): Promise<BenchModel> {
  const name = set === "card" ? "8b" : "small";
  const folder = join(cacheFolder(process.env), "bench");
  const path = join(folder, `random-${name}-${type}.gguf`);
  if (!existsSync(path)) {
    await mkdir(folder, { recursive: true });
    await writeLargeModel(path, set === "card" ? eightBillion : smallShape, type);
  }
  const shape = set === "card" ? "8B shape" : "small shape";
  return { label: `${shape}, ${type.toUpperCase()}`, path };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const set = process.argv[2];
  if (set !== "card" && set !== "small") throw new Error(`The set is card or small, not ${set}.`);
  for (const { label, path } of await modelsForCard(set)) console.log(`${label}: ${path}`);
}
