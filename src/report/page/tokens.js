import { frame, panel, tip } from "./frame.js";
import { rampLegend } from "./legend.js";
import { cutText } from "./text.js";
import { readableOn } from "./theme.js";

const [axisWidth, leastCell, widestCell, cellHeight] = [44, 62, 150, 30];

/**
 * Layers over tokens, the deepest on top; long texts continue in another picture below, like lines.
 * @param {PageFigure} figure
 * @param {Row[]} rows
 * @param {Space} space
 * @returns {Drawn}
 */
export function drawTokens(figure, rows, { width, theme }) {
  const { tokens, value, label, scale, legend } = figure.chart;
  const layers = [...new Set(rows.map(({ layer }) => Number(layer)))].sort((a, b) => b - a);
  const room = Math.max(leastCell, width - axisWidth - 4);
  const lines = Math.ceil(tokens.length / Math.max(1, Math.floor(room / leastCell)));
  const perLine = Math.ceil(tokens.length / lines);
  const cell = Math.min(widestCell, room / perLine);
  const color = colors(rows, value, scale, theme);
  const shade = Plot.scale({ color });
  const fill = (/** @type {Row} */ row) => (row[value] === null ? theme.card : shade.apply(row[value]));
  const text = (/** @type {Row} */ row) => cutText(String(row[label] ?? ""), 12, cell - 6);

  const panels = Array.from({ length: lines }, (_, line) => {
    const positions = d3.range(line * perLine, Math.min(tokens.length, (line + 1) * perLine));
    const inside = rows.filter(({ position }) => positions.includes(position));
    const plot = Plot.plot({
      ...frame(figure, theme, lines > 1 ? `tokens ${positions[0]} to ${positions.at(-1)}` : undefined),
      width: axisWidth + 4 + cell * positions.length,
      height: layers.length * cellHeight + 30,
      marginLeft: axisWidth,
      marginRight: 4,
      marginTop: 4,
      marginBottom: 26,
      padding: 0.03,
      x: { type: "band", domain: positions },
      y: { type: "band", domain: layers },
      marks: [
        Plot.axisY({
          label: "layer",
          labelAnchor: "bottom",
          labelArrow: "none",
          tickSize: 0,
          fill: theme.soft,
        }),
        Plot.axisX({
          anchor: "bottom",
          label: null,
          tickSize: 0,
          fill: theme.ink,
          tickFormat: (/** @type {number} */ position) => cutText(tokens[position], 12, cell - 4),
        }),
        Plot.cell(inside, { x: "position", y: "layer", fill, inset: 0.5 }),
        Plot.text(inside, {
          x: "position",
          y: "layer",
          text,
          fill: (/** @type {Row} */ row) => readableOn(fill(row)),
        }),
        tip(inside, figure.details, { x: "position", y: "layer" }),
      ],
    });
    return panel(plot, inside, ({ position, layer }) => [position, layer]);
  });
  return { legend: rampLegend({ ...color, label: legend }, theme), panels };
}

/**
 * @param {Row[]} rows
 * @param {string} value
 * @param {string} scale
 * @param {Theme} theme
 */
function colors(rows, value, scale, theme) {
  const interpolate = d3.interpolateLab(...theme.ramp);
  if (scale === "probability") {
    return { type: "linear", domain: [0, 1], interpolate, tickFormat: ".0%", ticks: 5 };
  }
  const [low, high] = d3.extent(rows, (/** @type {Row} */ row) => row[value]);
  // A logarithm needs positive numbers, and a scale two different ends.
  if (!(low > 0)) return { type: "linear", domain: [0, Math.max(high, 1)], interpolate };
  return {
    type: "log",
    domain: high > low ? [low, high] : [low / 2, low * 2],
    interpolate,
    ticks: 4,
    tickFormat: "~s",
  };
}
