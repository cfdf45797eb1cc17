import type { Cell, Chart, Figure, Shade } from "./figure.js";
import { differenceDigits, shortNumber } from "./numbers.js";

/** A figure's row by column name. */
export type Row = Readonly<Record<string, Cell>>;

export type Span = [low: number, high: number];

/** How values become shades: linear or logarithmic; `reversed` if the lowest is the strongest. */
export interface ShadeAxis {
  domain: Span;
  logarithmic: boolean;
  reversed: boolean;
  legend: Tick[];
}

/** A labelled value of a colour scale. No label occurs twice. */
export interface Tick {
  value: number;
  text: string;
}

/** A series: its place among the colours and shapes, and whether it is emphasized. */
export interface SeriesPlace {
  name: string;
  place: number;
  wide: boolean;
}

type Kind<K extends Chart["kind"]> = Extract<Chart, { kind: K }>;

/** The ranges of a chart's axes, shared by all drawers so that they show the same. */
export type Axes = { [K in Chart["kind"]]: ReturnType<(typeof axes)[K]> };

const axes = {
  /** The deepest layer on top; the shades of every quantity that can colour the map, by column. */
  tokens(chart: Kind<"tokens">, rows: readonly Row[]) {
    const shades = [chart, ...(chart.shades ?? [])].map(({ value, scale, also }): [string, ShadeAxis] => [
      value,
      shadeAxis(scale, [...numbers(rows, value), ...(also ?? [])]),
    ]);
    return { layers: layersOf(rows), shades: Object.fromEntries(shades) };
  },
  bars({ value, domain }: Kind<"bars">, rows: readonly Row[]) {
    const [low, high] = domain ?? extent([0, ...numbers(rows, value)]);
    return { x: [low, high === low ? low + 1 : high] as Span };
  },
  /** Includes the ends of intervals. A log scale needs numbers above 0. Dot sizes are relative to the largest of their series. */
  lines(chart: Kind<"lines">, rows: readonly Row[]) {
    const known = rows.filter((row) => row[chart.x] !== null && row[chart.y] !== null);
    const { interval, size } = chart;
    const [xs, ys] = [numbers(known, chart.x), numbers(known, chart.y)];
    const ends =
      interval === undefined ? [] : [interval.low, interval.high].flatMap((end) => numbers(known, end));
    const logarithmic = chart.logarithmic === true && ys.length > 0 && ys.every((value) => value > 0);
    const largestOf = (name: string) =>
      size === undefined
        ? 1
        : Math.max(
            1,
            ...numbers(
              known.filter((row) => String(row[chart.series]) === name),
              size,
            ),
          );
    return {
      x: chart.xDomain ?? spanOf(xs),
      y: chart.yDomain ?? spanOf([...ys, ...ends], logarithmic),
      logarithmic,
      steps: distinct(xs),
      series: seriesPlaces(namesOf(rows, chart.series), chart.emphasis).map((one) => ({
        ...one,
        largest: largestOf(one.name),
      })),
    };
  },
  sites({ value, least }: Kind<"sites">, rows: readonly Row[]) {
    return { layers: layersOf(rows), ...differenceAxis(numbers(rows, value), least) };
  },
  differences({ x, y, value }: Kind<"differences">, rows: readonly Row[]) {
    return {
      columns: distinct(numbers(rows, x)),
      names: namesOf(rows, y),
      ...differenceAxis(numbers(rows, value)),
    };
  },
  /** One panel per combination of panel columns, and the names of the two sides. */
  mirror({ from, to, up, down, panels, sides, fitted }: Kind<"mirror">, rows: readonly Row[]) {
    const nameOf = (row: Row) =>
      panels.map((name) => (typeof row[name] === "number" ? `${name} ${row[name]}` : row[name])).join(", ");
    const grouped = new Map<string, number[]>();
    for (const [at, row] of rows.entries()) {
      const own = grouped.get(nameOf(row));
      if (own === undefined) grouped.set(nameOf(row), [at]);
      else own.push(at);
    }
    return {
      sides: { up: sides?.up ?? "class 1", down: sides?.down ?? "class 0" },
      panels: [...grouped].map(([name, places]) => {
        const own = places.map((at) => rows[at] as Row);
        const x: Span = fitted ? extent([...numbers(own, from), ...numbers(own, to)]) : [0, 1];
        return { name, rows: places, x, reach: reachOf([...numbers(own, up), ...numbers(own, down)], 1) };
      }),
    };
  },
  /** From 0 to 1 and from 0 upwards, or the same range for both axes. */
  scatter({ x, y, series, diagonal }: Kind<"scatter">, rows: readonly Row[]) {
    const both = spanOf([0, ...numbers(rows, x), ...numbers(rows, y)]);
    return {
      x: diagonal ? both : ([0, 1] as Span),
      y: diagonal ? both : ([0, Math.max(0, ...numbers(rows, y)) || 1] as Span),
      series: seriesPlaces(namesOf(rows, series)),
    };
  },
};

/** The axes of a chart. */
export function axesOf<K extends Chart["kind"]>(chart: Kind<K>, rows: readonly Row[]): Axes[K] {
  const of = axes[chart.kind] as (chart: Kind<K>, rows: readonly Row[]) => Axes[K];
  return of(chart, rows);
}

export function rowsOf({ columns, rows }: Pick<Figure, "columns" | "rows">): Row[] {
  return rows.map((cells) =>
    Object.fromEntries(columns.map(({ name }, index) => [name, cells[index] ?? null])),
  );
}

