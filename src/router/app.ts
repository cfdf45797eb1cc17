import type Koa from "koa";
import { llamaServerPaths } from "../contracts/llama-server.js";
import { autoModel } from "../contracts/router.js";
import { executionEndpoints } from "../executions/index.js";
import {
  createApp,
  type Endpoint,
  errorBodyAt,
  type FrontPage,
  frontPage,
  HttpError,
  keyAccess,
  localAccess,
  type RouteContext,
  routesOf,
  sharedAccess,
  underPath,
} from "../http/index.js";
import type { ModelObject } from "./backend.js";
import { notServed, routingLoop, unavailable } from "./forward.js";
import { isLoop, withVia } from "./headers.js";
import { pick } from "./pick.js";
import type { RouterService } from "./service.js";

const shared = underPath("/v1");
const open = underPath("/health");

/**
 * The router's application, except forwarding. /v1 is open to everyone who can reach the port; everything else is for
 * programs on this machine. If there is a key, all paths except /health require it.
 */
export function routerApp(service: RouterService, log: (line: string) => void): Koa {
  return createApp({
    before: [
      frontPage(() => greeting(service)),
      localAccess((path) => !shared(path)),
      sharedAccess(service.cors, shared),
      keyAccess(service.apiKey, (path) => !open(path)),
    ],
    routers: [routesOf(routerEndpoints, service), routesOf(executionEndpoints, service.executions)],
    errorBodyAt,
    log,
  });
}

function greeting({ backends }: RouterService): FrontPage {
  const healthy = backends.filter(({ state }) => state === "healthy").length;
  return {
    name: "tapline router",
    what: "One address in front of several servers of language models.",
    state: `${healthy} of ${backends.length} backends ${backends.length === 1 ? "is" : "are"} healthy.`,
    endpoints: [
      [
        "POST /v1/chat/completions",
        "forwarded to a backend that serves the model, like the other paths of /v1",
      ],
      ["GET /v1/models", "models served by the backends"],
      ["GET /health", "whether any backend is healthy"],
      ["GET /stats", "each backend's state and counts"],
    ],
    example: (url) => `curl -s ${url}/v1/chat/completions -d '{
  "model": "auto", "messages": [{"role": "user", "content": "What is the capital of France?"}]}'`,
  };
}

const unlisted = "the router has no OpenAPI document: the forwarded endpoints are the backends'";

const routerEndpoints: readonly Endpoint<RouterService>[] = [
  {
    at: "GET /v1/models",
    unlisted,
    answer: (service) => ({ object: "list", data: modelsOf(service) }),
  },
  {
    at: "GET /v1/models/{*id}",
    unlisted,
    answer(service, { params }) {
      const wanted = params.id as string;
      const model = modelsOf(service).find(({ id }) => id === wanted);
      if (model === undefined) throw notServed(wanted);
      return model;
    },
  },
  ...llamaServerPaths.told.map((path) => ({
    at: `GET ${path}` as const,
    unlisted,
    answer: (service: RouterService, ctx: RouteContext) => statusPage(service, ctx, path),
  })),
  { at: "GET /health", also: ["/v1/health"], unlisted, answer: health },
  { at: "GET /stats", unlisted, answer: (service) => service.report() },
];

/** Models of the healthy backends, each id once, and the id that lets the router choose. */
function modelsOf(service: RouterService): ModelObject[] {
  const auto = { id: autoModel, object: "model", created: service.startedAt, owned_by: "tapline" };
  const models = new Map<string, ModelObject>([[autoModel, auto]]);
  for (const backend of service.backends) {
    if (backend.state !== "healthy") continue;
    for (const model of backend.models) if (!models.has(model.id)) models.set(model.id, model);
  }
  return [...models.values()];
}

/** Forwards llama-server's status pages, from a backend that serves `?model=ID`. */
async function statusPage(service: RouterService, ctx: RouteContext, path: string): Promise<void> {
  if (isLoop(ctx.req, service.via)) throw routingLoop();
  const { model } = ctx.query;
  const wanted = typeof model === "string" && model !== autoModel ? model : null;
  const backend = pick(service.backends, wanted, new Set(), performance.now());
  if (backend === null) throw unavailable(service, wanted);
  const { status, body } = await service.health
    .statusPage(backend, path, withVia(ctx.get("X-Tapline-Route"), service.via))
    .catch((error: Error) => {
      throw new HttpError(502, `${backend.url} did not return ${path}: ${error.message}.`);
    });
  if (body === undefined) throw new HttpError(502, `${backend.url} answered ${status} without JSON.`);
  ctx.status = status;
  ctx.body = body;
}

/** @throws HttpError 503 with Retry-After while no backend is healthy */
function health(service: RouterService): { status: "ok" } {
  if (!service.backends.some(({ state }) => state === "healthy")) {
    throw new HttpError(503, "No backend is healthy.", {
      headers: { "Retry-After": String(service.health.retryAfterSeconds()) },
    });
  }
  return { status: "ok" };
}
