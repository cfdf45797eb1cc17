import { width } from "../findings/text.js";
import { type Canvas, narrowest } from "./canvas.js";
import { fit } from "./fit.js";
import { bold, dim, inScale, probabilityScale } from "./paint.js";

export interface Series {
  points: ReadonlyArray<readonly [x: number, y: number]>;
  /** One column wide, at the marked points, so that lines differ even without colours. */
  marker: string;
  /** Indices of the marked points; all by default. */
  marked?: readonly number[];
  /** Place on the colour scale, 0 to 1; bold text in the default colour without one. */
  place?: number;
}

/** The place of a series on the colour scale, readable on dark and light backgrounds. */
export function seriesPlace(index: number, count: number): number {
  return 0.35 + 0.45 * (count < 2 ? 0.5 : index / (count - 1));
}

/** A layer's number, or a letter from layer 10. */
function layerMarker(layer: number): string {
  return layer < 10 ? String(layer) : String.fromCharCode(87 + layer);
}

/** One line per layer, each marked at a different point, because the curves often overlap. */
export function layerLines(lines: readonly { layer: number; points: Series["points"] }[]): Series[] {
  return lines.map(({ layer, points }, index) => {
    const spot = Math.round(((index + 1) / (lines.length + 1)) * (points.length - 1));
    return {
      points,
      marker: layerMarker(layer),
      marked: lines.length === 1 || layer > 35 ? [] : [spot],
      place: seriesPlace(index, lines.length),
    };
  });
}

export interface Axis {
  low: number;
  high: number;
  /** Labelled values. */
  ticks: ReadonlyArray<readonly [value: number, label: string]>;
}

export interface Plot {
  title?: string;
  series: readonly Series[];
  x: Axis;
  y: Axis;
  /** Height of the drawing, without axis and title. */
  rows: number;
  /** Dotted lines: at a value of x, and the diagonal from lower left to upper right. */
  guides?: { x?: number; diagonal?: boolean };
}

interface Cell {
  /** Dots of a braille character: 2 columns of 4. */
  dots: number;
  text: string;
  place: number | undefined;
  guide: boolean;
}

/** Bits of a braille character's dots, by column and row from the top. */
const bits = [
  [0x01, 0x02, 0x04, 0x40],
  [0x08, 0x10, 0x20, 0x80],
] as const;

/**
 * A line plot of braille dots, 2 by 4 per character. Later series are drawn over earlier ones. All lines are exactly as wide
 * as the canvas, so that two plots fit side by side.
 */
