import Type, { type Static, type TSchema } from "typebox";
import { Excluded } from "./excluded.js";
import { limits } from "./limits.js";
import { Name } from "./live.js";
import { liveLimits } from "./live-limits.js";
import { blockPoints } from "./names.js";
import { optional } from "./optional.js";

const Texts = Type.Array(Type.String({ pattern: "\\S", maxLength: liveLimits.text_characters }), {
  minItems: 1,
  maxItems: liveLimits.texts,
});

const ProbeTexts = Type.Array(Type.String({ pattern: "\\S", maxLength: liveLimits.text_characters }), {
  minItems: liveLimits.probe_texts,
  maxItems: liveLimits.texts,
});

/** The body of `POST /lab/vectors`: a direction from two lists of texts, on the resident model. */
export const VectorRequest = Type.Object(
  {
    name: Name,
    positive: Texts,
    negative: Texts,
    layers: Type.Array(Type.Integer({ minimum: 0, maximum: limits.layer_index }), {
      minItems: 1,
      maxItems: liveLimits.layers,
      uniqueItems: true,
    }),
    position: optional(Type.Union([Type.Literal("last"), Type.Literal("mean")])),
    method: optional(Type.Union([Type.Literal("difference"), Type.Literal("pca")])),
    seed: optional(Type.Integer({ minimum: 0, maximum: 2_147_483_647 })),
  },
  { additionalProperties: false, title: "VectorRequest" },
);
export type VectorRequest = Static<typeof VectorRequest>;

/** The body of `POST /lab/probes`: a linear probe from two lists of texts, on the resident model. */
export const ProbeRequest = Type.Object(
  {
    name: Name,
    positive: ProbeTexts,
    negative: ProbeTexts,
    layer: Type.Integer({ minimum: 0, maximum: limits.layer_index }),
    position: optional(Type.Union([Type.Literal("last"), Type.Literal("mean")])),
    seed: optional(Type.Integer({ minimum: 0, maximum: 2_147_483_647 })),
  },
  { additionalProperties: false, title: "ProbeRequest" },
);
export type ProbeRequest = Static<typeof ProbeRequest>;

/** One layer of a stored vector. */
export const VectorLayer = Type.Object({
  layer: Type.Integer(),
  length: Type.Number({ description: "L2 norm." }),
  typical_row: optional.Number({ description: "Mean L2 norm of the rows that the vector was made from." }),
  separation: optional.Union([Type.Number(), Type.Null()], {
    description: "AUROC of the projections of texts held out of the direction (cross-fitted); null: too few.",
  }),
  shuffled_separation: optional.Union([Type.Number(), Type.Null()], {
    description: "The same, mean over shuffled labels.",
  }),
  projections: optional.Object(
    { positive: Type.Array(Type.Number()), negative: Type.Array(Type.Number()) },
    {
      description:
        "What `separation` is of, text by text in their order: how far its state goes along a direction made without " +
        "the text, in units of the direction's length. Told of a single vector, not in lists.",
    },
  ),
  excluded: optional(Excluded),
});
export type VectorLayer = Static<typeof VectorLayer>;

const stored = {
  name: Name,
  sha256: Type.String(),
  model: Type.Union([Type.Object({ id: Type.String(), fingerprint: Type.String() }), Type.Null()]),
  n_embd: Type.Integer(),
  created: Type.Number(),
};

/** Of a block; a probe of what is not its output is refused where block outputs are read. */
const readPoint = Type.Enum([...blockPoints], {
  description: "What of the block it reads: block_out is its output.",
});

export const StoredVector = Type.Object(
  {
    ...stored,
    point: Type.Literal("block_out"),
    operation: Type.Literal("add"),
    layers: Type.Array(VectorLayer),
    note: Type.String(),
  },
  { title: "StoredVector" },
);
export type StoredVector = Static<typeof StoredVector>;

export const StoredProbe = Type.Object(
  {
    ...stored,
    point: readPoint,
    operation: Type.Literal("probe"),
    layer: Type.Integer(),
    note: Type.String(),
    separation: optional.Number({
      description: "AUROC of its scores of the texts that it was not trained on.",
    }),
    shuffled_separation: optional.Number({
      description: "The same of probes trained on shuffled labels, mean.",
    }),
    excluded: optional(Excluded),
  },
  { title: "StoredProbe" },
);
export type StoredProbe = Static<typeof StoredProbe>;

