import Type, { type Static } from "typebox";
import { checkLeaks, checkPrompts, checkSplits } from "../../contracts/check-examples.js";
import { Excluded } from "../../contracts/excluded.js";
import { InvalidInput } from "../../contracts/invalid-input.js";
import { defaults, limits } from "../../contracts/limits.js";
import { saeArchitectures, textRows } from "../../contracts/names.js";
import { optional } from "../../contracts/optional.js";
import { pointRead, resultFields, rowsRead } from "../../contracts/result-fields.js";
import {
  type CommonDefaults,
  closed,
  common,
  type Filled,
  manyExamples,
  path,
  promptOfExample,
  readPoint,
  rowsText,
  share,
  split,
  text,
} from "../../contracts/submission-fields.js";
import type { Contract } from "../contract.js";

export const SaeExample = Type.Object(
  {
    text: text("Raw text."),
    prompt: promptOfExample,
    label: Type.Optional(Type.Enum([0, 1], { description: "Not used." })),
    split,
  },
  { ...closed, title: "SaeExample" },
);

export const SaeSubmission = Type.Object(
  {
    operation: Type.Literal("sae"),
    ...common,
    examples: optional.Array(SaeExample, {
      ...manyExamples,
      description: `At least ${limits.examples_per_split_min} in each split, no text in both splits.`,
    }),
    from: path(
      "In place of `examples`: a folder on the Lab's machine, from the root, that an extraction was written into. Texts " +
        "are held out by their content.",
    ),
    point: readPoint(" An extraction has its own."),
    architecture: optional.Enum([...saeArchitectures], {
      description:
        "relu (the default) with an L1 penalty; topk keeps the k most active features of a row; batchtopk those of a " +
        "batch, then a threshold; jumprelu learns a threshold for each feature.",
    }),
    rows: optional.Enum([...textRows], {
      description: `${rowsText}, or every token's (all). An extraction has its own.`,
    }),
    k: optional.Integer({
      minimum: 1,
      maximum: limits.dictionary_features,
      description: "For topk and batchtopk: features that stay active in a row.",
    }),
    batch: optional.Integer({
      minimum: 1,
      maximum: limits.sae_batch,
      description: "Rows of an optimiser step.",
    }),
    learning_rate: optional.Number({
      exclusiveMinimum: 0,
      maximum: 1,
      description: "Adam's, after it has risen.",
    }),
    warmup: share("Share of the steps over which the learning rate rises from 0."),
    decay: share("Share of the steps over which it falls to 0, at the end."),
    sparsity: optional.Number({
      minimum: 0,
      maximum: limits.sae_sparsity,
      description:
        "For relu and jumprelu: weight of the penalty, of the L1 term or of each active feature of a row.",
    }),
    features: optional.Integer({
      minimum: limits.features_min,
      maximum: limits.features,
      default: defaults.features,
      description: "Features of the autoencoder.",
    }),
    steps: optional.Integer({
      minimum: 1,
      maximum: limits.steps,
      default: defaults.steps,
      description: "Optimiser steps.",
    }),
  },
  {
    ...closed,
    title: "SaeSubmission",
    description: "Train a small sparse autoencoder on block outputs.",
  },
);

export type SaeConfig = Filled<Static<typeof SaeSubmission>, CommonDefaults | "features" | "steps">;

