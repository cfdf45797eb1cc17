import type { GraphNode, GraphResult } from "../contracts/index.js";
import { visible } from "../text/visible.js";
import { cut } from "../text/words.js";
import { count, figureOf } from "./numbers.js";

/** Tokens that a short description names. */
const raisedNamed = 3;

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

/** The tokens that a feature's decoder row raises, as a clause; undefined for other nodes and without a logit lens. */
export function raisedText(
  features: GraphResult["features"],
  { kind, layer, index }: Pick<GraphNode, "kind" | "layer" | "index">,
  most = raisedNamed,
): string | undefined {
  const found = kind === "feature" ? featureOf(features, layer, index) : undefined;
  if (found?.raised == null || found.raised.length === 0) return undefined;
  return `raises ${found.raised
    .slice(0, most)
    .map(({ token }) => visible(token))
    .join(", ")}`;
}

/** Where a feature is active in the prompt and what it raises, as sentences. */
export function featureText(
  { tokens, features }: Pick<Named, "tokens"> & Pick<GraphResult, "features">,
  node: Pick<GraphNode, "kind" | "layer" | "index">,
): string | undefined {
  const found = node.kind === "feature" ? featureOf(features, node.layer, node.index) : undefined;
  if (found === undefined) return undefined;
  const places = found.strongest.map(
    ({ position, activation }) => `${placeName(tokens, position)} ${figureOf(activation)}`,
  );
  const raised = raisedText(features, node, found.raised?.length);
  const active = `In this prompt it is active at ${count(found.active_tokens, "token")}${found.active_tokens > places.length ? ", most at" : ":"} ${places.join(", ")}.`;
  return raised === undefined ? active : `${active} Its decoder row alone ${raised}.`;
}

function featureOf(features: GraphResult["features"], layer: number | null, index: number | null) {
  return features?.find((one) => one.layer === layer && one.index === index);
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
