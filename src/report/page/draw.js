import { drawBars } from "./bars.js";
import { drawDifferences } from "./differences.js";
import { drawLines } from "./lines.js";
import { drawMirror } from "./mirror.js";
import { drawScatter } from "./scatter.js";
import { drawSites } from "./sites.js";
import { drawTokens } from "./tokens.js";

/** @type {Record<string, (figure: PageFigure, rows: Row[], space: Space) => Drawn>} */
const kinds = {
  tokens: drawTokens,
  bars: drawBars,
  lines: drawLines,
  differences: drawDifferences,
  mirror: drawMirror,
  scatter: drawScatter,
  sites: drawSites,
};

/**
 * Puts a drawn figure into its element, with the legend on a separate line.
 * @param {Element} container
 * @param {Drawn} drawn
 */
export function place(container, { legend, panels }) {
  const parts = panels.map(({ svg }) => svg);
  if (legend === undefined) return container.replaceChildren(...parts);
  const line = document.createElement("div");
  line.className = "legend";
  line.append(legend);
  container.replaceChildren(line, ...parts);
}

/**
 * Draws a figure for a width and a theme.
 * @param {PageFigure} figure
 * @param {Space} space
 */
export function draw(figure, space) {
  const rows = figure.rows.map((cells, row) =>
    Object.assign(Object.fromEntries(figure.columns.map(({ name }, index) => [name, cells[index] ?? null])), {
      row,
    }),
  );
  return /** @type {NonNullable<typeof kinds[string]>} */ (kinds[figure.chart.kind])(
    figure,
    /** @type {Row[]} */ (rows),
    space,
  );
}
