import Type, { type Static } from "typebox";
import { optional, orNull } from "./optional.js";
import { ProfileSettings, ProfileUse } from "./profile.js";

const number = (description: string) => Type.Number({ description });
const interval = {
  value: Type.Number(),
  low: Type.Number(),
  high: Type.Number(),
};

/** A figure with its 95 % bootstrap interval, and the paired difference from the unedited model. */
export const CardMeasure = Type.Object(
  {
    ...interval,
    n: Type.Integer({ description: "Number of texts, questions, prompts or rounds." }),
    change: optional.Object(interval, { description: "Difference from the unedited model, paired by item." }),
  },
  { title: "CardMeasure" },
);
export type CardMeasure = Static<typeof CardMeasure>;

/** The measures of a card, in the order of its table. */
export const cardMeasures = [
  "target",
  "cross_entropy",
  "divergence",
  "changed_answers",
  "choices",
  "formats",
  "refusals",
  "tokens_per_second",
] as const;
export type CardMeasureName = (typeof cardMeasures)[number];

export const CardArm = Type.Object(
  {
    kind: Type.Enum(["base", "zero", "profile", "random"]),
    factor: number("Factor on the profile's strengths; 0 for base and zero."),
    seed: optional.Integer({ description: "Of random vectors with the norms of the profile's." }),
    measures: Type.Partial(
      Type.Object(
        Object.fromEntries(cardMeasures.map((name) => [name, CardMeasure])) as Record<
          CardMeasureName,
          typeof CardMeasure
        >,
      ),
    ),
  },
  { title: "CardArm" },
);
export type CardArm = Static<typeof CardArm>;

/** What the profile is for, and how answers are judged. */
export const CardTarget = Type.Union(
  [
    Type.Object({
      probe: Type.String({ description: "Mean score of a saved probe over the answer's tokens." }),
    }),
    Type.Object({
      classify: Type.String({
        description: "A yes-or-no question on each answer, put to the unedited model.",
      }),
    }),
    Type.Object({ contains: Type.String({ description: "Share of answers that contain this text." }) }),
    Type.Object({
      judged: Type.String({ description: "Share of answers that match their line of this file." }),
    }),
  ],
  { title: "CardTarget" },
);
export type CardTarget = Static<typeof CardTarget>;

const hash = Type.String({ description: "SHA-256." });

/** What a profile does and costs on one model. */
export const Card = Type.Object(
  {
    kind: Type.Literal("tapline card"),
    schema_version: Type.Literal(1),
    tapline: Type.String({ description: "Version." }),
    created: Type.Number(),
    model: Type.Object({
      id: Type.String(),
      fingerprint: Type.String(),
      architecture: Type.String(),
      quantization: Type.String(),
    }),
    profile: Type.Object({
      name: Type.String(),
      description: Type.String(),
      tapline: ProfileSettings,
      uses: Type.Array(ProfileUse),
    }),
    settings: Type.Object({
      strengths: Type.Array(Type.Number()),
      random: Type.Integer(),
      seed: Type.Integer(),
      answer_tokens: Type.Integer(),
      target: orNull(CardTarget),
      data: Type.Record(Type.String(), hash),
      given: Type.Object(
        { texts: optional.Array(Type.String()), prompts: optional.Array(Type.String()) },
        { description: "Texts and prompts that replaced the bundled ones." },
      ),
    }),
    arms: Type.Array(CardArm),
    notes: Type.Array(Type.String()),
    seconds: Type.Number(),
    sha256: Type.String({ description: "SHA-256 of this object without this field, as canonical JSON." }),
  },
  { title: "Card" },
);
export type Card = Static<typeof Card>;
