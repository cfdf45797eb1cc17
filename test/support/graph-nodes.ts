/** Nodes and targets of graphs that are written by hand. */
import type { GraphNode, GraphResult } from "../../src/contracts/index.js";

export function graphNode(
  kind: GraphNode["kind"],
  layer: number | null,
  position: number,
  index: number | null,
  value: number | null = null,
): GraphNode {
  return { kind, layer, position, index, value, influence: 0 };
}

export function graphTarget(
  token_id: number,
  token: string,
  probability: number,
  foil_token: string | null = null,
) {
  return { token_id, token, probability, foil_token } as GraphResult["targets"][number];
}
