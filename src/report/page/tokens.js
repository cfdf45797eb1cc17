import { frame, panel, tip } from "./frame.js";
import { layerAxis, layOut } from "./grid.js";
import { rampLegend } from "./legend.js";
import { cutText } from "./text.js";
import { readableOn } from "./theme.js";

const cellHeight = 30;
const sizes = { axisWidth: 44, leastCell: 62, widestCell: 150 };

/**
 * Layers over tokens, the deepest on top; long texts continue in another picture below, like lines.
 * @param {PageFigure} figure
 * @param {Row[]} rows
 * @param {Space} space
 * @returns {Drawn}
 */
export function drawTokens(figure, rows, { width, theme }) {
  const { tokens, value, label, scale, legend } = figure.chart;
  const { layers, lines, cell } = layOut(rows, tokens.length, width, sizes);
  const color = colors(rows, value, scale, theme);
  const shade = Plot.scale({ color });
  const fill = (/** @type {Row} */ row) => (row[value] === null ? theme.card : shade.apply(row[value]));
  const text = (/** @type {Row} */ row) => cutText(String(row[label] ?? ""), 12, cell - 6);

  const panels = lines.map((positions) => {
    const inside = rows.filter(({ position }) => positions.includes(Number(position)));
    const plot = Plot.plot({
      ...frame(figure, theme, lines.length > 1 ? `tokens ${positions[0]} to ${positions.at(-1)}` : undefined),
      width: sizes.axisWidth + 4 + cell * positions.length,
      height: layers.length * cellHeight + 30,
      marginLeft: sizes.axisWidth,
      marginRight: 4,
      marginTop: 4,
      marginBottom: 26,
      padding: 0.03,
      x: { type: "band", domain: positions },
      y: { type: "band", domain: layers },
      marks: [
        layerAxis(theme),
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
