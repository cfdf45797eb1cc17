import { visible } from "../text/visible.js";
import { type Cell, dataOf, type Figure, type Shade } from "./figure.js";
import { figureOf, percent, shortNumber, signed } from "./numbers.js";
import {
  type Change,
  changeOf,
  pairedTokens,
  type Quantity,
  type Side,
  type SideLayer,
  sharedLayers,
  type TokenPair,
} from "./side-by-side.js";

/** The maps of two runs with one scale, and the map of their differences. */
export interface SideFigures {
  maps: [Figure, Figure];
  difference?: Figure;
  /** The reason for a missing map of differences. */
  missing?: string;
}

interface Meaning {
  /** The title of a map. */
  title: string;
  legend: string;
  scale: Shade["scale"];
  value(layer: SideLayer, at: number): number | null;
  /** The text in a cell. */
  label(layer: SideLayer, at: number): string | null;
  /** The meaning of a difference, for a legend and in a sentence. */
  difference: string;
  about: string;
  /** Whether differences are shares of the first value. */
  relative?: true;
}

function meaningOf(quantity: Quantity, tracked = ""): Meaning {
  const named = `“${visible(tracked)}”`;
  return {
    lens: {
      title: "Logit lens",
      legend: "probability of the lens's top token",
      scale: "probability" as const,
      value: ({ top }: SideLayer, at: number) => top[at]?.[0]?.probability ?? null,
      label: ({ top }: SideLayer, at: number) => {
        const best = top[at]?.[0];
        return best === undefined ? null : visible(best.token);
      },
      difference: "change of the probability",
      about:
        "The change of the probability of the first run's top token. Of a token that the second run's lens does not list, the least possible change.",
    },
    norm: {
      title: "Norms",
      legend: "L2 norm of the block output",
      scale: "magnitude" as const,
      value: ({ norms }: SideLayer, at: number) => norms[at] ?? null,
      label: ({ norms }: SideLayer, at: number) => {
        const norm = norms[at] ?? null;
        return norm === null ? null : shortNumber(norm);
      },
      difference: "relative change of the norm",
      about: "The change of the norm, as a share of the first run's.",
      relative: true as const,
    },
    tracked: {
      title: `Probability of ${named}`,
      legend: `probability of ${named} in the lens`,
      scale: "probability" as const,
      value: ({ tracked }: SideLayer, at: number) => tracked?.[at] ?? null,
      label: ({ tracked }: SideLayer, at: number) => {
        const found = tracked?.[at] ?? null;
        return found === null ? null : percent(found);
      },
      difference: `change of the probability of ${named}`,
      about: `The change of the probability of ${named}.`,
    },
  }[quantity];
}

/** Both runs' maps of a quantity and the map of the differences. */
export function sideFigures(one: Side, other: Side, quantity: Quantity): SideFigures {
  const meaning = meaningOf(quantity, one.tracked);
  const valuesOf = (side: Side) =>
    side.layers.flatMap((layer) => side.tokens.flatMap((_, at) => meaning.value(layer, at) ?? []));
  const maps: [Figure, Figure] = [
    sideMap(one, "first", meaning, valuesOf(other)),
    sideMap(other, "second", meaning, valuesOf(one)),
  ];
  const layers = sharedLayers(one, other);
  const pairs = pairedTokens(one.tokens, other.tokens);
  if (layers.length === 0) {
    return {
      maps,
      missing:
        one.depth !== null && other.depth !== null && one.depth !== other.depth
          ? `No map of differences: the models have ${one.depth} and ${other.depth} layers, which do not correspond one to one.`
          : "No map of differences: the two runs have no layer in common.",
    };
  }
  if (pairs.length === 0) {
    return { maps, missing: "No map of differences: the two texts have no tokens in common." };
  }
  return { maps, difference: differenceMap(one, other, quantity, meaning, layers, pairs) };
}

