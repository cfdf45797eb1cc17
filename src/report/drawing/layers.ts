import type { Html } from "../markup.js";
import { label } from "./svg.js";

/** Pixels for the layers' names, left of their grid. */
export const axisWidth = 40;

/**
 * How layers over columns are laid out: columns that do not fit go on in another picture below,
 * like lines.
 * @returns the pictures by their first column and how many they have, and how wide a cell is
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

/** The names of the layers, beside their cells. @param named what a row is, where it is no layer */
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
