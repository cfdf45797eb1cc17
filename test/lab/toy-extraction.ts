import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import type { ExtractConfig, Progress } from "../../src/contracts/index.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import type { ContextOptions, FeatureRequest, Model } from "../../src/native/index.js";
import { extract } from "../../src/operations/extract/run.js";
import { wordModel } from "./word-model.js";

/** A model of words whose rows are its tokens, of four blocks of two values. */
export function toyModel(path: string, info: object = {}) {
  const contexts: ContextOptions[] = [];
  const batches: FeatureRequest[] = [];
  const closed: number[] = [];
  const model = {
    ...wordModel({
      ...{ path, name: "toy", architecture: "toy", quantization: "F32", bytes: 1, nVocab: 1000 },
      ...{ nCtxTrain: 0, ...info },
    }),
    createContext: async (options: ContextOptions) => {
      contexts.push(options);
      return {
        nBatch: options.nBatch,
        blockOutputs: { supported: true },
        points: {
          ...{ block_out: { supported: true }, mid: { supported: false, reason: "No mid here." } },
          ...{ ffn_in: { supported: true }, ffn_out: { supported: true } },
        },
        features: async (request: FeatureRequest) => {
          batches.push(request);
          const rows = request.sequences.flatMap((tokens) =>
            request.rows === "all" ? [...tokens] : [tokens.at(-1) as number],
          );
          return new Map(
            request.layers.map((layer) => [
              layer,
              {
                data: Float32Array.from(rows.flatMap((token) => [token, layer])),
                ...(request.target && {
                  target: { data: Float32Array.from(rows.flatMap((token) => [-token, layer / 2])) },
                }),
                excluded: { bos: request.sequences.length, outliers: layer },
              },
            ]),
          );
        },
        close: async () => void closed.push(1),
      };
    },
  } as unknown as Model;
  return { model, contexts, batches, closed };
}

export type Toy = ReturnType<typeof toyModel>;

/** Runs an extraction; without `out`, its files are in a new folder in `folder`. */
export async function runExtraction(
  folder: string,
  body: object,
  { model }: Toy,
  more: { progress?: (one: Progress) => void } = {},
) {
  const config = {
    ...{ operation: "extract", model: "toy", layers: [1], rows: "all", dtype: "f32", max_input_tokens: 4096 },
    ...{ shard_tokens: 1_000_000, too_long: "refuse", ...body },
  } as unknown as ExtractConfig;
  const place = mkdtempSync(join(folder, "artifacts-"));
  const told: Progress[] = [];
  const found = await extract({
    ...{ config, model, artifacts: new Artifacts(place), clock: new StageClock() },
    openOther: () => Promise.reject(new Error("There is one model here.")),
    progress: (one) => {
      told.push(one);
      more.progress?.(one);
    },
  });
  return { ...found, place, told };
}
