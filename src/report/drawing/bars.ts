import { axesOf, type Row } from "../../findings/axes.js";
import type { Chart, Figure } from "../../findings/figure.js";
import type { Html } from "../markup.js";
import { axisX } from "./frame.js";
import { linear, ticks } from "./scale.js";
import { box, cutText, label, line, svg, textWidth } from "./svg.js";

type Bars = Extract<Chart, { kind: "bars" }>;

/** Horizontal bars from 0, each with its number. */
export function drawBars(figure: Figure, chart: Bars, rows: readonly Row[], width: number): Html[] {
  const names = rows.map((row) => String(row[chart.label]));
  const most = width * 0.45;
  const left = Math.min(most, Math.max(...names.map(textWidth))) + 12;
  const values = rows.map((row) => Number(row[chart.value]));
  const { x: domain } = axesOf(chart, rows);
  const area = { left, right: width - 54, top: 6, bottom: rows.length * 26 + 8 };
  const x = linear(domain, [area.left, area.right]);
  const at = ticks(domain, Math.max(1, Math.floor((area.right - left) / 70)));
  return [
    svg(width, area.bottom + 38, figure.title, [
      ...at.map((value) => line(x(value), area.top, x(value), area.bottom, "grid")),
      ...axisX(area, x, at, chart.axis),
      ...rows.flatMap((_, index) => {
        const y = area.top + index * 26;
        const value = values[index] as number;
        const [from, to] = value < 0 ? [x(value), x(0)] : [x(0), x(value)];
        return [
          label(cutText(names[index] as string, most), { x: left - 8, y: y + 15, anchor: "end" }),
          box(from, y + 2, to - from, 20, "f0"),
          label(short(value), { x: to + 5, y: y + 16 }),
        ];
      }),
      line(x(0), area.top, x(0), area.bottom, "axis"),
    ]),
  ];
}

/** A small value does not become 0. */
function short(value: number): string {
  return value > 0 && value < 0.0005 ? "< 0.001" : String(Number(value.toFixed(3)));
}
