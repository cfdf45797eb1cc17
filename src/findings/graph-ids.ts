/** Nodes in graph files: the ids, places and indices that circuit-tracer's JSON gives them. */
import type { GraphNode, GraphResult } from "../contracts/index.js";

/** With a local name, circuit-tracer's page does not ask the hub for examples of features. */
export const ownScan = "./tapline";
/** Neurons and heads share one index in these files, so heads begin where no block has neurons. */
export const firstHead = 1_000_000;
/** Indices of nodes without one. They are negative, because 0_5_3 is also neuron 5 of block 0. */
export const indexOfKind = { rest: -1, rounding: -2, error: -3 } as const;

type Identified = Pick<GraphNode, "kind" | "layer" | "position" | "index">;

/** What ids need of a result. */
export interface Ids {
  token_ids: readonly number[];
  blocks: number;
  targets: readonly Pick<GraphResult["targets"][number], "token_id">[];
}

/** The index of a node in its file. */
export function fileIndex({ kind, index }: Identified): number {
  if (kind === "rest" || kind === "error" || kind === "rounding") return indexOfKind[kind];
  return (index ?? 0) + (kind === "head" ? firstHead : 0);
}

/** The id of a node: `E_token_position`, `block_index_position`, and for targets `block_token_position`. */
export function nodeId({ token_ids, blocks, targets }: Ids, node: Identified): string {
  const { kind, layer, position, index } = node;
  if (kind === "embedding") return `E_${token_ids[position]}_${position}`;
  if (kind === "target") return `${blocks + 1}_${targets[index ?? 0]?.token_id}_${position}`;
  return `${layer ?? 0}_${fileIndex(node)}_${position}`;
}
