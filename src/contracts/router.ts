import Type, { type Static } from "typebox";
import { llamaServerPaths } from "./llama-server.js";
import { oneOf, optional, orNull } from "./optional.js";
import { count, percentiles } from "./stats.js";

/** Limits of the router. Bodies have the inference server's limits. */
export const routerLimits = {
  backends: 64,
  url_characters: 2048,
  slots: 1024,
  /** Concurrent requests. */
  active: 4096,
  /** A request that this many backends died on before their first byte is not retried. */
  deaths: 5,
  /** Maximum size of a backend's model list. */
  answer_bytes: 4_194_304,
} as const;

/** Paths that a router forwards: the endpoints that name a model. */
export const forwardedPaths = [
  "/v1/chat/completions",
  "/v1/chat/completions/input_tokens",
  "/v1/completions",
  "/v1/embeddings",
  "/v1/messages",
  "/v1/messages/count_tokens",
  "/v1/rerank",
  "/v1/reranking",
  "/v1/responses",
  "/v1/responses/input_tokens",
  ...llamaServerPaths.asked,
] as const;

/** The model id for which the router chooses a backend. */
export const autoModel = "auto";

export const BackendConfig = Type.Object(
  {
    url: Type.String({
      minLength: 1,
      maxLength: routerLimits.url_characters,
      description: "Origin of an OpenAI-style server, e.g. http://127.0.0.1:8971; a trailing /v1 is allowed.",
    }),
    api_key: optional.String({ pattern: "^[\\x21-\\x7e]+$", description: "API key of this backend." }),
    model: optional.String({
      minLength: 1,
      maxLength: 4096,
      description: "Model that `auto` stands for on this backend; by default the first one it lists.",
    }),
    slots: optional.Integer({
      minimum: 1,
      maximum: routerLimits.slots,
      description: "Concurrent requests it can generate, if it does not report this.",
    }),
  },
  { additionalProperties: false, title: "BackendConfig" },
);
export type BackendConfig = Static<typeof BackendConfig>;

/** The file given with `--config`. */
export const RouterConfig = Type.Object(
  { backends: Type.Array(BackendConfig, { minItems: 1, maxItems: routerLimits.backends }) },
  { additionalProperties: false, title: "RouterConfig" },
);
export type RouterConfig = Static<typeof RouterConfig>;

export const BackendStats = Type.Object(
  {
    url: Type.String(),
    state: oneOf("starting", "healthy", "aside"),
    models: Type.Array(Type.String()),
    slots: Type.Integer({ minimum: 1 }),
    active: Type.Integer({
      minimum: 0,
      description: "Requests from this router in progress on the backend.",
    }),
    elsewhere: Type.Integer({
      minimum: 0,
      description: "Requests from other clients, as last reported by the backend.",
    }),
    requests: Type.Integer({ minimum: 0, description: "Requests sent to the backend so far." }),
    failures: Type.Integer({ minimum: 0, description: "How often it was taken out of rotation." }),
    time_to_first_token_ms: orNull(Type.Number({ description: "Of streams, smoothed." })),
    next_check_seconds: orNull(
      Type.Number({ description: "Until the next health check, while out of rotation." }),
    ),
    last_error: orNull(Type.String()),
  },
  { title: "BackendStats" },
);
export type BackendStats = Static<typeof BackendStats>;

/** The answer of the router's `GET /stats`. */
export const RouterStats = Type.Object(
  {
    uptime_seconds: Type.Number(),
    requests: Type.Object({
      total: count(),
      active: count(),
      completed: count(),
      failed: count(),
      cancelled: count(),
      refused: count(),
      retried: Type.Integer({ minimum: 0, description: "Attempts beyond a request's first." }),
    }),
    latency_ms: Type.Object({
      time_to_first_token: percentiles,
      total: percentiles,
    }),
    backends: Type.Array(BackendStats),
  },
  { title: "RouterStats" },
);
export type RouterStats = Static<typeof RouterStats>;
