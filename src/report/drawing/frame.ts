import type { Html } from "../markup.js";
import type { Scale } from "./scale.js";
import { tickText } from "./scale.js";
import { cutText, dot, label, line, svg, textWidth } from "./svg.js";

/** The area inside the axes, in pixels. */
export interface Area {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** Horizontal grid lines with numbers on the left, and the axis label above. */
export function axisY(area: Area, y: Scale, at: readonly number[], name: string, text = tickText): Html[] {
  return [
    ...(name === "" ? [] : [label(cutText(name, area.right), { x: 0, y: 12, kind: "soft" })]),
    ...at.flatMap((value) => [
      line(area.left, y(value), area.right, y(value), "grid"),
      label(text(value), { x: area.left - 6, y: y(value) + 4, anchor: "end", kind: "soft" }),
    ]),
  ];
}

/** Numbers below the area if there is room, and the axis label below them on the right. */
export function axisX(area: Area, x: Scale, at: readonly number[], name: string, text = tickText): Html[] {
  const marks: Html[] = [line(area.left, area.bottom, area.right, area.bottom, "axis")];
  let free = Number.NEGATIVE_INFINITY;
  for (const value of at) {
    const half = textWidth(text(value)) / 2;
    if (x(value) - half < free) continue;
    free = x(value) + half + 6;
    marks.push(label(text(value), { x: x(value), y: area.bottom + 16, anchor: "middle", kind: "soft" }));
  }
  marks.push(
    label(cutText(name, area.right), { x: area.right, y: area.bottom + 32, anchor: "end", kind: "soft" }),
  );
  return marks;
}

export interface Series {
  name: string;
  /** Place among the colours and shapes. */
  place: number;
  wide?: boolean;
  dots?: boolean;
  lines?: boolean;
}

/** Names of series with their marks, wrapped to the width. */
export function seriesLegend(series: readonly Series[], width: number): Html {
  const marks: Html[] = [];
  let [x, y] = [0, 0];
  for (const { name, place, wide, dots, lines } of series) {
    const text = cutText(name, width - 30);
    const room = 28 + textWidth(text);
    if (x + room > width) {
      x = 0;
      y += 20;
    }
    if (lines !== false) marks.push(line(x, y + 10, x + 18, y + 10, `l${place % 8}${wide ? " strong" : ""}`));
    if (dots) marks.push(dot(x + 9, y + 10, place));
    marks.push(label(text, { x: x + 24, y: y + 14 }));
    x += room + 14;
  }
  return svg(width, y + 22, "Legend", marks);
}
