/** Set-up of tests that train dictionaries on an extraction of the embedded model. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  checkSubmission,
  type ExtractConfig,
  type ExtractResult,
  type SaeConfig,
  type SaeResult,
} from "../../src/contracts/index.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { type ExtractionTraining, trainFromExtraction } from "../../src/lab/training/from-extraction.js";
import { Model } from "../../src/native/index.js";
import { extract } from "../../src/operations/extract/run.js";
import type { Findings } from "../../src/operations/run.js";
import { sae } from "../../src/operations/sae/run.js";
import { demo } from "../native/demo-model.js";

/** The embedded model's hidden size. */
export const hidden = 128;
const words = ["capital", "film", "book", "trip", "river", "teacher", "garden", "letter"];
export const texts = Array.from(
  { length: 60 },
  (_, i) =>
    `The ${words[i % 8]} of ${words[(i * 3 + 1) % 8]} was ${i % 2 === 0 ? "good" : "not good"} ${i % 20}.`,
);

/** Settings of a small training. */
export const small = {
  ...{ architecture: "topk", k: 4, features: 48, steps: 60, batch: 64, seed: 3 },
} satisfies Partial<ExtractionTraining>;

export interface DemoTraining {
  folder: string;
  /** The folder of the extraction that `train` reads by default. */
  rows: string;
  model: Model;
  /** Extracts blocks 2 and 5 of the texts. */
  extracted(body: object): Promise<Findings<ExtractResult>>;
  /** Runs a job of `sae` on block 5. */
  job(body: object): Promise<Findings<SaeResult> & { place: string; names: string[] }>;
  /** Trains block 5 with the small settings. */
  train(
    more: Partial<ExtractionTraining>,
    out: string,
    options?: Parameters<typeof trainFromExtraction>[2],
  ): ReturnType<typeof trainFromExtraction>;
  close(): Promise<void>;
}

/**
 * Opens the model and a temporary folder.
 * @param points the fields of extractions that name points
 * @param settings of trainings, in addition to the small ones
 */
export async function openTraining({
  points = {},
  settings = {},
}: {
  points?: object;
  settings?: Partial<ExtractionTraining>;
} = {}): Promise<DemoTraining> {
  const folder = mkdtempSync(join(tmpdir(), "tapline-training-"));
  const model = await Model.open(demo);
  const rows = join(folder, "rows");
  const openOther = () => Promise.reject(new Error("There is one model here."));
  const shared = () => ({ model, progress: () => {}, clock: new StageClock(), openOther });
  return {
    ...{ folder, rows, model },
    extracted(body) {
      const data = join(folder, "texts.txt");
      writeFileSync(data, texts.join("\n"));
      const config = checkSubmission({
        ...{ operation: "extract", model: "demo", layers: [2, 5], data, shard_tokens: 256 },
        ...points,
        ...body,
      }) as ExtractConfig;
      return extract({ ...shared(), config, artifacts: new Artifacts(folder) });
    },
    async job(body) {
      const config = checkSubmission({ operation: "sae", model: "demo", layers: [5], ...body }) as SaeConfig;
      const place = mkdtempSync(join(folder, "job-"));
      const artifacts = new Artifacts(place);
      return { ...(await sae({ ...shared(), config, artifacts })), place, names: artifacts.names };
    },
    train: (more, out, options = {}) =>
      trainFromExtraction({ ...small, ...settings, layers: [5], from: rows, ...more }, out, options),
    async close() {
      await model.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
