/** Two attribution graphs next to each other: which nodes both have, and their influence. */
import type { GraphNode, GraphResult } from "../contracts/index.js";
import type { Named } from "./graph.js";
import { count, percent } from "./numbers.js";

/** What a comparison needs of a graph. */
export interface ComparedGraph extends Named {
  transcoders?: GraphResult["transcoders"];
}

/** The nodes of two graphs, by index. */
export interface GraphPairs {
  both: { one: number; other: number }[];
  onlyOne: number[];
  onlyOther: number[];
}

/** Pairs the nodes that stand for the same thing at matching tokens. */
export function pairNodes(one: ComparedGraph, other: ComparedGraph): GraphPairs {
  const [mine, theirs] = placesOf(one.tokens, other.tokens);
  const found = new Map(other.nodes.map((node, at) => [keyOf(other, node, theirs), at]));
  const pairs: GraphPairs = { both: [], onlyOne: [], onlyOther: [] };
  for (const [at, node] of one.nodes.entries()) {
    const key = keyOf(one, node, mine);
    const match = found.get(key);
    if (match === undefined) pairs.onlyOne.push(at);
    else pairs.both.push({ one: at, other: match });
    found.delete(key);
  }
  pairs.onlyOther.push(...[...found.values()].sort((a, b) => a - b));
  return pairs;
}

/**
 * A name for each token's place in two texts: the same for matching tokens. Texts of one length match token by token;
 * otherwise their common beginning and their common end do.
 */
function placesOf(one: readonly string[], other: readonly string[]): [string[], string[]] {
  if (one.length === other.length) return [one.map((_, at) => `${at}`), other.map((_, at) => `${at}`)];
  const shorter = Math.min(one.length, other.length);
  let start = 0;
  while (start < shorter && one[start] === other[start]) start += 1;
  let end = 0;
  while (end < shorter - start && one.at(-1 - end) === other.at(-1 - end)) end += 1;
  const named = (tokens: readonly string[], side: string) =>
    tokens.map((_, at) =>
      at < start ? `${at}` : at >= tokens.length - end ? `${at - tokens.length}` : `${side} ${at}`,
    );
  return [named(one, "one"), named(other, "other")];
}

function keyOf(
  graph: ComparedGraph,
  { kind, layer, position, index }: GraphNode,
  places: readonly string[],
): string {
  if (kind === "target") return `target ${graph.targets[index ?? 0]?.token}`;
  // Features with the same index are only the same in the same dictionary.
  const dictionary =
    kind === "feature" ? graph.transcoders?.blocks.find((one) => one.layer === layer)?.sha256 : "";
  return `${kind} ${layer} ${index} ${dictionary ?? ""} ${places[position]}`;
}

/** Which share of each graph's influence the common nodes have; without embeddings and targets, which every graph has. */
export function pairsSentence(one: ComparedGraph, other: ComparedGraph, pairs: GraphPairs): string {
  const inner = ({ nodes }: ComparedGraph, at: number) =>
    nodes[at]?.kind !== "embedding" && nodes[at]?.kind !== "target";
  const both = pairs.both.filter((pair) => inner(one, pair.one));
  const sizes = [
    pairs.onlyOne.filter((at) => inner(one, at)),
    pairs.onlyOther.filter((at) => inner(other, at)),
  ];
  const share = (graph: ComparedGraph, common: readonly number[]) => {
    const sum = (list: readonly GraphNode[]) => list.reduce((total, { influence }) => total + influence, 0);
    const all = sum(graph.nodes.filter((_, at) => inner(graph, at)));
    return all === 0 ? 0 : sum(common.map((at) => graph.nodes[at] as GraphNode)) / all;
  };
  const [first, second] = [
    share(
      one,
      both.map((pair) => pair.one),
    ),
    share(
      other,
      both.map((pair) => pair.other),
    ),
  ];
  return (
    `${count(both.length, "node")} ${both.length === 1 ? "is" : "are"} in both graphs, with ${percent(first)} of the first's and ${percent(second)} of ` +
    `the second's influence (embeddings and logits aside); ${sizes[0]?.length} only in the first, ${sizes[1]?.length} only in the second.`
  );
}

/** One node in both graphs, or in one: its influence in each, null where it is not a node. */
export interface ComparedNode {
  one: number | null;
  other: number | null;
  influence: [first: number | null, second: number | null];
}

/** The nodes of both graphs without targets, the greatest difference of influence first. */
export function comparedNodes(one: ComparedGraph, other: ComparedGraph, pairs: GraphPairs): ComparedNode[] {
  const influence = ({ nodes }: ComparedGraph, at: number) => (nodes[at] as GraphNode).influence;
  const rows: ComparedNode[] = [
    ...pairs.both.map(
      (pair): ComparedNode => ({
        ...pair,
        influence: [influence(one, pair.one), influence(other, pair.other)],
      }),
    ),
    ...pairs.onlyOne.map(
      (at): ComparedNode => ({ one: at, other: null, influence: [influence(one, at), null] }),
    ),
    ...pairs.onlyOther.map(
      (at): ComparedNode => ({ one: null, other: at, influence: [null, influence(other, at)] }),
    ),
  ];
  const isTarget = ({ one: at, other: there }: ComparedNode) =>
    (at === null ? other.nodes[there ?? 0] : one.nodes[at])?.kind === "target";
  const apart = ({ influence: [first, second] }: ComparedNode) => Math.abs((first ?? 0) - (second ?? 0));
  return rows.filter((row) => !isTarget(row)).sort((a, b) => apart(b) - apart(a));
}
