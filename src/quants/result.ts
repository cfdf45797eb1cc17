import type { Measured } from "../findings/uncertainty.js";

/** A model's file: its size, and how its weights are stored. */
export interface QuantsFile {
  /** Distinguishes the forms of one run. */
  name: string;
  /** The file's public name. */
  file: string;
  fingerprint: string;
  /** The name of the file type, such as Q4_K_M; null if unknown. */
  quantization: string | null;
  bytes: number;
  bits_per_weight: number;
  /** The types of its tensors, those with most weights first. */
  types: { type: string; tensors: number; weights: number }[];
  /** The importance matrix a file was made with, as the file records it. */
  imatrix: { file: string; dataset: string } | null;
  /** Bytes of weights, context and buffers with the default context, as llama.cpp lays them out. */
  memory: number;
  /** Tokens per second of a prompt and of generation. */
  speed: { prompt: Measured; generation: Measured };
}

/** Overlap of a form's dictionary features with the reference's. */
export interface Survival {
  dictionary: string;
  sha256: string;
  layer: number;
  /** Features active on at least `least` tokens of the texts in the reference. */
  features: number;
  least: number;
  /** Share of these features that are active in the form on at least half of these tokens. */
  surviving: Measured;
  /** Share of these features that are active on none of these tokens. */
  died: Measured;
  /** Mean share of these tokens on which a feature is also active in the form. */
  recall: Measured;
  /** Mean Pearson correlation of a feature's activations in both models over all tokens, inactive counting as 0. */
  correlation: Measured;
  /** Share of these features with a correlation of at least 0.9. */
  correlated: Measured;
  /** Those that died, with their tokens in the reference, most first. */
  dead: { feature: number; tokens: number }[];
  /** Of the features active in either model, per token, those active in both; null if none is active. */
  jaccard: Measured | null;
  /** Of the form; null if the loss does not depend on the block. */
  loss_recovered: Measured | null;
  /** The same of a second dictionary, such as a random one of the same sparsity. */
  control?: Omit<Survival, "jaccard" | "loss_recovered" | "dead" | "control">;
}

/** One prompt's attribution graph in the reference and in a form. */
export interface CircuitPrompt {
  prompt: string;
  /** The token whose logit both graphs explain: the reference's most probable one. */
  target: string;
  /** Neurons and heads that pruning keeps. */
  nodes: [reference: number, form: number];
  /** Of the nodes in either pruned graph, the share in both; null without nodes. */
  overlap: number | null;
  /** Spearman's correlation of the influences of these nodes, 0 where pruned; null if either graph's do not vary. */
  rank: number | null;
  /** Shares of the influence that start at rounding, and at rounding or at neurons that are not nodes. */
  rounding: [reference: number, form: number];
  error: [reference: number, form: number];
}

/** Attribution graphs of several prompts: means with intervals over prompts. */
export interface Circuits {
  nodes: [reference: number, form: number];
  overlap: Measured | null;
  rank: Measured | null;
  rounding: [reference: Measured, form: Measured];
  error: [reference: Measured, form: Measured];
  prompts: CircuitPrompt[];
}

/** An artefact's separation of labelled texts in the reference and in the form. */
export interface Transfer {
  name: string;
  sha256: string;
  layer: number;
  reference: Measured;
  form: Measured;
  difference: Measured;
}

/** One form compared with the reference. */
export interface QuantsForm extends QuantsFile {
  /** KL(reference || form) per predicted token, in nats. */
  divergence: Measured;
  /** Share of predictions with the same most probable token. */
  agreement: Measured;
  perplexity: Measured;
  /** The form's perplexity divided by the reference's, paired by text. */
  perplexity_ratio: Measured;
  /** By layer, means over tokens: cosine of the block outputs, and |a - b| / |a|. */
  drift: { layer: number; cosine: Measured; relative_difference: Measured }[];
  survival?: Survival;
  probe?: Transfer;
  vector?: Transfer;
  circuits?: Circuits;
}

/** The effects of one model's quantized forms. */
export interface Quants {
  kind: "tapline quants";
  schema_version: 1;
  tapline: string;
  created: number;
  machine: { processor: string; threads: number; backend: string; llama_cpp: string };
  reference: QuantsFile & { architecture: string; perplexity: Measured };
  forms: QuantsForm[];
  /** The reason that this architecture has no attribution graphs, if prompts were given. */
  no_circuits?: string;
  settings: {
    texts: number;
    /** Predicted tokens of the texts. */
    tokens: number;
    texts_sha256: string;
    examples: number;
    /** Prompts of attribution graphs. */
    prompts: number;
    layers: number[];
    seed: number;
    resamples: number;
    rounds: number;
    prompt_tokens: number;
    generated_tokens: number;
  };
  /** Of computation, over all runs that made it. */
  seconds: number;
  sha256: string;
}
