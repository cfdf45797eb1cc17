/**
 * How layers over columns are laid out: columns that do not fit go on in another picture below,
 * like lines.
 * @param {number} count of columns
 * @param {number} width
 * @param {{ axisWidth: number, leastCell: number, widestCell: number }} sizes
 * @returns {{ lines: number[][], cell: number }} the columns of each picture, and how wide a cell is
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
 * The names of the layers, beside their grid.
 * @param {Theme} theme
 * @param {{ name: string, names: string[] }} [named] what a row is, where it is no layer
 */
export function layerAxis(theme, named) {
  return Plot.axisY({
    label: named?.name ?? "layer",
    ...(named && { tickFormat: (/** @type {number} */ row) => named.names[row] }),
    labelAnchor: "bottom",
    labelArrow: "none",
    tickSize: 0,
    fill: theme.soft,
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
    ticks: 5,
    tickFormat: "+.2~f",
  };
}
