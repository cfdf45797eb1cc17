import type { Context } from "koa";
import {
  type ChatRequest,
  ChatRequest as ChatSchema,
  type CompletionRequest,
  CompletionRequest as CompletionSchema,
  InfillRequest,
  NativeCompletionRequest,
} from "../contracts/chat.js";
import { inferenceLimits } from "../contracts/inference-limits.js";
import type { LiveRequest } from "../contracts/live.js";
import { MessagesRequest } from "../contracts/messages.js";
import { ResponsesRequest } from "../contracts/responses.js";
import {
  unsupportedInChat,
  unsupportedInCompletions,
  unsupportedInMessages,
  unsupportedInNative,
  unsupportedInResponses,
} from "../contracts/unsupported.js";
import type { Outcome } from "../executions/index.js";
import { clientGone, HttpError } from "../http/index.js";
import type { Edit } from "../native/edit.js";
import { NativeError } from "../native/index.js";
import type { LivePlan } from "../native/live.js";
import { taking } from "./body.js";
import { checkContinued, checkGeneration, checkMessages, checkTools, fieldRefusal } from "./check-body.js";
import { CompletionForm } from "./forms/completion.js";
import type { AnswerForm, ChatAnswer } from "./forms/form.js";
import { MessagesForm } from "./forms/messages-answer.js";
import { chatOfMessages } from "./forms/messages-request.js";
import { ResponsesForm } from "./forms/responses-answer.js";
import { chatOfResponses } from "./forms/responses-request.js";
import { SilentForm } from "./forms/silent.js";
import { openLive } from "./live/request.js";
import { chosenProfile, ProfileForm } from "./profiles.js";
import { sendStream, wholeBody, withoutLoneTag } from "./reply.js";
import type { InferenceService } from "./service.js";

/** `POST /v1/chat/completions` */
export const chat = taking(
  ChatSchema,
  { unsupported: unsupportedInChat, profiles: "run" },
  (service, ctx, body) => generateChat(service, ctx, body, body),
);

/** `POST /v1/responses` */
export const responses = taking(
  ResponsesRequest,
  { unsupported: unsupportedInResponses, profiles: "run" },
  (service, ctx, body) => {
    const form = new ResponsesForm(body, chosenProfile(ctx)?.id ?? service.engine.info.id);
    return generateChat(service, ctx, body, withUsage(chatOfResponses(body)), form);
  },
);

/** `POST /v1/messages` */
export const messages = taking(
  MessagesRequest,
  { unsupported: unsupportedInMessages, profiles: "run" },
  async (service, ctx, body) => {
    const request = withUsage(chatOfMessages(body));
    // Streams start with the prompt's length, which the engine reports only at the end.
    const tokens = body.stream === true ? await countTokens(service, request, clientGone(ctx).signal) : 0;
    const named = chosenProfile(ctx)?.id ?? service.engine.info.id;
    const form = new MessagesForm(named, body.stop_sequences ?? [], tokens);
    await generateChat(service, ctx, body, request, form);
  },
);

/** `POST /v1/completions` */
export const complete = taking(
  CompletionSchema,
  { unsupported: unsupportedInCompletions, profiles: "run" },
  async (service, ctx, asked) => {
    const { echo, best_of, ...body } = asked;
    checkGeneration(body, { slots: service.engine.info.slots, drafts: service.drafts });
    const perPrompt = body.n_cmpl ?? body.n ?? 1;
    if (best_of !== undefined && best_of !== perPrompt) {
      throw fieldRefusal(
        "best_of",
        `must be n (${perPrompt}), got ${best_of}; request more answers and choose among them.`,
      );
    }
    const wanted = body.logprobs ?? (body.n_probs === 0 ? undefined : body.n_probs);
    const silent = asksForNothing(body);
    if (echo && wanted !== undefined) checkEchoed(service, body);
    const rewritten = echo === true || silent || (wanted !== undefined && body.post_sampling_probs !== true);
    const form = async (signal: AbortSignal, live: LivePlan | undefined) => {
      const asked = { prompts: promptsOf(body), top: wanted, answers: perPrompt, edits: promptEdits(live) };
      const prompts = echo ? await service.scores.echo(asked, signal) : [];
      return new CompletionForm(prompts, perPrompt, wanted ?? 0, silent);
    };
    const request = normalise(service, body);
    await generate(service, ctx, "completion", body, request, null, rewritten ? form : undefined);
  },
);

