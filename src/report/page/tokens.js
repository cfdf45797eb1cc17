import { axis, frame, panel, tip } from "./frame.js";
import { layerAxis, layOut } from "./grid.js";
import { rampLegend } from "./legend.js";
import { cutText, textWidth } from "./text.js";
import { readableOn } from "./theme.js";

const cellHeight = 30;
const sizes = { axisWidth: 44, leastCell: 62, widestCell: 150 };

/**
 * Layers over tokens, the deepest layer on top; long texts continue in another picture below.
 * @param {PageFigure} figure
 * @param {Row[]} rows
 * @param {Space} space
 * @returns {Drawn}
 */
export function drawTokens(figure, rows, { width, theme }) {
  const { tokens, value, label, scale, legend, down, panel: parts } = figure.chart;
  const titles = parts === undefined ? [""] : [...new Set(rows.map((row) => String(row[parts])))];
  const axisWidth = down === undefined ? sizes.axisWidth : namesWidth(down, width);
  const { layers, shades } = figure.axes;
  const { lines, cell } = layOut(tokens.length, width, { ...sizes, axisWidth });
  const color = colors(shades[value], scale, theme);
  const shade = Plot.scale({ color });
  const fill = (/** @type {Row} */ row) => (row[value] === null ? theme.card : shade.apply(row[value]));
  const text = (/** @type {Row} */ row) => cutText(String(row[label] ?? ""), 12, cell - 6);

  const pictures = lines.flatMap((positions) => titles.map((title) => ({ positions, title })));
  const panels = pictures.map(({ positions, title }) => {
    const inside = rows.filter(
      (row) => positions.includes(Number(row.position)) && (title === "" || row[parts] === title),
    );
    const part = [title, ...(lines.length > 1 ? [`tokens ${positions[0]} to ${positions.at(-1)}`] : [])];
    const top = title === "" ? 4 : 22;
    const plot = Plot.plot({
      ...frame(figure, theme, part.filter((text) => text !== "").join(", ") || undefined),
      width: axisWidth + 4 + cell * positions.length,
      height: (down?.length ?? layers.length) * cellHeight + 26 + top,
      marginLeft: axisWidth,
      marginRight: 4,
      marginTop: top,
      marginBottom: 26,
      padding: 0.03,
      x: { type: "band", domain: positions },
      y: { type: "band", domain: down === undefined ? layers : d3.range(down.length) },
      marks: [
        down === undefined ? layerAxis(theme) : namesAxis(down, axisWidth, theme),
        Plot.axisX({
          ...axis(theme, null),
          anchor: "bottom",
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
        ...(title === ""
          ? []
          : [Plot.text([title], { frameAnchor: "top-left", dy: -16, fontWeight: 600, fill: theme.ink })]),
        tip(inside, figure.details, { x: "position", y: "layer" }),
      ],
    });
    return panel(plot, inside, ({ position, layer }) => [position, layer]);
  });
  return { legend: rampLegend({ ...color, label: legend }, shades[value].legend, theme), panels };
}

/**
 * The width of row labels.
 * @param {string[]} names
 * @param {number} width
 */
export function namesWidth(names, width) {
  return Math.min(width * 0.25, 160, Math.max(24, ...names.map((name) => textWidth(name, 12))) + 10);
}

/**
 * @param {string[]} names
 * @param {number} room
 * @param {Theme} theme
 */
function namesAxis(names, room, theme) {
  return Plot.axisY({
    ...axis(theme, null),
    fill: theme.ink,
    tickFormat: (/** @type {number} */ row) => cutText(names[row] ?? "", 12, room - 6),
  });
}

/**
 * The colours of a map's values as a Plot scale.
 * @param {{ domain: number[], logarithmic: boolean, reversed: boolean }} axis
 * @param {string} scale
 * @param {Theme} theme
 */
export function colors({ domain, logarithmic, reversed }, scale, theme) {
  const [none, all] = theme.ramp;
  return {
    type: logarithmic ? "log" : "linear",
    domain,
    interpolate: reversed ? d3.interpolateLab(all, none) : d3.interpolateLab(none, all),
    ...(scale === "amount" && { clamp: true }),
  };
}
