import type { GraphNode, GraphResult } from "../contracts/index.js";
import { cut } from "../text/words.js";
import { visible } from "./text.js";

/** What names of nodes need of a result. */
export interface Named extends Pick<GraphResult, "tokens" | "nodes"> {
  targets: readonly Pick<GraphResult["targets"][number], "token">[];
  /** If its nodes are features. */
  transcoders?: unknown;
}

/** A node in a few characters: `emb 3`, `4.n305`, `4.h2`, `4.f1021`. */
export function shortName({
  kind,
  layer,
  position,
  index,
}: Pick<GraphNode, "kind" | "layer" | "position" | "index">): string {
  switch (kind) {
    case "embedding":
      return `emb ${position}`;
    case "neuron":
      return `${layer}.n${index}`;
    case "head":
      return `${layer}.h${index}`;
    case "feature":
      return `${layer}.f${index}`;
    case "target":
      return `target ${index}`;
    default:
      return `${layer}.${kind}`;
  }
}

/** A node in words: `neuron 305 of block 4 at “is”`. */
export function nodeName(
  { tokens, targets, transcoders }: Pick<Named, "tokens" | "targets" | "transcoders">,
  { kind, layer, position, index }: Pick<GraphNode, "kind" | "layer" | "position" | "index">,
): string {
  const at = `at ${placeName(tokens, position)}`;
  switch (kind) {
    case "embedding":
      return `the embedding ${at}`;
    case "target":
      return `the logit of ${visible(targets[index as number]?.token ?? "")}`;
    case "rest":
      return `other ${transcoders === undefined ? "neurons" : "features"} of block ${layer} ${at}`;
    case "rounding":
      return `rounding in block ${layer} ${at}`;
    case "error":
      return `the error of block ${layer} ${at}`;
    default:
      return `${kind} ${index} of block ${layer} ${at}`;
  }
}

/** A token and its index. */
export function placeName(tokens: readonly string[], position: number): string {
  return `${visible(tokens[position] ?? "")} (token ${position})`;
}

/** A token in at most nine characters. */
export function shortToken(token: string): string {
  return cut(visible(token), 9);
}

/** The token whose logit is explained, or the difference of two: `·Paris minus ·London`. */
export function tokenOrDifference(target: string, foil: string | undefined): string {
  return `${visible(target)}${foil === undefined ? "" : ` minus ${visible(foil)}`}`;
}

/** Neurons and heads, or features, the most influential first. */
export function strongestNodes({ nodes }: Pick<Named, "nodes">): GraphNode[] {
  return nodes
    .filter(({ kind }) => kind === "neuron" || kind === "head" || kind === "feature")
    .sort((a, b) => b.influence - a.influence);
}

export type PartName = keyof GraphResult["targets"][number]["direct"];

/** The kinds of parts of a graph's values, and what they are called. */
export function partNames({ transcoders }: Pick<Named, "transcoders">): [PartName, string][] {
  const inner: [PartName, string][] =
    transcoders === undefined
      ? [
          ["neurons", "neurons"],
          ["heads", "heads"],
          ["rest", "other neurons"],
        ]
      : [
          ["features", "features"],
          ["rest", "other features"],
          ["errors", "errors"],
        ];
  return [["embeddings", "embeddings"], ...inner, ["rounding", "rounding"], ["constant", "biases"]];
}
