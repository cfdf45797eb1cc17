import { axesOf, type Row } from "../../findings/axes.js";
import type { Chart, Figure } from "../../findings/figure.js";
import type { Html } from "../markup.js";
import { axisX, axisY, seriesLegend } from "./frame.js";
import { linear, ticks } from "./scale.js";
import { box, dot, label, line, svg, textWidth } from "./svg.js";

type Scatter = Extract<Chart, { kind: "scatter" }>;
type Mirror = Extract<Chart, { kind: "mirror" }>;

/** Points, with labels if there is room. */
export function drawScatter(figure: Figure, chart: Scatter, rows: readonly Row[], width: number): Html[] {
  const axes = axesOf(chart, rows);
  const height = Math.min(400, Math.round(width * 0.5) + 80);
  const area = { left: 52, right: width - 28, top: 28, bottom: height - 38 };
  const x = linear(axes.x, [area.left + 4, area.right]);
  const y = linear(axes.y, [area.bottom, area.top]);
  const points = rows.map((row) => ({
    x: x(Number(row[chart.x])),
    y: y(Number(row[chart.y])),
    place: axes.series.find(({ name }) => name === String(row[chart.series]))?.place ?? 0,
    name: String(row[chart.label]),
  }));
  const taken = points.map((point) => ({ left: point.x - 5, right: point.x + 5, y: point.y }));
  const named = points.flatMap((point) => {
    const room = textWidth(point.name);
    for (const left of [point.x + 7, point.x - 7 - room]) {
      const place = { left, right: left + room, y: point.y };
      const free = taken.every(
        (other) => place.right < other.left || place.left > other.right || Math.abs(other.y - place.y) > 11,
      );
      if (!free || place.right > width - 2 || place.left < area.left) continue;
      taken.push(place);
      return [label(point.name, { x: left, y: point.y + 4, kind: "soft" })];
    }
    return [];
  });
  const series = axes.series.map((one) => ({ ...one, dots: true, lines: false }));
  return [
    ...(series.length > 1 ? [seriesLegend(series, width)] : []),
    svg(width, height, figure.title, [
      ...axisY(area, y, ticks(axes.y, 5), chart.yAxis),
      ...axisX(area, x, ticks(axes.x, 5), chart.xAxis),
      ...(chart.diagonal ? [line(x(axes.x[0]), y(axes.x[0]), x(axes.x[1]), y(axes.x[1]), "axis")] : []),
      ...points.map((point) => dot(point.x, point.y, point.place, 4.5)),
      ...named,
    ]),
  ];
}

/** Counts of two classes, above and below the line; one small picture per combination of panels. */
export function drawMirror(figure: Figure, chart: Mirror, rows: readonly Row[], width: number): Html[] {
  const { panels, sides } = axesOf(chart, rows);
  const most = Math.max(1, Math.min(panels.length, Math.floor(width / 230)));
  const across = most > 2 ? most - (most % 2) : most;
  const each = Math.min(360, Math.floor((width - (across - 1) * 10) / across));
  const legend = seriesLegend(
    [
      { name: `${sides.up} (above)`, place: 0, wide: true },
      { name: `${sides.down} (below)`, place: 1, wide: true },
    ],
    width,
  );
  const pictures = panels.map(({ name, rows: places, x: domain, reach }) => {
    const own = places.map((at) => rows[at] as Row);
    const area = { left: 34, right: each - 10, top: 26, bottom: 156 };
    const x = linear(domain, [area.left, area.right]);
    const y = linear([-reach, reach], [area.bottom, area.top]);
    const bar = (row: Row, from: number, to: number, kind: string) => {
      const [left, right] = [x(Number(row[chart.from])), x(Number(row[chart.to]))];
      return box(left + 0.5, Math.min(y(from), y(to)), right - left - 1, Math.abs(y(from) - y(to)), kind);
    };
    return svg(each, 194, `${figure.title}: ${name}`, [
      label(name, { x: 0, y: 14, kind: "ink name" }),
      ...axisY(area, y, [-reach, 0, reach], "", (value) => String(Math.abs(value))),
      ...axisX(area, x, ticks(domain, 2), chart.axis),
      ...own.flatMap((row) => [
        bar(row, 0, Number(row[chart.up]), "f0"),
        bar(row, -Number(row[chart.down]), 0, "f1"),
      ]),
      line(area.left, y(0), area.right, y(0), "axis"),
    ]);
  });
  return [legend, ...pictures];
}
