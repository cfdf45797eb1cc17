import type { Context } from "koa";
import type { LiveRequest } from "../../contracts/live.js";
import { HttpError, localAccessFault } from "../../http/index.js";
import type { LivePlan } from "../../native/live.js";
import { refusal } from "../check-body.js";
import type { InferenceService } from "../service.js";
import { livePlan } from "./plan.js";

/**
 * What a request's `tapline` object asks of the engine. It opens the model, so that it is for programs on this machine
 * only, whatever address the server is bound to.
 * @throws HttpError 403, 400
 */
export async function openLive(
  service: InferenceService,
  ctx: Context,
  given: LiveRequest | undefined,
): Promise<LivePlan | undefined> {
  if (given === undefined) return undefined;
  const fault = localAccessFault(ctx.req);
  if (fault !== null) throw new HttpError(403, `tapline: ${fault}`, { param: "tapline" });
  const { captures, noCaptureReason } = service.engine.info;
  if (!captures) throw refusal("tapline", `tapline: ${noCaptureReason}`);
  const conditional = given.stop_when ?? given.interventions?.find(({ when }) => when !== undefined);
  if (service.drafts && conditional !== undefined) {
    throw refusal("tapline", "tapline: conditions cannot be followed beside a draft model (--draft).");
  }
  return livePlan(given, service.library);
}
