import type { Static, TSchema } from "typebox";
import type { ChatRequest } from "../contracts/chat.js";
import { inferenceLimits as limits } from "../contracts/inference-limits.js";
import { liveField, liveFieldFault } from "../contracts/live-field.js";
import { meantWhenFalse, type Unsupported } from "../contracts/unsupported.js";
import { InvalidInput, validate } from "../contracts/validate.js";
import { HttpError } from "../http/index.js";

/**
 * Checks a body of the OpenAI-style endpoints: its contract, then what a schema cannot say. Fields that are
 * null count as absent, and fields that the contract does not name are left out: nothing reaches native code
 * that was not looked at.
 * @param unsupported fields that would change the answer and are refused by name
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

/** What would abort or overload llama.cpp, or mean something else than it says. */
export function checkGeneration(
  body: GenerationFields,
  { slots, drafts }: { slots: number; drafts: boolean },
): void {
  const { grammar, json_schema, response_format } = body;
  if (grammar !== undefined) checkGrammar(grammar);
  if (grammar !== undefined && json_schema !== undefined) {
    throw refusal("grammar", "grammar and json_schema exclude each other.");
  }
  const format = response_format?.type;
  if (format !== undefined && format !== "text") {
    const other = grammar !== undefined ? "grammar" : json_schema !== undefined ? "json_schema" : undefined;
    if (other !== undefined) {
      throw refusal(other, `${other} and response_format exclude each other.`);
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
    throw fieldRefusal("id_slot", `the server has slots 0 to ${slots - 1}, got ${body.id_slot}.`);
  }
  if (body.top_logprobs !== undefined && body.logprobs !== true) {
    throw refusal("top_logprobs", "top_logprobs needs logprobs: true.");
  }
  if (drafts) checkProbabilities(body);
  if (body.stop !== undefined && [body.stop].flat().includes("")) {
    throw fieldRefusal("stop", "an empty string would end every answer.");
  }
}

/** llama-server says 1.0, and no alternatives, of every token that the draft model guessed right. */
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
    "this server has a draft model, and tokens that it guessed have no probabilities; without --draft they do.",
  );
}

/**
 * Texts, and images where the server has an encoder for them. Images come with the request: this server fetches
 * nothing from elsewhere.
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
            "this server sees no images; serve with --mmproj and the model's image encoder.",
          );
        }
        if (!/^data:image\/[\w.+-]+;base64,[A-Za-z0-9+/]+=*$/.test(part.image_url?.url ?? "")) {
          throw refusal(
            path,
            `${path}.image_url.url: an image comes as data:image/…;base64,…; nothing is fetched.`,
          );
        }
        continue;
      }
      if (part.type !== "text") {
        throw fieldRefusal(path, `only parts of type text are accepted, got ${part.type.slice(0, 60)}.`);
      }
      if (part.text === undefined) throw refusal(path, `${path}.text is required.`);
    }
  }
}

/**
 * Tools and calls of tools that the model's chat template would leave out of the prompt: the model would never see them.
 * @param capabilities what llama.cpp has found out about the template
 */
export function checkTools(
  { tools = [], tool_choice, messages }: Pick<ChatRequest, "tools" | "tool_choice" | "messages">,
  capabilities: Readonly<Record<string, boolean>>,
): void {
  if (tools.length > 0 && tool_choice !== "none" && capabilities.supports_tools !== true) {
    throw fieldRefusal(
      "tools",
      "this model's chat template cannot express tools; serve with --chat-template and one that can.",
    );
  }
  const called = messages.findIndex(({ tool_calls: calls }) => (calls?.length ?? 0) > 0);
  if (called !== -1 && capabilities.supports_tool_calls !== true) {
    const path = `messages[${called}].tool_calls`;
    throw fieldRefusal(path, "this model's chat template cannot express calls of tools.");
  }
}

/**
 * A last message of the assistant's is an answer to be continued. llama.cpp's grammars read it up to its first NUL
 * only, and then hold no longer what they promise.
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
  throw fieldRefusal(field, `an answer that is continued under ${shape[0]} cannot hold a NUL character.`);
}

/** Tokens of the vocabulary. */
export function checkTokens({ nVocab }: { nVocab: number }, tokens: readonly number[]): readonly number[] {
  const unknown = tokens.find((token) => token >= nVocab);
  if (unknown === undefined) return tokens;
  throw fieldRefusal("tokens", `the vocabulary has ${nVocab} tokens, got ${unknown}.`);
}

export function refusal(param: string, sentence: string): HttpError {
  return new HttpError(400, sentence, { param });
}

/** The same, in a sentence that begins with the field. */
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
      throw fieldRefusal("grammar", `parentheses may be nested ${limits.grammar_depth} deep, got more.`);
    }
  }
}

function checkPatterns(schema: unknown, path: string): void {
  if (typeof schema !== "object" || schema === null) return;
  for (const [key, value] of Object.entries(schema)) {
    if (key === "pattern" && typeof value === "string" && value.length > limits.pattern_characters) {
      throw fieldRefusal(
        path,
        `a pattern has at most ${limits.pattern_characters} characters, got ${value.length}.`,
      );
    }
    checkPatterns(value, path);
  }
}

/** Depth and Unicode, before anything recurses into the body. */
function checkShape(body: object): void {
  let level: unknown[] = [body];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > limits.json_depth) {
      throw new HttpError(400, `The body may be nested ${limits.json_depth} levels deep; it has more.`);
    }
    const next: unknown[] = [];
    for (const value of level) {
      if (typeof value === "string") {
        if (/\p{Surrogate}/u.test(value)) {
          throw new HttpError(
            400,
            "The body must be well-formed Unicode; a text holds half of a surrogate pair.",
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
