import { frame, panel, tip } from "./frame.js";
import { seriesLegend } from "./legend.js";
import { styles } from "./lines.js";

/**
 * Single points with their names.
 * @param {PageFigure} figure
 * @param {Row[]} rows
 * @param {Space} space
 * @returns {Drawn}
 */
export function drawScatter(figure, rows, space) {
  const { width, theme } = space;
  const { x, y, series: by, label, xAxis, yAxis } = figure.chart;
  const series = styles([...new Set(rows.map((row) => String(row[by])))], undefined, theme);
  const plot = Plot.plot({
    ...frame(figure, theme),
    width,
    height: Math.min(420, Math.round(width * 0.5) + 80),
    marginLeft: 52,
    marginRight: 30,
    marginTop: 28,
    marginBottom: 38,
    x: { domain: [0, 1] },
    y: { zero: true, nice: true },
    marks: [
      Plot.gridY({ stroke: theme.line, strokeOpacity: 1 }),
      Plot.axisX({ label: xAxis, labelArrow: "none", tickSize: 4, fill: theme.soft, ticks: 5 }),
      Plot.axisY({ label: yAxis, labelArrow: "none", tickSize: 0, fill: theme.soft, ticks: 6 }),
      ...series.flatMap(({ name, color, symbol }) => {
        const own = rows.filter((row) => String(row[by]) === name);
        return [
          Plot.dot(own, { x, y, fill: color, symbol, r: 4.5 }),
          Plot.text(own, { x, y, text: label, dx: 7, textAnchor: "start", fill: theme.soft, fontSize: 10 }),
        ];
      }),
      tip(rows, figure.details, { x, y }),
    ],
  });
  return {
    legend: seriesLegend(series, space),
    panels: [panel(plot, rows, (row) => [row[x], row[y]])],
  };
}
