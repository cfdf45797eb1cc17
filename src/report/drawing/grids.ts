import { axesOf, type Row, type ShadeAxis, type Tick } from "../../findings/axes.js";
import type { Chart, Figure } from "../../findings/figure.js";
import { fixed } from "../../findings/numbers.js";
import type { Html } from "../markup.js";
import { axisWidth, layerAxis, layOut } from "./layers.js";
import { linear, logarithmic } from "./scale.js";
import { box, cutText, label, svg, textWidth } from "./svg.js";

type Tokens = Extract<Chart, { kind: "tokens" }>;
type Differences = Extract<Chart, { kind: "differences" }>;

export const shades = 20;
/** Maximum number of cells with text; with more there is no room, and the table has all values. */
const mostLabelled = 1500;

const cellHeight = 28;
const sizes = { leastCell: 64, widestCell: 150 };

/** Layers over tokens, the deepest layer on top; long texts continue in another picture below. */
export function drawTokens(figure: Figure, chart: Tokens, rows: readonly Row[], width: number): Html[] {
  const { panel } = chart;
  const axes = axesOf(chart, rows);
  const shade = axes.shades[chart.value] as ShadeAxis;
  const given = { width, layers: axes.layers, share: shareOf(chart.value, shade) };
  const drawn =
    panel === undefined
      ? tokenPictures(figure, chart, rows, { ...given, name: "" })
      : [...new Set(rows.map((row) => String(row[panel])))].flatMap((name) => {
          const own = rows.filter((row) => row[panel] === name);
          return tokenPictures(figure, chart, own, { ...given, name });
        });
  return [rampLegend(chart.legend, endsOf(shade.legend), width), ...drawn];
}

interface TokenPictures {
  width: number;
  layers: number[];
  share: (row: Row) => number | null;
  /** Title of each picture; may be empty. */
  name: string;
}

function tokenPictures(
  figure: Figure,
  chart: Tokens,
  rows: readonly Row[],
  { width, layers, share, name }: TokenPictures,
): Html[] {
  const { tokens } = chart;
  const { pictures, cell } = layOut(tokens.length, width, sizes);
  const byPicture = new Map<number, Row[]>();
  for (const row of rows) {
    const picture = Math.floor(Number(row.position) / (pictures[0]?.count ?? 1));
    const own = byPicture.get(picture);
    if (own === undefined) byPicture.set(picture, [row]);
    else own.push(row);
  }
  const title = name === "" ? figure.title : `${figure.title}, ${name}`;
  return pictures.map(({ first, count }, picture) => {
    const height = layers.length * cellHeight;
    const below = name === "" ? 26 : 46;
    return svg(
      axisWidth + 4 + cell * count,
      height + below,
      pictures.length > 1 ? `${title}: tokens ${first} to ${first + count - 1}` : title,
      [
        ...(name === "" ? [] : [label(name, { x: axisWidth, y: height + 37, kind: "name" })]),
        ...layerAxis(layers, cellHeight),
        ...(byPicture.get(picture) ?? []).flatMap((row) => {
          const x = axisWidth + (Number(row.position) - first) * cell;
          const y = layers.indexOf(Number(row.layer)) * cellHeight;
          const part = share(row);
          return [
            box(x + 0.5, y + 0.5, cell - 1, cellHeight - 1, part === null ? "blank" : `ramp a${part}`),
            ...cellText(String(row[chart.label] ?? ""), x, y, cell, part ?? 0, rows.length),
          ];
        }),
        ...tokens.slice(first, first + count).map((token, at) =>
          label(cutText(token, cell - 4), {
            x: axisWidth + (at + 0.5) * cell,
            y: height + 17,
            anchor: "middle",
          }),
        ),
      ],
    );
  });
}

/** The shade of a row's value; null without a value. */
function shareOf(value: string, axis: ShadeAxis): (row: Row) => number | null {
  const range = axis.reversed ? ([shades, 0] as const) : ([0, shades] as const);
  const place = axis.logarithmic ? logarithmic(axis.domain, range) : linear(axis.domain, range);
  return (row) => (row[value] === null ? null : clamped(place(Number(row[value]))));
}

