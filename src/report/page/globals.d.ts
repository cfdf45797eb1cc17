/** Inlined before the page's script; see ../library.ts. */
// biome-ignore lint/suspicious/noExplicitAny: the libraries' own types are for bundlers
declare const d3: any;
// biome-ignore lint/suspicious/noExplicitAny: as above
declare const Plot: any;

type Row = Record<string, string | number | null> & { row: number };

interface Point {
  /** In the coordinates of its picture. */
  x: number;
  y: number;
  /** The size of its cell; 0 without one. */
  wide: number;
  high: number;
  /** Index of its row, which has the detail that is read out. */
  row: number;
}

interface Panel {
  svg: SVGSVGElement;
  points: Point[];
}

interface Drawn {
  legend?: SVGSVGElement;
  panels: Panel[];
}

interface PageFigure {
  id: string;
  title: string;
  // biome-ignore lint/suspicious/noExplicitAny: one of the charts of ../figure.ts, told apart by `kind`
  chart: any;
  // biome-ignore lint/suspicious/noExplicitAny: those of the chart, of ../../findings/axes.ts
  axes: any;
  columns: { name: string; label: string }[];
  rows: (string | number | null)[][];
  details: string[];
}

interface Space {
  width: number;
  theme: Theme;
}

interface Theme {
  ink: string;
  soft: string;
  line: string;
  card: string;
  /** Colours of series, at least 3:1 against the card. */
  series: string[];
  /** From nothing to all. */
  ramp: [string, string];
  /** Less, none, more. */
  diverging: [string, string, string];
}
