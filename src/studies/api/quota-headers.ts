import type { Context } from "koa";
import { studyLimits } from "../../contracts/studies/index.js";
import type { WindowState } from "../store/window.js";

/** Without a known token nothing is counted, so the headers report a full quota. */
const untouched: WindowState = {
  limit: studyLimits.requests,
  remaining: studyLimits.requests,
  resetSeconds: 0,
};

/** `RateLimit-Reset` is the time until the oldest counted request leaves the window, in seconds. */
export function setQuotaHeaders(ctx: Context, window: WindowState = untouched): void {
  ctx.set("RateLimit-Limit", String(window.limit));
  ctx.set("RateLimit-Remaining", String(window.remaining));
  ctx.set("RateLimit-Reset", String(window.resetSeconds));
}