/** The labels at the ends of a colour scale. */
function endsOf(ticks: readonly Tick[]): [string, string] {
  return [ticks[0]?.text ?? "", ticks.at(-1)?.text ?? ""];
}

export function clamped(place: number): number {
  return Math.max(0, Math.min(shades, Math.round(Number.isFinite(place) ? place : 0)));
}

export function cellText(
  text: string,
  x: number,
  y: number,
  cell: number,
  part: number,
  cells: number,
): Html[] {
  const shown = cells > mostLabelled ? "" : cutText(text, cell - 6);
  if (shown === "") return [];
  return [label(shown, { x: x + cell / 2, y: y + 18, anchor: "middle", kind: `on ${onShade(part)}` })];
}

/** Text on a light, medium or full shade; the page's colours determine which gets dark letters. */
function onShade(part: number): string {
  return part > shades * 0.68 ? "full" : part > shades * 0.42 ? "half" : "light";
}

function rampLegend(name: string, [low, high]: readonly [string, string], width: number): Html {
  const [left, step] = [textWidth(low) + 6, 7];
  const end = left + (shades + 1) * step;
  return svg(width, 40, name, [
    label(cutText(name, width), { x: 0, y: 12, kind: "soft" }),
    label(low, { x: 0, y: 32, kind: "soft" }),
    ...Array.from({ length: shades + 1 }, (_, at) => box(left + at * step, 20, step, 14, `ramp a${at}`)),
    label(high, { x: end + 6, y: 32, kind: "soft" }),
  ]);
}

/** The legend of differences. */
export function differenceLegend(name: string, ticks: readonly Tick[], width: number): Html {
  const [low, high] = endsOf(ticks);
  return svg(width, 40, name, [
    label(cutText(name, width), { x: 0, y: 12, kind: "soft" }),
    ...Array.from({ length: 2 * 10 + 1 }, (_, at) =>
      box(60 + at * 7, 20, 7, 14, `${at < 10 ? "down" : "ramp"} a${Math.abs(at - 10) * 2}`),
    ),
    label(low, { x: 54, y: 32, anchor: "end", kind: "soft" }),
    label(high, { x: 60 + 21 * 7 + 6, y: 32, kind: "soft" }),
  ]);
}

/** A cell of a map of differences: its colour is that of the number in it, so that cells that read alike look alike. */
export function differenceCell(
  found: Row[string] | undefined,
  { reach, digits }: { reach: number; digits: number },
) {
  const text = fixed(Number(found ?? 0), digits);
  const value = Number(text);
  return {
    text: text.replace("-", "−"),
    value,
    part: clamped((Math.abs(value) / reach) * shades),
    side: value < 0 ? "down" : "ramp",
  };
}

/** A grid of differences around 0, with one colour per sign. */
export function drawDifferences(
  figure: Figure,
  chart: Differences,
  rows: readonly Row[],
  width: number,
): Html[] {
  const { names, columns, reach, digits, legend } = axesOf(chart, rows);
  const most = width * 0.42;
  const left = Math.min(most, Math.max(...names.map(textWidth))) + 12;
  const cell = Math.min(110, (width - left - 8) / columns.length);
  const height = names.length * cellHeight;
  return [
    differenceLegend(chart.legend, legend, width),
    svg(left + 8 + cell * columns.length, height + 42, figure.title, [
      ...names.map((name, at) =>
        label(cutText(name, most), { x: left - 8, y: at * cellHeight + 18, anchor: "end" }),
      ),
      ...rows.flatMap((row) => {
        const x = left + columns.indexOf(Number(row[chart.x])) * cell;
        const y = names.indexOf(String(row[chart.y])) * cellHeight;
        const { text, value, part, side } = differenceCell(row[chart.value], { reach, digits });
        return [
          box(x + 0.5, y + 0.5, cell - 1, cellHeight - 1, `${side} a${part}`),
          ...cellText(value > 0 ? `+${text}` : text, x, y, cell, part, rows.length),
        ];
      }),
      ...columns.map((value, at) =>
        label(cutText(String(value), cell), {
          x: left + (at + 0.5) * cell,
          y: height + 16,
          anchor: "middle",
          kind: "soft",
        }),
      ),
      label(chart.xAxis, { x: left + cell * columns.length, y: height + 34, anchor: "end", kind: "soft" }),
    ]),
  ];
}
