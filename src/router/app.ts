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
import { cameBack, notServed, unavailable } from "./forward.js";
import { isComingBack, withVia } from "./headers.js";
import { pick } from "./pick.js";
import type { RouterService } from "./service.js";

const shared = underPath("/v1");
const open = underPath("/health");

/**
 * The router's application, but for what is forwarded. /v1 is for everybody who reaches the port; everything
 * else answers programs on this machine only. Where there is a key, all but /health asks for it.
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
      ["POST /v1/chat/completions", "goes to a backend that serves the model; so do the other paths of /v1"],
      ["GET /v1/models", "what the backends serve"],
      ["GET /health", "whether any backend is healthy"],
      ["GET /stats", "each backend's state and counts"],
    ],
    example: (url) => `curl -s ${url}/v1/chat/completions -d '{
  "model": "auto", "messages": [{"role": "user", "content": "What is the capital of France?"}]}'`,
  };
}

const unlisted = "the router has no description of its own: what it forwards is the backends'";

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
    answer: (service: RouterService, ctx: RouteContext) => told(service, ctx, path),
  })),
  { at: "GET /health", also: ["/v1/health"], unlisted, answer: health },
  { at: "GET /stats", unlisted, answer: (service) => service.report() },
];

/** What the healthy backends serve, each id once, and the id that leaves the choice to the router. */
function modelsOf(service: RouterService): ModelObject[] {
  const auto = { id: autoModel, object: "model", created: service.startedAt, owned_by: "tapline" };
  const models = new Map<string, ModelObject>([[autoModel, auto]]);
  for (const backend of service.backends) {
    if (backend.state !== "healthy") continue;
    for (const model of backend.models) if (!models.has(model.id)) models.set(model.id, model);
  }
  return [...models.values()];
}

/** What one server tells of itself, as llama-server's clients ask: of a backend that serves `?model=ID`. */
async function told(service: RouterService, ctx: RouteContext, path: string): Promise<void> {
  if (isComingBack(ctx.req, service.via)) throw cameBack();
  const { model } = ctx.query;
  const wanted = typeof model === "string" && model !== autoModel ? model : null;
  const backend = pick(service.backends, wanted, new Set(), performance.now());
  if (backend === null) throw unavailable(service, wanted);
  const { status, body } = await service.health
    .told(backend, path, withVia(ctx.get("X-Tapline-Route"), service.via))
    .catch((error: Error) => {
      throw new HttpError(502, `${backend.url} does not tell its ${path}: ${error.message}.`);
    });
  if (body === undefined) throw new HttpError(502, `${backend.url} answers ${status}, without JSON.`);
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
