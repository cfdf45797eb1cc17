import type { GraphConfig, GraphResult } from "../../contracts/index.js";
import { limits } from "../../contracts/limits.js";
import { UserError } from "../../contracts/user-error.js";
import { writeNpz } from "../../lab/npz.js";
import { inContext } from "../../lab/rows/open-context.js";
import { pieceLookup, spaceNote, targetToken, tokenIndex, tokenizeInput } from "../../lab/rows/tokens.js";
import { modelFingerprint } from "../../library/index.js";
import { hostMemory } from "../../models/memory.js";
import type { Context, GraphTarget } from "../../native/index.js";
import { bytesText, listed } from "../../text/words.js";
import type { Findings, OperationInput, Run } from "../run.js";
import { circuitTracerGraph, writeCircuitTracer } from "./run-circuit-tracer.js";
import { describeFeatures } from "./run-described.js";
import {
  type FoundGraph,
  foundFeatures,
  foundNeurons,
  type Group,
  kindOf,
  worstRemoval,
} from "./run-found.js";
import { type Listing, listGraph } from "./run-listing.js";
import { measureNodes, readTarget } from "./run-measured.js";
import { groupsOf, type Layout, type PrunedGraph, pruneGraph } from "./run-pruning.js";
import { encodeText } from "./run-transcoders.js";

/** Share of the probability that the default targets have together. */
const targetMass = 0.95;
const stages = ["finding nodes", "reading nodes", "computing edges"] as const;

interface Target extends GraphTarget {
  weight: number;
  probability: number;
  measured: number;
}

interface Computed {
  tokens: Int32Array;
  targets: readonly Target[];
  /** The most probable token. */
  answer: number;
  found: FoundGraph;
  layout: Layout;
  pruned: PrunedGraph;
  listing: Listing;
}

/**
 * An attribution graph: with attention weights, norms and gates fixed at one pass (RelP: Jafari et al. 2025), every logit,
 * neuron and head is a linear function of what earlier ones wrote. With transcoders, MLPs are replaced by their features
 * (Ameisen et al. 2025), and what these do not predict is an error.
 */
export async function graph(input: OperationInput<GraphConfig>): Promise<Findings<GraphResult>> {
  const { config, model, clock } = input;
  const all = await tokenizeInput(model, config.prompt, config.max_input_tokens, "prompt");
  const position = tokenIndex("position", config.position, all.length);
  // Later tokens affect nothing.
  const tokens = all.slice(0, position + 1);
  const size = { nCtx: tokens.length, nBatch: tokens.length, keepAttention: true };
  const { found, targets, answer } = await inContext(input, size, async (context) => {
    const { targets, answer } = await clock.measure("compute", () =>
      targetsOf(input, context, tokens, position),
    );
    const of = config.transcoders === undefined ? neuronGraph : featureGraph;
    const found = await clock.measure("compute", () => of(input, context, tokens, targets));
    return { found, targets, answer };
  });
  const [first] = targets as [Target];
  const measured = await clock.measure("measure", () =>
    measureNodes(input, tokens, first, found, targets.length),
  );
  const layout = {
    targets: targets.length,
    tokens: tokens.length,
    nodes: found.nodes.layers.length,
    layers: model.info.nLayer,
    groups: found.groups,
  };
  const pruned = await pruneGraph(
    found,
    layout,
    targets.map(({ weight }) => weight),
    {
      nodeThreshold: config.node_threshold,
      edgeThreshold: config.edge_threshold,
      most: limits.graph_links,
      signal: input.signal,
    },
  );
  const listing = listGraph(targets, found, layout, pruned);
  const { activations } = found;
  const features =
    activations === undefined
      ? undefined
      : await clock.measure("features", () => describeFeatures(input, listing.nodes, activations));
  const described = {
    ...(await describe(input, { tokens, targets, answer, found, layout, pruned, listing })),
    ...(features && { features }),
  };
  await clock.measure("artifact", async () => {
    await writeGraph(input, tokens, targets, found);
    const { edges, cumulative } = listing;
    await writeCircuitTracer(input.artifacts, circuitTracerGraph(described, edges, cumulative, config));
  });
  return { ...described, measured };
}

