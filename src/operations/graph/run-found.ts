import type { GraphResult } from "../../contracts/index.js";
import type { AttributionGraph, TranscoderGraph } from "../../native/index.js";
import type { ActiveFeatures } from "./run-described.js";

/** What is left of a block at a token, beside nodes; in the order of columns. */
export type Group = "rest" | "error" | "rounding";

/** A graph of neurons and heads, or of features, in one form. */
export interface FoundGraph
  extends Pick<
    AttributionGraph,
    "bytes" | "edges" | "apart" | "ffnApart" | "tried" | "losses" | "residualBound"
  > {
  /** `heads` is absent for features. */
  nodes: TranscoderGraph["nodes"] & { heads?: Int32Array };
  /** By layer and token, after the nodes' columns. */
  groups: readonly Group[];
  /** By target: what starts at each kind through all paths. */
  through: Omit<GraphResult["targets"][number]["through"], "constant">[];
  /** Of features. */
  transcoders?: NonNullable<GraphResult["transcoders"]>;
  /** Their number, and what they are. */
  active?: number;
  activations?: ActiveFeatures;
  frozen?: Float64Array;
}

const sum = (values: Float64Array) => values.reduce((total, value) => total + value, 0);

export function foundNeurons(found: AttributionGraph): FoundGraph {
  return {
    ...found,
    groups: ["rest", "rounding"],
    through: found.embeddings.map((own, row) => ({
      embeddings: sum(own),
      ...{ rest: 0, errors: 0 },
      rounding: found.rounding[row] as number,
    })),
  };
}

/** @param tokens of the text @param layers of the model @param targets their number */
export function foundFeatures(
  found: TranscoderGraph,
  { tokens, layers, targets }: { tokens: number; layers: number; targets: number },
): FoundGraph {
  const each = tokens + 3 * layers * tokens;
  return {
    ...found,
    ffnApart: new Float64Array(layers),
    groups: ["rest", "error", "rounding"],
    through: Array.from({ length: targets }, (_, target) => {
      const starts = found.starts.subarray(target * each, (target + 1) * each);
      const group = (at: number) =>
        sum(starts.subarray(tokens + at * layers * tokens, tokens + (at + 1) * layers * tokens));
      const [rest, errors, rounding] = [group(0), group(1), group(2)];
      return { embeddings: sum(starts.subarray(0, tokens)), rest, errors, rounding };
    }),
  };
}

/** The kind of a node. */
export function kindOf({ heads }: FoundGraph["nodes"], node: number): "neuron" | "head" | "feature" {
  if (heads === undefined) return "feature";
  return heads[node] === 1 ? "head" : "neuron";
}

/** The greatest difference between a removed feature's edges and what the frozen model loses, over its largest edge. */
export function worstRemoval(
  { tried, frozen, edges }: FoundGraph,
  { tokens, targets, nodes }: { tokens: number; targets: number; nodes: number },
): number | undefined {
  if (frozen === undefined || tried.length === 0) return undefined;
  const rows = targets + nodes;
  let worst = 0;
  for (const [i, node] of tried.entries()) {
    let [apart, most] = [0, 0];
    for (let row = 0; row < rows; row++) {
      const edge = edges.parts[row * edges.columns + tokens + node] as number;
      most = Math.max(most, Math.abs(edge));
      apart = Math.max(apart, Math.abs((frozen[i * rows + row] as number) - edge));
    }
    if (most > 0) worst = Math.max(worst, apart / most);
  }
  return worst;
}
