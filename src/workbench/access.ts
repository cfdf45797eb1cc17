import type { IncomingMessage } from "node:http";
import type { Middleware } from "koa";
import { HttpError, headerValues, isLoopback, localAccessFault, remoteFault } from "../http/index.js";
import { plotStyles } from "./plot-styles.js";
import type { Sessions } from "./sessions.js";

/** The header with a session's secret. */
export const secretHeader = "x-tapline-workbench";
/** Where local programs request a sign-in link; browsers are rejected. */
export const linkPath = "/control/links";

/** The page may run its own files, call its own service, and show images that it drew itself. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  `style-src 'self' ${plotStyles.map(({ hash }) => `'${hash}'`).join(" ")}`,
  "connect-src 'self'",
  // Plot draws the ramp of a legend into a data: image, which makes no request.
  "img-src 'self' blob: data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

/** Sent with every response, including errors. */
export const guardHeaders: Middleware = (ctx, next) => {
  ctx.set("Content-Security-Policy", policy);
  ctx.set("Referrer-Policy", "no-referrer");
  ctx.set("X-Frame-Options", "DENY");
  ctx.set("Cross-Origin-Opener-Policy", "same-origin");
  ctx.set("Cross-Origin-Resource-Policy", "same-origin");
  return next();
};

/** The cookie's name contains the port, because cookies do not. */
export function cookieName(port: number | undefined): string {
  return `tapline_${port}`;
}

/** Rejects requests from other origins and, under /api, requests without a session. */
export function workbenchAccess(sessions: Sessions): Middleware {
  return (ctx, next) => {
    if (ctx.path === linkPath) {
      const fault = localAccessFault(ctx.req);
      if (fault !== null) throw new HttpError(403, fault);
      return next();
    }
    const fault = originFault(ctx.req);
    if (fault !== null) throw new HttpError(403, fault);
    if (!ctx.path.startsWith("/api/")) return next();
    const site = ctx.headers["sec-fetch-site"];
    if (site !== undefined && site !== "same-origin") {
      throw new HttpError(403, "Only the workbench's own page may use this API.");
    }
    if (!["GET", "HEAD"].includes(ctx.method) && !isJson(ctx.headers["content-type"])) {
      throw new HttpError(415, "The body must be application/json.");
    }
    if (ctx.path === "/api/session" && ctx.method === "POST") return next();
    const cookie = cookieOf(ctx.req, cookieName(ctx.socket.localPort));
    const secret = headerValues(ctx.req, (name) => name === secretHeader);
    if (cookie === undefined || secret.length !== 1 || !sessions.holds(cookie, secret[0] as string)) {
      throw new HttpError(401, "You're signed out: the workbench restarted or the session ended.");
    }
    return next();
  };
}

/** Why a request does not come from a page of this service, or null. */
function originFault(request: IncomingMessage): string | null {
  const { localPort: port, localAddress } = request.socket;
  const remote = remoteFault(request);
  if (remote !== null) return remote;
  if (!isLoopback(localAddress)) return "The workbench only accepts connections from this machine.";
  if (!/^\/(?!\/)/.test(request.url ?? "")) return "The request target must be a path on this server.";
  const hosts = headerValues(request, (name) => name === "host");
  if (hosts.length !== 1) return `Exactly one Host header is needed; the request has ${hosts.length}.`;
  const own = `127.0.0.1:${port}`;
  if (hosts[0] !== own) return `Open the workbench at http://${own}/; it has no other address.`;
  const origins = headerValues(request, (name) => name === "origin");
  const reads = ["GET", "HEAD"].includes(request.method ?? "");
  const needed = reads ? 0 : 1;
  if (origins.length < needed || origins.length > 1 || origins.some((origin) => origin !== `http://${own}`)) {
    return `Only the page at http://${own} may send this.`;
  }
  const dest = request.headers["sec-fetch-dest"];
  if (["iframe", "frame", "embed", "object", "fencedframe"].includes(String(dest))) {
    return "The workbench cannot be shown in a frame.";
  }
  return null;
}

function isJson(type: string | undefined): boolean {
  return /^application\/json(?:\s*;\s*charset=utf-8)?$/i.test(type ?? "");
}

/** A cookie's value; undefined if it was sent twice. */
function cookieOf(request: IncomingMessage, name: string): string | undefined {
  const found = headerValues(request, (header) => header === "cookie")
    .flatMap((line) => line.split(";"))
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`));
  return found.length === 1 ? (found[0] as string).slice(name.length + 1) : undefined;
}
