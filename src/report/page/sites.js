import { frame, panel, tip } from "./frame.js";
import { rampLegend } from "./legend.js";
import { cutText } from "./text.js";
import { readableOn } from "./theme.js";

const [axisWidth, leastCell, widestCell, cellHeight] = [44, 46, 110, 26];

/**
 * Differences around 0 of layers over tokens, the deepest layer on top; two prompts' tokens stand below each other.
 * @param {PageFigure} figure
 * @param {Row[]} rows
 * @param {Space} space
 * @returns {Drawn}
 */
export function drawSites(figure, rows, { width, theme }) {
  const { columns, value, legend, least } = figure.chart;
  const layers = [...new Set(rows.map(({ layer }) => Number(layer)))].sort((a, b) => b - a);
  const room = Math.max(leastCell, width - axisWidth - 4);
  const lines = Math.ceil(columns.length / Math.max(1, Math.floor(room / leastCell)));
  const perLine = Math.ceil(columns.length / lines);
  const cell = Math.min(widestCell, room / perLine);
  const reach = Math.max(least, 1e-9, ...rows.map((row) => Math.abs(Number(row[value] ?? 0))));
  const color = {
    type: "linear",
    domain: [-reach, 0, reach],
    range: theme.diverging,
    interpolate: d3.interpolateLab,
    ticks: 5,
    tickFormat: "+.2~f",
  };
  const shade = Plot.scale({ color });
  const fill = (/** @type {Row} */ row) => shade.apply(Number(row[value] ?? 0));
  const name = (/** @type {"above" | "below"} */ side) => (/** @type {number} */ column) =>
    cutText(columns[column][side], 12, cell - 4);

  const panels = Array.from({ length: lines }, (_, line) => {
    const places = d3.range(line * perLine, Math.min(columns.length, (line + 1) * perLine));
    const inside = rows.filter(({ column }) => places.includes(column));
    const [open, shut] = [inside.filter((row) => row.inside), inside.filter((row) => !row.inside)];
    const plot = Plot.plot({
      ...frame(figure, theme, lines > 1 ? `columns ${places[0]} to ${places.at(-1)}` : undefined),
      width: axisWidth + 4 + cell * places.length,
      height: layers.length * cellHeight + 52,
      marginLeft: axisWidth,
      marginRight: 4,
      marginTop: 4,
      marginBottom: 48,
      padding: 0.03,
      x: { type: "band", domain: places },
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
          tickFormat: name("above"),
        }),
        Plot.axisX({
          anchor: "bottom",
          label: null,
          tickSize: 0,
          tickPadding: 24,
          fill: theme.soft,
          tickFormat: name("below"),
        }),
        Plot.cell(shut, { x: "column", y: "layer", fill: theme.line, fillOpacity: 0.35, inset: 0.5 }),
        Plot.cell(open, { x: "column", y: "layer", fill, inset: 0.5 }),
        Plot.text(open, {
          x: "column",
          y: "layer",
          text: (/** @type {Row} */ row) => cutText(d3.format(".2f")(row[value] ?? 0), 12, cell - 4),
          fill: (/** @type {Row} */ row) => readableOn(fill(row)),
        }),
        tip(inside, figure.details, { x: "column", y: "layer" }),
      ],
    });
    return panel(plot, inside, ({ column, layer }) => [column, layer]);
  });
  return { legend: rampLegend({ ...color, label: legend }, theme), panels };
}
