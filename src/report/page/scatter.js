import { axis, frame, panel, tip } from "./frame.js";
import { seriesLegend } from "./legend.js";
import { styles } from "./lines.js";
import { textWidth } from "./text.js";

const [labelSize, dot] = [10, 4.5];
const margin = { left: 52, right: 30, top: 28, bottom: 38 };

/**
 * Points, with labels if there is room.
 * @param {PageFigure} figure
 * @param {Row[]} rows
 * @param {Space} space
 * @returns {Drawn}
 */
export function drawScatter(figure, rows, space) {
  const { width, theme } = space;
  const { x, y, series: by, label, xAxis, yAxis } = figure.chart;
  const { axes } = figure;
  const series = styles(axes.series, theme);
  const height = Math.min(420, Math.round(width * 0.5) + 80);
  const across = d3.scaleLinear(axes.x, [margin.left, width - margin.right]);
  const down = d3.scaleLinear(axes.y, [height - margin.bottom, margin.top]);
  if (!figure.chart.diagonal) down.nice(6);
  const names = spots(
    rows.map((row) => ({ row, name: String(row[label]), x: across(row[x]), y: down(row[y]) })),
    { left: margin.left, right: width - 2, top: 2, bottom: height - margin.bottom },
  );
  const leaders = names.flatMap(({ row, dx, dy, far }) => {
    const [fromX, fromY] = [across(row[x]), down(row[y])];
    return far
      ? [{ x1: row[x], y1: row[y], x2: across.invert(fromX + dx), y2: down.invert(fromY + dy) }]
      : [];
  });
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
      Plot.axisX({ ...axis(theme, xAxis), tickSize: 4, ticks: 5, tickFormat: "~g" }),
      Plot.axisY({ ...axis(theme, yAxis), ticks: 6, tickFormat: "~g" }),
      Plot.line(figure.chart.diagonal ? axes.x.map((/** @type {number} */ end) => [end, end]) : [], {
        stroke: theme.soft,
        strokeOpacity: 0.5,
      }),
      Plot.link(leaders, { x1: "x1", y1: "y1", x2: "x2", y2: "y2", stroke: theme.soft, strokeOpacity: 0.5 }),
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
 * Places labels next to, above or below their points, clear of other points and labels. A label without room is left
 * out; hovering and the table show it.
 * @template T
 * @param {{ row: T, name: string, x: number, y: number }[]} points
 * @param {{ left: number, right: number, top: number, bottom: number }} area
 * @returns {{ row: T, name: string, dx: number, dy: number, anchor: string, far: boolean }[]}
 */
function spots(points, area) {
  // Try close places first; distant ones get a line to the point.
  const around = [0, 12, 24, 38, 54, 72].flatMap((away) => [
    { dx: 7 + away, dy: 0, anchor: "start", far: away > 0 },
    { dx: -7 - away, dy: 0, anchor: "end", far: away > 0 },
    { dx: 0, dy: -11 - away, anchor: "middle", far: away > 0 },
    { dx: 0, dy: 11 + away, anchor: "middle", far: away > 0 },
    { dx: 6 + away * 0.7, dy: -9 - away * 0.7, anchor: "start", far: away > 0 },
    { dx: 6 + away * 0.7, dy: 9 + away * 0.7, anchor: "start", far: away > 0 },
    { dx: -6 - away * 0.7, dy: -9 - away * 0.7, anchor: "end", far: away > 0 },
    { dx: -6 - away * 0.7, dy: 9 + away * 0.7, anchor: "end", far: away > 0 },
  ]);
  const taken = points.map(({ x, y }) => ({
    left: x - dot,
    right: x + dot,
    top: y - dot,
    bottom: y + dot,
  }));
  return points.flatMap(({ row, name, x, y }) => {
    const wide = textWidth(name, labelSize);
    for (const { dx, dy, anchor, far } of around) {
      const left = x + dx - (anchor === "start" ? 0 : anchor === "end" ? wide : wide / 2);
      const box = { left: left - 2, right: left + wide + 2, top: y + dy - 5, bottom: y + dy + 5 };
      const inside =
        box.left >= area.left && box.right <= area.right && box.top >= area.top && box.bottom <= area.bottom;
      if (!inside) continue;
      const free = taken.every(
        (one) => box.right < one.left || box.left > one.right || box.bottom < one.top || box.top > one.bottom,
      );
      if (!free) continue;
      taken.push(box);
      return [{ row, name, dx, dy, anchor, far }];
    }
    return [];
  });
}
