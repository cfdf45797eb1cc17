import type { Context } from "koa";
import type { ChatRequest } from "../contracts/chat.js";
import { checkContinued, checkGeneration, checkMessages, checkTools, fieldRefusal } from "./check-body.js";
import { chosenProfile } from "./profiles.js";
import { wholeBody } from "./reply.js";
import type { InferenceService } from "./service.js";

/** Validates a chat and converts it to the engine's format. */
export function prepareChat(service: InferenceService, body: ChatRequest): ChatRequest {
  checkMessages(body.messages, service.engine.info.images === true);
  checkContinued(body);
  checkGeneration(body, { slots: service.engine.info.slots, drafts: service.drafts });
  checkTools(body, service.engine.info.templateCapabilities);
  const asked = service.engine.info.chatTemplate === false ? endingInText(body) : body;
  return normalise(service, applyToolChoice(asked.tools ?? [], applyThinking(service, asked)));
}

/** Raw text that ends with an image has no token from which to generate: a line end follows it. */
function endingInText(body: ChatRequest): ChatRequest {
  const last = body.messages.at(-1);
  if (!Array.isArray(last?.content) || last.content.at(-1)?.type !== "image_url") return body;
  const content = [...last.content, { type: "text" as const, text: "\n" }];
  return { ...body, messages: [...body.messages.slice(0, -1), { ...last, content }] };
}

export function showsImages({ messages }: ChatRequest): boolean {
  return messages.some(
    ({ content }) => Array.isArray(content) && content.some(({ type }) => type === "image_url"),
  );
}

/** Refuses options that rely on text tokens. */
export function checkAroundImages(ctx: Context, { n, n_cmpl, tapline }: ChatRequest): void {
  if (tapline !== undefined) throw fieldRefusal("tapline", "not supported in chats with images.");
  const chosen = chosenProfile(ctx);
  if (chosen !== undefined) {
    throw fieldRefusal("model", `profiles are not supported in chats with images, got ${chosen.id}.`);
  }
  const wanted = Math.max(n ?? 1, n_cmpl ?? 1);
  if (wanted > 1) throw fieldRefusal("n", `chats with images support only one answer, got ${wanted}.`);
}

/** Counts the tokens of a chat's prompt, formatted by the template. */
export async function countTokens(
  service: InferenceService,
  body: ChatRequest,
  signal: AbortSignal,
): Promise<number> {
  if (showsImages(body)) {
    throw fieldRefusal(
      "messages",
      "tokens of images are not known before encoding; only texts can be counted.",
    );
  }
  const request = prepareChat(service, body);
  const applied = await service.engine.request("apply-template", request, signal);
  const { prompt } = JSON.parse(wholeBody(applied)) as { prompt: string };
  const asked = { content: prompt, add_special: true, parse_special: true };
  const tokens = await service.engine.request("tokenize", asked, signal);
  return (JSON.parse(wholeBody(tokens)) as { tokens: unknown[] }).tokens.length;
}

export function withUsage(body: ChatRequest): ChatRequest {
  return body.stream === true ? { ...body, stream_options: { include_usage: true } } : body;
}

/** Whether a request asks for no tokens, by any of the field names; the engine reads them in this order. */
export function asksForNothing(
  body: Pick<ChatRequest, "n_predict" | "max_completion_tokens" | "max_tokens">,
): boolean {
  return (body.n_predict ?? body.max_completion_tokens ?? body.max_tokens) === 0;
}

/**
 * Converts OpenAI's semantics to llama-server's: OpenAI's seeds may exceed 32 bits, and -1 requests a random one;
 * zero alternatives would disable log-probabilities, so one is requested. Missing fields take the server's defaults.
 */
export function normalise<T extends { seed?: number; top_logprobs?: number; logprobs?: boolean | number }>(
  service: InferenceService,
  asked: T,
): T {
  const body = { ...service.sampling, ...asked };
  const { seed, top_logprobs, logprobs } = body;
  return {
    ...body,
    ...(seed !== undefined && { seed: seed < 0 ? 0xffffffff : seed % 0x100000000 }),
    ...(top_logprobs === 0 && { top_logprobs: 1 }),
    ...(logprobs === 0 && { logprobs: 1 }),
  };
}

/** enable_thinking overrides the launch default only if the template supports it. */
function applyThinking(service: InferenceService, body: ChatRequest): ChatRequest {
  const { chat_template_kwargs: kwargs } = body;
  if (kwargs === undefined || service.engine.info.templateSupportsThinking) return body;
  const { enable_thinking: _, ...rest } = kwargs;
  return { ...body, chat_template_kwargs: rest };
}

/** Whether the answer will include thinking; null if the template has no such switch. */
export function thinks(service: InferenceService, body: ChatRequest): boolean | null {
  const { templateSupportsThinking, thinking } = service.engine.info;
  if (!templateSupportsThinking) return null;
  if (body.reasoning_effort === "none") return false;
  return body.chat_template_kwargs?.enable_thinking ?? thinking;
}

/** llama-server does not support named tools: naming one means offering only that one and requiring it. */
function applyToolChoice(tools: NonNullable<ChatRequest["tools"]>, body: ChatRequest): ChatRequest {
  const { tool_choice: choice } = body;
  if (choice === undefined || choice === "auto" || choice === "none") return body;
  const offered =
    typeof choice === "string" ? tools : tools.filter((tool) => tool.function.name === choice.function.name);
  if (offered.length === 0) {
    const what =
      typeof choice === "string" ? "no tools are given" : `no tool is named ${choice.function.name}`;
    throw fieldRefusal("tool_choice", `${what}.`);
  }
  return { ...body, tools: offered, tool_choice: "required" };
}
