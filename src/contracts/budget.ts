import Type, { type Static } from "typebox";
import { budgetLimits as limits } from "./budget-limits.js";
import { ForwardEdit } from "./forward.js";
import { Name } from "./live.js";
import { oneOf, optional, orNull } from "./optional.js";

const strict = { additionalProperties: false } as const;
const sha256 = Type.String({ minLength: 64, maxLength: 64, description: "SHA-256." });
const floats = (description: string) => Type.String({ minLength: 4, description });
const layer = Type.Integer({ minimum: 0, maximum: 255 });

const Model = Type.Object({
  id: Type.String(),
  fingerprint: Type.String(),
  architecture: Type.String(),
  quantization: Type.String(),
});

/** A text, or the user's message of a chat, with its tokens on the reference model. */
export const BudgetPrompt = Type.Object(
  {
    text: optional.String({ minLength: 1, description: "A raw text, with the model's special tokens." }),
    chat: optional.String({ minLength: 1, description: "A user's message, formatted by the chat template." }),
    tokens: Type.Array(Type.Integer({ minimum: 0 }), { minItems: 1, maxItems: limits.prompt_tokens }),
  },
  { ...strict, title: "BudgetPrompt" },
);
export type BudgetPrompt = Static<typeof BudgetPrompt>;

export const BudgetProbe = Type.Object(
  {
    ...{ name: Name, sha256, layer },
    weight: floats("[n_embd] float32 in base64: the score is sigmoid(h . weight + bias)."),
    bias: Type.Number(),
  },
  { ...strict, title: "BudgetProbe" },
);
export type BudgetProbe = Static<typeof BudgetProbe>;

export const BudgetVector = Type.Object(
  { name: Name, sha256, layer, values: floats("[n_embd] float32 in base64.") },
  { ...strict, title: "BudgetVector" },
);
export type BudgetVector = Static<typeof BudgetVector>;

/** A feature of a dictionary, which must be saved on the machine that checks. */
export const BudgetFeature = Type.Object(
  { dictionary: Name, sha256, layer, feature: Type.Integer({ minimum: 0 }) },
  { ...strict, title: "BudgetFeature" },
);
export type BudgetFeature = Static<typeof BudgetFeature>;

export const BudgetProfile = Type.Object(
  {
    name: Name,
    sha256: Type.String({ description: "SHA-256 of its settings and of what they name." }),
    edits: Type.Array(ForwardEdit, { description: "Its interventions on prompts, with their vectors." }),
  },
  { ...strict, title: "BudgetProfile" },
);
export type BudgetProfile = Static<typeof BudgetProfile>;

/** The readings of every token. */
export const readingKinds = ["block", "probe", "vector", "feature", "next"] as const;
export type ReadingKind = (typeof readingKinds)[number];

const threshold = Type.Number({ exclusiveMinimum: 0, description: "A greater deviation is an alarm." });

export const BudgetReading = Type.Object(
  {
    kind: Type.Enum([...readingKinds], {
      description:
        "block: the block's output, relative to its norm. probe: its score. vector: the projection on its direction, relative to the activation's norm. " +
        "feature: its activation, relative to its greatest one in the reference. next: the log-probability of the prompt's next token, in nats.",
    }),
    name: Type.String({ description: "Of the probe, vector or feature (dictionary:index), or empty." }),
    layer: orNull(layer, { description: "Null for next." }),
    unit: Type.Number({ exclusiveMinimum: 0, description: "Deviations are divided by it." }),
    noise: Type.Number({
      exclusiveMinimum: 0,
      description:
        "Greatest deviation of clean repeats and accepted forms, or rounding. Once there is an alarm, greater ones show where the difference starts.",
    }),
    threshold,
  },
  { ...strict, title: "BudgetReading" },
);
export type BudgetReading = Static<typeof BudgetReading>;

/** A model's readings on some prompts, and how far another model may be from them. */
export const Budget = Type.Object(
  {
    kind: Type.Literal("tapline budget"),
    schema_version: Type.Literal(1),
    tapline: Type.String({ description: "Version." }),
    created: Type.Number(),
    model: Type.Object({ ...Model.properties, n_layer: Type.Integer(), n_embd: Type.Integer() }),
    false_alarms: Type.Number({
      minimum: 0.001,
      maximum: 0.5,
      description: "Share of checks of an unchanged model that may raise an alarm.",
    }),
    repeats: Type.Integer({ description: "Clean repeats that the thresholds come from." }),
    accepted: Type.Array(Model, {
      maxItems: limits.accepted,
      description: "Other forms of the model that must pass.",
    }),
    seed: Type.Integer({ description: "Of the random projections of block outputs." }),
    prompts: Type.Array(BudgetPrompt, { minItems: 1, maxItems: limits.prompts }),
    probes: Type.Array(BudgetProbe, { maxItems: limits.items }),
    vectors: Type.Array(BudgetVector, { maxItems: limits.items }),
    features: Type.Array(BudgetFeature, { maxItems: limits.items }),
    profiles: Type.Array(BudgetProfile, { maxItems: limits.items }),
    readings: Type.Array(BudgetReading),
    reference: Type.Array(
      Type.Object(
        {
          profile: orNull(Name, { description: "Null for the model without edits." }),
          values: floats(
            "[tokens of all prompts, values] float32 in base64: of each block its norm and random projections, then one value per other reading.",
          ),
        },
        strict,
      ),
    ),
  },
  { ...strict, title: "Budget" },
);
export type Budget = Static<typeof Budget>;

const deviation = {
  deviation: orNull(Type.Number(), { description: "Null if the value is not finite." }),
  threshold,
};

/** A prompt on which the two models part. */
export const CheckAlarm = Type.Object(
  {
    what: oneOf("tokens", "readings"),
    profile: orNull(Name),
    prompt: Type.Integer({ description: "Index." }),
    token: Type.Integer({ description: "Index of the first token that differs or has a different reading." }),
    text: Type.String({ description: "The token in the reference." }),
    got: optional.String({ description: "For tokens: the other model's." }),
    block: optional(
      orNull(Type.Object({ layer, ...deviation }), { description: "The first block that differs there." }),
    ),
    reading: optional(
      orNull(
        Type.Object({
          ...{ kind: Type.Enum([...readingKinds]), name: Type.String(), layer: orNull(layer) },
          ...{ token: Type.Integer(), ...deviation },
        }),
        {
          description:
            "The probe, vector, feature or next token that differs most there, or else at the next token where one differs.",
        },
      ),
    ),
    starts: optional.Object(
      { token: Type.Integer(), block: layer },
      { description: "The first token and block of the prompt with a deviation above noise." },
    ),
    tokens: Type.Integer({ description: "Number of tokens of the prompt that differ." }),
  },
  { title: "CheckAlarm" },
);
export type CheckAlarm = Static<typeof CheckAlarm>;

/** The result of a check. */
export const CheckResult = Type.Object(
  {
    passed: Type.Boolean(),
    model: Model,
    against: Model,
    changed: Type.Array(
      Type.Object({ kind: oneOf("probe", "vector", "dictionary", "profile"), name: Name }),
      { description: "Saved items that differ from the budget's. The saved ones were used." },
    ),
    checks: Type.Integer({ description: "Number of comparisons." }),
    greatest: Type.Number({
      description: "Greatest deviation as a multiple of its threshold; above 1 is an alarm.",
    }),
    alarms: Type.Array(CheckAlarm),
  },
  { title: "CheckResult" },
);
export type CheckResult = Static<typeof CheckResult>;
