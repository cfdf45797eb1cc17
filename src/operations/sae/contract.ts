import Type, { type Static } from "typebox";
import { checkLeaks, checkPrompts, checkSplits } from "../../contracts/check-examples.js";
import { checkTarget } from "../../contracts/check-target.js";
import { Excluded } from "../../contracts/excluded.js";
import { InvalidInput, missing } from "../../contracts/invalid-input.js";
import { defaults, limits } from "../../contracts/limits.js";
import { saeArchitectures, textRows } from "../../contracts/names.js";
import { optional } from "../../contracts/optional.js";
import { pointRead, resultFields, rowsRead, targetRead } from "../../contracts/result-fields.js";
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
  targetPoint,
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
      description: `At least ${limits.examples_per_split_min} per split, and no text in both splits.`,
    }),
    from: path(
      "Instead of `examples`: absolute path of an extraction's folder on the Lab's machine. Texts " +
        "are held out by a hash of their content.",
    ),
    point: readPoint(" With `from`, the extraction determines it."),
    target: targetPoint("Train a transcoder that predicts this point."),
    skip: optional.Boolean({
      description: "With `target`: also train a linear map.",
    }),
    architecture: optional.Enum([...saeArchitectures], {
      description:
        "relu (the default) with an L1 penalty; topk keeps the k most active features per activation; batchtopk does so per " +
        "batch, and uses a threshold after training; jumprelu learns a threshold for each feature.",
    }),
    rows: optional.Enum([...textRows], {
      description: `${rowsText}, or every token's (all). With \`from\`, the extraction determines it.`,
    }),
    first_position: optional.Integer({
      minimum: 0,
      maximum: limits.token_index,
      description:
        "First token to train on: an index in each text, with every token's rows. BOS tokens are always left out. Many models " +
        "without BOS use a text's first token as an attention sink, with very large activations.",
    }),
    k: optional.Integer({
      minimum: 1,
      maximum: limits.dictionary_features,
      description: "For topk and batchtopk: active features per activation.",
    }),
    batch: optional.Integer({
      minimum: 1,
      maximum: limits.sae_batch,
      description: "Activations per optimizer step.",
    }),
    learning_rate: optional.Number({
      exclusiveMinimum: 0,
      maximum: 1,
      description: "Adam's learning rate after warm-up.",
    }),
    warmup: share("Share of the steps in which the learning rate rises from 0."),
    decay: share("Share of the steps in which it falls to 0 at the end."),
    sparsity: optional.Number({
      minimum: 0,
      maximum: limits.sae_sparsity,
      description:
        "For relu and jumprelu: weight of the penalty, on the L1 norm or on the number of active features per activation.",
    }),
    features: optional.Integer({
      minimum: limits.features_min,
      maximum: limits.features,
      default: defaults.features,
      description: "Number of features.",
    }),
    steps: optional.Integer({
      minimum: 1,
      maximum: limits.steps,
      default: defaults.steps,
      description: "Optimizer steps.",
    }),
  },
  {
    ...closed,
    title: "SaeSubmission",
    description: "Train a small sparse autoencoder on block outputs, or a transcoder.",
  },
);

export type SaeConfig = Filled<Static<typeof SaeSubmission>, CommonDefaults | "features" | "steps">;

