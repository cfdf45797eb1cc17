import Type, { type Static } from "typebox";
import { Excluded } from "./excluded.js";
import { limits } from "./limits.js";
import { Name } from "./live.js";
import { liveLimits } from "./live-limits.js";
import { blockPoints } from "./names.js";
import { oneOf, optional, orNull } from "./optional.js";

const texts = (minItems: number) =>
  Type.Array(Type.String({ pattern: "\\S", maxLength: liveLimits.text_characters }), {
    minItems,
    maxItems: liveLimits.texts,
  });
const layer = { minimum: 0, maximum: limits.layer_index };
const position = optional(oneOf("last", "mean"));
const seed = optional.Integer({ minimum: 0, maximum: limits.seed });

/** The body of `POST /lab/vectors`: a direction from two lists of texts, on the resident model. */
export const VectorRequest = Type.Object(
  {
    name: Name,
    positive: texts(1),
    negative: texts(1),
    layers: Type.Array(Type.Integer(layer), {
      minItems: 1,
      maxItems: liveLimits.layers,
      uniqueItems: true,
    }),
    position,
    method: optional(oneOf("difference", "pca")),
    seed,
  },
  { additionalProperties: false, title: "VectorRequest" },
);
export type VectorRequest = Static<typeof VectorRequest>;

/** The body of `POST /lab/probes`: a linear probe from two lists of texts, on the resident model. */
export const ProbeRequest = Type.Object(
  {
    name: Name,
    positive: texts(liveLimits.probe_texts),
    negative: texts(liveLimits.probe_texts),
    layer: Type.Integer(layer),
    position,
    seed,
  },
  { additionalProperties: false, title: "ProbeRequest" },
);
export type ProbeRequest = Static<typeof ProbeRequest>;

/** One layer of a stored vector. */
export const VectorLayer = Type.Object({
  layer: Type.Integer(),
  length: Type.Number({ description: "L2 norm." }),
  typical_row: optional.Number({ description: "Mean L2 norm of the activations the vector was made from." }),
  separation: optional(
    orNull(Type.Number(), {
      description: "AUROC of projections of held-out texts (cross-fitted); null if there are too few texts.",
    }),
  ),
  shuffled_separation: optional(
    orNull(Type.Number(), {
      description: "The same with shuffled labels, averaged.",
    }),
  ),
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
  model: orNull(Type.Object({ id: Type.String(), fingerprint: Type.String() })),
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

const revision = optional.String({
  minLength: 1,
  maxLength: 200,
  description: "Branch, tag or commit on the hub.",
});

/** The body of `PUT /lab/dictionaries/{name}`: where to find a published dictionary. */
export const DictionaryRequest = Type.Object(
  {
    from: Type.String({
      minLength: 1,
      maxLength: limits.model_characters,
      description: "Its folder or weights file: a local path, or owner/name/path on the hub.",
    }),
    layer: optional.Integer({
      ...layer,
      description: "The block that it reads, if not recorded.",
    }),
    point: optional.Enum([...blockPoints], {
      description: "The point of that block, if not recorded; by default block_out, the block's output.",
    }),
    k: optional.Integer({
      minimum: 1,
      maximum: limits.feature_index,
      description: "Number of features that stay active (k), if its files do not record it.",
    }),
    revision,
  },
  { additionalProperties: false, title: "DictionaryRequest" },
);
export type DictionaryRequest = Static<typeof DictionaryRequest>;

/** The body of `PUT /lab/lenses/{name}`: where to find a lens. */
export const LensRequest = Type.Object(
  {
    from: Type.String({
      minLength: 1,
      maxLength: limits.model_characters,
      description:
        "Its weights file or folder: a local path, owner/name/path on the hub, or `demo` for the embedded model's Jacobian lens.",
    }),
    revision,
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

const weightsFile = {
  name: Name,
  sha256: Type.String({ description: "Hash of its weights as saved." }),
  layout: Type.String({ description: "File layout that it was read from." }),
};
const width = Type.Integer({ description: "Width of the activations that it reads." });
const trainedOn = orNull(Type.String({ description: "The model's name in the file." }));
const source = orNull(
  Type.String({ description: "Its source on the hub, owner/name/path@commit; null for a local file." }),
);
const file = { bytes: Type.Integer(), created: Type.Number() };

/** A saved lens with a translator per block. */
export const StoredLens = Type.Object(
  {
    ...weightsFile,
    kind: Type.Enum(["jacobian", "tuned", "regression"]),
    n_embd: width,
    model_layers: orNull(
      Type.Integer({ description: "Number of blocks in its model, if the file records it." }),
    ),
    layers: Type.Array(Type.Integer(), {
      description: "Zero-based indices of the blocks whose outputs it translates.",
    }),
    residual: Type.Boolean({ description: "Whether the activation itself is added to its translation." }),
    trained_on: trainedOn,
    texts: orNull(Type.Integer({ description: "Number of texts that it was fitted on." })),
    fit: orNull(
      Type.Array(LensFit, {
        description: "How well it fits on held-out tokens, if it was fitted by tapline.",
      }),
    ),
    notes: Type.Array(Type.String()),
    source,
    ...file,
  },
  { title: "StoredLens" },
);
export type StoredLens = Static<typeof StoredLens>;

/** A saved sparse dictionary. */
export const StoredDictionary = Type.Object(
  {
    ...weightsFile,
    activation: Type.Enum(["relu", "jumprelu", "topk", "topk_raw", "gated"]),
    features: Type.Integer(),
    n_embd: width,
    layer: Type.Integer({ description: "Zero-based index of the block that it reads." }),
    point: readPoint,
    writes: optional(
      Type.Enum([...blockPoints], {
        description: "For a transcoder: the point of the block that it predicts. Absent for autoencoders.",
      }),
    ),
    skip: optional(Type.Boolean({ description: "For a transcoder: whether it has a linear skip term." })),
    k: orNull(Type.Integer({ description: "Features that stay active per activation, for topk." })),
    row_scaling: Type.Enum(["none", "constant_norm", "layer_norm"]),
    subtracts_bias: Type.Boolean({ description: "Whether the decoder's bias is subtracted from the input." }),
    trained_on: trainedOn,
    hook: orNull(Type.String({ description: "The hook point's name in the file." })),
    hook_out: optional(
      Type.String({ description: "For a transcoder: the name of the hook that it predicts." }),
    ),
    prepend_bos: orNull(Type.Boolean({ description: "Whether training texts began with a BOS token." })),
    zero_positions: optional.Integer({
      description:
        "Number of each text's first tokens that it was not trained on, if its files record it. Graphs have no features there.",
    }),
    notes: Type.Array(Type.String()),
    source: optional(source),
    ...file,
  },
  { title: "StoredDictionary" },
);
export type StoredDictionary = Static<typeof StoredDictionary>;
