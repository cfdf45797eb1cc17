import { axis, frame, panel, tip } from "./frame.js";
import { differenceColor, rounded } from "./grid.js";
import { rampLegend } from "./legend.js";
import { cutText, textWidth } from "./text.js";
import { readableOn } from "./theme.js";

/**
 * A grid of differences around 0.
 * @param {PageFigure} figure
 * @param {Row[]} rows
 * @param {Space} space
 * @returns {Drawn}
 */
export function drawDifferences(figure, rows, { width, theme }) {
  const { x, y, value, xAxis, legend } = figure.chart;
  const { names, columns, reach, digits } = figure.axes;
  const most = width * 0.42;
  const marginLeft =
    Math.min(most, Math.max(...names.map((/** @type {string} */ name) => textWidth(name, 12)))) + 14;
  const color = differenceColor(reach, theme);
  const shade = Plot.scale({ color });
  const fill = (/** @type {Row} */ row) => shade.apply(rounded(row[value], digits).value);
  const cell = Math.min(110, (width - marginLeft - 8) / columns.length);
  const plot = Plot.plot({
    ...frame(figure, theme),
    width: marginLeft + 8 + cell * columns.length,
    height: names.length * 28 + 44,
    marginLeft,
    marginRight: 8,
    marginTop: 4,
    marginBottom: 38,
    padding: 0.04,
    x: { type: "band", domain: columns },
    y: { type: "band", domain: names },
    marks: [
      Plot.axisX({ ...axis(theme, xAxis), labelAnchor: "right", tickFormat: String }),
      Plot.axisY({
        ...axis(theme, null),
        fill: theme.ink,
        tickFormat: (/** @type {string} */ name) => cutText(name, 12, most),
      }),
      Plot.cell(rows, { x, y, fill }),
      Plot.text(rows, {
        x,
        y,
        text: (/** @type {Row} */ row) => cutText(signed(rounded(row[value], digits)), 12, cell - 4),
        fill: (/** @type {Row} */ row) => readableOn(fill(row)),
      }),
      tip(rows, figure.details, { x, y }),
    ],
  });
  return {
    legend: rampLegend({ ...color, label: legend }, figure.axes.legend, theme),
    panels: [panel(plot, rows, (row) => [row[x], row[y]])],
  };
}

/** @param {{ text: string, value: number }} number */
function signed({ text, value }) {
  return value > 0 ? `+${text}` : text;
}
