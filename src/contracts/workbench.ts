import Type, { type Static } from "typebox";
import { jobIdPattern } from "./job.js";
import { DictionaryRequest } from "./library.js";
import { limits } from "./limits.js";
import { LiveIntervention, Name } from "./live.js";
import { liveLimits, namePattern } from "./live-limits.js";
import { optional } from "./optional.js";
import { ProfileRequest } from "./profile.js";
import { workbenchLimits } from "./workbench-limits.js";

const strict = { additionalProperties: false } as const;

/** A secret in links and headers: 32 bytes in base64url. */
export const Secret = Type.String({ pattern: "^[A-Za-z0-9_-]{43}$" });

/** The body of `POST /api/session`. */
export const SessionRequest = Type.Object({ token: Secret }, { ...strict, title: "SessionRequest" });

export const conversationPattern = "^[0-9a-f]{16}$";

/** A question from the page, with the server's fields that the page offers. */
export const AskRequest = Type.Object(
  {
    text: Type.String({ pattern: "\\S", maxLength: workbenchLimits.text_characters }),
    raw: optional.Boolean({ description: "Send the text to the model without a chat template." }),
    interventions: optional.Array(LiveIntervention, { maxItems: liveLimits.interventions }),
    pair: optional.Boolean({ description: "Also generate the answer without the interventions." }),
    profile: optional(Name),
    layers: optional.Array(Type.Integer({ minimum: 0 }), { maxItems: liveLimits.layers, uniqueItems: true }),
    probes: optional.Array(Type.String({ pattern: namePattern }), {
      maxItems: liveLimits.probes,
      uniqueItems: true,
    }),
    dictionary: optional.String({
      pattern: namePattern,
      description: "Dictionary whose features are read at every token.",
    }),
    instead_of: optional.Integer({
      minimum: 0,
      maximum: workbenchLimits.turns,
      description: "Index of the question that this one replaces, in a new conversation.",
    }),
    in_place: optional.Boolean({
      description:
        "With instead_of, for the last question: replaces its answers in the same conversation, and cancels those that are being generated.",
    }),
    system: optional.String({
      maxLength: workbenchLimits.text_characters,
      description: "System message; not for raw texts.",
    }),
    max_tokens: optional.Integer({ minimum: 1, maximum: workbenchLimits.max_tokens }),
    temperature: optional.Number({ minimum: 0, maximum: 100 }),
    seed: optional.Integer({ minimum: 0, maximum: 4_294_967_295 }),
    thinking: optional.Boolean(),
  },
  { ...strict, title: "AskRequest" },
);
export type AskRequest = Static<typeof AskRequest>;

/** How one of two runs of the same question is made. */
const ReadingSettings = Type.Object(
  {
    profile: optional(Name),
    interventions: optional.Array(LiveIntervention, { maxItems: liveLimits.interventions }),
    temperature: optional.Number({ minimum: 0, maximum: 100 }),
  },
  { ...strict, title: "ReadingSettings" },
);

/** The same question twice, with two settings, and everything read at its tokens. */
export const ReadingRequest = Type.Object(
  {
    text: Type.String({ pattern: "\\S", maxLength: workbenchLimits.reading_characters }),
    raw: optional.Boolean({ description: "Send the text to the model without a chat template." }),
    sides: Type.Array(ReadingSettings, { minItems: 2, maxItems: 2 }),
    max_tokens: optional.Integer({ minimum: 1, maximum: workbenchLimits.reading_tokens }),
    seed: optional.Integer({ minimum: 0, maximum: limits.seed }),
  },
  { ...strict, title: "ReadingRequest" },
);
export type ReadingRequest = Static<typeof ReadingRequest>;

/** Saves edits as a profile. */
export const ProfileAddition = Type.Object(
  { name: Name, ...ProfileRequest.properties },
  { ...strict, title: "ProfileAddition" },
);

/** A job for the Lab, which validates the other fields itself. */
export const JobRequest = Type.Object(
  { operation: Type.String(), model: Type.String() },
  { additionalProperties: true, title: "JobRequest" },
);

/** Stores the probe that a job has measured at one of its layers. */
export const MeasuredProbeRequest = Type.Object(
  {
    name: Name,
    job: Type.String({ pattern: jobIdPattern }),
    layer: Type.Integer({ minimum: 0, maximum: limits.layer_index }),
  },
  { ...strict, title: "MeasuredProbeRequest" },
);
export type MeasuredProbeRequest = Static<typeof MeasuredProbeRequest>;

const tokenPlace = {
  turn: Type.Integer({ minimum: 0, maximum: workbenchLimits.turns }),
  answer: Type.Integer({ minimum: 0, maximum: 1 }),
  token: Type.Integer({ minimum: 0, maximum: workbenchLimits.max_tokens }),
};

/** A token of an answer, whose preceding tokens are requested. */
export const TokenPlaceRequest = Type.Object(tokenPlace, { ...strict, title: "TokenPlaceRequest" });

