import type { Context } from "koa";
import type { Static, TSchema } from "typebox";
import {
  type ChatRequest,
  ChatRequest as ChatSchema,
  CompletionRequest as CompletionSchema,
} from "../contracts/chat.js";
import { inferenceLimits } from "../contracts/inference-limits.js";
import type { LiveRequest } from "../contracts/live.js";
import { HttpError, readJson } from "../http/index.js";
import { NativeError } from "../native/index.js";
import type { Outcome } from "../requests/index.js";
import { checkBody, checkGeneration, checkMessages, refusal } from "./check-body.js";
import { openLive } from "./live/request.js";
import { clientGone, sendStream, wholeBody } from "./reply.js";
import type { InferenceService } from "./service.js";

/** Reads and checks a body of the OpenAI-style endpoints, and that it asks for the served model. */
export async function readBody<S extends TSchema>(
  service: InferenceService,
  ctx: Context,
  schema: S,
): Promise<Static<S>> {
  const body = checkBody(schema, await readJson(ctx, { limit: inferenceLimits.body_bytes }));
  const { model } = body as { model?: string };
  const served = service.engine.info.id;
  if (model !== undefined && model !== served) {
    throw new HttpError(404, `The model ${model.slice(0, 200)} is not served here; ${served} is.`, {
      param: "model",
      code: "model_not_found",
    });
  }
  return body;
}

/** `POST /v1/chat/completions` */
export async function chat(service: InferenceService, ctx: Context): Promise<void> {
  const body = await readBody(service, ctx, ChatSchema);
  checkMessages(body.messages);
  checkGeneration(body, { slots: service.engine.info.slots, drafts: service.drafts });
  const request = normalise(applyToolChoice(service, applyThinking(service, body)));
  await generate(service, ctx, "chat", body, request, thinks(service, request));
}

/** `POST /v1/completions` */
export async function complete(service: InferenceService, ctx: Context): Promise<void> {
  const body = await readBody(service, ctx, CompletionSchema);
  checkGeneration(body, { slots: service.engine.info.slots, drafts: service.drafts });
  await generate(service, ctx, "completion", body, normalise(body), null);
}

async function generate(
  service: InferenceService,
  ctx: Context,
  route: "chat" | "completion",
  input: object,
  { tapline, ...request }: { stream?: boolean; tapline?: LiveRequest },
  thinking: boolean | null,
): Promise<void> {
  const live = await openLive(service, ctx, tapline);
  const leave = service.admission.enter();
  const gone = clientGone(ctx);
  const clock = service.stats.begin();
  ctx.state.counted = true;
  const trace = service.executions.begin({
    endpoint: ctx.path,
    parentId: ctx.get("X-Tapline-Execution-ID") || null,
    model: service.engine.info.id,
    thinking,
    stream: request.stream === true,
    input,
  });
  if (trace.id !== null) ctx.set("X-Tapline-Execution-ID", trace.id);
  let outcome: Outcome = "failed";
  try {
    const reply = await service.engine.request(route, request, gone.signal, live);
    if (reply.parts === null) {
      const body = wholeBody(reply);
      ctx.type = "application/json";
      ctx.body = body;
      const { timings, usage } = JSON.parse(body) as WholeAnswer;
      clock.measured(timings?.prompt_ms ?? 0, timings?.predicted_ms ?? 0, usage?.completion_tokens ?? 0);
      trace.answered(body);
    } else {
      let failed = false;
      await sendStream(ctx, reply.parts, (data, tokens) => {
        clock.sent(tokens);
        trace.sent(data, tokens);
        failed ||= data.includes('data: {"error"');
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
    // That the server ends is no fault, and a stream has been told so.
    const ending = error instanceof NativeError && error.code === "CLOSED";
    if (!ctx.res.headersSent || !ending) throw error;
  } finally {
    clock.ended(outcome);
    trace.ended(outcome);
    leave();
  }
}

interface WholeAnswer {
  timings?: { prompt_ms?: number; predicted_ms?: number };
  usage?: { completion_tokens?: number };
}

/**
 * OpenAI's meaning of what llama-server takes otherwise: its seed has 32 bits, theirs may have more, and -1 asks for a
 * random one; no alternatives to a token (0) would mean no log-probabilities at all, so one is asked for.
 */
function normalise<T extends { seed?: number; top_logprobs?: number; logprobs?: boolean | number }>(
  body: T,
): T {
  const { seed, top_logprobs, logprobs } = body;
  return {
    ...body,
    ...(seed !== undefined && { seed: seed < 0 ? 0xffffffff : seed % 0x100000000 }),
    ...(top_logprobs === 0 && { top_logprobs: 1 }),
    ...(logprobs === 0 && { logprobs: 1 }),
  };
}

/** enable_thinking overrides the launch default only where the template knows it. */
function applyThinking(service: InferenceService, body: ChatRequest): ChatRequest {
  const { chat_template_kwargs: kwargs } = body;
  if (kwargs === undefined || service.engine.info.templateSupportsThinking) return body;
  const { enable_thinking: _, ...rest } = kwargs;
  return { ...body, chat_template_kwargs: rest };
}

/** Whether the answer will think; null where the template has no such switch. */
function thinks(service: InferenceService, body: ChatRequest): boolean | null {
  const { templateSupportsThinking, thinking } = service.engine.info;
  if (!templateSupportsThinking) return null;
  if (body.reasoning_effort === "none") return false;
  return body.chat_template_kwargs?.enable_thinking ?? thinking;
}

/** llama-server knows no named tool: naming one means offering only that one, and requiring it. */
function applyToolChoice({ engine }: InferenceService, body: ChatRequest): ChatRequest {
  const { tool_choice: choice, tools = [] } = body;
  if (choice === undefined || choice === "auto" || choice === "none") return body;
  const offered =
    typeof choice === "string" ? tools : tools.filter((tool) => tool.function.name === choice.function.name);
  if (offered.length === 0) {
    const what =
      typeof choice === "string" ? "no tools are given" : `no tool is named ${choice.function.name}`;
    throw refusal("tool_choice", `tool_choice: ${what}.`);
  }
  if (engine.info.templateCapabilities.supports_tools !== true) {
    throw refusal("tool_choice", "tool_choice: this model's chat template cannot express tools.");
  }
  return { ...body, tools: offered, tool_choice: "required" };
}