/** `POST /completion`, llama-server's format. */
export const completeNatively = taking(
  NativeCompletionRequest,
  { unsupported: unsupportedInNative },
  (service, ctx, body) => generatePlainly(service, ctx, "native-completion", body),
);

/** `POST /infill` */
export const infill = taking(InfillRequest, { unsupported: unsupportedInNative }, (service, ctx, body) =>
  generatePlainly(service, ctx, "infill", body),
);

async function generatePlainly(
  service: InferenceService,
  ctx: Context,
  route: "native-completion" | "infill",
  body: NativeCompletionRequest | InfillRequest,
): Promise<void> {
  checkGeneration(body, { slots: service.engine.info.slots, drafts: service.drafts });
  const form = asksForNothing(body) ? new SilentForm() : undefined;
  await generate(service, ctx, route, body, normalise(service, body), null, form);
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

/** The prompts of a request, each a text or its tokens. */
function promptsOf({ prompt }: Pick<CompletionRequest, "prompt">): (string | number[])[] {
  const one = typeof prompt === "string" || typeof prompt[0] === "number";
  return (one ? [prompt] : prompt) as (string | number[])[];
}

/** Refuses echo where the prompt's log-probabilities would not match how the answer is generated. */
function checkEchoed({ engine }: InferenceService, body: CompletionRequest): void {
  const { captures, noCaptureReason } = engine.info;
  if (!captures) {
    throw fieldRefusal("logprobs", `with echo, these need captures of the prompt. ${noCaptureReason}`);
  }
  if (body.post_sampling_probs === true) {
    throw fieldRefusal(
      "post_sampling_probs",
      "not supported with echo, because prompt tokens are not sampled.",
    );
  }
}

/** The edits that act on a prompt: those with a condition wait for generated tokens. */
function promptEdits(live: LivePlan | undefined): readonly Edit[] {
  return (live?.edits ?? []).filter((_, index) => (live?.gates?.[index] ?? -1) < 0);
}

function withUsage(body: ChatRequest): ChatRequest {
  return body.stream === true ? { ...body, stream_options: { include_usage: true } } : body;
}

/** Validates a chat and converts it to the engine's format. */
function prepareChat(service: InferenceService, body: ChatRequest): ChatRequest {
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

function showsImages({ messages }: ChatRequest): boolean {
  return messages.some(
    ({ content }) => Array.isArray(content) && content.some(({ type }) => type === "image_url"),
  );
}

/** Refuses options that rely on text tokens. */
function checkAroundImages(ctx: Context, { n, n_cmpl, tapline }: ChatRequest): void {
  if (tapline !== undefined) throw fieldRefusal("tapline", "not supported in chats with images.");
  const chosen = chosenProfile(ctx);
  if (chosen !== undefined) {
    throw fieldRefusal("model", `profiles are not supported in chats with images, got ${chosen.id}.`);
  }
  const wanted = Math.max(n ?? 1, n_cmpl ?? 1);
  if (wanted > 1) throw fieldRefusal("n", `chats with images support only one answer, got ${wanted}.`);
}

async function generateChat(
  service: InferenceService,
  ctx: Context,
  input: object,
  body: ChatRequest,
  form?: AnswerForm,
): Promise<void> {
  const request = prepareChat(service, body);
  if (showsImages(body)) checkAroundImages(ctx, body);
  const told = form ?? (asksForNothing(body) ? new SilentForm() : undefined);
  await generate(service, ctx, "chat", input, request, thinks(service, request), told);
}

async function generate(
  service: InferenceService,
  ctx: Context,
  route: "chat" | "completion" | "native-completion" | "infill",
  input: object,
  { tapline, ...request }: { stream?: boolean; tapline?: LiveRequest; n?: number },
  thinking: boolean | null,
  given?: AnswerForm | ((signal: AbortSignal, live: LivePlan | undefined) => Promise<AnswerForm>),
): Promise<void> {
  const chosen = chosenProfile(ctx);
  const answers = answersOf(request);
  if (answers > inferenceLimits.answers) {
    throw fieldRefusal("n", `at most ${inferenceLimits.answers} answers in total, got ${answers}.`);
  }
  const live = await openLive(service, ctx, tapline, {
    answers,
    chat: route === "chat",
    form: typeof given === "object" && given.single === true,
  });
  const scored = live?.watch?.probes === true;
  const leave = service.admission.enter();
  const gone = clientGone(ctx);
  const clock = service.stats.begin();
  ctx.state.counted = true;
  const trace = service.executions.begin({
    endpoint: ctx.path,
    parentId: ctx.get("X-Tapline-Execution-ID") || null,
    model: chosen?.id ?? service.engine.info.id,
    thinking,
    stream: request.stream === true,
    input,
  });
  if (trace.id !== null) ctx.set("X-Tapline-Execution-ID", trace.id);
  let outcome: Outcome = "failed";
  try {
    const inner = typeof given === "function" ? await given(gone.signal, live) : given;
    const form = chosen === undefined ? inner : new ProfileForm(chosen, inner);
    const reply = await service.engine.request(route, request, gone.signal, live);
    if (reply.parts === null) {
      const whole = wholeBody(reply);
      const body = route === "chat" ? withoutLoneTag(whole, service.engine.info.thinkingTag) : whole;
      ctx.type = "application/json";
      ctx.body = form === undefined ? body : form.whole(JSON.parse(body) as ChatAnswer);
      clock.measured(reply.times);
      trace.answered(body);
      if (scored) service.stats.probes.take(body);
    } else {
      let failed = false;
      await sendStream(ctx, reply.parts, form, (data, tokens) => {
        clock.sent(tokens);
        trace.sent(
          data,
          tokens.reduce((sum, count) => sum + count, 0),
        );
        failed ||= data.includes('data: {"error"');
        if (scored) service.stats.probes.take(data);
      });
      if (failed) return;
    }
    outcome = gone.signal.aborted ? "cancelled" : "completed";
  } catch (error) {
    if (gone.signal.aborted && error instanceof NativeError && error.code === "CANCELLED") {
      outcome = "cancelled";
      return;
    }
    trace.failed(error instanceof Error ? error.message : String(error));
    // A shutdown is not an error, and streams have been notified.
    const ending = error instanceof NativeError && error.code === "CLOSED";
    if (live !== undefined && error instanceof NativeError && unfitting.includes(error.code)) {
      throw new HttpError(400, `tapline: ${error.message}`);
    }
    if (!ctx.res.headersSent || !ending) throw error;
  } finally {
    clock.ended(outcome);
    trace.ended(outcome);
    leave();
  }
}

/** Codes of a plan that the model cannot run, such as an edit at a point that a block lacks. */
const unfitting: readonly string[] = ["INVALID_ARGUMENT", "LAYER_OUT_OF_RANGE", "UNSUPPORTED_ARCHITECTURE"];

/** Whether a request asks for no tokens, by any of the field names; the engine reads them in this order. */
function asksForNothing(
  body: Pick<ChatRequest, "n_predict" | "max_completion_tokens" | "max_tokens">,
): boolean {
  return (body.n_predict ?? body.max_completion_tokens ?? body.max_tokens) === 0;
}

/** The number of answers to a request: its prompts times n. */
function answersOf(request: { n?: number; n_cmpl?: number; prompt?: unknown }): number {
  const { prompt } = request;
  const prompts = Array.isArray(prompt) && typeof prompt[0] !== "number" ? prompt.length : 1;
  return prompts * (request.n_cmpl ?? request.n ?? 1);
}

/**
 * Converts OpenAI's semantics to llama-server's: OpenAI's seeds may exceed 32 bits, and -1 requests a random one;
 * zero alternatives would disable log-probabilities, so one is requested. Missing fields take the server's defaults.
 */
function normalise<T extends { seed?: number; top_logprobs?: number; logprobs?: boolean | number }>(
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
function thinks(service: InferenceService, body: ChatRequest): boolean | null {
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
