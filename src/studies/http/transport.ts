import type { Context } from "koa";
import type { Service } from "../service.js";

/** Whether a request came by HTTPS: to this process, or to a named proxy that says so. */
export function isSecure(service: Service, ctx: Context): boolean {
  if (service.trustedProxies === null) return (ctx.req.socket as { encrypted?: boolean }).encrypted === true;
  const peer = (ctx.req.socket.remoteAddress ?? "").replace(/^::ffff:/, "");
  return service.trustedProxies.includes(peer) && ctx.req.headers["x-forwarded-proto"] === "https";
}
