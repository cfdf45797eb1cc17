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
  typical_row: optional.Number({ description: "Mean L2 norm of the activations the vector was made from." }),
  separation: optional.Union([Type.Number(), Type.Null()], {
    description: "AUROC of projections of held-out texts (cross-fitted); null if there are too few texts.",
  }),
  shuffled_separation: optional.Union([Type.Number(), Type.Null()], {
    description: "The same with shuffled labels, averaged.",
  }),
  projections: optional.Object(
    { positive: Type.Array(Type.Number()), negative: Type.Array(Type.Number()) },
    {
      description:
        "The projections behind `separation`, one per text in order, each on a direction made without that text, in units of the direction's length. Only in the answer for a single vector, not in lists.",
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

/** The point of a block that is read. Probes of other points are refused where block outputs are read. */
const readPoint = Type.Enum([...blockPoints], {
  description: "Point of the block that it reads; block_out is the block's output.",
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
      description: "AUROC of its scores on texts it was not trained on.",
    }),
    shuffled_separation: optional.Number({
      description: "Mean AUROC of probes trained on shuffled labels.",
    }),
    excluded: optional(Excluded),
  },
  { title: "StoredProbe" },
);
export type StoredProbe = Static<typeof StoredProbe>;

/** The body of `PUT /lab/dictionaries/{name}`: where to find a published dictionary. */
export const DictionaryRequest = Type.Object(
  {
    from: Type.String({
      minLength: 1,
      maxLength: limits.model_characters,
      description: "Its folder or weights file: a local path, or owner/name/path on the hub.",
    }),
    layer: optional.Integer({
      minimum: 0,
      maximum: limits.layer_index,
      description: "The block that it reads, if its files do not record it.",
    }),
    point: optional.Enum([...blockPoints], {
      description:
        "The point of that block, if its files do not record it; by default block_out, the block's output.",
    }),
    k: optional.Integer({
      minimum: 1,
      maximum: limits.feature_index,
      description: "Number of features that stay active (k), if its files do not record it.",
    }),
    revision: optional.String({
      minLength: 1,
      maxLength: 200,
      description: "Branch, tag or commit on the hub.",
    }),
  },
  { additionalProperties: false, title: "DictionaryRequest" },
);
export type DictionaryRequest = Static<typeof DictionaryRequest>;

const maybe = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()]);

/** The body of `PUT /lab/lenses/{name}`: where to find a lens. */
export const LensRequest = Type.Object(
  {
    from: Type.String({
      minLength: 1,
      maxLength: limits.model_characters,
      description:
        "Its weights file or folder: a local path, owner/name/path on the hub, or `demo` for the embedded model's Jacobian lens.",
    }),
    revision: optional.String({
      minLength: 1,
      maxLength: 200,
      description: "Branch, tag or commit on the hub.",
    }),
  },
  { additionalProperties: false, title: "LensRequest" },
);
export type LensRequest = Static<typeof LensRequest>;

/** Divergence of a lens's readings at one block from the model's output, in nats, on held-out texts. */
export const LensFit = Type.Object(
  {
    layer: Type.Integer(),
    divergence: Type.Number({
      description: "KL(output ‖ lens reading), averaged over tokens.",
    }),
    plain_divergence: Type.Number({ description: "The same for the plain logit lens." }),
  },
  { title: "LensFit" },
);
export type LensFit = Static<typeof LensFit>;

/** A saved lens with a translator per block. */
export const StoredLens = Type.Object(
  {
    name: Name,
    sha256: Type.String({ description: "Hash of its weights as saved." }),
    layout: Type.String({ description: "File layout that it was read from." }),
    kind: Type.Enum(["jacobian", "tuned", "regression"]),
    n_embd: Type.Integer({ description: "Width of the activations that it reads." }),
    model_layers: maybe(
      Type.Integer({ description: "Number of blocks in its model, if the file records it." }),
    ),
    layers: Type.Array(Type.Integer(), {
      description: "Zero-based indices of the blocks whose outputs it translates.",
    }),
    residual: Type.Boolean({ description: "Whether the activation itself is added to its translation." }),
    trained_on: maybe(Type.String({ description: "The model's name in the file." })),
    texts: maybe(Type.Integer({ description: "Number of texts that it was fitted on." })),
    fit: maybe(
      Type.Array(LensFit, {
        description: "How well it fits on held-out tokens, if it was fitted by tapline.",
      }),
    ),
    notes: Type.Array(Type.String()),
    source: maybe(
      Type.String({ description: "Its source on the hub, owner/name/path@commit; null for a local file." }),
    ),
    bytes: Type.Integer(),
    created: Type.Number(),
  },
  { title: "StoredLens" },
);
export type StoredLens = Static<typeof StoredLens>;

/** A saved sparse dictionary. */
export const StoredDictionary = Type.Object(
  {
    name: Name,
    sha256: Type.String({ description: "Hash of its weights as saved." }),
    layout: Type.String({ description: "File layout that it was read from." }),
    activation: Type.Enum(["relu", "jumprelu", "topk", "topk_raw", "gated"]),
    features: Type.Integer(),
    n_embd: Type.Integer({ description: "Width of the activations that it reads." }),
    layer: Type.Integer({ description: "Zero-based index of the block that it reads." }),
    point: readPoint,
    k: maybe(Type.Integer({ description: "Features that stay active per activation, for topk." })),
    row_scaling: Type.Enum(["none", "constant_norm", "layer_norm"]),
    subtracts_bias: Type.Boolean({ description: "Whether the decoder's bias is subtracted from the input." }),
    trained_on: maybe(Type.String({ description: "The model's name in the file." })),
    hook: maybe(Type.String({ description: "The hook point's name in the file." })),
    prepend_bos: maybe(Type.Boolean({ description: "Whether training texts began with a BOS token." })),
    notes: Type.Array(Type.String()),
    source: Type.Optional(
      maybe(
        Type.String({
          description: "Its source on the hub, owner/name/path@commit; null for a local file.",
        }),
      ),
    ),
    bytes: Type.Integer(),
    created: Type.Number(),
  },
  { title: "StoredDictionary" },
);
export type StoredDictionary = Static<typeof StoredDictionary>;
