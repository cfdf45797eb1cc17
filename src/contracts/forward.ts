import Type, { type Static } from "typebox";
import { forwardLimits as limits } from "./forward-limits.js";
import { LiveIntervention, LiveVector } from "./live.js";
import { modelPoints } from "./names.js";
import { optional } from "./optional.js";

const strict = { additionalProperties: false } as const;
const Index = Type.Integer({ minimum: -1_000_000, maximum: 1_000_000 });
const Sequence = Type.Integer({ minimum: 0, maximum: limits.sequences - 1 });

/** A vector in the request: numbers, or float32 in base64 (little-endian). */
export const GivenVector = Type.Union([
  Type.Object(
    { values: Type.Array(Type.Number(), { minItems: 1, maxItems: limits.vector_values }) },
    { ...strict, title: "VectorOfValues" },
  ),
  Type.Object(
    { base64: Type.String({ minLength: 4, maxLength: 8 * limits.vector_values }) },
    { ...strict, title: "VectorInBase64" },
  ),
]);
export type GivenVector = Static<typeof GivenVector>;

const { when, vector, positions, ...shared } = LiveIntervention.properties;

/** An edit of some sequences. */
export const ForwardEdit = Type.Object(
  {
    ...shared,
    at: optional.String({
      minLength: 1,
      maxLength: 80,
      description:
        "A point with its block, instead of layer and point, such as block_out.5 or blocks.5.hook_out; * stands for all blocks.",
    }),
    point: optional(Type.Enum([...modelPoints], { description: "Default block_out." })),
    heads: optional.Array(Type.Integer({ minimum: 0, maximum: 65_535 }), {
      minItems: 1,
      uniqueItems: true,
      description: "For head_out, the heads to change as one vector. Default: the whole row.",
    }),
    vector: optional(Type.Union([LiveVector, GivenVector])),
    positions: optional(
      Type.Union([
        Type.Enum(["last", "all"]),
        Type.Array(Type.Tuple([Index, Index]), { minItems: 1, maxItems: limits.ranges }),
      ]),
    ),
    sequences: optional.Array(Sequence, {
      minItems: 1,
      uniqueItems: true,
      description: "The sequences that it changes. Default: all.",
    }),
  },
  { ...strict, title: "ForwardEdit" },
);
export type ForwardEdit = Static<typeof ForwardEdit>;

/** The body of `POST /lab/forward` on the inference server. */
export const ForwardRequest = Type.Object(
  {
    model: optional.String({ minLength: 1, description: "The served model's id or an alias." }),
    sequences: Type.Array(
      Type.Union([
        Type.String({ maxLength: limits.text_characters }),
        Type.Array(Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 }), {
          minItems: 1,
          maxItems: limits.sequence_tokens,
        }),
      ]),
      { minItems: 1, maxItems: limits.sequences, description: "Raw texts, or token ids." },
    ),
    add_special_tokens: optional.Boolean({
      default: true,
      description: "Whether texts get the model's special tokens, such as BOS.",
    }),
    capture: optional.Array(Type.String({ minLength: 1, maxLength: 80 }), {
      maxItems: limits.captures,
      uniqueItems: true,
      description:
        "Points with their block, such as block_out.5 or TransformerLens's blocks.5.hook_out; * stands for all blocks.",
    }),
    positions: optional.Array(Index, {
      minItems: 1,
      maxItems: limits.positions,
      uniqueItems: true,
      description:
        "The captured tokens of each sequence; negative ones count from its end. Default: all. Attention always has all.",
    }),
    edits: optional.Array(ForwardEdit, { maxItems: limits.edits }),
    logits: optional(
      Type.Union([
        Type.Enum(["none", "last", "all"]),
        Type.Array(Index, { minItems: 1, maxItems: limits.positions, uniqueItems: true }),
      ]),
    ),
    stop_at_layer: optional.Integer({
      minimum: 1,
      maximum: 256,
      description: "Computes only the blocks before this one; without logits.",
    }),
    precision: optional(Type.Enum(["f32", "f16"], { description: "Of captures and logits. Default f32." })),
    transfer: optional(
      Type.Enum(["stream", "file"], {
        description:
          "stream (default): the answer is the safetensors file. file: the answer names a file in shared memory, which the client opens and deletes; the server deletes it after 30 s.",
      }),
    ),
  },
  { ...strict, title: "ForwardRequest" },
);
export type ForwardRequest = Static<typeof ForwardRequest>;

/** The answer with `transfer: file`. */
export const ForwardFile = Type.Object(
  {
    path: Type.String({ description: "A safetensors file on this machine, readable by this user only." }),
    bytes: Type.Integer(),
  },
  { title: "ForwardFile" },
);
export type ForwardFile = Static<typeof ForwardFile>;