export const SaeReport = Type.Object(
  {
    layer: Type.Integer(),
    excluded: optional.Object(Excluded.properties, {
      description: "Activations excluded from means or from training.",
    }),
    architecture: Type.Enum([...saeArchitectures]),
    held_out_mse: Type.Number(),
    train_mse: Type.Number({
      description:
        "Error of the trained dictionary on its training data; for training in batches, over training.evaluated_train_rows activations.",
    }),
    explained_variance: Type.Union([Type.Number(), Type.Null()], {
      description: "On held-out examples; null, with a note, if these do not vary.",
    }),
    mean_active: Type.Number({ description: "Mean number of active features per held-out example." }),
    dead_features: Type.Integer({
      description: "Number of features that are active on no held-out example.",
    }),
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
          "The 16 most active on held-out data. Activations match the weight files, whose decoder rows have norm 1.",
      },
    ),
    training: optional.Object(
      {
        k: Type.Optional(Type.Integer()),
        steps: Type.Integer(),
        batch: Type.Integer({ description: "Activations per step." }),
        train_rows: Type.Integer(),
        held_out_rows: Type.Integer(),
        evaluated_rows: Type.Integer({ description: "Held-out activations used for evaluation." }),
        evaluated_train_rows: optional.Integer({
          description:
            "Training activations over which train_mse is the mean: all, or the first in shuffled order.",
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
          { description: "Held-out evaluations during training." },
        ),
        densities: Type.Array(Type.Object({ least: Type.Number(), features: Type.Integer() }), {
          description:
            "Features by the share of held-out activations on which they fire: each bin counts from its `least` to the next bin's.",
        }),
      },
      {
        title: "SaeTraining",
        description: "Details of training in batches; losses are those of the batches.",
      },
    ),
    note: Type.Optional(Type.String({ description: "Why a value is null." })),
  },
  { title: "SaeReport" },
);
export type SaeReport = Static<typeof SaeReport>;

export const SaeResult = Type.Object(
  {
    point: pointRead,
    target: targetRead,
    rows: rowsRead,
    reports: Type.Array(SaeReport),
    ...resultFields,
  },
  { title: "SaeResult" },
);
export type SaeResult = Static<typeof SaeResult>;

type Undefinable<T> = { [K in keyof T]: T[K] | undefined };
type SaeSettings = Pick<
  SaeConfig,
  "architecture" | "features" | "k" | "sparsity" | "warmup" | "decay" | "target" | "skip"
>;

/** Checks which settings can be combined. @throws InvalidInput */
export function checkSaeSettings(settings: Undefinable<SaeSettings>): void {
  const { architecture = "relu", features = 0, k, sparsity, warmup = 0, decay = 0 } = settings;
  const keepsK = architecture === "topk" || architecture === "batchtopk";
  if (k !== undefined && !keepsK)
    throw new InvalidInput("k", `applies to topk and batchtopk, not to ${architecture}.`);
  if (k !== undefined && k > features) {
    throw new InvalidInput("k", `must be at most the number of features (${features}), got ${k}.`);
  }
  if (sparsity !== undefined && keepsK) {
    throw new InvalidInput("sparsity", `applies to relu and jumprelu; use k for ${architecture}.`);
  }
  if (settings.skip === true && settings.target === undefined) {
    throw new InvalidInput("skip", "applies to transcoders; it requires target.");
  }
  if (warmup + decay > 1) {
    throw new InvalidInput("warmup", `and decay must sum to at most 1, got ${warmup + decay}.`);
  }
}

/** The same for training on an extraction, whose point may be left out. @throws InvalidInput */
export function checkFromRows(settings: Undefinable<SaeSettings & Pick<SaeConfig, "point">>): void {
  checkSaeSettings(settings);
  checkTarget(settings.target, settings.point ?? "ffn_in");
}

export default {
  submission: SaeSubmission,
  result: SaeResult,
  forAgents: "(examples with split, or from)",
  places: { from: "path" },
  check(config: SaeConfig): void {
    const { examples, from, rows, target, point } = config;
    if ((examples === undefined) === (from === undefined)) {
      throw missing("examples", "or from is required, but not both.");
    }
    if (examples !== undefined) {
      checkPrompts(examples, rows);
      checkSplits(examples);
      checkLeaks(examples);
    }
    if (from !== undefined) checkFromRows(config);
    else {
      checkSaeSettings(config);
      checkTarget(target, point);
      if (config.first_position !== undefined && rows !== "all") {
        throw new InvalidInput("first_position", `requires rows "all", got "${rows ?? "last"}".`);
      }
    }
  },
} satisfies Contract;
