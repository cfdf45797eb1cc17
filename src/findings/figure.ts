/** A cell of a table. */
export type Cell = string | number | null;

/** A quantity that colours the cells of a map, and the labels of the cells. */
export interface Shade {
  value: string;
  label: string;
  legend: string;
  /** From 0 to 1; logarithmic; from 0 to the 99th percentile; ranks, with the first one strongest. */
  scale: "probability" | "magnitude" | "amount" | "rank";
  /** Values of another figure, with which this one shares its scale. */
  also?: readonly number[];
}

/** How a figure's rows are drawn; names refer to the figure's columns. */
export type Chart =
  /** Layers over tokens, wrapped like lines of text; `label` is written into the cells. */
  | (Shade & {
      kind: "tokens";
      tokens: string[];
      /** Names of the rows from top to bottom, if they are not layers; `layer` is then their index. */
      down?: string[];
      /** Column whose values become separate panels. */
      panel?: string;
      /** All quantities that can colour this map; a page may offer the choice. */
      shades?: (Shade & { id: string; name: string })[];
    })
  /** Horizontal bars from 0. */
  | { kind: "bars"; label: string; value: string; axis: string; domain?: [number, number] }
  /** Lines and dots, one line per series. */
  | {
      kind: "lines";
      x: string;
      y: string;
      series: string;
      xAxis: string;
      yAxis: string;
      xDomain?: [number, number];
      yDomain?: [number, number];
      /** Whether x is categorical. */
      steps?: boolean;
      logarithmic?: boolean;
      /** The emphasized series. */
      emphasis?: string;
      /** A labelled vertical line. */
      mark?: { x: number; label: string };
      /** The label of a line from (0, 0) to (1, 1). */
      diagonal?: string;
      /** Column with the size of the dots. */
      size?: string;
      /** Column that splits the rows into panels, and the prefix of their titles. */
      panel?: { column: string; label: string };
      dots?: boolean;
      /** Columns with the ends of error bars; null without one. */
      interval?: { low: string; high: string };
    }
  /** Differences around 0: layers over the tokens of two prompts; rows with `inside` 0 are faint. */
  | {
      kind: "sites";
      columns: { above: string; below: string }[];
      value: string;
      legend: string;
      /** Minimum range of the colours. */
      least: number;
      /** What a row is, if not a layer, and the names of the rows by index in `layer`. */
      rows?: { name: string; names: string[] };
    }
  /** A grid of differences around 0. */
  | { kind: "differences"; x: string; y: string; value: string; xAxis: string; legend: string }
  /** Counts of two classes, above and below the line, with one panel per split and layer. */
  | {
      kind: "mirror";
      from: string;
      to: string;
      up: string;
      down: string;
      axis: string;
      panels: string[];
      /** Names of the two classes; class 1 and class 0 by default. */
      sides?: { up: string; down: string };
      /** Whether each panel's axis fits its rows, for scores outside 0 to 1. */
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
      /** Whether both axes are one quantity: they get the same range, and a line through equal values. */
      diagonal?: boolean;
    };

/** A figure: description, data, and how it is drawn. */
export interface Figure {
  /** Unique in a report; part of file names. */
  id: string;
  title: string;
  /** What it shows and how to read it. */
  description: string;
  chart: Chart;
  columns: { name: string; label: string }[];
  rows: Cell[][];
  /** The text shown for each row on hovering or with the arrow keys. */
  details: string[];
  /** Shown below the figure. */
  notes?: string[];
  /** The data for people. */
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
