import Type, { type Static } from "typebox";
import { limits } from "./limits.js";
import { LiveIntervention } from "./live.js";
import { liveLimits, namePattern } from "./live-limits.js";
import { optional } from "./optional.js";
import { workbenchLimits } from "./workbench-limits.js";

const strict = { additionalProperties: false } as const;

/** A secret as it is written in links and headers: 32 bytes in base64url. */
export const Secret = Type.String({ pattern: "^[A-Za-z0-9_-]{43}$" });

/** The body of `POST /api/session`. */
export const SessionRequest = Type.Object({ token: Secret }, { ...strict, title: "SessionRequest" });

export const conversationPattern = "^[0-9a-f]{16}$";

/** What a question is asked with; the server's own fields, but for what the page cannot say. */
export const AskRequest = Type.Object(
  {
    text: Type.String({ pattern: "\\S", maxLength: workbenchLimits.text_characters }),
    raw: optional.Boolean({ description: "The text goes to the model as it is, without chat template." }),
    interventions: optional(Type.Array(LiveIntervention, { maxItems: liveLimits.interventions })),
    pair: optional(Type.Boolean({ description: "The same beside it, without the interventions." })),
    layers: optional.Array(Type.Integer({ minimum: 0 }), { maxItems: liveLimits.layers, uniqueItems: true }),
    probes: optional.Array(Type.String({ pattern: namePattern }), {
      maxItems: liveLimits.probes,
      uniqueItems: true,
    }),
    dictionary: optional.String({
      pattern: namePattern,
      description: "Its features are read in every token.",
    }),
    instead_of: optional.Integer({
      minimum: 0,
      maximum: workbenchLimits.turns,
      description:
        "A question of this conversation in whose place this one stands, in a conversation of its own.",
    }),
    max_tokens: optional(Type.Integer({ minimum: 1, maximum: workbenchLimits.max_tokens })),
    temperature: optional(Type.Number({ minimum: 0, maximum: 100 })),
    seed: optional(Type.Integer({ minimum: 0, maximum: 4_294_967_295 })),
    thinking: optional(Type.Boolean()),
  },
  { ...strict, title: "AskRequest" },
);
export type AskRequest = Static<typeof AskRequest>;

/** A job for the Lab, whose own check says what else is wrong with it. */
export const JobRequest = Type.Object(
  { operation: Type.String(), model: Type.String() },
  { additionalProperties: true, title: "JobRequest" },
);

/** Goes on from a token of an answer, in a conversation of its own: the tokens before it stay, token by token. */
export const ForkRequest = Type.Object(
  {
    turn: Type.Integer({ minimum: 0, maximum: workbenchLimits.turns }),
    answer: Type.Integer({ minimum: 0, maximum: 1 }),
    token: Type.Integer({ minimum: 0, maximum: workbenchLimits.max_tokens }),
    /** In the token's place; without it the model chooses again. */
    token_id: optional(Type.Integer({ minimum: 0, maximum: 2_147_483_647 })),
    /** The same as a text of one's own, of one token or several. */
    text: optional(Type.String({ minLength: 1, maxLength: workbenchLimits.edit_characters })),
  },
  { ...strict, title: "ForkRequest" },
);
export type ForkRequest = Static<typeof ForkRequest>;

/** Names a model: one that is here, or for a look and a download a hub id. */
export const ModelRequest = Type.Object(
  { model: Type.String({ minLength: 1, maxLength: limits.model_characters }) },
  { ...strict, title: "ModelRequest" },
);
export type ModelRequest = Static<typeof ModelRequest>;

const words = Type.String({ maxLength: workbenchLimits.text_characters });

/** Jobs of which a study is drafted, and the words that a person has written so far. */
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

/** Texts whose tokens are wanted. */
export const TokensRequest = Type.Object(
  {
    texts: Type.Array(Type.String({ maxLength: workbenchLimits.text_characters }), {
      minItems: 1,
      maxItems: 4,
    }),
  },
  { ...strict, title: "TokensRequest" },
);
