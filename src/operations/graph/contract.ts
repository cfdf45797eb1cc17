import Type, { type Static } from "typebox";
import { InvalidInput } from "../../contracts/invalid-input.js";
import { defaults, limits, topCounts } from "../../contracts/limits.js";
import { optional } from "../../contracts/optional.js";
import { notedResultFields, orNull, requiredInterval } from "../../contracts/result-fields.js";
import {
  type CommonDefaults,
  closed,
  commonOfFeatures,
  type Filled,
  named,
  prompt,
  text,
} from "../../contracts/submission-fields.js";
import type { Contract } from "../contract.js";

export const GraphSubmission = Type.Object(
  {
    operation: Type.Literal("graph"),
    ...commonOfFeatures,
    prompt,
    position: optional.Integer({
      minimum: -limits.token_index,
      maximum: limits.token_index,
      default: defaults.graph_position,
      description:
        "Token index after which the logits are explained; negative indices count from the end, and -1 is the last token. Later tokens " +
        "are not computed.",
    }),
    target_token: Type.Optional(
      text(
        "Text that encodes to exactly one token, without special tokens. Default: the most probable tokens, until they have 0.95 " +
          `of the probability, at most ${limits.graph_targets}.`,
      ),
    ),
    foil_token: Type.Optional(
      text(
        "With `target_token`: a token whose logit is subtracted. Default: the mean of all logits is subtracted.",
      ),
    ),
    transcoders: named(
      "Name of a set of saved transcoders (NAME-0, NAME-1, … of blocks 0, 1, …), or of a single one. The nodes are then their " +
        "features; blocks without a transcoder have error nodes only.",
    ),
    zero_positions: optional.Integer({
      minimum: 0,
      maximum: limits.graph_zero_positions,
      description:
        "With `transcoders`: number of first tokens at which MLP outputs are constants, without features and errors. Default: as " +
        "the set states, otherwise 1 if the prompt starts with a BOS token.",
    }),
    nodes: optional.Integer({
      minimum: limits.graph_nodes_min,
      maximum: limits.graph_nodes,
      default: defaults.graph_nodes,
      description: "The most neurons and attention heads, or features, each at one token, before pruning.",
    }),
    first_token: optional.Boolean({
      default: defaults.graph_first_token,
      description:
        "Also allow nodes at the first token. By default its neurons are summed up as rest: most models use the first token as " +
        "an attention sink, with very large activations that are much the same in every text.",
    }),
    node_threshold: optional.Number({
      minimum: 0,
      maximum: 1,
      default: defaults.graph_node_threshold,
      description: "Pruning keeps the nodes that have this share of the influence on the logits.",
    }),
    edge_threshold: optional.Number({
      minimum: 0,
      maximum: 1,
      default: defaults.graph_edge_threshold,
      description: "Of the edges between them, pruning keeps those that have this share of the influence.",
    }),
    measured: optional.Integer({
      minimum: 0,
      maximum: limits.graph_measured,
      default: defaults.graph_measured,
      description:
        "The number of nodes, the strongest for the first target, that are also removed one at a time in the unfrozen model.",
    }),
  },
  {
    ...closed,
    title: "GraphSubmission",
    description:
      "An attribution graph of neurons and attention heads (RelP), or of transcoder features: what each adds to the next tokens' logits and to each other, with attention weights and norms frozen.",
  },
);

export type GraphConfig = Filled<
  Static<typeof GraphSubmission>,
  | Exclude<CommonDefaults, "layers" | "max_tokens">
  | "position"
  | "nodes"
  | "first_token"
  | "node_threshold"
  | "edge_threshold"
  | "measured"
>;

/** What a value consists of; the parts add up to it. */
const parts = {
  embeddings: Type.Number({
    description: "Directly from token embeddings, through the residual stream and frozen attention.",
  }),
  neurons: Type.Number(),
  heads: Type.Number(),
  features: Type.Number(),
  rest: Type.Number({ description: "From neurons, or active features, that are not nodes." }),
  errors: Type.Number({
    description: "From MLP outputs that no transcoder predicts; 0 without transcoders.",
  }),
  rounding: Type.Number({
    description: "From the rounding of the file's products, which the linear paths lack.",
  }),
  constant: Type.Number({ description: "From biases." }),
};