async function targetsOf(
  { config, model, signal }: OperationInput<GraphConfig>,
  context: Context,
  tokens: Int32Array,
  position: number,
): Promise<{ targets: Target[]; answer: number }> {
  const { logits } = await context.forward({
    sequences: [{ tokens }],
    logits: Int32Array.of(position),
    ...(signal && { signal }),
  });
  const values = logits!.data as Float32Array;
  const most = values.reduce((greatest, logit) => Math.max(greatest, logit), Number.NEGATIVE_INFINITY);
  const exponentials = Float64Array.from(values, (logit) => Math.exp(logit - most));
  const total = exponentials.reduce((sum, one) => sum + one, 0);
  const answer = values.indexOf(most);
  const target = (token: number, weight?: number, minus?: number): Target => {
    const probability = exponentials[token]! / total;
    const one = { position, token, ...(minus !== undefined && { minus }) };
    return { ...one, weight: weight ?? probability, probability, measured: readTarget(values, one) };
  };
  if (config.target_token !== undefined) {
    const token = await targetToken(model, config.target_token);
    const { foil_token: foil } = config;
    const minus = foil === undefined ? undefined : await targetToken(model, foil, "foil_token");
    return { targets: [target(token, 1, minus)], answer };
  }
  const order = Int32Array.from(values.keys()).sort((a, b) => values[b]! - values[a]! || a - b);
  const chosen: Target[] = [];
  let mass = 0;
  for (const token of order) {
    if (mass >= targetMass || chosen.length === limits.graph_targets) break;
    chosen.push(target(token));
    mass += exponentials[token]! / total;
  }
  return { targets: chosen, answer };
}

/** Says in a stage's name what is needed. @throws UserError if the machine does not have it */
function memoryText(bytes: number): string {
  const { free } = hostMemory();
  const text = bytesText(bytes);
  if (bytes <= free) return text;
  throw new UserError(
    `The graph needs about ${text} in addition to the model; ${bytesText(free)} are free. Choose fewer nodes or a shorter prompt.`,
  );
}

async function neuronGraph(
  { config, progress, signal }: OperationInput<GraphConfig>,
  context: Context,
  tokens: Int32Array,
  targets: readonly Target[],
): Promise<FoundGraph> {
  const first = config.first_token ? 0 : Math.min(1, tokens.length - 1);
  const request = { tokens, targets, nodes: config.nodes, tried: config.measured, first };
  const memory = memoryText(await context.attributionGraphBytes(request));
  progress({ stage: `${stages[0]} (needs ${memory})`, done: 0, total: 1 });
  const found = await context.attributionGraph({
    ...request,
    onProgress: (done, total) => {
      const each = total / stages.length;
      const at = Math.min(stages.length - 1, Math.floor((done - 1) / each));
      const stage = at === 0 ? `${stages[0]} (needs ${memory})` : stages[at]!;
      progress({ stage, done: done - at * each, total: each });
    },
    ...(signal && { signal }),
  });
  return foundNeurons(found);
}

async function featureGraph(
  input: OperationInput<GraphConfig>,
  context: Context,
  tokens: Int32Array,
  targets: readonly Target[],
): Promise<FoundGraph> {
  const { model, progress, signal } = input;
  const { request, used, active, activations } = await encodeText(input, context, tokens, targets);
  const stage = `${stages[2]} (needs ${memoryText(await context.transcoderGraphBytes(request))})`;
  progress({ stage, done: 0, total: 1 });
  const found = await context.transcoderGraph({
    ...request,
    onProgress: (done, total) => progress({ stage, done, total }),
    ...(signal && { signal }),
  });
  const counts = { tokens: tokens.length, layers: model.info.nLayer, targets: targets.length };
  return { ...foundFeatures(found, counts), frozen: found.frozen, transcoders: used, active, activations };
}

async function writeGraph(
  { artifacts }: OperationInput<GraphConfig>,
  tokens: Int32Array,
  targets: readonly Target[],
  { nodes, edges }: FoundGraph,
): Promise<void> {
  const vector = (data: Int32Array | Float64Array) => ({ data, shape: [data.length] });
  const count = nodes.layers.length;
  await writeNpz(artifacts, "graph.npz", {
    token_ids: vector(tokens),
    target_token_ids: vector(Int32Array.from(targets, ({ token }) => token)),
    ...(nodes.heads && { node_is_head: vector(nodes.heads) }),
    node_layer: vector(nodes.layers),
    node_position: vector(nodes.tokens),
    node_index: vector(nodes.indices),
    node_value: vector(nodes.values),
    node_relevance: { data: nodes.relevances, shape: [count, targets.length] },
    edges: { data: edges.parts, shape: [targets.length + count, edges.columns] },
    values: vector(edges.values),
    constants: vector(edges.constants),
    residuals: vector(edges.residuals),
  });
}

