import { axesOf, type Row } from "../../findings/axes.js";
import type { Chart, Figure } from "../../findings/figure.js";
import type { Html } from "../markup.js";
import { type Area, axisX, axisY, type Series, seriesLegend } from "./frame.js";
import { linear, logarithmic, powers, ticks } from "./scale.js";
import { box, cutText, dot, label, line, path, seriesKinds, svg } from "./svg.js";

type Lines = Extract<Chart, { kind: "lines" }>;

/** Lines and dots, one line per series; with `panel`, a small picture per value. */
export function drawLines(figure: Figure, chart: Lines, rows: readonly Row[], width: number): Html[] {
  const axes = axesOf(chart, rows);
  const of = (name: string) => rows.filter((row) => String(row[chart.series]) === name);
  if (chart.panel !== undefined) {
    const { label: word } = chart.panel;
    const across = Math.max(1, Math.min(axes.series.length, Math.floor(width / 230)));
    const each = Math.min(360, Math.floor((width - (across - 1) * 10) / across));
    return axes.series.map(({ name }) => {
      const title = `${word} ${name}`.trim();
      return onePicture(figure.title, chart, of(name), [{ name, place: 0 }], each, title);
    });
  }
  const series = axes.series.map((one): Series => ({ ...one, dots: chart.dots }));
  const legend = series.length > 1 ? [seriesLegend(series, width)] : [];
  return [...legend, onePicture(figure.title, chart, rows, series, width)];
}

function onePicture(
  title: string,
  chart: Lines,
  rows: readonly Row[],
  series: readonly Series[],
  width: number,
  part?: string,
): Html {
  const square = chart.xDomain !== undefined && String(chart.xDomain) === String(chart.yDomain);
  const wide = square ? Math.min(width, 440) : width;
  const height = square ? Math.round(wide * 0.85) + 20 : Math.min(340, Math.round(wide * 0.5) + 90);
  const top = part === undefined && chart.mark === undefined ? 26 : 42;
  const area: Area = { left: 50, right: wide - 16, top, bottom: height - 38 };
  const known = rows.filter((row) => row[chart.x] !== null && row[chart.y] !== null);
  const { x: xDomain, y: yDomain, logarithmic: log, steps, series: places } = axesOf(chart, rows);
  const inset = chart.size === undefined ? 6 : 12;
  const across = [area.left + inset, area.right - inset] as const;
  const x = chart.steps
    ? (value: number) => linear([0, Math.max(1, steps.length - 1)], across)(steps.indexOf(value))
    : linear(xDomain, across);
  const vertical = [area.bottom, area.top] as const;
  const y = log ? logarithmic(yDomain, vertical) : linear(yDomain, vertical);
  // Layers are integers, so no step is below 1.
  const whole = chart.xDomain === undefined && steps.every(Number.isInteger);
  const room = Math.max(2, Math.floor(wide / 80));
  const xTicks = ticks(xDomain, whole ? Math.min(room, xDomain[1] - xDomain[0]) : room);
  const largest = Math.max(...places.map((one) => one.largest));
  // Error bars at the same place are next to each other.
  const apart = new Set(known.map((row) => row[chart.x])).size < known.length ? 4 : 0;
  // Strong lines are drawn last, on top.
  const drawn = series.toSorted((a, b) => Number(a.wide ?? false) - Number(b.wide ?? false));
  return svg(wide, height, part === undefined ? title : `${title}: ${part}`, [
    ...axisY(area, y, log ? powers(yDomain, 5) : ticks(yDomain, 5), chart.yAxis),
    ...axisX(area, x, chart.steps ? steps : xTicks, chart.xAxis),
    ...(part === undefined
      ? []
      : [label(cutText(part, wide), { x: area.right, y: 28, anchor: "end", kind: "ink name" })]),
    ...(chart.mark === undefined
      ? []
      : [
          line(x(chart.mark.x), area.top, x(chart.mark.x), area.bottom, "mark"),
          label(chart.mark.label, { x: x(chart.mark.x) + 5, y: area.top - 4, kind: "soft" }),
        ]),
    ...(chart.diagonal === undefined
      ? []
      : [
          line(x(0), y(0), x(1), y(1), "mark"),
          label(chart.diagonal, { x: x(0.62), y: y(0.54), kind: "soft" }),
        ]),
    ...drawn.flatMap((one, index) => {
      const own = known.filter((row) => part !== undefined || String(row[chart.series]) === one.name);
      const points = own.map((row) => [x(Number(row[chart.x])), y(Number(row[chart.y]))] as const);
      const kind = `l${one.place % seriesKinds}`;
      return [
        path(points, one.wide ? `${kind} strong` : kind),
        ...intervals(chart, own, x, y, kind, apart * (index - (drawn.length - 1) / 2)),
        ...(chart.dots
          ? own.map((row, at) => {
              const [px, py] = points[at] as readonly [number, number];
              const size =
                chart.size === undefined ? undefined : 2 + 7 * Math.sqrt(Number(row[chart.size]) / largest);
              return dot(px, py, one.place, size ?? (one.wide ? 4.5 : 3.5));
            })
          : []),
      ];
    }),
    ...(known.length === 0 ? [box(0, 0, 0, 0, "grid")] : []),
  ]);
}

/** Error bars, with an offset in pixels. */
function intervals(
  { interval, x: xName }: Lines,
  own: readonly Row[],
  x: (value: number) => number,
  y: (value: number) => number,
  kind: string,
  offset: number,
): Html[] {
  if (interval === undefined) return [];
  return own
    .filter((row) => row[interval.low] !== null && row[interval.high] !== null)
    .map((row) => {
      const at = x(Number(row[xName])) + offset;
      return line(at, y(Number(row[interval.low])), at, y(Number(row[interval.high])), kind);
    });
}
