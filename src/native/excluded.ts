import type { ExcludedRows } from "./binding.js";

/** The sums of excluded rows over several texts. */
export function sumOfExcluded(parts: readonly ExcludedRows[]): { bos: number; outliers: number } {
  return {
    bos: parts.reduce((sum, { bos }) => sum + bos, 0),
    outliers: parts.reduce((sum, { outliers }) => sum + outliers, 0),
  };
}
