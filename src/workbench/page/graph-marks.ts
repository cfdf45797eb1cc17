/** The nodes of a graph that a user has pinned, and grouped into named supernodes; circuit-tracer's files keep both. */
import type { GraphEdge, GraphNode } from "../../contracts/index.js";

export interface Supernode {
  name: string;
  /** Ids of its nodes. */
  nodes: string[];
}

export interface GraphMarks {
  /** Ids of pinned nodes that are in no supernode. */
  pinned: string[];
  /** A node is in at most one. */
  supernodes: Supernode[];
}

export const noMarks: GraphMarks = { pinned: [], supernodes: [] };

/** Longest name of a supernode. */
export const longestName = 80;

/** Pins a node, or unpins it; a node of a supernode leaves it. */
export function toggled(marks: GraphMarks, id: string): GraphMarks {
  const isPinned = marks.pinned.includes(id);
  const inGroup = supernodeOf(marks, id) !== undefined;
  const rest = without(marks, [id]);
  return isPinned || inGroup ? rest : { ...rest, pinned: [...rest.pinned, id] };
}

/** Makes a supernode of all pinned nodes. @throws Error if there are none or the name is empty */
export function grouped(marks: GraphMarks, name: string): GraphMarks {
  if (marks.pinned.length === 0) throw new Error("Pin the nodes of the supernode first.");
  return { pinned: [], supernodes: [...marks.supernodes, { name: named(name), nodes: marks.pinned }] };
}

/** @throws Error if the name is empty or too long */
export function renamed(marks: GraphMarks, at: number, name: string): GraphMarks {
  const to = named(name);
  return { ...marks, supernodes: marks.supernodes.map((one, i) => (i === at ? { ...one, name: to } : one)) };
}

/** Dissolves a supernode; its nodes are pinned again. */
export function dissolved({ pinned, supernodes }: GraphMarks, at: number): GraphMarks {
  return {
    pinned: [...pinned, ...(supernodes[at]?.nodes ?? [])],
    supernodes: supernodes.filter((_, i) => i !== at),
  };
}

/** The index of the supernode with a node. */
export function supernodeOf({ supernodes }: GraphMarks, id: string): number | undefined {
  const at = supernodes.findIndex(({ nodes }) => nodes.includes(id));
  return at < 0 ? undefined : at;
}

function without({ pinned, supernodes }: GraphMarks, ids: readonly string[]): GraphMarks {
  const keep = (id: string) => !ids.includes(id);
  return {
    pinned: pinned.filter(keep),
    supernodes: supernodes
      .map((one) => ({ ...one, nodes: one.nodes.filter(keep) }))
      .filter(({ nodes }) => nodes.length > 0),
  };
}

function named(name: string): string {
  const text = name.trim();
  if (text === "") throw new Error("Enter a name for the supernode.");
  if (text.length > longestName) {
    throw new Error(`Name: at most ${longestName} characters, got ${text.length}.`);
  }
  return text;
}

/**
 * The marks in a file's `qParams`: `pinnedIds`, and `supernodes` as lists of a name and ids. What does not name nodes of the
 * file is left out.
 */
export function marksIn(qParams: unknown, ids: readonly string[]): GraphMarks {
  const { pinnedIds, supernodes } = (qParams ?? {}) as Record<string, unknown>;
  const known = new Set(ids);
  const free = new Set(ids);
  const take = (list: unknown) =>
    Array.isArray(list)
      ? list.filter((id) => typeof id === "string" && known.has(id) && free.delete(id))
      : [];
  const groups = (Array.isArray(supernodes) ? supernodes : [])
    .filter((one) => Array.isArray(one) && typeof one[0] === "string")
    .map(([name, ...nodes]: string[]) => ({ name: String(name).slice(0, longestName), nodes: take(nodes) }))
    .filter(({ nodes }) => nodes.length > 0);
  return { supernodes: groups, pinned: take(pinnedIds) };
}

/** A graph's file with these marks. Its page shows the pinned nodes, so those of supernodes are pinned as well. */
export function withMarks(text: string, { pinned, supernodes }: GraphMarks): string {
  const content = JSON.parse(text) as { qParams?: object };
  const qParams = {
    ...content.qParams,
    pinnedIds: [...supernodes.flatMap(({ nodes }) => nodes), ...pinned],
    supernodes: supernodes.map(({ name, nodes }) => [name, ...nodes]),
  };
  return `${JSON.stringify({ ...content, qParams })}\n`;
}

/** What supernodes add to each other and to targets: the sums of the edges between their nodes. */
export interface SupernodeEdge {
  source: number;
  /** A supernode, or a target by its node. */
  target: { supernode: number } | { node: number };
  value: number;
}

/** The edges between supernodes and into targets, the strongest first. */
export function supernodeEdges(
  { supernodes }: GraphMarks,
  ids: readonly string[],
  nodes: readonly GraphNode[],
  edges: readonly GraphEdge[],
): SupernodeEdge[] {
  const places = new Map(supernodes.flatMap((one, at) => one.nodes.map((id) => [id, at] as const)));
  const groupOf = (node: number) => places.get(ids[node] ?? "");
  const sums = new Map<string, SupernodeEdge>();
  for (const { source, target, value } of edges) {
    const [from, to] = [groupOf(source), groupOf(target)];
    if (from === undefined || from === to) continue;
    const isTarget = nodes[target]?.kind === "target";
    if (to === undefined && !isTarget) continue;
    const key = `${from} ${to ?? `node ${target}`}`;
    const end = to === undefined ? { node: target } : { supernode: to };
    const sum = sums.get(key) ?? { source: from, target: end, value: 0 };
    sum.value += value;
    sums.set(key, sum);
  }
  return [...sums.values()].sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
}