/** A figure with its axes. */
export function withAxes<F extends Figure>(figure: F): F & { axes: Axes[Chart["kind"]] } {
  return { ...figure, axes: axesOf(figure.chart, rowsOf(figure)) };
}

/**
 * The end of an axis of probabilities or shares: 1 if one of them is above a half, otherwise the next 1, 2 or 5 times a power of
 * ten, so that small ones fill the axis as well.
 */
export function shareEnd(values: readonly number[]): number {
  const [, most] = extent([0, ...values]);
  if (most > 0.5 || most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  const ends = [1, 2, 5, 10].map((times) => Number((times * power).toPrecision(1)));
  return ends.find((end) => end >= most) as number;
}

function shadeAxis(scale: Shade["scale"], values: readonly number[]): ShadeAxis {
  const [low, high] = extent(values);
  const straight = (end: number) => ({
    ...{ domain: [0, end] as Span, logarithmic: false, reversed: false },
    legend: ticksOf([0, end / 2, end], (value) => (value === end && high > end ? "≥ " : "") + short(value)),
  });
  if (scale === "probability") {
    const end = shareEnd(values);
    const legend = ticksOf(
      [0, 1, 2, 3, 4, 5].map((part) => (part * end) / 5),
      (value) => `${Number((100 * value).toPrecision(2))} %`,
    );
    return { domain: [0, end], logarithmic: false, reversed: false, legend };
  }
  // Keeps one outlier from making all others look the same.
  if (scale === "amount") return straight(quantile(values, 0.99) || 1);
  if (scale === "rank") {
    const end = Math.max(high, 2);
    const legend = ticksOf([1, Math.round(Math.sqrt(end)), end], shortRank);
    return { domain: [1, end], logarithmic: true, reversed: true, legend };
  }
  if (!(low > 0 && low <= high)) return straight(Math.max(high, 0) || 1);
  // Values that read alike would otherwise get the ends of the scale.
  const [from, to] = spanOf(shortNumber(low) === shortNumber(high) ? [low] : values, true);
  const legend = ticksOf([from, Math.sqrt(from * to), to], short);
  return { domain: [from, to], logarithmic: true, reversed: false, legend };
}

/** Three significant digits, without zeros at the end. */
function short(value: number): string {
  return Math.abs(value) < 100_000 ? String(Number(value.toPrecision(3))) : shortNumber(value);
}

function shortRank(rank: number): string {
  return rank < 10_000 ? String(rank) : shortNumber(rank);
}

/** Labelled values; of those with the same label, the first and the last value of the scale remain. */
function ticksOf(values: readonly number[], write: (value: number) => string): Tick[] {
  const ticks = values.map((value) => ({ value, text: write(value) }));
  const last = ticks.length - 1;
  return ticks.filter(({ text }, at) => {
    const same = ticks.findIndex((other) => other.text === text);
    return at === last ? same === at || same > 0 : same === at && text !== ticks[last]?.text;
  });
}

/**
 * The scale of differences around 0: `digits` are the decimals of a cell's number. Cells are coloured by this rounded number, so
 * that those that read alike look alike.
 * @param least minimum of the range
 */
export function differenceAxis(values: readonly number[], least = 0) {
  const most = reachOf(values, least);
  // Without differences that a cell can show, any scale leaves all of them neutral.
  const reach = most < 1e-6 ? 1 : most;
  const end = String(Number(reach.toPrecision(2)));
  return {
    reach,
    digits: differenceDigits(reach),
    legend: [
      { value: -reach, text: `-${end}` },
      { value: 0, text: "0" },
      { value: reach, text: `+${end}` },
    ] as [low: Tick, none: Tick, high: Tick],
  };
}

/** The emphasized series gets the first colour. */
function seriesPlaces(names: readonly string[], emphasis?: string): SeriesPlace[] {
  const others = names.filter((name) => name !== emphasis);
  return names.map((name) =>
    name === emphasis
      ? { name, place: 0, wide: true }
      : { name, place: others.indexOf(name) + (emphasis === undefined ? 0 : 1), wide: false },
  );
}

/** Minimum and maximum; a single value gets room on both sides, and no values give 0 and 1. */
function spanOf(values: readonly number[], logarithmic = false): Span {
  const [low, high] = extent(values);
  if (low > high) return [0, 1];
  if (low < high) return [low, high];
  return logarithmic ? [low / 2, high * 2] : [low - 1, high + 1];
}

/** Minimum and maximum of any number of values; without values, the minimum is above the maximum. */
function extent(values: readonly number[]): Span {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

/** The largest distance from 0, at least `least`. */
function reachOf(values: readonly number[], least: number): number {
  return values.reduce((reach, value) => Math.max(reach, Math.abs(value)), least);
}

/** A quantile, interpolated linearly; 0 without values. */
function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = share * (sorted.length - 1);
  const below = sorted[Math.max(0, Math.floor(place))] ?? 0;
  return below + (place % 1) * ((sorted[Math.ceil(place)] ?? below) - below);
}

function layersOf(rows: readonly Row[]): number[] {
  return distinct(rows.map(({ layer }) => Number(layer))).reverse();
}

function namesOf(rows: readonly Row[], column: string): string[] {
  return [...new Set(rows.map((row) => String(row[column])))];
}

function numbers(rows: readonly Row[], column: string): number[] {
  return rows.flatMap(({ [column]: value }) =>
    value === null || value === undefined ? [] : [Number(value)],
  );
}

function distinct(values: readonly number[]): number[] {
  return [...new Set(values)].sort((a, b) => a - b);
}
