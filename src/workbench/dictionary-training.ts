import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StoredDictionary } from "../contracts/library.js";
import { limits } from "../contracts/limits.js";
import type { DictionaryTraining, TrainedDictionaryRequest } from "../contracts/workbench.js";
import { HttpError } from "../http/index.js";
import type { ContrastSet } from "./contrasts/sets.js";
import type { Services } from "./services.js";
import { trainedReport } from "./trained-report.js";

/** One of this many texts is held out. */
const heldOut = 5;

/** The Lab's settings for training a dictionary; without texts, on those of the contrast sets. */
export function trainingSettings(
  { layer, features, k, texts }: DictionaryTraining,
  sets: readonly Pick<ContrastSet, "positive" | "negative">[],
) {
  if (k > features) throw new HttpError(400, `k: at most the ${features} features, got ${k}.`);
  const own = sets.flatMap(({ positive, negative }) => [...positive, ...negative]);
  const all = (texts ?? [...new Set(own)]).slice(0, limits.examples);
  return {
    layers: [layer],
    ...{ rows: "all", architecture: "topk", k, features, steps: limits.steps },
    examples: all.map((text, at) => ({ text, split: at % heldOut === heldOut - 1 ? "test" : "train" })),
  };
}

/**
 * Saves the dictionary that a job has trained at a layer.
 * @throws HttpError if the job has no such dictionary
 */
export async function storeTrainedDictionary(
  services: Services,
  { name, job: id, layer }: TrainedDictionaryRequest,
): Promise<StoredDictionary> {
  trainedReport(await services.lab.job(id), "sae", layer);
  const folder = await mkdtemp(join(tmpdir(), "tapline-dictionary-"));
  try {
    const weights = `sae-layer-${layer}.safetensors`;
    for (const file of [weights, `sae-normalization-${layer}.npz`]) {
      const bytes = await services.labHttp.bytes(`/lab/v1/jobs/${id}/artifacts/${file}`);
      await writeFile(join(folder, file), bytes, { mode: 0o600 });
    }
    return await services.lab.addDictionary(name, join(folder, weights));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
