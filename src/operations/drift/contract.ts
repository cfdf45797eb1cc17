import Type, { type Static, type TSchema } from "typebox";
import { InvalidInput, missing } from "../../contracts/invalid-input.js";
import { limits } from "../../contracts/limits.js";
import { optional } from "../../contracts/optional.js";
import { notedResultFields, pointRead } from "../../contracts/result-fields.js";
import {
  type CommonDefaults,
  closed,
  commonOfExtract,
  type Filled,
  named,
  split,
  text,
} from "../../contracts/submission-fields.js";
import type { Contract } from "../contract.js";

export const DriftExample = Type.Object(
  {
    text: text("Raw text."),
    label: Type.Optional(Type.Enum([0, 1], { description: "Class; required with a probe or a vector." })),
    split: Type.Optional(split),
  },
  { ...closed, title: "DriftExample" },
);

export const DriftSubmission = Type.Object(
  {
    operation: Type.Literal("drift"),
    ...commonOfExtract,
    other: Type.String({
      minLength: 1,
      maxLength: limits.model_characters,
      description:
        "The model to compare with `model`, in any form that `model` accepts. Both must have the same architecture and shape.",
    }),
    other_revision: optional.String({
      minLength: 1,
      maxLength: 255,
      description: "Pins a hub revision of `other`.",
    }),
    examples: Type.Array(DriftExample, { minItems: limits.drift_examples_min, maxItems: limits.examples }),
    dictionary: named(
      "Name of a saved dictionary: compare its active features and loss recovered in each model.",
    ),
    probe: named("Name of a saved probe: compare how well it separates the examples' labels in each model."),
    vector: named(
      "Name of a saved vector: compare how well its projections separate the labels in each model.",
    ),
  },
  {
    ...closed,
    title: "DriftSubmission",
    description:
      "Measure what changes between two models of the same architecture, such as a model and its quantised version.",
  },
);

export type DriftConfig = Filled<Static<typeof DriftSubmission>, CommonDefaults>;

const Measured = Type.Object(
  { value: Type.Number(), low: Type.Number(), high: Type.Number() },
  {
    title: "Measured",
    description: "A value with its 95 % bootstrap interval (resampling the examples).",
  },
);
export type Measured = Static<typeof Measured>;

const pair = <S extends TSchema>(schema: S, description: string) =>
  Type.Tuple([schema, schema], { description: `${description}, in the first and the second model.` });

export const DriftResult = Type.Object(
  {
    models: pair(
      Type.Object({ name: Type.String(), quantization: Type.String(), bytes: Type.Integer() }),
      "The models",
    ),
    texts: Type.Integer(),
    tokens: Type.Integer({ description: "Number of tokens, without BOS tokens." }),
    layers: Type.Array(
      Type.Object(
        {
          layer: Type.Integer(),
          cosine: Measured,
          relative_length: Measured,
          relative_difference: Measured,
        },
        {
          title: "DriftLayer",
          description:
            "Means over tokens of a block's output a in the first model and b in the second: cosine of a and b, |b| / |a|, " +
            "|a - b| / |a|.",
        },
      ),
    ),
    dictionary: optional.Object(
      {
        name: Type.String(),
        sha256: Type.String(),
        layer: Type.Integer(),
        point: pointRead,
        features: Type.Integer(),
        jaccard: Type.Union([Measured, Type.Null()]),
        l0: pair(Type.Number(), "Mean number of active features per token"),
        loss_recovered: Type.Union([pair(Measured, "Share of the loss recovered"), Type.Null()]),
        loss_recovered_difference: Type.Union([Measured, Type.Null()]),
      },
      {
        title: "DriftDictionary",
        description:
          "jaccard: features active in both models divided by features active in either, summed over tokens. Null if no feature " +
          "is active, or if the loss does not depend on the block.",
      },
    ),
    probe: optional.Object(
      {
        ...{ name: Type.String(), sha256: Type.String(), layer: Type.Integer() },
        auroc: pair(Measured, "AUROC of its scores at the last tokens"),
        difference: Measured,
      },
      { title: "DriftProbe" },
    ),
    vector: optional.Object(
      {
        ...{ name: Type.String(), sha256: Type.String(), layer: Type.Integer() },
        separation: pair(Measured, "AUROC of the last tokens' projections"),
        difference: Measured,
      },
      { title: "DriftVector", description: "Measured at the first of `layers` that the vector covers." },
    ),
    ...notedResultFields,
  },
  { title: "DriftResult" },
);
export type DriftResult = Static<typeof DriftResult>;

/** A probe or a vector needs labels, and both classes. */
function checkDrift({ examples, probe, vector }: DriftConfig): void {
  const field = probe !== undefined ? "probe" : "vector";
  if (probe === undefined && vector === undefined) return;
  const bare = examples.findIndex(({ label }) => label === undefined);
  if (bare !== -1) throw missing(`examples[${bare}].label`, `is required with ${field}.`);
  for (const label of [0, 1]) {
    if (examples.every((example) => example.label !== label)) {
      throw new InvalidInput("examples", `must contain both classes with ${field}; none has label ${label}.`);
    }
  }
}

export default {
  submission: DriftSubmission,
  result: DriftResult,
  forAgents: "(other, examples)",
  places: { other: "model" },
  check: checkDrift,
} satisfies Contract;
