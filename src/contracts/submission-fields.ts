import Type from "typebox";
import { defaults, limits } from "./limits.js";
import { Name } from "./live.js";
import { blockPoints, targetPoints } from "./names.js";
import { optional } from "./optional.js";

export const text = (description: string) => Type.String({ minLength: 1, description });

export const prompt = text("Raw text; no chat template is applied.");

/** Fields that every submission accepts. */
export const common = {
  model: Type.String({
    minLength: 1,
    maxLength: limits.model_characters,
    description: "A .gguf file, a directory with one model, a hub id, or `demo`, the embedded model.",
  }),
  revision: optional.String({ minLength: 1, maxLength: 255, description: "Pins a hub revision." }),
  layers: optional.Array(Type.Integer({ minimum: 0, maximum: limits.layer_index }), {
    minItems: 1,
    maxItems: limits.layers,
    uniqueItems: true,
    default: [...defaults.layers],
    description: "Zero-based block indices; each must exist in the model.",
  }),
  max_input_tokens: optional.Integer({
    minimum: 1,
    maximum: limits.max_input_tokens,
    default: defaults.max_input_tokens,
    description: "Maximum input tokens per text. A longer text fails the job; nothing is truncated.",
  }),
  max_tokens: optional.Integer({
    minimum: 1,
    maximum: limits.max_tokens,
    default: defaults.max_tokens,
    description: "Greedy continuation budget of comparisons; the other operations generate nothing.",
  }),
  seed: optional.Integer({
    minimum: 0,
    maximum: limits.seed,
    default: defaults.seed,
    description: "Experiment seed.",
  }),
};

/** Some heads of a block. */
export const headList = (description: string) =>
  optional.Array(Type.Integer({ minimum: 0, maximum: limits.attention_heads - 1 }), {
    minItems: 1,
    maxItems: limits.attention_heads,
    uniqueItems: true,
    description,
  });

export const named = (description: string) => Type.Optional({ ...Name, description });

export const closed = { additionalProperties: false };

/** The point of each block that is read. */
export const readPoint = (more = "") =>
  optional.Enum([...blockPoints], {
    description:
      "Point of each block to read: its output (block_out, default), its attention or MLP output (attn_out, " +
      `ffn_out), the stream before these (block_in, mid), or the MLP's input (ffn_in). Models without this point are refused.${more}`,
  });

/** A second point, which a transcoder predicts from the first. */
export const targetPoint = (what: string) =>
  optional.Enum([...targetPoints], { description: `${what} Requires point ffn_in.` });

export const split = Type.Enum(["train", "test"], {
  description: "Whether the example is for training or held out.",
});

export const promptOfExample = Type.Optional(
  text(
    "For rows `response`: raw text that `text` directly follows; activations are read over the tokens that `text` adds.",
  ),
);

/** Rows settings with one activation per text. */
const rowsOfText = {
  last: "the last token's activation",
  mean: "the mean over its tokens, without a BOS token",
  response: "the mean over the tokens of its text after its prompt",
} as const;

export const rowsText = `Of each example ${rowsOfText.last} (last, the default), ${rowsOfText.mean} (mean), or ${rowsOfText.response} (response)`;

export const manyExamples = { minItems: limits.examples_min, maxItems: limits.examples };

export const path = (description: string) =>
  optional.String({ minLength: 1, maxLength: limits.path_characters, description });

export const share = (description: string) => optional.Number({ minimum: 0, maximum: 1, description });

/** For operations that generate nothing. */
export const { max_tokens: _maxTokens, ...commonOfExtract } = common;

/** For those that also choose their layers differently. */
export const { layers: _layers, ...commonOfFeatures } = commonOfExtract;

/** A validated submission with its defaults filled in. */
export type Filled<T, Fields extends PropertyKey> = T & {
  [F in Fields & keyof T]-?: Exclude<T[F], undefined>;
};

export type CommonDefaults = "layers" | "max_input_tokens" | "max_tokens" | "seed";