/** The body of `PUT /lab/dictionaries/{name}`: where a published dictionary is. */
export const DictionaryRequest = Type.Object(
  {
    from: Type.String({
      minLength: 1,
      maxLength: limits.model_characters,
      description:
        "Its folder or its file of weights: a path on this machine, or owner/name/path of the hub.",
    }),
    layer: optional.Integer({
      minimum: 0,
      maximum: limits.layer_index,
      description: "The block that it reads, where its files do not say.",
    }),
    point: optional.Enum([...blockPoints], {
      description: "The point of that block, where its files do not say; by default block_out, its output.",
    }),
    k: optional.Integer({
      minimum: 1,
      maximum: limits.feature_index,
      description: "Features that stay active, where its files do not say.",
    }),
    revision: optional.String({
      minLength: 1,
      maxLength: 200,
      description: "Branch, tag or commit of the hub.",
    }),
  },
  { additionalProperties: false, title: "DictionaryRequest" },
);
export type DictionaryRequest = Static<typeof DictionaryRequest>;

const maybe = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()]);

/** The body of `PUT /lab/lenses/{name}`: where a lens is. */
export const LensRequest = Type.Object(
  {
    from: Type.String({
      minLength: 1,
      maxLength: limits.model_characters,
      description:
        "Its file of weights or the folder of it: a path on this machine, owner/name/path of the hub, or `demo`, the embedded " +
        "model's Jacobian lens.",
    }),
    revision: optional.String({
      minLength: 1,
      maxLength: 200,
      description: "Branch, tag or commit of the hub.",
    }),
  },
  { additionalProperties: false, title: "LensRequest" },
);
export type LensRequest = Static<typeof LensRequest>;

/** How far what a lens reads at one block is from the model's output, in nats, on texts that it was not fitted on. */
export const LensFit = Type.Object(
  {
    layer: Type.Integer(),
    divergence: Type.Number({
      description: "KL of the model's output from what the lens reads, mean a token.",
    }),
    plain_divergence: Type.Number({ description: "The same of the logit lens, which translates nothing." }),
  },
  { title: "LensFit" },
);
export type LensFit = Static<typeof LensFit>;

/** A lens that translates, kept by name. */
export const StoredLens = Type.Object(
  {
    name: Name,
    sha256: Type.String({ description: "Of its numbers, in the form that they are kept in." }),
    layout: Type.String({ description: "The layout that it was read from." }),
    kind: Type.Enum(["jacobian", "tuned", "regression"]),
    n_embd: Type.Integer({ description: "Values of a row that it reads." }),
    model_layers: maybe(Type.Integer({ description: "Blocks of its model, where the file says." })),
    layers: Type.Array(Type.Integer(), { description: "Zero-based blocks whose output it translates." }),
    residual: Type.Boolean({ description: "Whether the row itself is added to its translation." }),
    trained_on: maybe(Type.String({ description: "The model, as the file calls it." })),
    texts: maybe(Type.Integer({ description: "Texts that it was fitted on." })),
    fit: maybe(
      Type.Array(LensFit, { description: "How good it is, where it was fitted here; on held-out tokens." }),
    ),
    notes: Type.Array(Type.String()),
    source: maybe(
      Type.String({ description: "Where on the hub it is from: owner/name/path@commit; null: a file here." }),
    ),
    bytes: Type.Integer(),
    created: Type.Number(),
  },
  { title: "StoredLens" },
);
export type StoredLens = Static<typeof StoredLens>;

/** A sparse dictionary that is kept by name. */
export const StoredDictionary = Type.Object(
  {
    name: Name,
    sha256: Type.String({ description: "Of its numbers, in the form that they are kept in." }),
    layout: Type.String({ description: "The layout that it was read from." }),
    activation: Type.Enum(["relu", "jumprelu", "topk", "topk_raw", "gated"]),
    features: Type.Integer(),
    n_embd: Type.Integer({ description: "Values of a row that it reads." }),
    layer: Type.Integer({ description: "Zero-based block that it reads." }),
    point: readPoint,
    k: maybe(Type.Integer({ description: "Features that stay active in a row, for topk." })),
    row_scaling: Type.Enum(["none", "constant_norm", "layer_norm"]),
    subtracts_bias: Type.Boolean({ description: "Whether the decoder's bias is taken from the input." }),
    trained_on: maybe(Type.String({ description: "The model, as the file calls it." })),
    hook: maybe(Type.String({ description: "The place that it reads, as the file calls it." })),
    prepend_bos: maybe(Type.Boolean({ description: "Whether texts began with a BOS token in training." })),
    notes: Type.Array(Type.String()),
    source: Type.Optional(
      maybe(
        Type.String({
          description: "Where on the hub it is from: owner/name/path@commit; null: a file here.",
        }),
      ),
    ),
    bytes: Type.Integer(),
    created: Type.Number(),
  },
  { title: "StoredDictionary" },
);
export type StoredDictionary = Static<typeof StoredDictionary>;
