import type { ExcludedRows } from "./binding.js";

/** What native code left out of several texts, added up. */
export function sumOfExcluded(parts: readonly ExcludedRows[]): { bos: number; outliers: number } {
  return {
    bos: parts.reduce((sum, { bos }) => sum + bos, 0),
    outliers: parts.reduce((sum, { outliers }) => sum + outliers, 0),
  };
}
