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

/** Each column's label, its value for a record, and how the figure's table writes it; without that, it is not in the table. */
interface Columns<T> {
  [name: string]: readonly [label: string, of: (record: T) => Cell, text?: (value: never) => string];
}

/** Columns, rows and table of a figure with a line per record. */
export function tabled<T>(
  records: readonly T[],
  columns: Columns<T>,
): Pick<Figure, "columns" | "rows" | "table"> {
  const shown = Object.values(columns).flatMap(([label, of, text]) => (text ? [{ label, of, text }] : []));
  return {
    ...dataOf(records, columns),
    table: {
      head: shown.map(({ label }) => label),
      rows: records.map((record) => shown.map(({ of, text }) => text(of(record) as never))),
    },
  };
}

/** Columns and rows of a figure from records. */
export function dataOf<T>(records: readonly T[], columns: Columns<T>): Pick<Figure, "columns" | "rows"> {
  const named = Object.entries(columns);
  return {
    columns: named.map(([name, [label]]) => ({ name, label })),
    rows: records.map((record) => named.map(([, [, of]]) => of(record))),
  };
}
