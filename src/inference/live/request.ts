import type { Context } from "koa";
import type { LiveRequest } from "../../contracts/live.js";
import { liveLimits } from "../../contracts/live-limits.js";
import { pointField } from "../../contracts/names.js";
import { HttpError, localAccessFault } from "../../http/index.js";
import type { CapturedRows, LivePlan } from "../../native/live.js";
import { fieldRefusal } from "../check-body.js";
import { chosenProfile, withProfile } from "../profiles.js";
import type { InferenceService } from "../service.js";
import { livePlan } from "./plan.js";

/** Properties of a request that determine which fields are valid. */
export interface LiveContext {
  /** Total number of answers. */
  answers: number;
  /** Whether it is a chat, whose template marks thinking. */
  chat: boolean;
  /** Whether its format supports only one answer. */
  form: boolean;
}

/**
 * The engine's plan for a request's profile and `tapline` object. The latter gives access to the model's activations and
 * is therefore only for programs on this machine, regardless of the bound address.
 * @throws HttpError 403, 400
 */
export async function openLive(
  service: InferenceService,
  ctx: Context,
  own: LiveRequest | undefined,
  asked: LiveContext,
): Promise<LivePlan | undefined> {
  const fault = own === undefined ? null : localAccessFault(ctx.req);
  if (fault !== null) throw new HttpError(403, `tapline: ${fault}`, { param: "tapline" });
  const given = withProfile(chosenProfile(ctx), own);
  if (given === undefined) return undefined;
  const { captures, noCaptureReason } = service.engine.info;
  if (!captures) throw fieldRefusal("tapline", `${noCaptureReason}`);
  const conditional = given.stop_when ?? given.interventions?.find(({ when }) => when !== undefined);
  if (service.drafts && conditional !== undefined) {
    throw fieldRefusal("tapline", "conditions are not supported with a draft model (--draft).");
  }
  if (given.pair) checkPair(given, asked, service.engine.info.slots);
  const plan = await livePlan(given, service.library, asked.chat);
  if (!given.watch?.states || plan.watch === undefined) return plan;
  const { point, heads } = given.watch;
  const states = {
    id: service.rows.newId(),
    bytes: liveLimits.capture_bytes,
    keep: (rows: CapturedRows) =>
      service.rows.add({ ...rows, ...pointField(point), ...(heads && { heads }) }, service.library.model.id),
  };
  return { ...plan, watch: { ...plan.watch, states } };
}

/** A pair uses twice the slots, and both answers start together. */
function checkPair({ interventions = [] }: LiveRequest, { answers, form }: LiveContext, slots: number): void {
  if (interventions.length === 0) {
    throw fieldRefusal("tapline.pair", "needs interventions.");
  }
  if (form) {
    throw fieldRefusal("tapline.pair", "this API returns a single answer; use /v1/chat/completions.");
  }
  if (2 * answers > slots) {
    throw fieldRefusal("tapline.pair", `needs ${2 * answers} slots; this server has ${slots}.`);
  }
}