/** The user's title, note and pin of a job; an empty title or note removes it. */
export const JobNoteRequest = Type.Object(
  {
    title: optional.String({ maxLength: workbenchLimits.job_title_characters }),
    note: optional.String({ maxLength: workbenchLimits.job_note_characters }),
    pinned: optional.Boolean(),
  },
  { ...strict, title: "JobNoteRequest" },
);
export type JobNoteRequest = Static<typeof JobNoteRequest>;

/** Adds a published dictionary under a name. */
export const DictionaryAddition = Type.Object(
  { name: Type.String({ pattern: namePattern }), ...DictionaryRequest.properties },
  { ...strict, title: "DictionaryAddition" },
);

/** Trains a dictionary on texts, or on the workbench's own. */
export const DictionaryTraining = Type.Object(
  {
    layer: Type.Integer({ minimum: 0, maximum: limits.layer_index }),
    features: Type.Integer({ minimum: limits.features_min, maximum: limits.features }),
    /** Features that are active per token. */
    k: Type.Integer({ minimum: 1, maximum: limits.features }),
    texts: optional.Array(Type.String({ pattern: "\\S", maxLength: workbenchLimits.text_characters }), {
      minItems: workbenchLimits.training_texts,
      maxItems: limits.examples,
      uniqueItems: true,
    }),
  },
  { ...strict, title: "DictionaryTraining" },
);
export type DictionaryTraining = Static<typeof DictionaryTraining>;

/** Saves a dictionary that a job has trained at one of its layers. */
export const TrainedDictionaryRequest = Type.Object(
  {
    name: Name,
    job: Type.String({ pattern: jobIdPattern }),
    layer: Type.Integer({ minimum: 0, maximum: limits.layer_index }),
  },
  { ...strict, title: "TrainedDictionaryRequest" },
);
export type TrainedDictionaryRequest = Static<typeof TrainedDictionaryRequest>;

/** Proposes a label for a feature from a job's texts: by the served model, or by an OpenAI-style endpoint. */
export const LabelRequest = Type.Object(
  {
    job: Type.String({ pattern: jobIdPattern }),
    feature: Type.Integer({ minimum: 0, maximum: limits.feature_index }),
    endpoint: Type.Optional(
      Type.Object(
        {
          url: Type.String({ pattern: "^https?://[^\\s]+$", maxLength: 300 }),
          model: Type.String({ minLength: 1, maxLength: 300 }),
          key: Type.Optional(Type.String({ pattern: "^[\\x21-\\x7e]+$", maxLength: 300 })),
        },
        strict,
      ),
    ),
  },
  { ...strict, title: "LabelRequest" },
);
export type LabelRequest = Static<typeof LabelRequest>;

/** Renames a saved direction, probe, dictionary or lens. */
export const RenameRequest = Type.Object(
  { name: Type.String({ pattern: namePattern }) },
  { ...strict, title: "RenameRequest" },
);

/** Continues from a token of an answer in a new conversation, with the tokens before it kept exactly. */
export const ForkRequest = Type.Object(
  {
    ...tokenPlace,
    /** Replaces the token; without it the model samples again. */
    token_id: optional.Integer({ minimum: 0, maximum: 2_147_483_647 }),
    /** Replacement text of one or more tokens. */
    text: optional.String({ minLength: 1, maxLength: workbenchLimits.edit_characters }),
  },
  { ...strict, title: "ForkRequest" },
);
export type ForkRequest = Static<typeof ForkRequest>;

/** A model: a local one, or a hub id to look up or download. */
export const ModelRequest = Type.Object(
  { model: Type.String({ minLength: 1, maxLength: limits.model_characters }) },
  { ...strict, title: "ModelRequest" },
);
export type ModelRequest = Static<typeof ModelRequest>;

/** A contrast set whose direction is to be computed on the served model. */
export const ContrastRequest = Type.Object(
  { name: Type.String({ pattern: "^[a-z]{1,16}$" }) },
  { ...strict, title: "ContrastRequest" },
);

const words = Type.String({ maxLength: workbenchLimits.text_characters });

/** Jobs to draft a study from, and the text written so far. */
export const StudyRequest = Type.Object(
  {
    jobs: Type.Array(Type.String({ pattern: "^[0-9a-f]{32}$" }), {
      minItems: 1,
      maxItems: workbenchLimits.study_jobs,
      uniqueItems: true,
    }),
    words: Type.Object(
      {
        ...{ title: words, question: words, hypothesis: words, method: words },
        ...{ finding: words, limitations: words, license: words, omissions: Type.Array(words) },
      },
      strict,
    ),
  },
  { ...strict, title: "StudyRequest" },
);
export type StudyRequest = Static<typeof StudyRequest>;

/** The same, to save as a private draft at a studies service: that of the workbench's environment, or another one. */
export const DraftRequest = Type.Object(
  {
    ...StudyRequest.properties,
    service: Type.Optional(
      Type.Object({ url: Type.String({ maxLength: 300 }), token: Type.String({ maxLength: 300 }) }, strict),
    ),
  },
  { ...strict, title: "DraftRequest" },
);

/** Texts to tokenize. */
export const TokensRequest = Type.Object(
  {
    texts: Type.Array(Type.String({ maxLength: workbenchLimits.text_characters }), {
      minItems: 1,
      maxItems: 4,
    }),
  },
  { ...strict, title: "TokensRequest" },
);
