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
 * The inference server's application. /lab and /executions answer programs on this machine only, whatever
 * address the server is bound to; an API key, where there is one, guards them and everything else but /health. Without a
 * key, other machines get /v1 and /health alone.
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
    what: "A language model behind an OpenAI-style API, and its inside while it answers.",
    state:
      `Serving ${info.id}${others.length > 0 ? `, also called ${others.join(", ")}` : ""} ` +
      `(${info.architecture}, ${info.quantization}): ${info.slots} slots of ${info.slotContext} tokens.`,
    endpoints: [
      ["POST /v1/chat/completions", "chat; streams, tools, formats, log-probabilities"],
      ["POST /v1/responses", "OpenAI's Responses"],
      ["POST /v1/messages", "Anthropic's Messages"],
      ["POST /v1/completions", "text that goes on"],
      ["POST /v1/embeddings", info.embeddings ? `embeddings, pooling ${info.pooling}` : "off here"],
      ["GET /v1/models", "the model"],
      ["GET /openapi.json", "every body that is accepted"],
      ["GET /stats", "counts, speeds, waiting"],
      ["GET /metrics", "the same for Prometheus"],
      ["POST /lab/activations", "what is inside; for programs on this machine"],
    ],
    example: (url) => `curl -s ${url}/v1/chat/completions -d '{
  "messages": [{"role": "user", "content": "What is the capital of France?"}]}'`,
  };
}

/** What other machines, and clients of proxies, may ask of a server that has no key. */
function shareWithoutKey(key: string | undefined): Middleware {
  return (ctx, next) => {
    if (key === undefined && !shared(ctx.path) && remoteFault(ctx.req) !== null) {
      throw new HttpError(403, "Without an API key, other machines may use /v1 and /health only.");
    }
    return next();
  };
}

/** Requests that were refused before anything counted them. */
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

/** What becomes of requests that the engine dropped: their client has gone, or the server ends. */
const answerForEngine: Middleware = async (ctx, next) => {
  try {
    await next();
  } catch (error) {
    if (!(error instanceof NativeError)) throw error;
    if (error.code === "CANCELLED" && ctx.res.destroyed) return;
    if (error.code !== "CLOSED") throw error;
    throw new HttpError(503, "The server is ending.", { headers: { "Retry-After": "5" } });
  }
};
