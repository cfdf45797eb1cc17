import { axis as axisOf, frame, panel, tip } from "./frame.js";
import { seriesLegend } from "./legend.js";
import { panelWidth } from "./lines.js";

/** @typedef {{ name: string, rows: number[], x: [number, number], reach: number }} MirrorPanel */

/**
 * Histograms of two classes, above and below the line; one small picture per combination of panels.
 * @param {PageFigure} figure
 * @param {Row[]} rows
 * @param {Space} space
 * @returns {Drawn}
 */
export function drawMirror(figure, rows, space) {
  const { width, theme } = space;
  const { from, to, up, down, axis } = figure.chart;
  const { sides, panels } = figure.axes;
  const [above, below] = /** @type {[string, string]} */ ([theme.series[0], theme.series[1]]);
  const each = panelWidth(width, panels.length, 2);
  return {
    legend: seriesLegend(
      [
        { name: `${sides.up} (above)`, color: above, wide: true },
        { name: `${sides.down} (below)`, color: below, wide: true },
      ],
      space,
    ),
    panels: panels.map((/** @type {MirrorPanel} */ { name, rows: places, x, reach }) => {
      const own = places.map((at) => /** @type {Row} */ (rows[at]));
      const plot = Plot.plot({
        ...frame(figure, theme, name),
        width: each,
        height: 190,
        marginTop: 26,
        marginLeft: 36,
        marginRight: 10,
        marginBottom: 34,
        x: { domain: x },
        y: { domain: [-reach, reach] },
        marks: [
          Plot.axisX({ ...axisOf(theme, axis), ticks: 3 }),
          Plot.axisY({
            ...axisOf(theme, null),
            ticks: 4,
            tickFormat: (/** @type {number} */ tick) => d3.format("d")(Math.abs(tick)),
          }),
          Plot.text([name], { frameAnchor: "top-left", dy: -18, fill: theme.ink, fontWeight: 600 }),
          Plot.rect(own, { x1: from, x2: to, y1: 0, y2: up, fill: above, inset: 0.5 }),
          Plot.rect(own, {
            x1: from,
            x2: to,
            y1: 0,
            y2: (/** @type {Row} */ row) => -Number(row[down]),
            fill: below,
            inset: 0.5,
          }),
          Plot.ruleY([0], { stroke: theme.soft }),
          tip(own, figure.details, { x: middle, y: top }),
        ],
      });
      return panel(plot, own, (row) => [middle(row), top(row)]);

      function middle(/** @type {Row} */ row) {
        return (Number(row[from]) + Number(row[to])) / 2;
      }
      function top(/** @type {Row} */ row) {
        return Number(row[up]) > 0 ? Number(row[up]) : -Number(row[down]);
      }
    }),
  };
}
