import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import type { Middleware } from "koa";
import { HttpError } from "./errors.js";
import { headerValues, isLoopback } from "./local-access.js";

/** Origins whose pages may ask; "*" stands for every one. */
export type AllowedOrigins = readonly string[];

/**
 * Why a request may not use an endpoint that is shared, or null when it may. A page of another site can send a form
 * or plain text anywhere without asking first, and can reach loopback under a name of its own that it lets resolve
 * there; neither may start work here. A body of JSON makes browsers ask first, and without leave they do not send it.
 * @param origins pages of these may ask whatever they like
 */
export function sharedAccessFault(request: IncomingMessage, origins: AllowedOrigins): string | null {
  const hosts = headerValues(request, (name) => name === "host");
  if (hosts.length > 1) return `One Host header is needed; the request has ${hosts.length}.`;
  const host = hosts[0] ?? "";
  if (hosts.length === 1 && isLoopback(request.socket.localAddress) && !namesLoopback(host)) {
    return "On loopback the Host header must be localhost, 127.0.0.1 or [::1].";
  }
  const { method = "GET", headers } = request;
  if (["GET", "HEAD", "OPTIONS"].includes(method) || !isFromOtherSite(request, host, origins)) return null;
  const type = headers["content-type"]?.split(";")[0]?.trim().toLowerCase() ?? "";
  if (/^application\/([\w.-]+\+)?json$/.test(type)) return null;
  return (
    "Requests from pages of other sites must be application/json, and their origin allowed by --cors; " +
    `got ${type === "" ? "no Content-Type" : type.slice(0, 100)}.`
  );
}

/**
 * The headers that let a page of an allowed origin read the answer; for a preflight, those that let it ask. Empty
 * for any other origin, and for who sends none.
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

/** Whether a browser asks if a page may send what it is about to send. */
export function isPreflight({ method, headers }: Pick<IncomingMessage, "method" | "headers">): boolean {
  return method === "OPTIONS" && headers["access-control-request-method"] !== undefined;
}

/**
 * Refuses with 403 what sharedAccessFault names, everywhere; lets pages of the given origins in where `pages` says so, and
 * answers no page of another site elsewhere. It has to come before the check of a key: browsers send none with the
 * question whether a page may ask.
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

/** Why the page of another site is not answered, or null. */
function foreignPageFault(
  request: IncomingMessage,
  origins: AllowedOrigins,
  forPages: boolean,
): string | null {
  const { method, headers } = request;
  if (headers.origin === undefined || !isFromOtherSite(request, headers.host ?? "", origins)) return null;
  if (!forPages) return "Pages of other sites may use /v1 only, and only if --cors allows their origin.";
  if (method !== "OPTIONS") return null;
  return `Pages of ${headers.origin.slice(0, 200)} may not use this server; --cors allows an origin.`;
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

/** A name for loopback, with any port: a tunnel may end here that begins elsewhere. */
function namesLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/:\d*$/, "");
  if (name === "localhost") return true;
  const address = /^\[.*\]$/.test(name) ? name.slice(1, -1) : name;
  return isIP(address) !== 0 && isLoopback(address);
}
