import type { Context } from "koa";
import { inferenceLimits } from "../contracts/inference-limits.js";
import type { LiveRequest } from "../contracts/live.js";
import type { Outcome } from "../executions/index.js";
import { clientGone, HttpError } from "../http/index.js";
import { NativeError } from "../native/index.js";
import type { LivePlan } from "../native/live.js";
import { fieldRefusal } from "./check-body.js";
import type { AnswerForm, ChatAnswer } from "./forms/form.js";
import { openLive } from "./live/request.js";
import { chosenProfile, ProfileForm } from "./profiles.js";
import { sendStream, wholeBody, withoutLoneTag } from "./reply.js";
import type { InferenceService } from "./service.js";

/** Runs one request in the engine and writes its answer: live plan, admission, statistics, record, stream or whole. */
export async function generate(
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

/** The number of answers to a request: its prompts times n. */
function answersOf(request: { n?: number; n_cmpl?: number; prompt?: unknown }): number {
  const { prompt } = request;
  const prompts = Array.isArray(prompt) && typeof prompt[0] !== "number" ? prompt.length : 1;
  return prompts * (request.n_cmpl ?? request.n ?? 1);
}
