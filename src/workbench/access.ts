import type { IncomingMessage } from "node:http";
import type { Middleware } from "koa";
import { HttpError, headerValues, isLoopback, localAccessFault, remoteFault } from "../http/index.js";
import { plotStyles } from "./plot-styles.js";
import type { Sessions } from "./sessions.js";

/** The header that carries a session's second half. */
export const secretHeader = "x-tapline-workbench";
/** Where programs of this machine ask for a link; browsers are refused there. */
export const linkPath = "/control/links";

/** What the page may do: run its own files, ask its own service, and show pictures that it drew itself. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  `style-src 'self' ${plotStyles.map(({ hash }) => `'${hash}'`).join(" ")}`,
  "connect-src 'self'",
  // Plot draws the ramp of a legend into a data: image; such images ask nobody for anything.
  "img-src 'self' blob: data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

/** Said with every answer, refusals included. */
export const guardHeaders: Middleware = (ctx, next) => {
  ctx.set("Content-Security-Policy", policy);
  ctx.set("Referrer-Policy", "no-referrer");
  ctx.set("X-Frame-Options", "DENY");
  ctx.set("Cross-Origin-Opener-Policy", "same-origin");
  ctx.set("Cross-Origin-Resource-Policy", "same-origin");
  return next();
};

/** The cookie's name: cookies do not know ports. */
export function cookieName(port: number | undefined): string {
  return `tapline_${port}`;
}

/** Refuses whatever is not the one page of this origin, and, under /api, whoever has not shown a link. */
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
      throw new HttpError(403, "Only the workbench's own page may ask here.");
    }
    if (!["GET", "HEAD"].includes(ctx.method) && !isJson(ctx.headers["content-type"])) {
      throw new HttpError(415, "The body has to be application/json.");
    }
    if (ctx.path === "/api/session" && ctx.method === "POST") return next();
    const cookie = cookieOf(ctx.req, cookieName(ctx.socket.localPort));
    const secret = headerValues(ctx.req, (name) => name === secretHeader);
    if (cookie === undefined || secret.length !== 1 || !sessions.holds(cookie, secret[0] as string)) {
      throw new HttpError(
        401,
        "This browser is not signed in here, or not any more. `tapline workbench --link` prints a link.",
      );
    }
    return next();
  };
}

/** Why a request is of no page that this service gave out, or null. */
function originFault(request: IncomingMessage): string | null {
  const { localPort: port, localAddress } = request.socket;
  const remote = remoteFault(request);
  if (remote !== null) return remote;
  if (!isLoopback(localAddress)) return "The workbench answers this machine only.";
  if (!/^\/(?!\/)/.test(request.url ?? "")) return "The request target must be a path on this server.";
  const hosts = headerValues(request, (name) => name === "host");
  if (hosts.length !== 1) return `Exactly one Host header is needed; the request has ${hosts.length}.`;
  const own = `127.0.0.1:${port}`;
  if (hosts[0] !== own) return `The workbench has one address: open http://${own}/ in place of this one.`;
  const origins = headerValues(request, (name) => name === "origin");
  const reads = ["GET", "HEAD"].includes(request.method ?? "");
  const needed = reads ? 0 : 1;
  if (origins.length < needed || origins.length > 1 || origins.some((origin) => origin !== `http://${own}`)) {
    return `Only the page at http://${own} may send this.`;
  }
  const dest = request.headers["sec-fetch-dest"];
  if (["iframe", "frame", "embed", "object", "fencedframe"].includes(String(dest))) {
    return "The workbench is shown in no frame.";
  }
  return null;
}

function isJson(type: string | undefined): boolean {
  return /^application\/json(?:\s*;\s*charset=utf-8)?$/i.test(type ?? "");
}

/** A cookie's value; none where it was sent twice. */
function cookieOf(request: IncomingMessage, name: string): string | undefined {
  const found = headerValues(request, (header) => header === "cookie")
    .flatMap((line) => line.split(";"))
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`));
  return found.length === 1 ? (found[0] as string).slice(name.length + 1) : undefined;
}
