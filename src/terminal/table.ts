import { cut, width } from "../findings/text.js";
import { type Canvas, narrowest } from "./canvas.js";
import { fit } from "./fit.js";
import { dim } from "./paint.js";

export interface Column {
  title: string;
  align?: "left" | "right";
  /** Minimum width if it may be truncated; such columns share the remaining space. */
  least?: number;
  /** May be left out without room; the highest number goes first. */
  dispensable?: number;
}

/** A text, optionally with a function that paints it without changing its width. */
export type Entry = string | readonly [text: string, paint: (text: string) => string];

const gap = 2;

/** A table with dimmed titles, never wider than the canvas: columns are truncated, then left out. */
export function table(
  columns: readonly Column[],
  rows: ReadonlyArray<readonly Entry[]>,
  canvas: Canvas,
): string[] {
  const total = Math.max(narrowest, canvas.width);
  const text = (entry: Entry | undefined) => (typeof entry === "string" ? entry : (entry?.[0] ?? ""));
  let shown = columns.map((column, index) => ({
    ...column,
    index,
    natural: Math.max(width(column.title), ...rows.map((row) => width(text(row[index])))),
  }));
  const needed = () =>
    shown.reduce((sum, { natural, least }) => sum + Math.min(natural, least ?? natural) + gap, -gap);
  while (needed() > total) {
    const rank = Math.max(...shown.map(({ dispensable }) => dispensable ?? 0));
    if (rank === 0) break;
    shown = shown.filter(({ dispensable }) => dispensable !== rank);
  }
  let spare = total - needed();
  const laid = shown.map((column) => {
    const least = Math.min(column.natural, column.least ?? column.natural);
    const extra = Math.min(column.natural - least, Math.max(0, spare));
    spare -= extra;
    return { ...column, room: least + extra };
  });
  // If it is still too wide, shrink the widest columns.
  for (let over = -spare; over > 0; over--) {
    laid.reduce((widest, column) => (column.room > widest.room ? column : widest)).room--;
  }
  const line = (cell: (column: (typeof laid)[number]) => string) =>
    laid.map((column) => cell(column)).join(" ".repeat(gap));
  const header = line(({ title, room, align }) => fit(title, room, align)).trimEnd();
  return [
    ...(header === "" ? [] : [dim(cut(header, total), canvas.colors)]),
    ...rows.map((row) =>
      line(({ index, room, align }) => {
        const entry = row[index] ?? "";
        const filled = fit(text(entry), room, align);
        return typeof entry === "string" ? filled : entry[1](filled);
      }).trimEnd(),
    ),
  ];
}
