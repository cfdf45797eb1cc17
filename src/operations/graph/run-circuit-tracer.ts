import type { GraphConfig, GraphEdge, GraphNode, GraphResult } from "../../contracts/index.js";
import { raisedText } from "../../findings/graph.js";
import { fileIndex, nodeId, ownScan } from "../../findings/graph-ids.js";
import type { Artifacts } from "../../lab/artifacts.js";

/** A graph in the JSON of circuit-tracer 0.5, which its own page and Neuronpedia read. */
export interface CircuitTracerGraph {
  metadata: {
    slug: string;
    scan: string;
    transcoder_list: string[];
    prompt_tokens: string[];
    prompt: string;
    node_threshold: number;
    schema_version: 1;
  };
  qParams: {
    pinnedIds: string[];
    supernodes: string[][];
    linkType: "both";
    clickedId: string;
    sg_pos: string;
  };
  nodes: CircuitTracerNode[];
  links: { source: string; target: string; weight: number }[];
}

export interface CircuitTracerNode {
  node_id: string;
  feature: number;
  layer: string;
  ctx_idx: number;
  feature_type: "cross layer transcoder" | "mlp reconstruction error" | "embedding" | "logit";
  token_prob: number;
  is_target_logit: boolean;
  run_idx: number;
  reverse_ctx_idx: number;
  jsNodeId: string;
  clerp: string;
  influence: number | null;
  activation: number | null;
}

type Drawn = Pick<
  GraphResult,
  "tokens" | "token_ids" | "blocks" | "targets" | "nodes" | "transcoders" | "features"
>;

const slug = "graph";

/**
 * @param edges the strongest first
 * @param cumulative of each node, the share of the influence that it and all stronger ones have
 */
export function circuitTracerGraph(
  result: Drawn,
  edges: readonly GraphEdge[],
  cumulative: readonly (number | null)[],
  { prompt, node_threshold }: Pick<GraphConfig, "prompt" | "node_threshold">,
): CircuitTracerGraph {
  const nodes = result.nodes.map((node, at) => nodeOf(result, node, cumulative[at] ?? null));
  const links = edges.map(({ source, target, value }) => ({
    source: (nodes[source] as CircuitTracerNode).node_id,
    target: (nodes[target] as CircuitTracerNode).node_id,
    weight: value,
  }));
  const linked = new Set(links.flatMap(({ source, target }) => [source, target]));
  return {
    metadata: {
      ...{ slug, scan: ownScan, transcoder_list: [] },
      prompt_tokens: result.tokens.map(inOneLine),
      ...{ prompt, node_threshold, schema_version: 1 },
    },
    qParams: { pinnedIds: [], supernodes: [], linkType: "both", clickedId: "", sg_pos: "" },
    nodes: nodes.filter(
      ({ node_id, feature_type }) =>
        linked.has(node_id) || feature_type === "embedding" || feature_type === "logit",
    ),
    links,
  };
}

/** Writes the graph, and the list of graphs that circuit-tracer's server reads. */
export async function writeCircuitTracer(artifacts: Artifacts, graph: CircuitTracerGraph): Promise<void> {
  const files = [
    [`${slug}.json`, graph],
    ["graph-metadata.json", { graphs: [graph.metadata] }],
  ] as const;
  for (const [name, content] of files) {
    await artifacts.create(name, (file) => file.write(Buffer.from(`${JSON.stringify(content)}\n`), 0));
  }
}

function nodeOf(result: Drawn, node: GraphNode, influence: number | null): CircuitTracerNode {
  const { kind, layer, position, index } = node;
  const usual = {
    ctx_idx: position,
    ...{ token_prob: 0, is_target_logit: false, run_idx: 0, reverse_ctx_idx: 0 },
    ...{ clerp: "", influence, activation: null },
  };
  const block = layer ?? 0;
  const id = { node_id: nodeId(result, node) };
  switch (kind) {
    case "embedding": {
      const token = result.token_ids[position] as number;
      const js = { jsNodeId: `E_${token}-${position}` };
      return { ...usual, ...id, ...js, feature: position, layer: "E", feature_type: "embedding" };
    }
    case "target": {
      const target = result.targets[index ?? 0] as GraphResult["targets"][number];
      return {
        ...{ ...usual, ...id, jsNodeId: `L_${target.token_id}-${position}` },
        ...{ feature: target.token_id, layer: String(result.blocks + 1), feature_type: "logit" },
        ...{ token_prob: target.probability, is_target_logit: index === 0 },
        ...{ clerp: targetLabel(target), influence: null },
      };
    }
    case "rest":
    case "error":
    case "rounding": {
      const feature = fileIndex(node);
      return {
        ...{ ...usual, ...id, jsNodeId: `${block}_${feature}-${position}` },
        ...{ feature, layer: String(block), feature_type: "mlp reconstruction error" },
        clerp: `${unexplained(result)[kind]}: ${quoted(result.tokens[position] as string)}`,
      };
    }
    default: {
      const number = fileIndex(node);
      const raised = raisedText(result.features, node);
      return {
        ...{ ...usual, ...id, jsNodeId: `${block}_${number}-0` },
        ...{ feature: paired(block, number), layer: String(block), feature_type: "cross layer transcoder" },
        clerp: raised === undefined ? `${kind} ${index}` : `${kind} ${index}, ${raised}`,
        activation: node.value,
      };
    }
  }
}

const unexplained = ({ transcoders }: Pick<Drawn, "transcoders">) => ({
  rest: transcoders === undefined ? "Other neurons" : "Other features",
  error: "Error",
  rounding: "Rounding",
});

function targetLabel({ token, foil_token, probability }: GraphResult["targets"][number]): string {
  const minus = foil_token === null ? "" : ` minus ${quoted(foil_token)}`;
  return `Output ${quoted(token)}${minus} (p=${probability.toFixed(3)})`;
}

function quoted(token: string): string {
  return `"${inOneLine(token)}"`;
}

function inOneLine(token: string): string {
  return token.replaceAll("\n", "⏎").replaceAll("\t", "→").replaceAll("\r", "↵");
}

/** Cantor's pairing function: one number for a block and an index. */
function paired(block: number, index: number): number {
  const sum = block + index;
  return (sum * (sum + 1)) / 2 + index;
}
