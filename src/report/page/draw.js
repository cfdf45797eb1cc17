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
