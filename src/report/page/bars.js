import { axis as axisOf, frame, panel, tip } from "./frame.js";
import { cutText, textWidth } from "./text.js";

/**
 * Horizontal bars from 0, each with its number.
 * @param {PageFigure} figure
 * @param {Row[]} rows
 * @param {Space} space
 * @returns {Drawn}
 */
export function drawBars(figure, rows, { width, theme }) {
  const { label, value, axis } = figure.chart;
  const most = width * 0.45;
  const widest = Math.max(0, ...rows.map((row) => textWidth(String(row[label]), 12)));
  const marginLeft = Math.min(most, widest) + 14;
  // Tokens can look identical, so bars are placed by row.
  const names = rows.map((row) => cutText(String(row[label]), 12, most));
  const ticks = Math.max(1, Math.min(5, Math.floor((width - marginLeft - 52) / 40)));
  const plot = Plot.plot({
    ...frame(figure, theme),
    width,
    height: rows.length * 28 + 44,
    marginLeft,
    marginRight: 52,
    marginTop: 6,
    marginBottom: 36,
    x: { domain: figure.axes.x, label: axis, labelArrow: "none" },
    y: { type: "band", domain: rows.map(({ row }) => row), padding: 0.2 },
    marks: [
      Plot.gridX({ stroke: theme.line, strokeOpacity: 1, ticks }),
      Plot.axisX({
        ...axisOf(theme, axis),
        ticks,
        tickFormat: (/** @type {number} */ value) => String(Number(value.toPrecision(6))),
      }),
      Plot.axisY({
        ...axisOf(theme, null),
        fill: theme.ink,
        tickFormat: (/** @type {number} */ row) => names[rows.findIndex((one) => one.row === row)],
      }),
      Plot.barX(rows, { x: value, y: "row", fill: theme.series[0] }),
      Plot.text(rows, {
        x: (/** @type {Row} */ row) => Math.max(0, Number(row[value])),
        y: "row",
        text: (/** @type {Row} */ row) => short(Number(row[value])),
        textAnchor: "start",
        dx: 5,
        fill: theme.ink,
      }),
      Plot.ruleX([0], { stroke: theme.soft }),
      tip(rows, figure.details, { x: value, y: "row" }),
    ],
  });
  return { panels: [panel(plot, rows, (row) => [row[value], row.row])] };
}

/**
 * A small value does not become 0.
 * @param {number} value
 */
function short(value) {
  return value > 0 && value < 0.0005 ? "< 0.001" : d3.format(".3~f")(value);
}
