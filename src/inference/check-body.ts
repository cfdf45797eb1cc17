import type { Static, TSchema } from "typebox";
import type { ChatRequest } from "../contracts/chat.js";
import { inferenceLimits as limits } from "../contracts/inference-limits.js";
import { liveField, liveFieldFault } from "../contracts/live-field.js";
import { meantWhenFalse, type Unsupported } from "../contracts/unsupported.js";
import { InvalidInput, validate } from "../contracts/validate.js";
import { HttpError } from "../http/index.js";

/**
 * Validates a body of the OpenAI-style endpoints: its schema, then rules a schema cannot express. Null fields count
 * as absent, and unknown fields are dropped, so that nothing unchecked reaches native code.
 * @param unsupported fields that would change the answer, refused by name
 * @throws HttpError 400 that names the field, the limit and the actual value
 */
export function checkBody<S extends TSchema>(
  schema: S,
  body: unknown,
  unsupported: Unsupported = {},
): Static<S> {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new HttpError(400, "The body must be a JSON object.");
  }
  checkShape(body);
  const misplaced = liveFieldFault(body, hasField(schema, liveField));
  if (misplaced !== null) throw refusal(misplaced.field, misplaced.sentence);
  const present = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
  for (const [field, instead] of Object.entries(unsupported)) {
    const value = present[field];
    if (value === undefined || value === "" || (Array.isArray(value) && value.length === 0)) continue;
    if (value === false && !meantWhenFalse.has(field)) continue;
    throw fieldRefusal(field, `not supported; ${instead}.`);
  }
  try {
    return validate(schema, present);
  } catch (error) {
    if (error instanceof InvalidInput) throw refusal(error.field, error.message);
    throw error;
  }
}

function hasField(schema: TSchema, name: string): boolean {
  return Object.hasOwn((schema as { properties?: object }).properties ?? {}, name);
}

type GenerationFields = Pick<ChatRequest, "grammar" | "json_schema" | "n" | "n_cmpl" | "id_slot" | "stop"> &
  Partial<Pick<ChatRequest, "response_format" | "tools" | "top_logprobs" | "n_probs">> & {
    logprobs?: boolean | number;
  };

/** Refuses values that would abort or overload llama.cpp or be misinterpreted. */
export function checkGeneration(
  body: GenerationFields,
  { slots, drafts }: { slots: number; drafts: boolean },
): void {
  const { grammar, json_schema, response_format } = body;
  if (grammar !== undefined) checkGrammar(grammar);
  if (grammar !== undefined && json_schema !== undefined) {
    throw refusal("grammar", "grammar and json_schema are mutually exclusive.");
  }
  const format = response_format?.type;
  if (format !== undefined && format !== "text") {
    const other = grammar !== undefined ? "grammar" : json_schema !== undefined ? "json_schema" : undefined;
    if (other !== undefined) {
      throw refusal(other, `${other} and response_format are mutually exclusive.`);
    }
  }
  for (const [name, schema] of [
    ["json_schema", json_schema],
    ["response_format", response_format],
    ["tools", body.tools],
  ] as const) {
    if (schema !== undefined) checkPatterns(schema, name);
  }
  const wanted = Math.max(body.n ?? 1, body.n_cmpl ?? 1);
  if (wanted > slots) throw fieldRefusal("n", `at most ${slots} (the server's slots), got ${wanted}.`);
  if (body.id_slot !== undefined && body.id_slot >= slots) {
    throw fieldRefusal(
      "id_slot",
      `must be from 0 to ${slots - 1} (the server's slots), got ${body.id_slot}.`,
    );
  }
  if (body.top_logprobs !== undefined && body.logprobs !== true) {
    throw refusal("top_logprobs", "top_logprobs needs logprobs: true.");
  }
  if (drafts) checkProbabilities(body);
  if (body.stop !== undefined && [body.stop].flat().includes("")) {
    throw fieldRefusal("stop", "an empty string would end every answer.");
  }
}

/** llama-server reports 1.0 without alternatives for every token accepted from the draft model. */
function checkProbabilities(body: GenerationFields): void {
  const asked =
    body.logprobs !== undefined && body.logprobs !== false
      ? "logprobs"
      : (body.n_probs ?? 0) > 0
        ? "n_probs"
        : undefined;
  if (asked === undefined) return;
  throw fieldRefusal(
    asked,
    "not available with a draft model, whose accepted tokens have no probabilities; start the server without --draft.",
  );
}

/**
 * Checks texts, and images if the server has an image encoder. Images must be in the request: this server does not
 * fetch URLs.
 */
