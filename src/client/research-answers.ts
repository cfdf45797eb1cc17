import Type, { type Static, type TSchema } from "typebox";
import { type Compiled, compile } from "../contracts/compile.js";
import { researchLimits } from "../contracts/research.js";
import {
  Discussion,
  DraftCreated,
  StudyEnvelope,
  StudyPage,
  studyLimits,
} from "../contracts/studies/index.js";
import { lineOf } from "../text/hidden.js";
import { ResearchError } from "./research-errors.js";
import type { SecureAnswer } from "./research-transport.js";

/** JSON from bytes that must be UTF-8. Unpaired surrogates, which packages may hold as escapes, are kept. */
function parse(body: Buffer): unknown {
  return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body));
}

/** A schema without its "no other properties": a newer service may tell more than this client knows. */
function tolerant(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(tolerant);
  if (typeof schema !== "object" || schema === null) return schema;
  const kept = Object.entries(schema).filter(
    ([name, value]) => name !== "additionalProperties" || value !== false,
  );
  return Object.fromEntries(kept.map(([name, value]) => [name, tolerant(value)]));
}

const validators = new WeakMap<TSchema, Compiled>();

function follows(schema: TSchema, value: unknown): boolean {
  let validator = validators.get(schema);
  if (validator === undefined) {
    validator = compile(tolerant(schema) as TSchema);
    validators.set(schema, validator);
  }
  return validator.Check(value);
}

const schemas = { page: StudyPage, study: StudyEnvelope, discussion: Discussion, draft: DraftCreated };
type Schemas = typeof schemas;

/** The body of a success, checked against its schema. @throws ResearchError */
export function readAnswer<K extends keyof Schemas>(
  kind: K,
  { status, body }: SecureAnswer,
): Static<Schemas[K]> {
  const schema = schemas[kind];
  let value: unknown;
  try {
    value = parse(body);
  } catch {
    throw new ResearchError("The answer is not JSON in UTF-8.", { status });
  }
  if (!follows(schema, value)) {
    const { title } = schema as { title?: string };
    throw new ResearchError(`The answer is not a ${title} as the contract describes it.`, { status });
  }
  return value as Static<Schemas[K]>;
}

/** For answers that say nothing themselves. */
const sentences: Record<number, string> = {
  401: "The token was not accepted.",
  403: "The token may not do this.",
  404: "There is no such study, or this token may not read it.",
  410: "This is no longer published.",
  429: "A quota is used up.",
  503: "The service is not available.",
};

/** What to raise for an answer that is no success. @param token is taken out of whatever the service said */
export function refusal({ status, headers, body }: SecureAnswer, token: string): ResearchError {
  const said = errorBody(body);
  const retryAfter = secondsOf(headers["retry-after"], headers.date);
  const sentence = said && clean(said.error, token);
  const reason = said?.reason === undefined ? undefined : clean(said.reason, token, studyLimits.reason);
  const bare = sentence ?? sentences[status] ?? `The service answered with status ${status}.`;
  const told = reason === undefined ? bare : `${bare} The reason given: ${reason}`;
  const wait = retryAfter === undefined ? "" : `wait ${retryAfter} s.`;
  return new ResearchError(wait === "" || told.endsWith(wait) ? told : `${told} W${wait.slice(1)}`, {
    status,
    retryAfter,
    ...(said && {
      code: clean(said.code, token),
      field: said.field === undefined ? undefined : clean(said.field, token),
      requestId: clean(said.request_id, token),
      serviceSentence: sentence,
      reason,
    }),
  });
}

/** The contract's error body, with codes that this client has not heard of, too. */
const AnyError = Type.Object({
  error: Type.String(),
  code: Type.String(),
  field: Type.Optional(Type.String()),
  reason: Type.Optional(Type.String()),
  request_id: Type.String(),
});

function errorBody(body: Buffer): Static<typeof AnyError> | undefined {
  try {
    const value = parse(body);
    return follows(AnyError, value) ? (value as Static<typeof AnyError>) : undefined;
  } catch {
    return undefined;
  }
}

/** One line of bounded length, without the token and without characters that nobody sees. */
function clean(text: string, token: string, most: number = researchLimits.error_characters): string {
  const line = lineOf(text.replaceAll(token, "[token]"));
  const characters = [...line];
  return characters.length > most ? `${characters.slice(0, most).join("")}…` : line;
}

/** `Retry-After` in seconds, whichever of its two forms it has; a date counts from the service's own clock. */
function secondsOf(retryAfter: string | undefined, date: string | undefined): number | undefined {
  if (retryAfter === undefined) return undefined;
  if (/^\d{1,9}$/.test(retryAfter)) return Number(retryAfter);
  if (!retryAfter.endsWith(" GMT")) return undefined;
  const now = Date.parse(date ?? "");
  const seconds = Math.ceil((Date.parse(retryAfter) - (Number.isNaN(now) ? Date.now() : now)) / 1000);
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}
