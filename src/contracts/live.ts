import Type, { type Static } from "typebox";
import { liveKinds } from "./interventions.js";
import { limits } from "./limits.js";
import { liveLimits, namePattern } from "./live-limits.js";
import { changedPoints } from "./names.js";
import { optional } from "./optional.js";

const strict = { additionalProperties: false } as const;

/** A vector's or probe's name: needs no escaping in a file system, a URL or a shell. */
export const Name = Type.String({
  minLength: 1,
  maxLength: liveLimits.name_characters,
  pattern: namePattern,
});

const Layer = Type.Integer({ minimum: 0, maximum: limits.layer_index });
const Index = Type.Integer({ minimum: -1_000_000, maximum: 1_000_000 });

export const StrengthUnit = Type.Enum(["unit", "vector", "row_norm"]);

/** Positions: named parts of the sequence, or inclusive ranges of token indices, negative from the prompt's end. */
export const Positions = Type.Union([
  Type.Enum(["last", "all", "prompt", "generated", "thinking", "answer"]),
  Type.Array(Type.Tuple([Index, Index]), { minItems: 1, maxItems: liveLimits.ranges }),
]);

/** Met once a probe's score has been above or below a bound for the given number of consecutive generated tokens. */
const condition = {
  probe: Name,
  above: optional.Number({ minimum: 0, maximum: 1 }),
  below: optional.Number({ minimum: 0, maximum: 1 }),
  for: optional.Integer({ minimum: 1, maximum: liveLimits.condition_tokens, default: 1 }),
};
export const LiveCondition = Type.Object(condition, { ...strict, title: "LiveCondition" });
export type LiveCondition = Static<typeof LiveCondition>;

const number = (description: string) =>
  optional.Number({ minimum: -liveLimits.strength, maximum: liveLimits.strength, description });

/** A vector by name, or the decoder vector of a saved dictionary's feature. */
export const LiveVector = Type.Union([
  Name,
  Type.Object(
    {
      feature: Type.Array(Type.Union([Name, Type.Integer({ minimum: 0, maximum: limits.feature_index })]), {
        minItems: 2,
        maxItems: 2,
        description: "[dictionary, index]",
      }),
    },
    { ...strict, title: "FeatureVector" },
  ),
]);
export type LiveVector = Static<typeof LiveVector>;

export const LiveIntervention = Type.Object(
  {
    kind: Type.Enum([...liveKinds]),
    layer: optional(Layer),
    layers: optional.Array(Layer, { minItems: 1, maxItems: liveLimits.layers, uniqueItems: true }),
    point: optional(Type.Enum([...changedPoints], { description: "Default block_out." })),
    heads: optional.Array(Type.Integer({ minimum: 0, maximum: 65_535 }), {
      minItems: 1,
      uniqueItems: true,
      description: "For head_out, the heads to change as one vector. Default: the whole row.",
    }),
    vector: optional(LiveVector),
    strength: number("Default 1. For clamp: the share of the correction, 0 to 1."),
    strength_unit: optional(StrengthUnit),
    min: number(
      "For clamp: lower bound of the projection, in strength_unit; for a feature, of its activation.",
    ),
    max: number(
      "For clamp: upper bound of the projection, in strength_unit; for a feature, of its activation.",
    ),
    positions: optional(Positions),
    when: optional(LiveCondition),
  },
  { ...strict, title: "LiveIntervention" },
);
export type LiveIntervention = Static<typeof LiveIntervention>;

/** The most active features of a saved dictionary, at the layer and point that it reads. */
export const WatchedFeatures = Type.Object(
  {
    dictionary: Name,
    top: optional.Integer({ minimum: 1, maximum: liveLimits.features, default: 5 }),
  },
  { ...strict, title: "WatchedFeatures" },
);
export type WatchedFeatures = Static<typeof WatchedFeatures>;

export const LiveWatch = Type.Object(
  {
    layers: optional.Array(Layer, { maxItems: liveLimits.layers, uniqueItems: true }),
    point: optional(Type.Enum([...changedPoints], { description: "Default block_out." })),
    heads: optional.Array(Type.Integer({ minimum: 0, maximum: 65_535 }), { minItems: 1, uniqueItems: true }),
    positions: optional(Positions),
    norms: optional.Boolean(),
    states: optional.Boolean({ description: "Save the activations for GET /lab/captures/{id}." }),
    lens: optional.Integer({ minimum: 1, maximum: liveLimits.lens }),
    lenses: optional.Array(Name, { maxItems: liveLimits.lenses, uniqueItems: true }),
    probes: optional.Array(Name, { maxItems: liveLimits.probes, uniqueItems: true }),
    projections: optional.Array(Name, { maxItems: liveLimits.projections, uniqueItems: true }),
    features: optional.Array(WatchedFeatures, { maxItems: liveLimits.dictionaries }),
  },
  { ...strict, title: "LiveWatch" },
);
export type LiveWatch = Static<typeof LiveWatch>;

/** The `tapline` object of a request body: edits and readings. Unknown fields in it are refused. */
export const LiveRequest = Type.Object(
  {
    interventions: optional.Array(LiveIntervention, { maxItems: liveLimits.interventions }),
    watch: optional(LiveWatch),
    stop_when: optional(LiveCondition),
    pair: optional.Boolean({ description: "Also generate each answer without the interventions." }),
  },
  { ...strict, title: "LiveRequest" },
);
export type LiveRequest = Static<typeof LiveRequest>;
