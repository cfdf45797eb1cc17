import type { Html } from "./markup.js";

/** What a cell of a table can hold. */
export type Cell = string | number | null;

/** What colours the cells of a map, and what is written into them. */
export interface Shade {
  value: string;
  label: string;
  legend: string;
  /** From 0 to 1; by the logarithm; from 0 to nearly the largest; ranks, the first one strongest. */
  scale: "probability" | "magnitude" | "amount" | "rank";
}

/** How the page draws a figure's rows; names are those of the figure's columns. */
export type Chart =
  /** Layers over tokens, wrapped like lines of text; `label` is written into the cells. */
  | (Shade & {
      kind: "tokens";
      tokens: string[];
      /** Names of the rows, the first on top, where they are no layers: `layer` counts them. */
      down?: string[];
      /** Column whose values are pictures of their own, each with its name. */
      panel?: string;
      /** Everything that can colour this map, itself among them; a page may offer the choice. */
      shades?: (Shade & { id: string; name: string })[];
    })
  /** Horizontal bars from 0. */
  | { kind: "bars"; label: string; value: string; axis: string; domain?: [number, number] }
  /** Lines and dots, one line a series. */
  | {
      kind: "lines";
      x: string;
      y: string;
      series: string;
      xAxis: string;
      yAxis: string;
      xDomain?: [number, number];
      yDomain?: [number, number];
      /** Each x is a name and not an amount. */
      steps?: boolean;
      logarithmic?: boolean;
      /** The series that is drawn stronger than the others. */
      emphasis?: string;
      /** A vertical line with a name. */
      mark?: { x: number; label: string };
      /** A line of its own from (0, 0) to (1, 1), and its name. */
      diagonal?: string;
      /** Column whose number sets the size of the dots. */
      size?: string;
      /** Column that splits the rows into small pictures, and the word before its value. */
      panel?: { column: string; label: string };
      dots?: boolean;
      /** Columns with the ends of an upright line through a dot; null where there is none. */
      interval?: { low: string; high: string };
    }
  /** Differences around 0 of layers over the tokens of two prompts; rows whose `inside` is 0 are faint. */
  | {
      kind: "sites";
      columns: { above: string; below: string }[];
      value: string;
      legend: string;
      /** The colours reach at least so far. */
      least: number;
      /** What a row is, where it is no layer, and the rows' names by their number in `layer`. */
      rows?: { name: string; names: string[] };
    }
  /** A grid of differences around 0. */
  | { kind: "differences"; x: string; y: string; value: string; xAxis: string; legend: string }
  /** Counts of two classes, one above the line and one below, one picture for each split and layer. */
  | {
      kind: "mirror";
      from: string;
      to: string;
      up: string;
      down: string;
      axis: string;
      panels: string[];
      /** What the two classes are, where they are not called class 1 and class 0. */
      sides?: { up: string; down: string };
      /** Each picture's axis is as wide as its rows, where scores are not from 0 to 1. */
      fitted?: boolean;
    }
  /** Single points. */
  | {
      kind: "scatter";
      x: string;
      y: string;
      series: string;
      label: string;
      xAxis: string;
      yAxis: string;
    };

/** One picture: what it shows in words, its data, and how it is drawn. */
export interface Figure {
  /** Unique in a report; part of file names. */
  id: string;
  title: string;
  /** What it shows and how to read it. */
  description: string;
  chart: Chart;
  columns: { name: string; label: string }[];
  rows: Cell[][];
  /** What hovering over a row, or stepping to it with the arrow keys, says. */
  details: string[];
  /** Said under the picture. */
  notes?: string[];
  /** The data as a person reads it. */
  table: Table;
}

export interface Table {
  head: string[];
  rows: string[][];
}

/** A probability or share as a person reads it. */
export function percent(share: number): string {
  const value = share * 100;
  if (value !== 0 && Math.abs(value) < 0.01) return value < 0 ? "> -0.01 %" : "< 0.01 %";
  if (value === 0 || value === 100) return `${value} %`;
  return `${Math.abs(value) >= 10 ? value.toFixed(1) : Number(value.toPrecision(2))} %`;
}

/**
 * The least entropy in bits that a distribution can have of which the most probable candidates are known: no token of
 * the rest is more probable than the last of them.
 */
export function leastEntropy(probabilities: readonly number[]): number {
  const parts = probabilities.filter((part) => part > 0);
  const rest = 1 - parts.reduce((sum, part) => sum + part, 0);
  const ofParts = parts.reduce((sum, part) => sum - part * Math.log2(part), 0);
  return rest <= 0 ? ofParts : ofParts - rest * Math.log2(Math.min(rest, ...parts));
}

/** A number with 4 significant digits. */
export function figureOf(value: number): string {
  return Number(value.toPrecision(4)).toString();
}

/** A number with its sign. */
export function signed(value: number, digits = 3): string {
  const text = value.toFixed(digits);
  return value > 0 ? `+${text}` : text.replace(/^-(0\.0*)$/, "$1");
}

/** `1 token`, `2 tokens`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}

/** Text beside the pictures: what is read and not drawn. */
export interface Passage {
  id: string;
  title: string;
  description: string;
  /** Made when it is read: not every page shows passages. */
  readonly body: Html;
}

/** What a report says about one kind of experiment. */
export interface Findings {
  /** The result in sentences, without judgement. */
  summary: string[];
  /** What it does not show. */
  cautions: string[];
  parts: (Figure | Passage)[];
}
