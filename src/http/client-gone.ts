import type { Context } from "koa";

/** Aborts when the client disconnects before the response is complete. */
export function clientGone(ctx: Context): AbortController {
  const gone = new AbortController();
  ctx.res.once("close", () => {
    if (!ctx.res.writableFinished) gone.abort();
  });
  if (ctx.res.destroyed) gone.abort();
  return gone;
}
