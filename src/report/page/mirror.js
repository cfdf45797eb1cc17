import { frame, panel, tip } from "./frame.js";
import { seriesLegend } from "./legend.js";
import { panelWidth } from "./lines.js";

const at = (/** @type {string} */ name) => (/** @type {Row} */ row) => row[name];

/**
 * Histograms of two classes, one above the line and one below; a small picture for each combination of panels.
 * @param {PageFigure} figure
 * @param {Row[]} rows
 * @param {Space} space
 * @returns {Drawn}
 */
export function drawMirror(figure, rows, space) {
  const { width, theme } = space;
  const { from, to, up, down, axis, panels, sides, fitted } = figure.chart;
  const [above, below] = /** @type {[string, string]} */ ([theme.series[0], theme.series[1]]);
  const groups = d3.groups(rows, (/** @type {Row} */ row) =>
    panels
      .map((/** @type {string} */ name) =>
        typeof row[name] === "number" ? `${name} ${row[name]}` : row[name],
      )
      .join(", "),
  );
  const each = panelWidth(width, groups.length, 2);
  return {
    legend: seriesLegend(
      [
        { name: `${sides?.up ?? "class 1"} (above)`, color: above, wide: true },
        { name: `${sides?.down ?? "class 0"} (below)`, color: below, wide: true },
      ],
      space,
    ),
    panels: groups.map((/** @type {[string, Row[]]} */ [name, own]) => {
      const reach = Math.max(...own.map((row) => Math.max(Number(row[up]), Number(row[down]))));
      const plot = Plot.plot({
        ...frame(figure, theme, name),
        width: each,
        height: 190,
        marginTop: 26,
        marginLeft: 36,
        marginRight: 10,
        marginBottom: 34,
        x: { domain: fitted ? [d3.min(own, at(from)), d3.max(own, at(to))] : [0, 1] },
        y: { domain: [-reach, reach] },
        marks: [
          Plot.axisX({ label: axis, labelArrow: "none", tickSize: 0, fill: theme.soft, ticks: 3 }),
          Plot.axisY({
            label: null,
            tickSize: 0,
            fill: theme.soft,
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
