import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import type { Middleware } from "koa";
import { HttpError } from "./errors.js";
import { headerValues, isLoopback } from "./local-access.js";

/** Origins whose pages may send requests; "*" means all. */
export type AllowedOrigins = readonly string[];

/**
 * Why a request may not use a shared endpoint, or null if it may. Other sites' pages can send forms or plain text without
 * a preflight, and can reach loopback by DNS rebinding; neither may start work here. For JSON bodies browsers send a
 * preflight first.
 * @param origins pages of these origins may send any request
 */
export function sharedAccessFault(request: IncomingMessage, origins: AllowedOrigins): string | null {
  const hosts = headerValues(request, (name) => name === "host");
  if (hosts.length > 1) return `At most one Host header is allowed, got ${hosts.length}.`;
  const host = hosts[0] ?? "";
  if (hosts.length === 1 && isLoopback(request.socket.localAddress) && !namesLoopback(host)) {
    return "On loopback the Host header must be localhost, 127.0.0.1 or [::1].";
  }
  const { method = "GET", headers } = request;
  if (["GET", "HEAD", "OPTIONS"].includes(method) || !isFromOtherSite(request, host, origins)) return null;
  const type = headers["content-type"]?.split(";")[0]?.trim().toLowerCase() ?? "";
  if (/^application\/([\w.-]+\+)?json$/.test(type)) return null;
  return (
    "Requests from other sites' pages must be application/json, and --cors must allow their origin; " +
    `got ${type === "" ? "no Content-Type" : type.slice(0, 100)}.`
  );
}

/**
 * CORS headers for pages of allowed origins, including preflight headers. Empty for other origins and requests without
 * one.
 */
export function corsHeaders(
  request: Pick<IncomingMessage, "method" | "headers">,
  origins: AllowedOrigins,
): Record<string, string> {
  const { headers } = request;
  if (origins.length === 0) return {};
  const vary: Record<string, string> = origins.includes("*") ? {} : { Vary: "Origin" };
  if (headers.origin === undefined || !isAllowed(headers.origin, origins)) return vary;
  const answer = {
    "Access-Control-Allow-Origin": origins.includes("*") ? "*" : headers.origin,
    "Access-Control-Expose-Headers": "Retry-After, X-Tapline-Execution-ID",
    ...vary,
  };
  if (!isPreflight(request)) return answer;
  return {
    ...answer,
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": headers["access-control-request-headers"] ?? "Content-Type",
    "Access-Control-Max-Age": "600",
    ...(headers["access-control-request-private-network"] && {
      "Access-Control-Allow-Private-Network": "true",
    }),
  };
}

/** Whether a request is a CORS preflight. */
export function isPreflight({ method, headers }: Pick<IncomingMessage, "method" | "headers">): boolean {
  return method === "OPTIONS" && headers["access-control-request-method"] !== undefined;
}

/**
 * Rejects with 403 what sharedAccessFault reports; allows pages of the given origins on paths that `pages` accepts, and
 * rejects other sites' pages elsewhere. Must come before the API key check, since preflights carry no key.
 */
export function sharedAccess(origins: AllowedOrigins, pages: (path: string) => boolean): Middleware {
  return (ctx, next) => {
    const forPages = pages(ctx.path);
    const allowed = forPages ? origins : [];
    const fault = sharedAccessFault(ctx.req, allowed) ?? foreignPageFault(ctx.req, allowed, forPages);
    if (fault !== null) throw new HttpError(403, fault);
    const headers = corsHeaders(ctx.req, allowed);
    ctx.set(headers);
    if (headers["Access-Control-Allow-Origin"] === undefined || !isPreflight(ctx.req)) return next();
    ctx.status = 204;
    return undefined;
  };
}

/** Why another site's page is rejected, or null. */
function foreignPageFault(
  request: IncomingMessage,
  origins: AllowedOrigins,
  forPages: boolean,
): string | null {
  const { method, headers } = request;
  if (headers.origin === undefined || !isFromOtherSite(request, headers.host ?? "", origins)) return null;
  if (!forPages) return "Other sites' pages may use only /v1, and only if --cors allows their origin.";
  if (method !== "OPTIONS") return null;
  return `Pages of ${headers.origin.slice(0, 200)} may not use this server; allow the origin with --cors.`;
}

function isFromOtherSite({ headers }: IncomingMessage, host: string, origins: AllowedOrigins): boolean {
  const { origin } = headers;
  if (origin !== undefined) {
    const own = URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
    return !own && !isAllowed(origin, origins);
  }
  const site = headers["sec-fetch-site"];
  return site === "cross-site" || site === "same-site";
}

function isAllowed(origin: string, origins: AllowedOrigins): boolean {
  return origins.includes("*") || origins.includes(origin);
}

/** Whether a host names loopback, with any port, since the request may come through a tunnel. */
function namesLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/:\d*$/, "");
  if (name === "localhost") return true;
  const address = /^\[.*\]$/.test(name) ? name.slice(1, -1) : name;
  return isIP(address) !== 0 && isLoopback(address);
}
