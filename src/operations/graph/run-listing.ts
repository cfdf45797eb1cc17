import type { GraphEdge, GraphNode } from "../../contracts/index.js";
import type { GraphTarget } from "../../native/index.js";
import { type FoundGraph, type Group, kindOf } from "./run-found.js";
import { groupsOf, type Layout, type PrunedGraph } from "./run-pruning.js";

/** The nodes and edges of a pruned graph. */
export interface Listing {
  /** The targets last. */
  nodes: GraphNode[];
  /** The strongest first. */
  edges: GraphEdge[];
  /** Of each node, the share of the influence that it and all stronger ones have, before pruning; null for targets. */
  cumulative: (number | null)[];
}

export function listGraph(
  targets: readonly (GraphTarget & { weight: number })[],
  found: Pick<FoundGraph, "nodes" | "edges">,
  layout: Layout,
  pruned: PrunedGraph,
): Listing {
  const { nodes, columns } = nodesOf(found, layout, pruned);
  const places = new Map(columns.map((column, at) => [column, at]));
  const shares = cumulativeShares(pruned.influence);
  const { values, parts, columns: width } = found.edges;
  const ends = targets.map(({ position, weight }, index): GraphNode => {
    const value = values[index] as number;
    return { kind: "target", layer: null, position, index, value, influence: weight };
  });
  const { count, tokens } = { count: layout.targets, tokens: layout.tokens };
  return {
    nodes: [...nodes, ...ends],
    edges: pruned.edges.map(({ row, column, influence }) => ({
      source: places.get(column) as number,
      target: row < count ? nodes.length + row : (places.get(tokens + row - count) as number),
      value: parts[row * width + column] as number,
      influence: influence / pruned.all.influence,
    })),
    cumulative: [...columns.map((column) => shares[column] as number), ...ends.map(() => null)],
  };
}

/** Kept nodes without targets, and the column of each. */
function nodesOf(
  { nodes: inner }: Pick<FoundGraph, "nodes">,
  layout: Layout,
  { kept, influence }: PrunedGraph,
): { nodes: GraphNode[]; columns: number[] } {
  const { tokens, nodes: count, layers } = layout;
  const columns = [...kept.keys()].filter((column) => kept[column] === 1);
  const errors = tokens + count;
  const nodes = columns.map((column): GraphNode => {
    const share = { influence: influence[column] as number };
    if (column < tokens) {
      return { kind: "embedding", layer: null, position: column, index: null, value: null, ...share };
    }
    if (column < errors) {
      const node = column - tokens;
      return {
        kind: kindOf(inner, node),
        layer: inner.layers[node] as number,
        position: inner.tokens[node] as number,
        index: inner.indices[node] as number,
        value: inner.values[node] as number,
        ...share,
      };
    }
    const at = column - errors;
    return {
      kind: groupsOf(layout)[Math.floor(at / (layers * tokens))] as Group,
      layer: Math.floor(at / tokens) % layers,
      position: at % tokens,
      ...{ index: null, value: null },
      ...share,
    };
  });
  return { nodes, columns };
}

/** By column: the share of the sum that it and all greater ones have. */
export function cumulativeShares(influence: Float64Array): Float64Array {
  const order = Int32Array.from(influence.keys()).sort(
    (a, b) => (influence[b] as number) - (influence[a] as number) || a - b,
  );
  const total = influence.reduce((sum, value) => sum + value, 0);
  const shares = new Float64Array(influence.length);
  let sum = 0;
  for (const column of order) {
    sum += influence[column] as number;
    shares[column] = sum / total;
  }
  return shares;
}