export const SaeReport = Type.Object(
  {
    layer: Type.Integer(),
    excluded: optional.Object(Excluded.properties, {
      description: "Activations that were left out of the means, or of the rows to train on.",
    }),
    architecture: Type.Enum([...saeArchitectures]),
    held_out_mse: Type.Number(),
    train_mse: Type.Number({
      description:
        "Of the finished dictionary, on its training data; of a training in batches over training.evaluated_train_rows rows.",
    }),
    explained_variance: Type.Union([Type.Number(), Type.Null()], {
      description: "On held-out examples; null, with a note, where these do not vary.",
    }),
    mean_active: Type.Number({ description: "Features active on a held-out example, on average." }),
    dead_features: Type.Integer({ description: "Features active on no held-out example." }),
    dead_fraction: Type.Number(),
    losses: Type.Array(Type.Object({ step: Type.Integer(), loss: Type.Number() })),
    features: Type.Array(
      Type.Object({
        feature: Type.Integer(),
        mean: Type.Number(),
        frequency: Type.Number(),
        examples: Type.Array(Type.Object({ text: Type.String(), activation: Type.Number() })),
      }),
      {
        description:
          "The 16 most active on held-out data; activations are those of the files, whose decoder rows have length 1.",
      },
    ),
    training: optional.Object(
      {
        k: Type.Optional(Type.Integer()),
        steps: Type.Integer(),
        batch: Type.Integer({ description: "Rows of a step." }),
        train_rows: Type.Integer(),
        held_out_rows: Type.Integer(),
        evaluated_rows: Type.Integer({ description: "Held-out rows that the figures are of." }),
        evaluated_train_rows: optional.Integer({
          description:
            "Training rows that train_mse is the mean of: all, or the first of the shuffled order.",
        }),
        learning_rate: Type.Number(),
        sparsity: Type.Number(),
        evaluations: Type.Array(
          Type.Object({
            step: Type.Integer(),
            explained_variance: Type.Union([Type.Number(), Type.Null()]),
            mean_active: Type.Number(),
            dead_features: Type.Integer(),
          }),
          { description: "Held-out figures on the way." },
        ),
        densities: Type.Array(Type.Object({ least: Type.Number(), features: Type.Integer() }), {
          description:
            "Features by the share of held-out rows in which they fire: how many from `least` to the next bin's.",
        }),
      },
      { title: "SaeTraining", description: "Of a training in batches; losses are its batches' errors." },
    ),
    note: Type.Optional(Type.String({ description: "Why a figure is null." })),
  },
  { title: "SaeReport" },
);
export type SaeReport = Static<typeof SaeReport>;

export const SaeResult = Type.Object(
  {
    point: pointRead,
    rows: rowsRead,
    reports: Type.Array(SaeReport),
    ...resultFields,
  },
  { title: "SaeResult" },
);
export type SaeResult = Static<typeof SaeResult>;

type Undefinable<T> = { [K in keyof T]: T[K] | undefined };
type SaeSettings = Pick<SaeConfig, "architecture" | "features" | "k" | "sparsity" | "warmup" | "decay">;

/** What of an autoencoder's settings goes together. @throws InvalidInput */
export function checkSaeSettings(settings: Undefinable<SaeSettings>): void {
  const { architecture = "relu", features = 0, k, sparsity, warmup = 0, decay = 0 } = settings;
  const keepsK = architecture === "topk" || architecture === "batchtopk";
  if (k !== undefined && !keepsK)
    throw new InvalidInput("k", `is for topk and batchtopk, not for ${architecture}.`);
  if (k !== undefined && k > features) {
    throw new InvalidInput("k", `must be at most the ${features} features, got ${k}.`);
  }
  if (sparsity !== undefined && keepsK) {
    throw new InvalidInput("sparsity", `is for relu and jumprelu; ${architecture} has k.`);
  }
  if (warmup + decay > 1) {
    throw new InvalidInput(
      "warmup",
      `and decay are shares of the steps, together at most 1; got ${warmup + decay}.`,
    );
  }
}

export default {
  submission: SaeSubmission,
  result: SaeResult,
  forAgents: "(examples with split, or from)",
  places: { from: "path" },
  check(config: SaeConfig): void {
    const { examples, from, rows } = config;
    if ((examples === undefined) === (from === undefined)) {
      throw new InvalidInput("examples", "give either examples or from.");
    }
    if (examples !== undefined) {
      checkPrompts(examples, rows);
      checkSplits(examples);
      checkLeaks(examples);
    }
    checkSaeSettings(config);
  },
} satisfies Contract;