export const GraphTargetParts = Type.Object(
  {
    token_id: Type.Integer(),
    token: Type.String(),
    probability: Type.Number(),
    foil_token_id: orNull("null: the mean of all logits is subtracted."),
    foil_token: Type.Union([Type.String(), Type.Null()]),
    weight: Type.Number({ description: "Of its influence: its probability, or 1 for a single target." }),
    value: Type.Number({
      description: "The logit minus the foil's or the mean, before a soft cap, from the last block's output.",
    }),
    measured: Type.Number({
      description: "The same from the pass's logits: after a soft cap, and with the rounding of the head.",
    }),
    direct: Type.Object(parts, {
      description: "The parts of the value that come directly from each kind of node.",
    }),
    through: Type.Object(
      {
        embeddings: parts.embeddings,
        rest: parts.rest,
        errors: parts.errors,
        rounding: parts.rounding,
        constant: parts.constant,
      },
      {
        description:
          "The parts of the value through all paths, including neurons or features: only where they start. Without transcoders, " +
          "rest is 0, because paths through other neurons are also followed.",
      },
    ),
  },
  { title: "GraphTargetParts" },
);
export type GraphTargetParts = Static<typeof GraphTargetParts>;

export const graphNodeKinds = [
  "embedding",
  "neuron",
  "head",
  "feature",
  "rest",
  "error",
  "rounding",
  "target",
] as const;

export const GraphNode = Type.Object(
  {
    kind: Type.Enum([...graphNodeKinds], {
      description:
        "neuron: after the gate; head: an attention head's output at the token that reads; feature: of the block's transcoder; " +
        "rest: the neurons or active features of a block at a token that are not nodes; error: what the block's MLP writes at a " +
        "token and its transcoder does not predict; rounding: what the pass computed there and the linear paths do not.",
    }),
    layer: orNull("null for embeddings and targets."),
    position: Type.Integer({ description: "Zero-based token index." }),
    index: orNull("Of the neuron, head, feature (in its dictionary) or target; otherwise null."),
    value: orNull(
      "A neuron's or feature's activation; a head's output in the direction in which it affects the targets; a target's value; otherwise null.",
    ),
    influence: Type.Number({
      description: "Share of the influence on the logits, directly and through other nodes.",
    }),
  },
  { title: "GraphNode" },
);
export type GraphNode = Static<typeof GraphNode>;

export const GraphEdge = Type.Object(
  {
    source: Type.Integer({ description: "Index in `nodes`." }),
    target: Type.Integer({ description: "Index in `nodes`." }),
    value: Type.Number({ description: "What the source adds to the target's value." }),
    influence: Type.Number({ description: "Share of the influence of all edges after pruning." }),
  },
  { title: "GraphEdge" },
);
export type GraphEdge = Static<typeof GraphEdge>;

export const MeasuredNode = Type.Object(
  {
    kind: Type.Enum(["neuron", "head", "feature"]),
    layer: Type.Integer(),
    position: Type.Integer(),
    index: Type.Integer(),
    estimate: Type.Number({ description: "What comes through it with everything frozen." }),
    effect: Type.Number({
      description: "What the first target loses when it is removed and nothing is frozen.",
    }),
    direct: optional.Number({ description: "Of a feature: its edge to the first target." }),
    frozen: optional.Number({
      description:
        "Of a feature: what the first target loses when it is removed with attention, norms and all other MLP outputs frozen, " +
        "computed upwards from the change. Equals `direct`.",
    }),
  },
  { title: "MeasuredNode" },
);
export type MeasuredNode = Static<typeof MeasuredNode>;

/** A block's transcoder in a graph. */
export const GraphTranscoder = Type.Object(
  {
    layer: Type.Integer(),
    dictionary: Type.String({
      description: "Name of the saved dictionary, for `feature` of an intervention.",
    }),
    sha256: Type.String({ description: "Hash of its weights." }),
    point: Type.String({ description: "Point that it reads." }),
    writes: Type.String({ description: "Point at which its features are directions." }),
    writes_blocks: optional.Integer({
      description:
        "For a cross-layer transcoder: number of blocks that its features write into, from this one on. Such features cannot be clamped.",
    }),
    features: Type.Integer(),
    active: Type.Integer({ description: "Active features at all tokens that count." }),
  },
  { title: "GraphTranscoder" },
);
export type GraphTranscoder = Static<typeof GraphTranscoder>;

/** What a feature of a graph stands for, as far as the prompt and the model show it. */
export const GraphFeature = Type.Object(
  {
    layer: Type.Integer(),
    index: Type.Integer(),
    active_tokens: Type.Integer({ description: "Number of the prompt's tokens at which it is active." }),
    strongest: Type.Array(Type.Object({ position: Type.Integer(), activation: Type.Number() }), {
      description: `The tokens at which it is most active, at most ${topCounts.graph_places}.`,
    }),
    raised: Type.Union(
      [
        Type.Array(
          Type.Object({
            token_id: Type.Integer(),
            token: Type.String(),
            effect: Type.Number({ description: "Its logit minus the mean logit." }),
          }),
        ),
        Type.Null(),
      ],
      {
        description:
          `The ${topCounts.graph_raised} tokens that its decoder row alone makes most probable, through the final norm and the output ` +
          "head; a cross-layer feature's rows are summed over blocks. null without a logit lens.",
      },
    ),
  },
  { title: "GraphFeature" },
);
export type GraphFeature = Static<typeof GraphFeature>;

