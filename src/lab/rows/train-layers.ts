import type { Excluded } from "../../contracts/excluded.js";
import type { ProbeConfig } from "../../contracts/index.js";
import type { OperationInput } from "../../operations/run.js";
import { exampleFeatures, type ReadRows, type SaeExamplesConfig } from "./example-features.js";

/** Input of trainers: features float32 [rows, hidden], and 1 for each row to train on. */
export interface TrainingData {
  features: Float32Array;
  train: Uint8Array;
  /** The text and token of each row, unless there is one row per example. */
  all?: ReadRows;
  /** Activations that they exclude, if they are means. */
  excluded?: Excluded;
}

interface Options {
  onProgress: (done: number, total: number) => void;
  signal: AbortSignal | undefined;
}

/** Trains one layer, writes the result unless that is done later, and reports it. */
interface Trainer<T, R> {
  train: (data: TrainingData, options: Options) => Promise<T>;
  write?: (layer: number, trained: T, data: TrainingData) => Promise<void>;
  report: (layer: number, trained: T, data: TrainingData) => R;
}

/** Captures the examples once, then trains layer after layer, in the order of the request. */
export async function trainLayers<T, R>(
  input: OperationInput<ProbeConfig | SaeExamplesConfig>,
  trainer: Trainer<T, R>,
): Promise<R[]> {
  const { config, clock, progress, signal } = input;
  const { byLayer, excluded, ...whose } = await exampleFeatures(input);
  const total = config.layers.length;
  const reports: R[] = [];
  for (const [index, layer] of config.layers.entries()) {
    const leftOut = excluded?.get(layer);
    const data = {
      ...{ features: byLayer.get(layer) as Float32Array, ...whose },
      ...(leftOut && { excluded: leftOut }),
    };
    const onProgress = (done: number, steps: number) =>
      progress({ stage: "train", done: index + done / steps, total });
    const trained = await clock.measure("train", () => trainer.train(data, { onProgress, signal }));
    await clock.measure("artifact", async () => trainer.write?.(layer, trained, data));
    reports.push(trainer.report(layer, trained, data));
  }
  return reports;
}
