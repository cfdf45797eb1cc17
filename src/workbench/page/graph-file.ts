/** Graphs in files of tapline and of circuit-tracer, read for a picture. */
import type { GraphEdge, GraphNode, GraphResult } from "../../contracts/index.js";
import { type Named, placeName } from "../../findings/graph.js";
import { indexOfKind, ownScan } from "../../findings/graph-ids.js";
import { type GraphMarks, marksIn } from "./graph-marks.js";

/** What a picture of a graph needs of a result or of a file. */
export interface DrawnGraph extends Named {
  blocks: number;
  /** What its features stand for. */
  features?: GraphResult["features"];
  nodes: DrawnNode[];
  edges: GraphEdge[];
}

/** A node, with its name if it is not one of tapline's. */
export type DrawnNode = GraphNode & { label?: string };

/** A graph of a file. */
export interface GraphFile extends DrawnGraph {
  prompt: string;
  /** By node. */
  ids: string[];
  /** Its pinned nodes and supernodes. */
  marks: GraphMarks;
  /** The file's text. */
  text: string;
}

/** Fields of a node that are read; others may be absent. */
interface FileNode {
  node_id: string;
  feature: number | null;
  layer: string;
  ctx_idx: number;
  feature_type: string;
  token_prob: number;
  clerp: string;
  activation: number | null;
}

interface FileLink {
  source: string;
  target: string;
  weight: number;
}

/** @throws Error for a text that is not a graph */
export function readGraphFile(name: string, text: string): GraphFile {
  const { metadata, nodes, links, qParams } = parsed(name, text);
  const isOwn = metadata.scan === ownScan;
  const tokens = metadata.prompt_tokens;
  const logits = nodes.filter(isLogit);
  if (logits.length === 0) throw new Error(`${name}: the graph has no logit.`);
  const inner = nodes.filter((node) => !isLogit(node) && node.feature_type !== "embedding");
  const top = inner.reduce((most, { layer }) => Math.max(most, Number(layer) + 1), 0);
  const order = [...nodes.filter((node) => !isLogit(node)), ...logits];
  const places = new Map(order.map(({ node_id }, at) => [node_id, at]));
  const ends = links.flatMap(({ source, target, weight }) => {
    const [from, to] = [places.get(source), places.get(target)];
    return from === undefined || to === undefined ? [] : [{ source: from, target: to, value: weight }];
  });
  const weights = order.map((node) => (isLogit(node) ? Math.max(node.token_prob, Number.MIN_VALUE) : 0));
  const { received, edges } = flow(name, weights, ends);
  const total = received.reduce((sum, one, at) => (weights[at] === 0 ? sum + one : sum), 0);
  const ids = order.map(({ node_id }) => node_id);
  return {
    ...{ prompt: metadata.prompt, ids, text },
    marks: marksIn(qParams, ids),
    tokens,
    blocks: isOwn ? Number(logits[0]?.layer) - 1 : top,
    targets: logits.map(({ clerp, node_id }) => ({ token: tokenOf(clerp) ?? node_id })),
    nodes: order.map((node, at) => ({
      ...nodeOf(node, tokens, isOwn, at - (order.length - logits.length)),
      influence: weights[at] === 0 ? (received[at] as number) / (total || 1) : node.token_prob,
    })),
    edges,
  };
}

const isLogit = ({ feature_type }: FileNode) => feature_type === "logit";

/** The token in `Output "token" (p=0.5)`. */
function tokenOf(label: string): string | undefined {
  return /^Output "(.*?)"(?: minus ".*")? \(p=[\d.]+\)$/s.exec(label)?.[1];
}

/** @param target its index among the targets, if it is one */
function nodeOf(node: FileNode, tokens: readonly string[], isOwn: boolean, target: number): DrawnNode {
  const { ctx_idx: position, feature_type: type, clerp, activation, node_id: id } = node;
  const place = { position, value: activation, influence: 0 };
  if (type === "logit") return { ...place, kind: "target", layer: null, index: target };
  if (type === "embedding") return { ...place, kind: "embedding", layer: null, index: null };
  const layer = Number(node.layer);
  const at = `of block ${layer} at ${placeName(tokens, position)}`;
  if (type === "mlp reconstruction error") {
    const index = Number(id.split("_")[1]);
    const own = unexplained.find((kind) => indexOfKind[kind] === index) ?? "rest";
    return { ...place, kind: isOwn ? own : "error", layer, index: null };
  }
  // tapline's own files name neurons, heads and features in labels.
  const [, kind, number, more] =
    (isOwn && /^(neuron|head|feature) (\d{1,9})(?:, (raises .*))?$/s.exec(clerp)) || [];
  if (kind !== undefined) {
    const own = { ...place, kind: kind as "neuron" | "head" | "feature", layer, index: Number(number) };
    return more === undefined ? own : { ...own, label: `${kind} ${number} ${at}, ${more}` };
  }
  // Ids are of the form block_feature_position.
  const feature = Number(id.split("_")[1] ?? node.feature);
  const label = `feature ${feature} ${at}, ${clerp}`;
  return { ...place, kind: "feature", layer, index: feature, ...(clerp !== "" && { label }) };
}

