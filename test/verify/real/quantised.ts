import { Model } from "../../../src/native/index.js";
import type { SmolLm2 } from "../../support/real/models.js";
import { relativeDistance, softmax, totalVariation } from "../architectures/arithmetic.js";
import type { Figure } from "../numerics/check.js";
import { type Extent, promptsOf } from "./ours.js";

/**
 * Bounds are at most twice the largest value measured on the prompts of both extents (a share of disagreement counts as 1
 * less the agreement), with llama.cpp's kernels for AVX-512. They catch a broken file or a reading of the wrong block, not a
 * kernel that rounds differently: their errors are a property of the file, and nothing to be tuned.
 */
const forms = {
  f16: { name: "F16", middle: 0.0006, last: 0.002, variation: 0.002, agreement: 0.995 },
  q8_0: { name: "Q8_0", middle: 0.013, last: 0.06, variation: 0.05, agreement: 0.935 },
  q4_1: { name: "Q4_1, as packaged", middle: 0.008, last: 0.044, variation: 0.05, agreement: 0.935 },
  q4_k_m: { name: "Q4_K_M", middle: 0.075, last: 0.26, variation: 0.24, agreement: 0.7 },
} as const;

interface Reading {
  /** Block outputs of the middle and the last block, a prompt each. */
  states: Float32Array[];
  /** Logits after the last token. */
  logits: Float32Array;
  /** The most probable next token after every token. */
  top: number[];
}

/** How far readings move when the same weights are kept in fewer bits: measured against the F32 file. */
export async function quantised(model: SmolLm2, extent: Extent): Promise<Figure[]> {
  const most = { ...extent, lengths: extent.lengths.filter((length) => length >= 8 && length <= 128) };
  const exact = await read(model.f32, most);
  const figures: Figure[] = [];
  for (const [key, { name, middle, last, variation, agreement }] of Object.entries(forms)) {
    const seen = await read(model[key as keyof typeof forms], most);
    const far = (at: number) =>
      mean(seen.map(({ states }, i) => relativeDistance(states[at]!, exact[i]!.states[at]!)));
    const apart = seen.map(({ logits }, i) => {
      const p = softmax(logits);
      const tokenIds = Int32Array.from(p.keys());
      return totalVariation(softmax(exact[i]!.logits), { tokenIds, probabilities: Float32Array.from(p) });
    });
    const same = seen.flatMap(({ top }, i) => top.map((id, at) => Number(id === exact[i]!.top[at])));
    figures.push(
      { what: `${name}: block 14, relative L2, mean`, value: far(0), bound: middle },
      { what: `${name}: block 29, relative L2, mean`, value: far(1), bound: last },
      { what: `${name}: next token, total variation, mean`, value: mean(apart), bound: variation },
      {
        what: `${name}: same most probable token, share`,
        value: mean(same),
        bound: agreement,
        atLeast: true,
      },
    );
  }
  return figures;
}

async function read(path: string, extent: Extent): Promise<Reading[]> {
  const model = await Model.open(path, { gpuLayers: 0 });
  try {
    const context = await model.createContext({ nCtx: 256, threads: 1 });
    const readings: Reading[] = [];
    for (const tokens of await promptsOf(model, extent)) {
      await context.reset();
      const found = await context.advance({ tokens, layers: [14, 29], logits: true, lensTopK: 1 });
      readings.push({
        states: found.layers.map(({ states }) => states!.data.slice()),
        logits: found.logits!.slice(),
        top: [...found.layers[1]!.lens!.tokenIds],
      });
    }
    return readings;
  } finally {
    await model.close();
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
