import { frame, panel, tip } from "./frame.js";
import { seriesLegend } from "./legend.js";
import { styles } from "./lines.js";
import { textWidth } from "./text.js";

const [labelSize, dot] = [10, 4.5];
const margin = { left: 52, right: 30, top: 28, bottom: 38 };

/**
 * Single points with their names, where there is room for them.
 * @param {PageFigure} figure
 * @param {Row[]} rows
 * @param {Space} space
 * @returns {Drawn}
 */
export function drawScatter(figure, rows, space) {
  const { width, theme } = space;
  const { x, y, series: by, label, xAxis, yAxis } = figure.chart;
  const series = styles([...new Set(rows.map((row) => String(row[by])))], undefined, theme);
  const height = Math.min(420, Math.round(width * 0.5) + 80);
  const across = d3.scaleLinear([0, 1], [margin.left, width - margin.right]);
  const highest = d3.max(rows, (/** @type {Row} */ row) => row[y]) || 1;
  const down = d3.scaleLinear([0, highest], [height - margin.bottom, margin.top]).nice(6);
  const names = spots(
    rows.map((row) => ({ row, name: String(row[label]), x: across(row[x]), y: down(row[y]) })),
  );
  const plot = Plot.plot({
    ...frame(figure, theme),
    width,
    height,
    marginLeft: margin.left,
    marginRight: margin.right,
    marginTop: margin.top,
    marginBottom: margin.bottom,
    x: { domain: across.domain() },
    y: { domain: down.domain() },
    marks: [
      Plot.gridY({ stroke: theme.line, strokeOpacity: 1, ticks: 6 }),
      Plot.axisX({
        label: xAxis,
        labelArrow: "none",
        tickSize: 4,
        fill: theme.soft,
        ticks: 5,
        tickFormat: "~g",
      }),
      Plot.axisY({
        label: yAxis,
        labelArrow: "none",
        tickSize: 0,
        fill: theme.soft,
        ticks: 6,
        tickFormat: "~g",
      }),
      ...series.map(({ name, color, symbol }) => {
        const own = rows.filter((row) => String(row[by]) === name);
        return Plot.dot(own, { x, y, fill: color, symbol, r: dot });
      }),
      ...names.map(({ row, name, dx, dy, anchor }) =>
        Plot.text([row], {
          x,
          y,
          text: [name],
          dx,
          dy,
          textAnchor: anchor,
          fill: theme.soft,
          fontSize: labelSize,
        }),
      ),
      tip(rows, figure.details, { x, y }),
    ],
  });
  return {
    legend: seriesLegend(series, space, { lines: false }),
    panels: [panel(plot, rows, (row) => [row[x], row[y]])],
  };
}

/**
 * Where names stand: beside, above or below their points, clear of other points and names. A name without room is
 * left out; hovering and the table tell it.
 * @template T
 * @param {{ row: T, name: string, x: number, y: number }[]} points
 * @returns {{ row: T, name: string, dx: number, dy: number, anchor: string }[]}
 */
function spots(points) {
  const around = [
    { dx: 7, dy: 0, anchor: "start" },
    { dx: -7, dy: 0, anchor: "end" },
    { dx: 0, dy: -11, anchor: "middle" },
    { dx: 0, dy: 11, anchor: "middle" },
  ];
  const taken = points.map(({ x, y }) => ({
    left: x - dot,
    right: x + dot,
    top: y - dot,
    bottom: y + dot,
  }));
  return points.flatMap(({ row, name, x, y }) => {
    const wide = textWidth(name, labelSize);
    for (const { dx, dy, anchor } of around) {
      const left = x + dx - (anchor === "start" ? 0 : anchor === "end" ? wide : wide / 2);
      const box = { left, right: left + wide, top: y + dy - 5, bottom: y + dy + 5 };
      const free = taken.every(
        (one) => box.right < one.left || box.left > one.right || box.bottom < one.top || box.top > one.bottom,
      );
      if (!free) continue;
      taken.push(box);
      return [{ row, name, dx, dy, anchor }];
    }
    return [];
  });
}
