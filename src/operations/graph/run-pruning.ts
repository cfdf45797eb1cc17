import { type Edges, leastInfluence, type PrunedEdge, strongestEdges } from "./run-edges.js";
import type { FoundGraph, Group } from "./run-found.js";

/** The kinds of a graph's columns, in order, and where each begins. */
export interface Layout {
  targets: number;
  tokens: number;
  nodes: number;
  layers: number;
  /** What is left of each block at each token: by default, neurons that are not nodes, and rounding. */
  groups?: readonly Group[];
}

export const groupsOf = ({ groups = ["rest", "rounding"] }: Layout): readonly Group[] => groups;

/** Influence of a graph's columns on its targets, and the columns and edges that pruning keeps. */
export interface PrunedGraph {
  /** By column: share of the influence, before pruning. */
  influence: Float64Array;
  /** By column. */
  kept: Uint8Array;
  /** At most a given number, the strongest first. */
  edges: PrunedEdge[];
  /** The number of all edges after pruning, and their influence. */
  all: { count: number; influence: number };
  scores: { replacement: number; completeness: number; errors?: number; rest?: number; rounding: number };
}

/**
 * Indirect influence and pruning as in circuit tracing (Ameisen et al. 2025): a row's edges, without signs, are divided by
 * their sum, and influence flows from the targets down. Since edges only lead upwards, one pass over the rows from the top
 * solves (I - A)^-1.
 */
export function pruneGraph(
  { edges: { parts, columns } }: Pick<FoundGraph, "edges">,
  layout: Layout,
  weights: readonly number[],
  { nodeThreshold, edgeThreshold, most }: { nodeThreshold: number; edgeThreshold: number; most: number },
): PrunedGraph {
  const { targets, tokens, nodes } = layout;
  const rows = targets + nodes;
  const rowOf = (row: number) => parts.subarray(row * columns, (row + 1) * columns);
  const flow = (kept: Uint8Array) => influenceOf(rowOf, layout, weights, kept, columns);
  const { influence, received } = flow(new Uint8Array(columns).fill(1));
  const errors = tokens + nodes;
  const sum = (from: number, to: number) =>
    influence.subarray(from, to).reduce((total, value) => total + value, 0);
  const whole = influence.reduce((total, value) => total + value, 0);
  const starting = sum(0, tokens) + sum(errors, columns);
  const groups = groupsOf(layout);
  const left = layout.layers * tokens;
  const shareOf = (group: Group) => {
    const from = errors + groups.indexOf(group) * left;
    return sum(from, from + left) / starting;
  };
  const scores = {
    replacement: sum(0, tokens) / starting,
    completeness: completenessOf(rowOf, { rows, errors, columns }, received, starting),
    ...(groups.includes("error") && { errors: shareOf("error"), rest: shareOf("rest") }),
    rounding: shareOf("rounding"),
  };

  const kept = new Uint8Array(columns);
  const least = threshold(influence, nodeThreshold);
  for (let column = 0; column < columns; column++) {
    const strong = influence[column]! > 0 && influence[column]! >= least;
    kept[column] = column < tokens || strong ? 1 : 0;
  }
  const pruned = flow(kept);
  const sizes = Float64Array.from({ length: rows }, (_, row) => sizeOf(rowOf(row), kept));
  const isKept = (row: number) => row < targets || kept[tokens + row - targets] === 1;
  /** What `kept` has at that time. */
  const edgesOf = (row: number, visit: Parameters<Edges>[0]) => {
    if (!isKept(row)) return;
    const values = rowOf(row);
    for (let column = 0; column < columns; column++) {
      if (kept[column] === 0) continue;
      const influence = (Math.abs(values[column]!) / sizes[row]!) * pruned.received[row]!;
      if (influence > 0) visit(influence, row, column);
    }
  };
  const each = (visit: Parameters<Edges>[0]) => {
    for (let row = 0; row < rows; row++) edgesOf(row, visit);
  };
  const leastEdge = leastInfluence(each, edgeThreshold);
  const strongOf = (row: number, visit: Parameters<Edges>[0]) =>
    edgesOf(row, (influence, row, column) => {
      if (influence >= leastEdge) visit(influence, row, column);
    });
  connect(strongOf, kept, layout);
  const strong: Edges = (visit) => {
    for (let row = 0; row < rows; row++) strongOf(row, visit);
  };
  const all = { count: 0, influence: 0 };
  strong((influence) => {
    all.count += 1;
    all.influence += influence;
  });
  return {
    influence: influence.map((value) => value / whole),
    kept,
    edges: strongestEdges(strong, most),
    all,
    scores,
  };
}

