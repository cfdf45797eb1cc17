import Type, { type Static } from "typebox";
import { optional } from "../optional.js";
import { sha256Pattern } from "../sha256.js";
import { studyLimits } from "./limits.js";

/** Most forms of a model in one study. */
export const mostQuantsForms = 100;

const hash = Type.String({ pattern: sha256Pattern });
const name = Type.String({ minLength: 1, maxLength: studyLimits.model_name });
const count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const bits = Type.Number({ minimum: 0, maximum: 1000 });

/** A figure and its 95% interval. */
const figure = (minimum: number, maximum: number) => {
  const number = Type.Number({ minimum, maximum });
  return Type.Object({ value: number, low: number, high: number });
};
const share = figure(0, 1);
const length = figure(0, 1_000_000);
// A sum of rounded terms may be slightly less than 0.
const nats = figure(-1, 1_000_000);

/** Shares require features. */
const QuantsSurvival = Type.Union([
  Type.Object({
    dictionary: name,
    sha256: hash,
    layer: count,
    features: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
    least: count,
    surviving: share,
  }),
  Type.Object({ features: Type.Literal(0) }),
]);

const QuantsForm = Type.Object({
  name,
  file: name,
  fingerprint: hash,
  bytes: count,
  bits_per_weight: bits,
  divergence: nats,
  agreement: share,
  drift: Type.Array(Type.Object({ layer: count, relative_difference: length }), { maxItems: 1000 }),
  survival: optional(QuantsSurvival),
});

/**
 * The part of a result of `tapline quants` that the studies service reads. A complete result is also valid: it has more
 * fields.
 */
export const QuantsFigures = Type.Object(
  {
    kind: Type.Literal("tapline quants"),
    schema_version: Type.Literal(1),
    reference: Type.Object({ file: name, fingerprint: hash, bytes: count, bits_per_weight: bits }),
    forms: Type.Array(QuantsForm, { minItems: 1, maxItems: mostQuantsForms }),
    settings: Type.Object({ texts_sha256: hash }),
    sha256: hash,
  },
  { title: "QuantsFigures" },
);
export type QuantsFigures = Static<typeof QuantsFigures>;

/** `tapline-quants`: what quantized forms change in one model, as measured by `tapline quants`. */
export const QuantsBlock = Type.Object(
  { schemaVersion: Type.Literal(1), result: QuantsFigures },
  { additionalProperties: false, title: "QuantsBlock" },
);
export type QuantsBlock = Static<typeof QuantsBlock>;
