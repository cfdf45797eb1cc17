import type { Context } from "koa";
import type { LiveRequest } from "../../contracts/live.js";
import { liveLimits } from "../../contracts/live-limits.js";
import { HttpError, localAccessFault } from "../../http/index.js";
import type { KeptRows, LivePlan } from "../../native/live.js";
import { fieldRefusal } from "../check-body.js";
import type { InferenceService } from "../service.js";
import { livePlan } from "./plan.js";

/** What of a request decides which of the fields make sense. */
export interface LiveContext {
  /** Answers that it asks for, of all prompts. */
  answers: number;
  /** Whether it is a chat, whose template knows thinking. */
  chat: boolean;
  /** Whether its answer takes a form that holds one answer only. */
  form: boolean;
}

/**
 * What a request's `tapline` object asks of the engine. It opens the model, so that it is for programs on this machine
 * only, whatever address the server is bound to.
 * @throws HttpError 403, 400
 */
export async function openLive(
  service: InferenceService,
  ctx: Context,
  given: LiveRequest | undefined,
  asked: LiveContext,
): Promise<LivePlan | undefined> {
  if (given === undefined) return undefined;
  const fault = localAccessFault(ctx.req);
  if (fault !== null) throw new HttpError(403, `tapline: ${fault}`, { param: "tapline" });
  const { captures, noCaptureReason } = service.engine.info;
  if (!captures) throw fieldRefusal("tapline", `${noCaptureReason}`);
  const conditional = given.stop_when ?? given.interventions?.find(({ when }) => when !== undefined);
  if (service.drafts && conditional !== undefined) {
    throw fieldRefusal("tapline", "conditions cannot be followed beside a draft model (--draft).");
  }
  if (given.pair) checkPair(given, asked, service.engine.info.slots);
  const plan = await livePlan(given, service.library, asked.chat);
  if (!given.watch?.states || plan.watch === undefined) return plan;
  const states = {
    id: service.rows.newId(),
    bytes: liveLimits.capture_bytes,
    keep: (rows: KeptRows) => service.rows.add(rows, service.library.model.id),
  };
  return { ...plan, watch: { ...plan.watch, states } };
}

/** A pair takes twice the slots, and both begin together. */
function checkPair({ interventions = [] }: LiveRequest, { answers, form }: LiveContext, slots: number): void {
  if (interventions.length === 0) {
    throw fieldRefusal("tapline.pair", "there are no interventions to leave out beside it.");
  }
  if (form) {
    throw fieldRefusal("tapline.pair", "this API's answers are one; ask /v1/chat/completions.");
  }
  if (2 * answers > slots) {
    throw fieldRefusal("tapline.pair", `it takes ${2 * answers} slots at once; this server has ${slots}.`);
  }
}
