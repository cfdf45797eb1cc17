import {
  type Edges,
  eachEdge,
  leastInfluence,
  type PrunedEdge,
  strongestEdges,
  type VisitEdge,
} from "./run-edges.js";
import type { FoundGraph, Group } from "./run-found.js";
import { Pause } from "./run-pause.js";

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

export interface Pruning {
  nodeThreshold: number;
  edgeThreshold: number;
  /** Edges that are listed. */
  most: number;
  signal?: AbortSignal | undefined;
}

/**
 * Indirect influence and pruning as in circuit tracing (Ameisen et al. 2025): a row's edges, without signs, are divided by
 * their sum, and influence flows from the targets down. Since edges only lead upwards, one pass over the rows from the top
 * solves (I - A)^-1. A graph may have tens of millions of edges, so the event loop runs in between.
 * @throws the signal's reason
 */
export async function pruneGraph(
  { edges: { parts, columns } }: Pick<FoundGraph, "edges">,
  layout: Layout,
  weights: readonly number[],
  { nodeThreshold, edgeThreshold, most, signal }: Pruning,
): Promise<PrunedGraph> {
  const { targets, tokens, nodes } = layout;
  const pause = new Pause(signal);
  const rows = targets + nodes;
  const rowOf = (row: number) => parts.subarray(row * columns, (row + 1) * columns);
  const flow = (kept: Uint8Array) => influenceOf(rowOf, layout, weights, kept, pause);
  const { influence, received } = await flow(new Uint8Array(columns).fill(1));
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
    completeness: await completenessOf(rowOf, { rows, errors, columns }, received, starting, pause),
    ...(groups.includes("error") && { errors: shareOf("error"), rest: shareOf("rest") }),
    rounding: shareOf("rounding"),
  };

  const kept = new Uint8Array(columns);
  const least = await leastInfluence(inOneRow(influence), nodeThreshold, pause);
  for (let column = 0; column < columns; column++) {
    const strong = influence[column]! > 0 && influence[column]! >= least;
    kept[column] = column < tokens || strong ? 1 : 0;
  }
  const pruned = await flow(kept);
  const sizes = new Float64Array(rows);
  for (let row = 0; row < rows; row++) {
    sizes[row] = sizeOf(rowOf(row), kept);
    if (pause.isDue()) await pause.take();
  }
  const isKept = (row: number) => row < targets || kept[tokens + row - targets] === 1;
  /** What `kept` has at that time. */
  const edgesOf = (row: number, visit: VisitEdge) => {
    if (!isKept(row)) return;
    const values = rowOf(row);
    for (let column = 0; column < columns; column++) {
      if (kept[column] === 0) continue;
      const influence = (Math.abs(values[column]!) / sizes[row]!) * pruned.received[row]!;
      if (influence > 0) visit(influence, row, column);
    }
  };
  const leastEdge = await leastInfluence({ rows, of: edgesOf }, edgeThreshold, pause);
  const strong: Edges = {
    rows,
    of: (row, visit) =>
      edgesOf(row, (influence, row, column) => {
        if (influence >= leastEdge) visit(influence, row, column);
      }),
  };
  await connect(strong, kept, layout, pause);
  const all = { count: 0, influence: 0 };
  await eachEdge(strong, pause, (influence) => {
    all.count += 1;
    all.influence += influence;
  });
  return {
    influence: influence.map((value) => value / whole),
    kept,
    edges: await strongestEdges(strong, most, pause),
    all,
    scores,
  };
}

/** Influences as edges of one row, without zeros. */
function inOneRow(influence: Float64Array): Edges {
  return {
    rows: 1,
    of: (row, visit) => {
      for (const [column, value] of influence.entries()) if (value > 0) visit(value, row, column);
    },
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
async function influenceOf(
  rowOf: (row: number) => Float32Array,
  { targets, tokens, nodes }: Layout,
  weights: readonly number[],
  kept: Uint8Array,
  pause: Pause,
): Promise<{ influence: Float64Array; received: Float64Array }> {
  const columns = kept.length;
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
  for (let node = nodes; node-- > 0; ) {
    pass(targets + node, influence[tokens + node]!);
    if (pause.isDue()) await pause.take();
  }
  return { influence, received };
}

/** The share of each row's edges that do not come from errors, weighted by what it received; sources have no edges. */
async function completenessOf(
  rowOf: (row: number) => Float32Array,
  { rows, errors, columns }: { rows: number; errors: number; columns: number },
  received: Float64Array,
  sources: number,
  pause: Pause,
): Promise<number> {
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
    if (pause.isDue()) await pause.take();
  }
  return good / all;
}

/**
 * Drops nodes that nothing reads, and neurons and heads that read nothing, until none is left. Changes `kept`. Edges only
 * lead upwards, so one pass down and one up are enough: the readers of a node that remains also remain.
 */
async function connect(
  edges: Edges,
  kept: Uint8Array,
  { targets, tokens, nodes }: Layout,
  pause: Pause,
): Promise<void> {
  const read = new Uint8Array(kept.length);
  const mark = (_: number, __: number, column: number) => {
    read[column] = 1;
  };
  for (let target = 0; target < targets; target++) edges.of(target, mark);
  for (let node = nodes; node-- > 0; ) {
    if (read[tokens + node] === 0) kept[tokens + node] = 0;
    else edges.of(targets + node, mark);
    if (pause.isDue()) await pause.take();
  }
  for (let column = tokens + nodes; column < kept.length; column++) {
    if (read[column] === 0) kept[column] = 0;
  }
  for (let node = 0; node < nodes; node++) {
    let reads = 0;
    edges.of(targets + node, () => {
      reads += 1;
    });
    if (reads === 0) kept[tokens + node] = 0;
    if (pause.isDue()) await pause.take();
  }
}
