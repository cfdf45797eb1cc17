/** The form of an attribution graph, and its request. */
import { defaults } from "../../contracts/limits.js";
import type { GraphConfig } from "../../operations/graph/contract.js";

export interface GraphForm {
  prompt: string;
  /** The logits after this token are explained. */
  position: number;
  /** Empty for the most probable tokens. */
  target: string;
  /** Empty for the mean of all logits. */
  foil: string;
  /** A set of saved transcoders; empty for neurons and heads. */
  transcoders: string;
  nodes: number;
  nodeThreshold: number;
  edgeThreshold: number;
  measured: number;
  firstToken: boolean;
}

export const graphForm: GraphForm = {
  prompt: "The capital of France is",
  position: defaults.graph_position,
  ...{ target: "", foil: "", transcoders: "" },
  nodes: defaults.graph_nodes,
  nodeThreshold: defaults.graph_node_threshold,
  edgeThreshold: defaults.graph_edge_threshold,
  measured: defaults.graph_measured,
  firstToken: defaults.graph_first_token,
};

/** The fields of a submission, without the model. @throws Error for an invalid form */
export function graphRequest(form: GraphForm): Record<string, unknown> {
  const { prompt, position, target, foil, nodes, nodeThreshold, edgeThreshold, measured, firstToken } = form;
  const { transcoders } = form;
  if (foil !== "" && target === "") throw new Error("Foil token: enter a target token too.");
  return {
    operation: "graph",
    prompt,
    ...(position !== defaults.graph_position && { position }),
    ...(target !== "" && { target_token: target }),
    ...(foil !== "" && { foil_token: foil }),
    ...(transcoders !== "" && { transcoders }),
    nodes,
    ...(nodeThreshold !== defaults.graph_node_threshold && { node_threshold: nodeThreshold }),
    ...(edgeThreshold !== defaults.graph_edge_threshold && { edge_threshold: edgeThreshold }),
    measured,
    ...(firstToken !== defaults.graph_first_token && { first_token: firstToken }),
  };
}

/** The form for the configuration of a job. */
export function graphFormOf(config: GraphConfig): GraphForm {
  const { prompt, position, target_token: target = "", foil_token: foil = "", nodes, measured } = config;
  return {
    ...{ prompt, position, target, foil, nodes, measured, transcoders: config.transcoders ?? "" },
    nodeThreshold: config.node_threshold,
    edgeThreshold: config.edge_threshold,
    firstToken: config.first_token,
  };
}
