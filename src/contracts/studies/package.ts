import Type, { type Static } from "typebox";
import { optional, orNull } from "../optional.js";
import { licenses } from "./licenses.js";
import { studyLimits as limits } from "./limits.js";
import { uuidPattern } from "./uuid.js";

export { licenses } from "./licenses.js";

export const Uuid = Type.String({ pattern: uuidPattern, description: "A UUID; either case." });

const strict = { additionalProperties: false };
const text = (maxLength: number, description: string) => Type.String({ maxLength, description });
const filled = (maxLength: number, description: string) =>
  Type.String({ minLength: 1, maxLength, description });
const longText = (description: string) => text(limits.long_text, description);

export const ContextMessage = Type.Object(
  {
    role: Type.Enum(["system", "user", "assistant"]),
    content: longText("The message text."),
  },
  { ...strict, title: "ContextMessage" },
);

export const Settings = Type.Object(
  {
    temperature: Type.Number({ minimum: 0, maximum: limits.temperature }),
    seed: Type.Integer({ minimum: -limits.seed, maximum: limits.seed }),
    maxTokens: Type.Integer({ exclusiveMinimum: 0, maximum: limits.max_tokens }),
    thinking: Type.Enum(["on", "off", "default"]),
  },
  { ...strict, title: "Settings" },
);

export const Entry = Type.Object(
  {
    id: Uuid,
    parent: Type.Optional(orNull(Uuid)),
    kind: Type.Enum(["prompt", "result", "note", "error"]),
    title: text(limits.entry_title, "Heading; may be empty."),
    model: Type.Optional(text(limits.model_name, "Model that answered, if different from the study's.")),
    system: Type.Optional(longText("System prompt.")),
    context: optional.Array(ContextMessage, { maxItems: limits.context_messages }),
    prompt: Type.Optional(longText("Prompt.")),
    answer: Type.Optional(longText("Answer.")),
    thinking: Type.Optional(longText("Reasoning text of the model.")),
    note: Type.Optional(longText("Remark of the author.")),
    settings: Type.Optional(Settings),
    finishReason: Type.Optional(orNull(text(limits.finish_reason, "Why the model stopped."))),
  },
  { ...strict, title: "Entry" },
);
export type Entry = Static<typeof Entry>;

export const StudyModel = Type.Object(
  {
    name: filled(limits.model_name, "Name of the model."),
    revision: Type.Optional(orNull(text(limits.model_revision, "Commit, tag or file hash."))),
    runtime: text(limits.model_runtime, "Software that ran it."),
  },
  { ...strict, title: "Model" },
);

/** The body that creates a draft, and the package in a study's envelope. Lengths count code points. */
export const StudyPackage = Type.Object(
  {
    schemaVersion: Type.Literal(1),
    title: filled(limits.title, "Title; not blank."),
    question: filled(limits.question, "The question."),
    hypothesis: longText("The hypothesis; may be empty."),
    method: filled(limits.method, "The method."),
    finding: longText("The finding; may be empty."),
    limitations: filled(limits.limitations, "Limits of the finding."),
    license: Type.Enum([...licenses]),
    model: StudyModel,
    omissions: Type.Array(text(limits.omission, "Something left out, and why."), {
      maxItems: limits.omissions,
    }),
    entries: Type.Array(Entry, { minItems: 1, maxItems: limits.entries }),
  },
  {
    ...strict,
    title: "StudyPackage",
    description:
      "Lengths count Unicode code points. Beyond the schema: entry ids are unique (case ignored), parents exist, " +
      "no entry is its own ancestor, and the title is not blank. At most 1,000,000 bytes.",
  },
);
export type StudyPackage = Static<typeof StudyPackage>;
