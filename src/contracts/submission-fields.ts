import Type from "typebox";
import { defaults, limits } from "./limits.js";
import { Name } from "./live.js";
import { blockPoints } from "./names.js";
import { optional } from "./optional.js";

export const text = (description: string) => Type.String({ minLength: 1, description });

export const prompt = text("Raw text; no chat template is applied.");

/** Fields that every submission accepts. */
export const common = {
  model: Type.String({
    minLength: 1,
    maxLength: limits.model_characters,
    description: "A .gguf file, a directory that holds one model, a hub id, or `demo`, the embedded model.",
  }),
  revision: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: "Pins a hub revision." })),
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
    description: "Input token limit of each text. A longer text fails the job; nothing is truncated.",
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

/** What of a block's rows is read. */
export const readPoint = (more = "") =>
  optional.Enum([...blockPoints], {
    description:
      "What of each block is read: its output (block_out, the default), what its attention or its MLP adds (attn_out, " +
      `ffn_out), or the stream before them (block_in, mid). A model that has it not is refused.${more}`,
  });

export const split = Type.Enum(["train", "test"], { description: "Which side of the held-out split." });

export const promptOfExample = Type.Optional(
  text(
    "For rows `response`: raw text that `text` follows as it stands; the row is of what `text` adds to it.",
  ),
);

/** Rows that are one a text. */
const rowsOfText = {
  last: "the last token's row",
  mean: "the mean of its tokens' rows, which leaves a BOS token out",
  response: "the mean over the tokens of its text behind its prompt",
} as const;

export const rowsText = `Of each example ${rowsOfText.last} (last, the default), ${rowsOfText.mean} (mean), or ${rowsOfText.response} (response)`;

export const manyExamples = { minItems: limits.examples_min, maxItems: limits.examples };

export const path = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: limits.path_characters, description }));

export const share = (description: string) =>
  Type.Optional(Type.Number({ minimum: 0, maximum: 1, description }));

/** Of operations that generate nothing. */
export const { max_tokens: _maxTokens, ...commonOfExtract } = common;

/** Of those that choose their layers otherwise, too. */
export const { layers: _layers, ...commonOfFeatures } = commonOfExtract;

/** A validated submission, its defaults filled in. */
export type Filled<T, Fields extends PropertyKey> = T & {
  [F in Fields & keyof T]-?: Exclude<T[F], undefined>;
};

export type CommonDefaults = "layers" | "max_input_tokens" | "max_tokens" | "seed";
