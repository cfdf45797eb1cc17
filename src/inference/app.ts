import type Koa from "koa";
import type { Middleware } from "koa";
import {
  createApp,
  type FrontPage,
  frontPage,
  HttpError,
  keyAccess,
  localAccess,
  remoteFault,
  routesOf,
  sharedAccess,
  underPath,
} from "../http/index.js";
import { NativeError } from "../native/index.js";
import { inferenceEndpoints } from "./endpoints.js";
import { forPages, servingErrorBody } from "./paths.js";
import type { InferenceService } from "./service.js";

const inside = underPath("/lab", "/executions");
const open = underPath("/health", "/v1/health");
const shared = underPath("/v1", "/health");

/**
 * The inference server's application. /lab and /executions are open only to programs on this machine, regardless of
 * the bound address. An API key, if set, protects everything but /health. Without a key, other machines may use only
 * /v1 and /health.
 */
export function inferenceApp(service: InferenceService, log?: (line: string) => void): Koa {
  return createApp({
    before: [
      frontPage(() => greeting(service)),
      localAccess(inside),
      sharedAccess(service.cors, forPages),
      shareWithoutKey(service.apiKey),
      keyAccess(service.apiKey, (path) => !open(path)),
      countRefusals(service),
      answerForEngine,
    ],
    routers: [routesOf(inferenceEndpoints, service)],
    errorBodyAt: servingErrorBody,
    ...(log === undefined ? {} : { log }),
  });
}

function greeting({ engine: { info }, aliases }: InferenceService): FrontPage {
  const others = aliases.filter((name) => name !== info.id);
  return {
    name: "tapline serve",
    what: "An OpenAI-compatible server with live access to the model's activations.",
    state:
      `Serving ${info.id}${others.length > 0 ? `, also available as ${others.join(", ")}` : ""} ` +
      `(${info.architecture}, ${info.quantization}): ${info.slots} slots of ${info.slotContext} tokens.`,
    endpoints: [
      ["POST /v1/chat/completions", "chat, with streaming, tools, formats and log-probabilities"],
      ["POST /v1/responses", "OpenAI's Responses API"],
      ["POST /v1/messages", "Anthropic's Messages API"],
      ["POST /v1/completions", "text completion"],
      ["POST /v1/embeddings", info.embeddings ? `embeddings, pooling ${info.pooling}` : "disabled"],
      ["GET /v1/models", "the model"],
      ["GET /openapi.json", "the OpenAPI description"],
      ["GET /stats", "counts, speeds and queue"],
      ["GET /metrics", "the same in Prometheus format"],
      ["POST /lab/activations", "activations; for programs on this machine"],
    ],
    example: (url) => `curl -s ${url}/v1/chat/completions -d '{
  "messages": [{"role": "user", "content": "What is the capital of France?"}]}'`,
  };
}

/** Limits other machines and clients of proxies on a server without a key. */
function shareWithoutKey(key: string | undefined): Middleware {
  return (ctx, next) => {
    if (key === undefined && !shared(ctx.path) && remoteFault(ctx.req) !== null) {
      throw new HttpError(403, "Without an API key, other machines may use /v1 and /health only.");
    }
    return next();
  };
}

/** Counts requests that were refused early. */
function countRefusals(service: InferenceService): Middleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      if (error instanceof HttpError && error.status < 500 && !ctx.state.counted)
        service.stats.requests.refused++;
      throw error;
    }
  };
}

/** Answers requests that the engine dropped because the client disconnected or the server is shutting down. */
const answerForEngine: Middleware = async (ctx, next) => {
  try {
    await next();
  } catch (error) {
    if (!(error instanceof NativeError)) throw error;
    if (error.code === "CANCELLED" && ctx.res.destroyed) return;
    if (error.code !== "CLOSED") throw error;
    throw new HttpError(503, "The server is shutting down.", { headers: { "Retry-After": "5" } });
  }
};
