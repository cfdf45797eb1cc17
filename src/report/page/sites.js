import { axis, frame, panel, tip } from "./frame.js";
import { differenceColor, layerAxis, layOut, rounded } from "./grid.js";
import { rampLegend } from "./legend.js";
import { cutText } from "./text.js";
import { readableOn } from "./theme.js";

const cellHeight = 26;
const sizes = { axisWidth: 44, leastCell: 46, widestCell: 110 };

/**
 * Differences around 0: layers over the tokens of two prompts, the deepest layer on top. Cells without a value, which are not
 * computed yet, are dashed.
 * @param {PageFigure} figure
 * @param {Row[]} rows
 * @param {Space} space
 * @returns {Drawn}
 */
export function drawSites(figure, rows, { width, theme }) {
  const { columns, value, legend, rows: named } = figure.chart;
  const { layers, reach, digits } = figure.axes;
  const { lines, cell } = layOut(columns.length, width, sizes);
  const color = differenceColor(reach, theme);
  const shade = Plot.scale({ color });
  const fill = (/** @type {Row} */ row) => shade.apply(rounded(row[value], digits).value);
  const name = (/** @type {"above" | "below"} */ side) => (/** @type {number} */ column) =>
    cutText(columns[column][side], 12, cell - 4);

  const under = { ...axis(theme, null), anchor: "bottom" };
  const panels = lines.map((places) => {
    const inside = rows.filter(({ column }) => places.includes(Number(column)));
    const there = inside.filter((row) => row[value] !== null);
    const [open, shut] = [there.filter((row) => row.inside), there.filter((row) => !row.inside)];
    const missing = inside.filter((row) => row[value] === null);
    const plot = Plot.plot({
      ...frame(figure, theme, lines.length > 1 ? `columns ${places[0]} to ${places.at(-1)}` : undefined),
      width: sizes.axisWidth + 4 + cell * places.length,
      height: layers.length * cellHeight + 52,
      marginLeft: sizes.axisWidth,
      marginRight: 4,
      marginTop: 4,
      marginBottom: 48,
      padding: 0.03,
      x: { type: "band", domain: places },
      y: { type: "band", domain: layers },
      marks: [
        layerAxis(theme, named),
        Plot.axisX({ ...under, fill: theme.ink, tickFormat: name("above") }),
        Plot.axisX({ ...under, tickPadding: 24, tickFormat: name("below") }),
        Plot.cell(shut, { x: "column", y: "layer", fill: theme.line, fillOpacity: 0.35, inset: 0.5 }),
        Plot.cell(missing, {
          x: "column",
          y: "layer",
          fill: "none",
          stroke: theme.soft,
          strokeDasharray: "2 4",
          inset: 2,
        }),
        Plot.cell(open, { x: "column", y: "layer", fill, inset: 0.5 }),
        Plot.text(open, {
          x: "column",
          y: "layer",
          text: (/** @type {Row} */ row) => cutText(rounded(row[value], digits).text, 12, cell - 4),
          fill: (/** @type {Row} */ row) => readableOn(fill(row)),
        }),
        tip(inside, figure.details, { x: "column", y: "layer" }),
      ],
    });
    return panel(plot, inside, ({ column, layer }) => [column, layer]);
  });
  return { legend: rampLegend({ ...color, label: legend }, figure.axes.legend, theme), panels };
}