const unexplained = Object.keys(indexOfKind) as (keyof typeof indexOfKind)[];

/**
 * What influence each node receives and each edge carries, from targets with these weights: a node's edges, without signs,
 * are divided by their sum, as in the Lab's pruning.
 */
function flow(name: string, weights: readonly number[], links: readonly Omit<GraphEdge, "influence">[]) {
  const into = weights.map((): number[] => []);
  const waiting = new Uint32Array(weights.length);
  for (const [at, { source, target }] of links.entries()) {
    into[target]?.push(at);
    waiting[source]! += 1;
  }
  const received = Float64Array.from(weights);
  const edges: GraphEdge[] = [];
  const ready = [...weights.keys()].filter((node) => waiting[node] === 0);
  let done = 0;
  for (let node = ready.pop(); node !== undefined; node = ready.pop()) {
    done += 1;
    const own = into[node] as number[];
    const size = own.reduce((sum, at) => sum + Math.abs((links[at] as GraphEdge).value), 0);
    for (const at of own) {
      const link = links[at] as GraphEdge;
      const influence = size === 0 ? 0 : (Math.abs(link.value) / size) * (received[node] as number);
      edges.push({ ...link, influence });
      received[link.source]! += influence;
      waiting[link.source]! -= 1;
      if (waiting[link.source] === 0) ready.push(link.source);
    }
  }
  if (done < weights.length) throw new Error(`${name}: the graph has a cycle.`);
  const total = edges.reduce((sum, { influence }) => sum + influence, 0) || 1;
  return {
    received,
    edges: edges
      .map((edge) => ({ ...edge, influence: edge.influence / total }))
      .sort((a, b) => b.influence - a.influence),
  };
}

/** @throws Error */
function parsed(name: string, text: string) {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw new Error(`${name}: expected JSON.`);
  }
  const { metadata, nodes, links, qParams } = (content ?? {}) as Record<string, unknown>;
  const { prompt_tokens, prompt, scan } = (metadata ?? {}) as Record<string, unknown>;
  const [allNodes, allLinks] = [listOf(nodes), listOf(links)];
  const isGraph =
    Array.isArray(prompt_tokens) &&
    prompt_tokens.every((token) => typeof token === "string") &&
    allNodes?.every((node) => isNode(node, prompt_tokens.length)) === true &&
    allLinks?.every(isLink) === true;
  if (!isGraph) throw new Error(`${name}: expected a graph, with prompt tokens, nodes and links.`);
  return {
    qParams,
    metadata: { prompt_tokens: prompt_tokens as string[], prompt: String(prompt ?? ""), scan },
    nodes: (allNodes as Record<string, unknown>[]).map(
      (node) =>
        ({
          ...node,
          layer: String(node.layer),
          token_prob: numberOf(node.token_prob) ?? 0,
          clerp: typeof node.clerp === "string" ? node.clerp : "",
          feature: numberOf(node.feature),
          activation: numberOf(node.activation),
        }) as FileNode,
    ),
    links: allLinks as unknown as FileLink[],
  };
}

const listOf = (value: unknown) => (Array.isArray(value) ? (value as Record<string, unknown>[]) : undefined);

const numberOf = (value: unknown) => (typeof value === "number" && Number.isFinite(value) ? value : null);

function isNode(node: unknown, tokens: number): boolean {
  const { node_id, layer, ctx_idx, feature_type } = (node ?? {}) as Record<string, unknown>;
  const isLayer = feature_type === "embedding" || /^\d{1,3}$/.test(String(layer));
  const isPlace = Number.isInteger(ctx_idx) && (ctx_idx as number) >= 0 && (ctx_idx as number) < tokens;
  return typeof node_id === "string" && typeof feature_type === "string" && isLayer && isPlace;
}

function isLink(link: unknown): boolean {
  const { source, target, weight } = (link ?? {}) as Record<string, unknown>;
  return typeof source === "string" && typeof target === "string" && numberOf(weight) !== null;
}