export const GraphResult = Type.Object(
  {
    tokens: Type.Array(Type.String(), { description: "Of the prompt, up to `position`." }),
    token_ids: Type.Array(Type.Integer()),
    position: Type.Integer(),
    blocks: Type.Integer({ description: "Number of the model's blocks." }),
    model_fingerprint: optional.String({
      description: "Fingerprint of the model's file, as in the capabilities of a serving model.",
    }),
    transcoders: optional.Object(
      {
        name: Type.String(),
        zero_positions: Type.Integer({ description: "First tokens without features and errors." }),
        blocks: Type.Array(GraphTranscoder, { description: "The blocks that have a transcoder, upwards." }),
      },
      { description: "Absent without transcoders." },
    ),
    features: optional.Array(GraphFeature, {
      description: `With transcoders: the features in \`nodes\`, the most influential first, at most ${limits.graph_described}.`,
    }),
    targets: Type.Array(GraphTargetParts, { description: "The most probable first." }),
    nodes: Type.Array(GraphNode, { description: "After pruning, upwards; then the targets." }),
    edges: Type.Array(GraphEdge, {
      description: `The most influential edges after pruning, at most ${limits.graph_edges}, strongest first. graph.npz has all.`,
    }),
    size: Type.Object(
      {
        active: optional.Integer({
          description: "With transcoders: active features, of which nodes are chosen.",
        }),
        found: Type.Integer({ description: "Neurons and heads, or features, before pruning." }),
        kept: Type.Integer({ description: "The same after it." }),
        edges: Type.Integer({ description: "Edges after pruning, including those not listed." }),
      },
      { description: "Of the graph." },
    ),
    scores: Type.Object(
      {
        replacement: Type.Number({
          description:
            "Share of the influence that starts at token embeddings; the remainder starts at errors, at neurons or features that are not nodes, or at rounding.",
        }),
        completeness: Type.Number({
          description:
            "Share of the edges of influential nodes, weighted by influence, that do not come from errors, from neurons or features that are not nodes, or from rounding.",
        }),
        errors: optional.Number({
          description: "With transcoders: share of the influence that starts at errors.",
        }),
        rest: optional.Number({
          description: "With transcoders: share of the influence that starts at features that are not nodes.",
        }),
        rounding: Type.Number({ description: "Share of the influence that starts at rounding." }),
      },
      { description: "Of the graph before pruning." },
    ),
    closing: Type.Object(
      {
        worst: Type.Number({
          description:
            "The greatest difference of a node's value from the sum of its edges and its constant, over the L2 norm of these.",
        }),
        bound: Type.Number({ description: "Above this the job fails." }),
        attention: Type.Number({
          description: "The greatest difference of a block's attention from its linear path, relative L2.",
        }),
        mlp: Type.Number({ description: "The same of the MLPs; 0 with transcoders, which replace them." }),
        frozen: optional.Number({
          description:
            "With transcoders: the greatest difference between the edges of a measured feature and what its removal changes in the " +
            "frozen model, over its largest edge.",
        }),
      },
      { description: "How exactly the sums hold." },
    ),
    measured: Type.Union(
      [
        Type.Object({
          nodes: Type.Array(MeasuredNode, { description: "The strongest first." }),
          baseline: Type.Number({ description: "The first target without removals." }),
          correlation: orNull("Pearson's, of estimates and effects; null for fewer than three nodes."),
          interval: Type.Union(
            [requiredInterval("95 % bootstrap interval over these nodes."), Type.Null()],
            {},
          ),
        }),
        Type.Null(),
      ],
      { description: "null if nothing was measured." },
    ),
    memory_bytes: Type.Integer({ description: "Estimate of the memory needed in addition to the model." }),
    ...notedResultFields,
  },
  { title: "GraphResult" },
);
export type GraphResult = Static<typeof GraphResult>;

function checkGraph({
  target_token,
  foil_token,
  transcoders,
  zero_positions,
  first_token,
}: GraphConfig): void {
  if (zero_positions !== undefined && transcoders === undefined) {
    throw new InvalidInput("zero_positions", "requires transcoders.");
  }
  if (first_token && transcoders !== undefined) {
    throw new InvalidInput(
      "first_token",
      "is for graphs without transcoders; set zero_positions to 0 instead.",
    );
  }
  if (foil_token !== undefined && target_token === undefined) {
    throw new InvalidInput("foil_token", "requires target_token.");
  }
  if (foil_token !== undefined && foil_token === target_token) {
    throw new InvalidInput("foil_token", "must differ from target_token.");
  }
}

export default {
  submission: GraphSubmission,
  result: GraphResult,
  forAgents: "(prompt)",
  places: {},
  check: checkGraph,
} satisfies Contract;
