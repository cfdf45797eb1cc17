import Type, { type Static } from "typebox";
import { defaults, limits } from "./limits.js";

export const operations = ["inspect", "compare", "probe", "sae"] as const;
export type Operation = (typeof operations)[number];

export const interventions = ["scale", "ablate", "patch", "steer"] as const;

const text = (description: string) => Type.String({ minLength: 1, description });

const prompt = text("Raw text; no chat template is applied.");

/** Fields that every submission accepts. */
const common = {
  model: Type.String({
    minLength: 1,
    maxLength: limits.model_characters,
    description: "A .gguf file, a directory that holds one model, a hub id, or `demo`, the embedded model.",
  }),
  revision: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: "Pins a hub revision." })),
  layers: Type.Optional(
    Type.Array(Type.Integer({ minimum: 0, maximum: limits.layer_index }), {
      minItems: 1,
      maxItems: limits.layers,
      uniqueItems: true,
      default: [...defaults.layers],
      description: "Zero-based block indices; each must exist in the model.",
    }),
  ),
  max_input_tokens: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: limits.max_input_tokens,
      default: defaults.max_input_tokens,
      description: "Input token limit of each text. A longer text fails the job; nothing is truncated.",
    }),
  ),
  max_tokens: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: limits.max_tokens,
      default: defaults.max_tokens,
      description: "Greedy continuation budget of comparisons; the other operations generate nothing.",
    }),
  ),
  seed: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: limits.seed,
      default: defaults.seed,
      description: "Experiment seed.",
    }),
  ),
};

const closed = { additionalProperties: false };

export const InspectSubmission = Type.Object(
  { operation: Type.Literal("inspect"), ...common, prompt },
  { ...closed, title: "InspectSubmission", description: "Look inside one forward pass over a prompt." },
);

export const CompareSubmission = Type.Object(
  {
    operation: Type.Literal("compare"),
    ...common,
    prompt,
    intervention: Type.Optional(
      Type.Enum([...interventions], {
        default: defaults.intervention,
        description:
          "How the last-token row h of the block output changes at strength s on every forward pass: " +
          "scale s*h; ablate (1-s)*h; patch (1-s)*h + s*donor; steer h + s*u.",
      }),
    ),
    strengths: Type.Optional(
      Type.Array(Type.Number({ minimum: -limits.strength, maximum: limits.strength }), {
        minItems: 1,
        maxItems: limits.strengths,
        default: [...defaults.strengths],
        description: "Neutral: 1 for scale; 0 for ablate, patch and steer.",
      }),
    ),
    target_token: Type.Optional(
      text(
        "Text that encodes to exactly one token, without special tokens; otherwise the baseline's top token.",
      ),
    ),
    prompts: Type.Optional(
      Type.Array(prompt, {
        minItems: 1,
        maxItems: limits.prompts,
        description: "Prompts to compare in place of `prompt`.",
      }),
    ),
    donor_prompt: Type.Optional(text("Donor text; required for patch.")),
    positive: Type.Optional(text("With `negative`, required for steer: u is their unit difference.")),
    negative: Type.Optional(text("With `positive`, required for steer.")),
  },
  {
    ...closed,
    title: "CompareSubmission",
    description: "Compare the model with and without an intervention at the first selected layer.",
  },
);

const split = Type.Enum(["train", "test"], { description: "Which side of the held-out split." });

export const ProbeExample = Type.Object(
  { text: text("Raw text."), label: Type.Enum([0, 1], { description: "Class." }), split },
  { ...closed, title: "ProbeExample" },
);

export const SaeExample = Type.Object(
  { text: text("Raw text."), label: Type.Optional(Type.Enum([0, 1], { description: "Not used." })), split },
  { ...closed, title: "SaeExample" },
);

const manyExamples = { minItems: limits.examples_min, maxItems: limits.examples };

export const ProbeSubmission = Type.Object(
  {
    operation: Type.Literal("probe"),
    ...common,
    examples: Type.Array(ProbeExample, {
      ...manyExamples,
      description:
        `At least ${limits.examples_per_split_min} in each split, both classes in each split, ` +
        "no text in both splits.",
    }),
  },
  { ...closed, title: "ProbeSubmission", description: "Train a linear probe on final-token block outputs." },
);

export const SaeSubmission = Type.Object(
  {
    operation: Type.Literal("sae"),
    ...common,
    examples: Type.Array(SaeExample, {
      ...manyExamples,
      description: `At least ${limits.examples_per_split_min} in each split, no text in both splits.`,
    }),
    features: Type.Optional(
      Type.Integer({
        minimum: limits.features_min,
        maximum: limits.features,
        default: defaults.features,
        description: "Features of the autoencoder.",
      }),
    ),
    steps: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limits.steps,
        default: defaults.steps,
        description: "Optimiser steps.",
      }),
    ),
  },
  {
    ...closed,
    title: "SaeSubmission",
    description: "Train a small sparse autoencoder on final-token block outputs.",
  },
);

/** The body of `POST /lab/v1/jobs`, by operation. */
export const submissions = {
  inspect: InspectSubmission,
  compare: CompareSubmission,
  probe: ProbeSubmission,
  sae: SaeSubmission,
} as const;

/** A validated submission, its defaults filled in. */
type Filled<T, Fields extends PropertyKey> = T & { [F in Fields & keyof T]-?: Exclude<T[F], undefined> };
type CommonDefaults = "layers" | "max_input_tokens" | "max_tokens" | "seed";
export type InspectConfig = Filled<Static<typeof InspectSubmission>, CommonDefaults>;
export type CompareConfig = Filled<
  Static<typeof CompareSubmission>,
  CommonDefaults | "intervention" | "strengths"
>;
export type ProbeConfig = Filled<Static<typeof ProbeSubmission>, CommonDefaults>;
export type SaeConfig = Filled<Static<typeof SaeSubmission>, CommonDefaults | "features" | "steps">;
export type Config = InspectConfig | CompareConfig | ProbeConfig | SaeConfig;
