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

/** Parses JSON from UTF-8 bytes. Unpaired surrogates, which packages may contain as escapes, are preserved. */
function parse(body: Buffer): unknown {
  return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body));
}

/** A schema that allows additional properties, which a newer service may send. */
function tolerant(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(tolerant);
  if (typeof schema !== "object" || schema === null) return schema;
  const rest = Object.entries(schema).filter(
    ([name, value]) => name !== "additionalProperties" || value !== false,
  );
  return Object.fromEntries(rest.map(([name, value]) => [name, tolerant(value)]));
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
    throw new ResearchError("The response is not JSON in UTF-8.", { status });
  }
  if (!follows(schema, value)) {
    const { title } = schema as { title?: string };
    throw new ResearchError(`The response does not match the schema ${title}.`, { status });
  }
  return value as Static<Schemas[K]>;
}

/** For responses without an error message. */
const sentences: Record<number, string> = {
  401: "The token was rejected.",
  403: "The token lacks permission for this.",
  404: "No such study, or this token may not read it.",
  410: "This is no longer available.",
  429: "A quota is exhausted.",
  503: "The service is unavailable.",
};

/** The error for a response other than success. @param token removed from the service's text */
export function refusal({ status, headers, body }: SecureAnswer, token: string): ResearchError {
  const fields = errorBody(body);
  const retryAfter = secondsOf(headers["retry-after"], headers.date);
  const sentence = fields && clean(fields.error, token);
  const reason = fields?.reason === undefined ? undefined : clean(fields.reason, token, studyLimits.reason);
  const bare = sentence ?? sentences[status] ?? `The service answered with status ${status}.`;
  const message = reason === undefined ? bare : `${bare} Reason: ${reason}`;
  const wait = retryAfter === undefined ? "" : `wait ${retryAfter} s.`;
  return new ResearchError(wait === "" || message.endsWith(wait) ? message : `${message} W${wait.slice(1)}`, {
    status,
    retryAfter,
    ...(fields && {
      code: clean(fields.code, token),
      field: fields.field === undefined ? undefined : clean(fields.field, token),
      requestId: clean(fields.request_id, token),
      serviceSentence: sentence,
      reason,
    }),
  });
}

/** The contract's error body, but with any code, since newer services may add some. */
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

/** One line of bounded length, without the token and without invisible characters. */
function clean(text: string, token: string, most: number = researchLimits.error_characters): string {
  const line = lineOf(text.replaceAll(token, "[token]"));
  const characters = [...line];
  return characters.length > most ? `${characters.slice(0, most).join("")}…` : line;
}

/** `Retry-After` in seconds, from either form; dates are relative to the service's clock. */
function secondsOf(retryAfter: string | undefined, date: string | undefined): number | undefined {
  if (retryAfter === undefined) return undefined;
  if (/^\d{1,9}$/.test(retryAfter)) return Number(retryAfter);
  if (!retryAfter.endsWith(" GMT")) return undefined;
  const now = Date.parse(date ?? "");
  const seconds = Math.ceil((Date.parse(retryAfter) - (Number.isNaN(now) ? Date.now() : now)) / 1000);
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}
