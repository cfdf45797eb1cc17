import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type DictionaryArchitecture,
  DictionaryTrainer,
  type DictionaryTraining,
} from "../../src/native/index.js";
import { sparseSums } from "../support/activations.js";

/** Goes with the process. */
export const folder = mkdtempSync(join(tmpdir(), "tapline-dictionary-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
let files = 0;

/** Rows in a file, behind eight bytes of something else. */
export function fileOf(rows: Float32Array | Uint16Array): { path: string; offset: number } {
  const path = join(folder, `rows-${files++}`);
  writeFileSync(
    path,
    Buffer.concat([Buffer.alloc(8, 7), new Uint8Array(rows.buffer, rows.byteOffset, rows.byteLength)]),
  );
  return { path, offset: 8 };
}

export interface Rows {
  features: Float32Array;
  hidden: number;
  uses: Uint8Array;
}

export const made = ({ train = 90, test: held = 30, hidden = 20, directions = 12 } = {}): Rows => {
  const set = sparseSums({ train, test: held, hidden, directions, active: 3 });
  return { features: set.features, hidden, uses: set.train.map((bit) => (bit === 1 ? 1 : 2)) };
};

/** Settings of a training that takes no time. */
export function training(
  { features, hidden, uses }: Rows,
  architecture: DictionaryArchitecture,
  more: Partial<DictionaryTraining> = {},
): DictionaryTraining {
  const pieces = [{ ...fileOf(features), type: "f32" as const, uses }];
  return {
    ...{ pieces, architecture, hidden, features: 24, k: architecture.endsWith("topk") ? 4 : 0 },
    ...{ bandwidth: 0.4, steps: 60, batch: 32, seed: 5, learningRate: 3e-3, warmup: 5, decay: 10 },
    ...{
      sparsity: architecture === "relu" ? 0.2 : 0.01,
      sparsityWarmup: 5,
      initialNorm: architecture === "relu" ? 0.1 : 1,
    },
    ...{ initialThreshold: 0.5, deadAfter: 1000, auxK: 6, auxWeight: 1 / 32, heldOut: 1000, threads: 1 },
    ...more,
  };
}

/** The same for a transcoder: what it predicts from each row is in the same file. */
export function transcoding(
  rows: Rows,
  targets: Float32Array,
  architecture: DictionaryArchitecture,
  more: Partial<DictionaryTraining> = {},
): DictionaryTraining {
  const both = new Float32Array(2 * targets.length);
  both.set(rows.features);
  both.set(targets, targets.length);
  const file = fileOf(both);
  const targetOffset = file.offset + 4 * targets.length;
  return training(rows, architecture, {
    ...{ pieces: [{ ...file, targetOffset, type: "f32", uses: rows.uses }], transcodes: true },
    ...more,
  });
}

/** A trainer, closed after its use. */
export async function trained<T>(
  settings: DictionaryTraining,
  use: (trainer: DictionaryTrainer) => Promise<T>,
): Promise<T> {
  const trainer = await DictionaryTrainer.open(settings);
  try {
    return await use(trainer);
  } finally {
    await trainer.close();
  }
}
