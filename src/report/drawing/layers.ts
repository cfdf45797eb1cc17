import type { Html } from "../markup.js";
import { label } from "./svg.js";

/** Width of the layer labels, left of the grid. */
export const axisWidth = 40;

/**
 * Lays out layers over columns; columns that do not fit continue in another picture below.
 * @returns the first column and the number of columns of each picture, and the width of a cell
 */
export function layOut(
  columns: number,
  width: number,
  { leastCell, widestCell }: { leastCell: number; widestCell: number },
): { pictures: { first: number; count: number }[]; cell: number } {
  const room = Math.max(leastCell, width - axisWidth - 4);
  const length = Math.ceil(columns / Math.max(1, Math.floor(room / leastCell)));
  const most = Math.ceil(columns / length);
  const pictures = Array.from({ length }, (_, picture) => {
    const first = picture * most;
    return { first, count: Math.min(columns - first, most) };
  });
  return { pictures, cell: Math.min(widestCell, room / most) };
}

/** The layer labels. @param named what a row is, if not a layer */
export function layerAxis(
  layers: readonly number[],
  cellHeight: number,
  named?: { name: string; names: string[] },
): Html[] {
  const left = { x: axisWidth - 8, anchor: "end", kind: "soft" } as const;
  const nameOf = (row: number) => named?.names[row] ?? String(row);
  return [
    ...layers.map((layer, at) => label(nameOf(layer), { ...left, y: (at + 0.5) * cellHeight + 4 })),
    label(named?.name ?? "layer", { ...left, y: layers.length * cellHeight + 17 }),
  ];
}
