import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { Middleware } from "koa";
import { HttpError } from "./errors.js";

/**
 * Checks `Authorization: Bearer <key>`, or `X-Api-Key: <key>` as Anthropic's clients send it, in constant time. Throws a
 * 401 for anything else; without a key everything passes.
 */
export function apiKeyCheck(key: string | undefined): (headers: IncomingHttpHeaders) => void {
  if (key === undefined) return () => {};
  const wanted = digest(key);
  return (headers) => {
    const bearer = /^Bearer +(.+)$/i.exec(headers.authorization ?? "")?.[1] ?? "";
    for (const given of [bearer, String(headers["x-api-key"] ?? "")]) {
      if (timingSafeEqual(digest(given), wanted)) return;
    }
    throw new HttpError(401, "A valid API key is required: send Authorization: Bearer <key>.", {
      code: "invalid_api_key",
      headers: { "WWW-Authenticate": "Bearer" },
    });
  };
}

/** Requires the key, if there is one, for every request whose path `applies` accepts. */
export function keyAccess(key: string | undefined, applies: (path: string) => boolean): Middleware {
  const check = apiKeyCheck(key);
  return (ctx, next) => {
    if (applies(ctx.path)) check(ctx.headers);
    return next();
  };
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