export function plot({ title, series, x, y, rows, guides = {} }: Plot, canvas: Canvas): string[] {
  const total = Math.max(narrowest, canvas.width);
  const label = Math.max(...y.ticks.map(([, text]) => width(text)));
  const columns = total - label - 2;
  const cells: Cell[][] = Array.from({ length: rows }, () =>
    Array.from({ length: columns }, () => ({ dots: 0, text: "", place: undefined, guide: false })),
  );
  const dotX = (value: number) => share(value, x) * (columns * 2 - 1);
  const dotY = (value: number) => (1 - share(value, y)) * (rows * 4 - 1);
  const dot = (left: number, top: number, place: number | undefined, guide = false) => {
    const cell = cells[Math.floor(top / 4)]?.[Math.floor(left / 2)];
    if (cell === undefined) return;
    // A guide in the same cell would look like part of the line.
    if (cell.guide && !guide) cell.dots = 0;
    cell.dots |= (bits[left % 2] as (typeof bits)[0])[top % 4] as number;
    cell.place = place;
    cell.guide = guide;
  };

  if (guides.x !== undefined) {
    for (let top = 0; top < rows * 4; top += 2) dot(Math.round(dotX(guides.x)), top, undefined, true);
  }
  if (guides.diagonal) {
    const steps = columns * 2;
    for (let step = 0; step < steps; step += 4) {
      dot(step, Math.round((1 - step / (steps - 1)) * (rows * 4 - 1)), undefined, true);
    }
  }
  for (const { points, place } of series) {
    points.forEach(([px, py], index) => {
      const [nx, ny] = points[index + 1] ?? [px, py];
      const [fromX, fromY, toX, toY] = [dotX(px), dotY(py), dotX(nx), dotY(ny)];
      const steps = Math.max(1, Math.ceil(Math.max(Math.abs(toX - fromX), Math.abs(toY - fromY))));
      for (let step = 0; step <= steps; step++) {
        const along = (from: number, to: number) => Math.round(from + ((to - from) * step) / steps);
        dot(along(fromX, toX), along(fromY, toY), place);
      }
    });
  }
  for (const { points, marker, marked, place } of series) {
    for (const index of marked ?? points.keys()) {
      const [px, py] = points[index] as readonly [number, number];
      const cell = cells[Math.floor(Math.round(dotY(py)) / 4)]?.[Math.floor(Math.round(dotX(px)) / 2)];
      if (cell !== undefined) Object.assign(cell, { text: marker, place, guide: false });
    }
  }

  const labels = new Map(
    y.ticks.map(([value, text]) => [Math.floor(Math.round(dotY(value)) / 4), text] as const),
  );
  const lines = cells.map((line, row) => {
    const text = labels.get(row);
    const edge = `${fit(text ?? "", label, "right")} ${text === undefined ? "│" : "┤"}`;
    return dim(edge, canvas.colors) + drawn(line, canvas);
  });
  const axis = `${" ".repeat(label)} └${"─".repeat(columns)}`;
  const [ticks, names] = tickLines(x, columns, (value) => Math.floor(Math.round(dotX(value)) / 2));
  return [
    ...(title === undefined ? [] : [bold(fit(title, total), canvas.colors)]),
    ...lines,
    dim(axis.slice(0, label + 2) + ticks, canvas.colors),
    dim(" ".repeat(label + 2) + names, canvas.colors),
  ];
}

function share(value: number, { low, high }: Axis): number {
  return Math.min(1, Math.max(0, high > low ? (value - low) / (high - low) : 0.5));
}

/** A row of cells; neighbours with the same colour share its codes. */
function drawn(cells: readonly Cell[], { colors }: Canvas): string {
  let line = "";
  for (let from = 0; from < cells.length; ) {
    const { place, guide } = cells[from] as Cell;
    let to = from;
    let text = "";
    for (let cell = cells[to]; cell?.place === place && cell?.guide === guide; cell = cells[to]) {
      text += character(cell as Cell);
      to++;
    }
    if (text.trim() === "") line += text;
    else if (guide) line += dim(text, colors);
    else line += place === undefined ? bold(text, colors) : inScale(text, place, probabilityScale, colors);
    from = to;
  }
  return line;
}

function character({ dots, text }: Cell): string {
  if (text !== "") return text;
  return dots === 0 ? " " : String.fromCharCode(0x2800 + dots);
}

/** The x axis with ticks, and its labels without those that would touch a neighbour. */
function tickLines(x: Axis, columns: number, columnOf: (value: number) => number): [string, string] {
  const ticks = Array.from({ length: columns }, () => "─");
  let names = "";
  for (const [value, text] of [...x.ticks].sort(([a], [b]) => a - b)) {
    const column = columnOf(value);
    ticks[column] = "┬";
    const start = Math.min(Math.max(0, column - Math.floor(width(text) / 2)), columns - width(text));
    if (names !== "" && start < width(names) + 1) continue;
    names = fit(names, start) + text;
  }
  return [ticks.join(""), fit(names, columns)];
}

/** Evenly spaced ticks from 0 to a round number of at least `most`. */
export function ticksUpTo(most: number): Axis {
  const size = 10 ** Math.floor(Math.log10(most > 0 ? most : 1));
  const high = ([1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => step * size >= most * (1 - 1e-9)) ?? 10) * size;
  return { low: 0, high, ticks: [0, high / 2, high].map((value) => [value, figure(value)] as const) };
}

function figure(value: number): string {
  if (value === 0) return "0";
  return Math.abs(value) < 0.001 || Math.abs(value) >= 1e5
    ? value.toExponential(1)
    : String(Number(value.toPrecision(3)));
}
