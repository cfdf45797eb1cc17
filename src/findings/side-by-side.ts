/** Two runs next to each other: which of their tokens and layers belong together, and how their readings differ. */
import type { Candidate, InspectResult } from "../contracts/index.js";
import { visible } from "../text/visible.js";
import { listed } from "../text/words.js";
import { difference, sharedPlaces } from "./difference.js";
import { atLayers } from "./finding.js";
import { drawnLayers } from "./lens.js";
import { count, percent } from "./numbers.js";
import { spansAbove } from "./shapes.js";

/** A layer's readings at each token; null and empty lists where nothing was read. */
export interface SideLayer {
  layer: number;
  norms: (number | null)[];
  /** The lens's most probable tokens, best first. */
  top: Candidate[][];
  /** The probability of the tracked token. */
  tracked?: (number | null)[];
}

/** One of two runs that are compared. */
export interface Side {
  name: string;
  tokens: string[];
  /** Ascending. */
  layers: SideLayer[];
  /** The tracked token. */
  tracked?: string;
  /** The most probable tokens after the last one. */
  next: Candidate[];
  /** The generated text, and how many of the tokens are the prompt's, if text was generated. */
  answer?: string;
  prompt?: number;
  /** The number of blocks of its model; null if unknown. */
  depth: number | null;
}

/** The readings at every layer and token. */
export const quantities = ["lens", "norm", "tracked"] as const;
export type Quantity = (typeof quantities)[number];

/** An inspection as one side. */
export function sideOfInspection(
  name: string,
  result: Pick<
    InspectResult,
    "tokens" | "layers" | "all_layers" | "all_layers_from" | "next_tokens" | "target_token" | "provenance"
  >,
): Side {
  const { tokens, next_tokens: next, target_token: tracked } = result;
  const isTracked = (found: { target?: unknown[] }) => found.target?.length === tokens.length;
  const layers = drawnLayers(result).toSorted((a, b) => a.layer - b.layer);
  return {
    ...{ name, tokens, next, depth: result.provenance.n_layer },
    ...(tracked !== undefined && layers.some(isTracked) && { tracked }),
    layers: layers.map((found) => ({
      layer: found.layer,
      norms: found.norms,
      top: found.predictions ?? [],
      ...(isTracked(found) && { tracked: (found.target ?? []).map(({ probability }) => probability) }),
    })),
  };
}

/** The quantities that both sides have. */
export function sharedQuantities(one: Side, other: Side): Quantity[] {
  const both = (has: (side: Side) => boolean) => has(one) && has(other);
  return quantities.filter((quantity) => {
    if (quantity === "lens") return both(({ layers }) => layers.some(({ top }) => top.some((at) => at[0])));
    if (quantity === "tracked") return one.tracked !== undefined && one.tracked === other.tracked;
    return both(({ layers }) => layers.some(({ norms }) => norms.some((norm) => norm !== null)));
  });
}

/** A token of each side that belong together. */
export type TokenPair = readonly [one: number, other: number];

/**
 * Which tokens belong together: all, in order, if there are equally many. Otherwise those that both texts share, and between
 * them stretches with the same number of tokens; other tokens have no partner.
 */
export function pairedTokens(one: readonly string[], other: readonly string[]): TokenPair[] {
  if (one.length === other.length) return one.map((_, at) => [at, at]);
  const pairs: TokenPair[] = [];
  let [i, j] = [0, 0];
  for (const [row, column] of [...sharedPlaces(one, other), [one.length, other.length] as const]) {
    if (row - i === column - j) for (let at = 0; at < row - i; at += 1) pairs.push([i + at, j + at]);
    if (row < one.length) pairs.push([row, column]);
    [i, j] = [row + 1, column + 1];
  }
  return pairs;
}

/** The layers that both sides read; none if their models have different numbers of layers. */
export function sharedLayers(one: Side, other: Side): [SideLayer, SideLayer][] {
  if (one.depth !== null && other.depth !== null && one.depth !== other.depth) return [];
  return one.layers.flatMap((layer) => {
    const same = other.layers.find((found) => found.layer === layer.layer);
    return same === undefined ? [] : [[layer, same] as [SideLayer, SideLayer]];
  });
}

/** The other side's value less the first one's. */
export interface Change {
  value: number;
  /** Whether the change is only known to be at least this large. */
  atLeast?: true;
}

/**
 * How a reading changes from one side to the other at a pair of tokens: the norm's change as a share of the first one, the
 * change of the tracked token's probability, or that of the first side's top token. A lens reports the best tokens only: of a
 * token that is not among them, the change is known to be at least the one to the least of them.
 */