async function describe(
  { model }: OperationInput<GraphConfig>,
  { tokens, targets, answer, found, layout, pruned, listing }: Computed,
): Promise<Omit<Findings<GraphResult>, "measured">> {
  const ids = targets.flatMap(({ token, minus }) => (minus === undefined ? [token] : [token, minus]));
  const piece = await pieceLookup(model, [...tokens, ...ids, answer]);
  const { edges } = found;
  const [first] = targets as [Target];
  const notes = [
    spaceNote(piece(first.token), piece(answer)),
    `Nodes of the kinds ${listed([...groupsOf(layout)])} have no edges into them: the graph does not explain them.`,
  ];
  return {
    tokens: [...tokens].map(piece),
    token_ids: [...tokens],
    position: first.position,
    blocks: layout.layers,
    model_fingerprint: await modelFingerprint(model.info.path),
    ...(found.transcoders && { transcoders: found.transcoders }),
    targets: targets.map((target, i) => ({
      token_id: target.token,
      token: piece(target.token),
      probability: target.probability,
      foil_token_id: target.minus ?? null,
      foil_token: target.minus === undefined ? null : piece(target.minus),
      weight: target.weight,
      value: edges.values[i]!,
      measured: target.measured,
      direct: directOf(found, layout, i),
      through: throughOf(found, i),
    })),
    nodes: listing.nodes,
    edges: listing.edges.slice(0, limits.graph_edges),
    size: {
      ...(found.active !== undefined && { active: found.active }),
      found: layout.nodes,
      kept: pruned.kept
        .subarray(layout.tokens, layout.tokens + layout.nodes)
        .reduce((sum, one) => sum + one, 0),
      edges: pruned.all.count,
    },
    scores: pruned.scores,
    closing: {
      worst: Math.max(...edges.residuals),
      bound: found.residualBound,
      attention: Math.max(...found.apart),
      mlp: Math.max(...found.ffnApart),
      ...frozenOf(worstRemoval(found, layout)),
    },
    memory_bytes: found.bytes,
    note: notes.filter((note) => note !== "").join(" "),
  };
}

/** The parts of a target by the kind of node that they come from. */
function directOf(
  { edges: { parts, columns, constants }, nodes }: FoundGraph,
  layout: Layout,
  row: number,
): GraphResult["targets"][number]["direct"] {
  const values = parts.subarray(row * columns, (row + 1) * columns);
  const sum = (from: number, to: number, of: (node: number) => boolean = () => true) =>
    values.subarray(from, to).reduce((all, value, i) => (of(i) ? all + value : all), 0);
  const { tokens, layers } = layout;
  const left = tokens + layout.nodes;
  const nodesOf = (kind: ReturnType<typeof kindOf>) =>
    sum(tokens, left, (node) => kindOf(nodes, node) === kind);
  const group = (name: Group) => {
    const at = groupsOf(layout).indexOf(name);
    return at < 0 ? 0 : sum(left + at * layers * tokens, left + (at + 1) * layers * tokens);
  };
  return {
    embeddings: sum(0, tokens),
    neurons: nodesOf("neuron"),
    heads: nodesOf("head"),
    features: nodesOf("feature"),
    rest: group("rest"),
    errors: group("error"),
    rounding: group("rounding"),
    constant: constants[row]!,
  };
}

function throughOf({ edges, through }: FoundGraph, row: number): GraphResult["targets"][number]["through"] {
  const parts = through[row]!;
  const started = parts.embeddings + parts.rest + parts.errors + parts.rounding;
  return { ...parts, constant: edges.values[row]! - started };
}

const frozenOf = (frozen: number | undefined) => (frozen === undefined ? {} : { frozen });

export default {
  run: graph,
  layers: ({ blocks }) => Array.from({ length: blocks }, (_, layer) => layer),
} satisfies Run<"graph">;
