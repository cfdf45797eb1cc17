import { axis } from "./frame.js";

/**
 * Lays out layers over columns; columns that do not fit continue in another picture below.
 * @param {number} count of columns
 * @param {number} width
 * @param {{ axisWidth: number, leastCell: number, widestCell: number }} sizes
 * @returns {{ lines: number[][], cell: number }} the columns of each picture, and the width of a cell
 */
export function layOut(count, width, { axisWidth, leastCell, widestCell }) {
  const room = Math.max(leastCell, width - axisWidth - 4);
  const pictures = Math.ceil(count / Math.max(1, Math.floor(room / leastCell)));
  const perLine = Math.ceil(count / pictures);
  const lines = Array.from({ length: pictures }, (_, line) =>
    d3.range(line * perLine, Math.min(count, (line + 1) * perLine)),
  );
  return { lines, cell: Math.min(widestCell, room / perLine) };
}

/**
 * The layer labels.
 * @param {Theme} theme
 * @param {{ name: string, names: string[] }} [named] what a row is, if not a layer
 */
export function layerAxis(theme, named) {
  return Plot.axisY({
    ...axis(theme, named?.name ?? "layer"),
    ...(named && { tickFormat: (/** @type {number} */ row) => named.names[row] }),
    labelAnchor: "bottom",
  });
}

/**
 * Colours of differences around 0.
 * @param {number} reach the largest difference
 * @param {Theme} theme
 */
export function differenceColor(reach, theme) {
  return {
    type: "linear",
    domain: [-reach, 0, reach],
    range: theme.diverging,
    interpolate: d3.interpolateLab,
  };
}

/**
 * The number in a cell, and the value that colours it: cells that read alike look alike.
 * @param {string | number | null | undefined} value
 * @param {number} digits
 * @returns {{ text: string, value: number }}
 */
export function rounded(value, digits) {
  const text = Number(value ?? 0)
    .toFixed(digits)
    .replace(/^-(0\.?0*)$/, "$1");
  return { text, value: Number(text) };
}
