import { floatsOf } from "../formats/float.js";
import type { TranslatorPlaces } from "../native/index.js";
import { readBytes } from "./tensor-files.js";

/**
 * Pulls directions at the last block's output back through a lens's matrix: their dot products with an activation
 * equal those of the original directions with its translation, except for the bias.
 * @param translator of the activation's block; undefined for the plain logit lens
 * @param directions [hidden] each
 */
export async function pulledBack(
  translator: TranslatorPlaces | undefined,
  directions: readonly Float64Array[],
): Promise<Float64Array[]> {
  if (translator === undefined) return directions.map((direction) => direction.slice());
  const hidden = directions[0]?.length ?? 0;
  const bytes = hidden * hidden * (translator.half ? 2 : 4);
  const read = await readBytes(translator.path, translator.matrix, translator.matrix + bytes);
  const matrix = floatsOf(translator.half ? "F16" : "F32", read) as Float32Array;
  return directions.map((direction) => {
    const back = translator.residual ? direction.slice() : new Float64Array(hidden);
    for (const [out, weight] of direction.entries()) {
      for (let i = 0; i < hidden; i++) {
        back[i] = (back[i] as number) + weight * (matrix[out * hidden + i] as number);
      }
    }
    return back;
  });
}
