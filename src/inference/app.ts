import { createHash, timingSafeEqual } from "node:crypto";
import type Koa from "koa";
import type { Middleware } from "koa";
import {
  createApp,
  type ErrorBody,
  HttpError,
  localAccess,
  openAiErrorBody,
  plainErrorBody,
  underPath,
} from "../http/index.js";
import { insideRoutes } from "./inside.js";
import type { InferenceService } from "./service.js";
import { statusRoutes } from "./status.js";
import { textRoutes } from "./text.js";
import { v1Routes } from "./v1.js";

const inside = underPath("/lab", "/executions");
const openAi = underPath("/v1");
const open = underPath("/health");

/**
 * The inference server's application. /lab and /executions answer programs on this machine only, whatever
 * address the server is bound to; an API key, where there is one, guards everything else but /health.
 */
export function inferenceApp(service: InferenceService, log?: (line: string) => void): Koa {
  return createApp({
    before: [localAccess(inside), checkApiKey(service.apiKey), countRefusals(service)],
    routers: [v1Routes(service), textRoutes(service), statusRoutes(service), insideRoutes(service)],
    errorBody: errorBody,
    ...(log === undefined ? {} : { log }),
  });
}

const errorBody: ErrorBody = (error, ctx) =>
  (openAi(ctx.path) ? openAiErrorBody : plainErrorBody)(error, ctx);

function checkApiKey(key: string | undefined): Middleware {
  if (key === undefined) return (_ctx, next) => next();
  const wanted = digest(key);
  return (ctx, next) => {
    if (inside(ctx.path) || open(ctx.path)) return next();
    const given = /^Bearer +(.+)$/i.exec(ctx.get("Authorization"))?.[1] ?? "";
    if (!timingSafeEqual(digest(given), wanted)) {
      throw new HttpError(401, "A valid API key is needed: send Authorization: Bearer <key>.", {
        code: "invalid_api_key",
        headers: { "WWW-Authenticate": "Bearer" },
      });
    }
    return next();
  };
}

function countRefusals(service: InferenceService): Middleware {
  return async (_ctx, next) => {
    try {
      await next();
    } catch (error) {
      if (error instanceof HttpError && error.status < 500) service.stats.requests.refused++;
      throw error;
    }
  };
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