function sizeOf(values: Float32Array, kept: Uint8Array): number {
  let size = 0;
  for (let column = 0; column < values.length; column++) {
    if (kept[column] === 1) size += Math.abs(values[column]!);
  }
  return size;
}

/** By column, and by row what it received to pass on. */
function influenceOf(
  rowOf: (row: number) => Float32Array,
  { targets, tokens, nodes }: Layout,
  weights: readonly number[],
  kept: Uint8Array,
  columns: number,
): { influence: Float64Array; received: Float64Array } {
  const influence = new Float64Array(columns);
  const received = new Float64Array(targets + nodes);
  const pass = (row: number, amount: number) => {
    received[row] = amount;
    if (amount === 0) return;
    const values = rowOf(row);
    const size = sizeOf(values, kept);
    if (size === 0) return;
    for (let column = 0; column < columns; column++) {
      if (kept[column] === 1) influence[column]! += (amount * Math.abs(values[column]!)) / size;
    }
  };
  for (let target = 0; target < targets; target++) pass(target, weights[target]!);
  for (let node = nodes; node-- > 0; ) pass(targets + node, influence[tokens + node]!);
  return { influence, received };
}

/** The share of each row's edges that do not come from errors, weighted by what it received; sources have no edges. */
function completenessOf(
  rowOf: (row: number) => Float32Array,
  { rows, errors, columns }: { rows: number; errors: number; columns: number },
  received: Float64Array,
  sources: number,
): number {
  let good = sources;
  let all = sources;
  for (let row = 0; row < rows; row++) {
    const values = rowOf(row);
    let size = 0;
    let missing = 0;
    for (let column = 0; column < columns; column++) {
      size += Math.abs(values[column]!);
      if (column >= errors) missing += Math.abs(values[column]!);
    }
    good += received[row]! * (size === 0 ? 1 : 1 - missing / size);
    all += received[row]!;
  }
  return good / all;
}

/** The value of the last of the largest values that together have a share of their sum. */
export function threshold(values: Float64Array, share: number): number {
  const sorted = Float64Array.from(values).sort().reverse();
  const total = sorted.reduce((sum, value) => sum + value, 0);
  let sum = 0;
  for (const value of sorted) {
    sum += value;
    if (sum >= share * total) return value;
  }
  return sorted.at(-1) ?? 0;
}

/**
 * Drops nodes that nothing reads, and neurons and heads that read nothing, until none is left. Changes `kept`. Edges only
 * lead upwards, so one pass down and one up are enough: the readers of a node that remains also remain.
 */
function connect(
  edgesOf: (row: number, visit: Parameters<Edges>[0]) => void,
  kept: Uint8Array,
  { targets, tokens, nodes }: Layout,
): void {
  const read = new Uint8Array(kept.length);
  const mark = (_: number, __: number, column: number) => {
    read[column] = 1;
  };
  for (let target = 0; target < targets; target++) edgesOf(target, mark);
  for (let node = nodes; node-- > 0; ) {
    if (read[tokens + node] === 0) kept[tokens + node] = 0;
    else edgesOf(targets + node, mark);
  }
  for (let column = tokens + nodes; column < kept.length; column++) {
    if (read[column] === 0) kept[column] = 0;
  }
  for (let node = 0; node < nodes; node++) {
    let reads = 0;
    edgesOf(targets + node, () => {
      reads += 1;
    });
    if (reads === 0) kept[tokens + node] = 0;
  }
}