export function changeOf(
  quantity: Quantity,
  [one, other]: readonly [SideLayer, SideLayer],
  [at, there]: TokenPair,
): Change | undefined {
  if (quantity === "norm") {
    const [before, after] = [one.norms[at] ?? null, other.norms[there] ?? null];
    return before === null || after === null || before === 0 ? undefined : { value: after / before - 1 };
  }
  if (quantity === "tracked") {
    const [before, after] = [one.tracked?.[at] ?? null, other.tracked?.[there] ?? null];
    return before === null || after === null ? undefined : { value: after - before };
  }
  const [before, found] = [one.top[at]?.[0], other.top[there] ?? []];
  const least = found.at(-1);
  if (before === undefined || least === undefined) return undefined;
  const same = found.find(({ token }) => token === before.token);
  if (same !== undefined) return { value: same.probability - before.probability };
  return { value: Math.min(0, least.probability - before.probability), atLeast: true };
}

/** What two runs differ in, in sentences; the first is the finding. */
export function sideBySideSummary(one: Side, other: Side): string[] {
  const first = one.answer === undefined ? nextSentence(one, other) : answerSentence(one, other);
  return [first, lensSentence(one, other), normSentence(one, other)].filter((sentence) => sentence !== "");
}

export const sideBySideCautions = [
  "One pair of runs shows that the two can differ, not how often. Drift measures two models on many texts, with intervals.",
  "A lens reading is not causal evidence: it shows what a block's output predicts, not what later blocks use.",
];

function named({ token }: Candidate): string {
  return `“${visible(token)}”`;
}

function nextSentence(one: Side, other: Side): string {
  const [first, second] = [one.next[0], other.next[0]];
  if (first === undefined || second === undefined) return "";
  const [before, after] = [first, second].map(({ probability }) => percent(probability));
  return first.token === second.token
    ? `Both continue with ${named(first)} (${before} and ${after}).`
    : `${one.name} continues with ${named(first)} (${before}), ${other.name} with ${named(second)} (${after}).`;
}

function answerSentence({ answer: before = "" }: Side, { answer: after = "" }: Side): string {
  const stretches = difference(before, after);
  const words = (kinds: readonly string[]) =>
    stretches.flatMap(({ kind, text }) => (kinds.includes(kind) ? (text.match(/\S+/g) ?? []) : [])).length;
  if (stretches.every(({ kind }) => kind === "same")) return "The two answers are identical.";
  const [added, all] = [words(["added"]), words(["added", "same"])];
  return `${added} of ${count(all, "word")} of the second answer ${added === 1 ? "is" : "are"} not in the first.`;
}

/** At which layers the lens reads different tokens after the prompt. */
function lensSentence(one: Side, other: Side): string {
  const [last, there] = [one, other].map(({ prompt, tokens }) => (prompt ?? tokens.length) - 1) as [
    number,
    number,
  ];
  const after = one.prompt === undefined ? "After the last token" : "After the prompt";
  const read = sharedLayers(one, other).flatMap(([a, b]) => {
    const [first, second] = [a.top[last]?.[0], b.top[there]?.[0]];
    return first === undefined || second === undefined
      ? []
      : [{ layer: a.layer, differs: first.token === second.token ? 0 : 1 }];
  });
  if (read.length === 0) return "";
  const layers = read.map(({ layer }) => layer);
  const spans = spansAbove(
    read.map(({ differs }) => differs),
    0,
  );
  if (spans.length === 0) {
    return `${after}, the lens reads the same top token at every layer measured.`;
  }
  const where = spans.map((span) => atLayers(span, layers));
  return `${after}, the lens reads different top tokens ${listed(where)}.`;
}

/** How much the norms differ where they do, and where most. */
function normSentence(one: Side, other: Side): string {
  const pairs = pairedTokens(one.tokens, other.tokens);
  const cells = sharedLayers(one, other).flatMap((layers) =>
    pairs.flatMap((pair) => {
      const change = changeOf("norm", layers, pair);
      return change === undefined
        ? []
        : [{ layer: layers[0].layer, token: one.tokens[pair[0]] ?? "", value: change.value }];
    }),
  );
  if (cells.length === 0) return "";
  // Tokens before the first difference are computed alike; rounding does not count.
  const differing = cells.filter(({ value }) => Math.abs(value) > rounding);
  const sizes = differing.map(({ value }) => Math.abs(value)).sort((a, b) => a - b);
  const most = differing.find(({ value }) => Math.abs(value) === sizes.at(-1));
  if (most === undefined) return "All norms are the same.";
  const [low, high] = [sizes[(sizes.length - 1) >> 1] as number, sizes[sizes.length >> 1] as number];
  return (
    `The norms differ in ${differing.length} of ${count(cells.length, "cell")}, by a median of ${percent((low + high) / 2)}; ` +
    `the largest change is ${most.value > 0 ? "+" : ""}${percent(most.value)}, at layer ${most.layer}, “${visible(most.token)}”.`
  );
}

/** Relative changes of norms up to this are rounding. */
const rounding = 1e-5;