export function checkMessages(messages: ChatRequest["messages"], images = false): void {
  for (const [index, message] of messages.entries()) {
    const { content, role } = message;
    if (content === undefined && (role !== "assistant" || message.tool_calls === undefined)) {
      throw refusal(`messages[${index}].content`, `messages[${index}].content is required.`);
    }
    if (!Array.isArray(content)) continue;
    for (const [place, part] of content.entries()) {
      const path = `messages[${index}].content[${place}]`;
      if (part.type === "image_url") {
        if (!images) {
          throw fieldRefusal(
            path,
            "images are not supported; start the server with --mmproj and the model's image encoder.",
          );
        }
        if (!/^data:image\/[\w.+-]+;base64,[A-Za-z0-9+/]+=*$/.test(part.image_url?.url ?? "")) {
          throw refusal(
            path,
            `${path}.image_url.url: must be a data:image/…;base64,… URL; other URLs are not fetched.`,
          );
        }
        continue;
      }
      if (part.type !== "text") {
        throw fieldRefusal(path, `only parts of type text are supported, got ${part.type.slice(0, 60)}.`);
      }
      if (part.text === undefined) throw refusal(path, `${path}.text is required.`);
    }
  }
}

/**
 * Refuses tools and tool calls that the model's chat template would omit from the prompt.
 * @param capabilities the template's capabilities, as detected by llama.cpp
 */
export function checkTools(
  { tools = [], tool_choice, messages }: Pick<ChatRequest, "tools" | "tool_choice" | "messages">,
  capabilities: Readonly<Record<string, boolean>>,
): void {
  if (tools.length > 0 && tool_choice !== "none" && capabilities.supports_tools !== true) {
    throw fieldRefusal(
      "tools",
      "this model's chat template does not support tools; start the server with --chat-template and one that does.",
    );
  }
  const called = messages.findIndex(({ tool_calls: calls }) => (calls?.length ?? 0) > 0);
  if (called !== -1 && capabilities.supports_tool_calls !== true) {
    const path = `messages[${called}].tool_calls`;
    throw fieldRefusal(path, "this model's chat template does not support tool calls.");
  }
}

/**
 * A final assistant message is continued. llama.cpp's grammars read it only up to its first NUL, so the answer could
 * violate them.
 */
export function checkContinued(body: ChatRequest): void {
  const { messages, grammar, json_schema, response_format, tools } = body;
  const last = messages.at(-1);
  if (last?.role !== "assistant") return;
  const shape = Object.entries({
    grammar,
    json_schema,
    response_format: response_format?.type === "text" ? undefined : response_format,
    tools: tools?.[0],
  }).find(([, given]) => given !== undefined);
  if (shape === undefined) return;
  const texts = [last.content ?? ""]
    .flat()
    .map((part) => (typeof part === "string" ? part : (part.text ?? "")));
  if (!texts.some((text) => text.includes("\0"))) return;
  const field = `messages[${messages.length - 1}].content`;
  throw fieldRefusal(field, `must not contain a NUL character if the answer is continued with ${shape[0]}.`);
}

/** Checks that tokens are in the vocabulary. */
export function checkTokens({ nVocab }: { nVocab: number }, tokens: readonly number[]): readonly number[] {
  const unknown = tokens.find((token) => token >= nVocab);
  if (unknown === undefined) return tokens;
  throw fieldRefusal("tokens", `the vocabulary has ${nVocab} tokens, got ${unknown}.`);
}

export function refusal(param: string, sentence: string): HttpError {
  return new HttpError(400, sentence, { param });
}

/** The same with the field at the start of the sentence. */
export function fieldRefusal(field: string, sentence: string): HttpError {
  return refusal(field, `${field}: ${sentence}`);
}

function checkGrammar(grammar: string): void {
  if (grammar.trimStart().startsWith("%llguidance")) {
    throw fieldRefusal("grammar", "%llguidance grammars are not supported; use GBNF.");
  }
  let depth = 0;
  for (const character of grammar) {
    if (character === "(") depth++;
    if (character === ")") depth--;
    if (depth > limits.grammar_depth) {
      throw fieldRefusal("grammar", `parentheses may be nested at most ${limits.grammar_depth} deep.`);
    }
  }
}

function checkPatterns(schema: unknown, path: string): void {
  if (typeof schema !== "object" || schema === null) return;
  for (const [key, value] of Object.entries(schema)) {
    if (key === "pattern" && typeof value === "string" && value.length > limits.pattern_characters) {
      throw fieldRefusal(
        path,
        `a pattern may have at most ${limits.pattern_characters} characters, got ${value.length}.`,
      );
    }
    checkPatterns(value, path);
  }
}

/** Checks depth and Unicode before anything recurses into the body. */
function checkShape(body: object): void {
  let level: unknown[] = [body];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > limits.json_depth) {
      throw new HttpError(400, `The body may be nested at most ${limits.json_depth} levels deep.`);
    }
    const next: unknown[] = [];
    for (const value of level) {
      if (typeof value === "string") {
        if (/\p{Surrogate}/u.test(value)) {
          throw new HttpError(
            400,
            "The body must be well-formed Unicode; a string contains an unpaired surrogate.",
          );
        }
      } else if (typeof value === "object" && value !== null) {
        if (Array.isArray(value)) {
          for (const entry of value) if (typeof entry !== "number") next.push(entry);
        } else {
          for (const [key, entry] of Object.entries(value)) next.push(key, entry);
        }
      }
    }
    level = next;
  }
}