function sideMap(side: Side, which: "first" | "second", meaning: Meaning, also: number[]): Figure {
  const { tokens, layers, name } = side;
  const cells = layers.flatMap((layer) => tokens.map((_, position) => ({ layer, position })));
  const shown = (layer: SideLayer, at: number) => meaning.label(layer, at) ?? "";
  return {
    id: `compare-${which}`,
    title: `${meaning.title}: ${name}`,
    description: "Both maps have the same colour scale. The deepest layer is on top.",
    chart: {
      kind: "tokens",
      tokens: tokens.map(visible),
      ...{ value: "value", label: "shown", legend: meaning.legend, scale: meaning.scale, also },
    },
    ...dataOf(cells, {
      layer: ["layer", ({ layer }): Cell => layer.layer],
      position: ["position", (one) => one.position],
      input: ["input token", (one) => visible(tokens[one.position] as string)],
      value: [meaning.legend, ({ layer, position }) => meaning.value(layer, position)],
      shown: ["as shown", ({ layer, position }) => meaning.label(layer, position)],
    }),
    details: cells.map(({ layer, position }) =>
      [
        `layer ${layer.layer}, ${visible(tokens[position] as string)} (token ${position})`,
        ...readings(layer, position),
      ].join("\n"),
    ),
    table: {
      head: ["token", ...layers.map(({ layer }) => `layer ${layer}`)],
      rows: tokens.map((token, at) => [visible(token), ...layers.map((layer) => shown(layer, at))]),
    },
  };
}

/** Everything read at a cell, in lines. */
function readings({ norms, top, tracked }: SideLayer, at: number): string[] {
  const [norm, probability] = [norms[at] ?? null, tracked?.[at] ?? null];
  return [
    ...(top[at] ?? []).slice(0, 3).map((one) => `${visible(one.token)}  ${percent(one.probability)}`),
    ...(probability === null ? [] : [`tracked token  ${percent(probability)}`]),
    ...(norm === null ? [] : [`norm  ${figureOf(norm)}`]),
  ];
}

function differenceMap(
  one: Side,
  other: Side,
  quantity: Quantity,
  meaning: Meaning,
  layers: [SideLayer, SideLayer][],
  pairs: TokenPair[],
): Figure {
  const names = pairs.map(([at, there]) => {
    const [above, below] = [visible(one.tokens[at] as string), visible(other.tokens[there] as string)];
    return { above, below: above === below ? "" : below };
  });
  const cells = layers.flatMap((both) =>
    pairs.map((pair, column) => ({ both, pair, column, change: changeOf(quantity, both, pair) })),
  );
  const text = (change: Change | undefined) => (change === undefined ? "" : written(change, meaning));
  const left = [one.tokens.length - pairs.length, other.tokens.length - pairs.length];
  return {
    id: "compare-difference",
    title: `Difference: ${other.name} minus ${one.name}`,
    description: meaning.about,
    chart: {
      kind: "sites",
      columns: names,
      value: "change",
      legend: meaning.difference,
      least: meaning.relative ? 0.01 : 0,
    },
    ...dataOf(cells, {
      layer: ["layer", ({ both }): Cell => both[0].layer],
      column: ["column", (cell) => cell.column],
      first: ["first run's token", ({ pair }) => visible(one.tokens[pair[0]] as string)],
      second: ["second run's token", ({ pair }) => visible(other.tokens[pair[1]] as string)],
      change: [meaning.difference, ({ change }) => change?.value ?? null],
      inside: ["measured in both", ({ change }) => (change === undefined ? 0 : 1)],
    }),
    details: cells.map(({ both, pair, column, change }) => {
      const { above, below } = names[column] as (typeof names)[number];
      return [
        `layer ${both[0].layer}, ${above}${below === "" ? "" : ` and ${below}`}`,
        `${one.name}: ${readings(both[0], pair[0]).join(", ")}`,
        `${other.name}: ${readings(both[1], pair[1]).join(", ")}`,
        ...(change === undefined ? ["not measured in both"] : [`change ${text(change)}`]),
      ].join("\n");
    }),
    notes: [
      ...(cells.some(({ change }) => change === undefined)
        ? ["Dashed cells were not read in both runs."]
        : []),
      ...(left.some((count) => count > 0)
        ? [
            `${left[0]} of the first run's tokens and ${left[1]} of the second's have no partner and are not in this map.`,
          ]
        : []),
    ],
    table: {
      head: ["tokens", ...layers.map(([{ layer }]) => `layer ${layer}`)],
      rows: pairs.map((pair, column) => {
        const { above, below } = names[column] as (typeof names)[number];
        return [
          below === "" ? above : `${above} and ${below}`,
          ...layers.map((both) => text(changeOf(quantity, both, pair))),
        ];
      }),
    },
  };
}

/** A difference with its sign: in percent of the first value, or in points of a probability. */
function written({ value, atLeast }: Change, { relative }: Meaning): string {
  return `${signed(100 * value, 1)} ${relative ? "%" : "points"}${atLeast ? " or further" : ""}`;
}
