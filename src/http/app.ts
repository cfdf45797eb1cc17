import Router from "@koa/router";
import Koa, { type Context, type Middleware, type Next } from "koa";
import { type ErrorBody, HttpError, isDisconnect, plainErrorBody, toHttpError } from "./errors.js";

/** The context of a route's handler. */
export type RouteContext = Context & {
  /** Path parameters, decoded. */
  params: Record<string, string>;
  /** The same undecoded, in order. */
  captures: string[];
};

type Route = (path: string, answer: (ctx: RouteContext, next: Next) => unknown) => unknown;

/** Routes of a service. */
export interface Routes {
  readonly get: Route;
  readonly post: Route;
  readonly put: Route;
  readonly delete: Route;
  readonly all: Route;
  /** Every route, in order. */
  readonly stack: readonly { readonly path: string; readonly methods: readonly string[] }[];
  routes(): Middleware;
}

export interface AppOptions {
  /** Middleware that runs before any route: access rules, counters, recorders. In this order. */
  before?: Middleware[];
  routers: Routes[];
  /** Format of error bodies by path; default: `{"error": "<sentence>"}`. */
  errorBodyAt?: (path: string) => ErrorBody;
  /** Receives one line per internal error; default: standard error. */
  log?: (line: string) => void;
}

/** A router whose paths match exactly, including case and trailing slash, so that access rules cannot be bypassed. */
export function createRouter(prefix?: string): Routes {
  const router = new Router({ sensitive: true, strict: true, ...(prefix === undefined ? {} : { prefix }) });
  // The router's context types are wider than Koa's.
  return router as unknown as Routes;
}

/**
 * The base application of every local service: errors as JSON sentences, `Cache-Control: no-store`, 404 for unknown
 * routes, 405 with `Allow` for known routes with another method.
 */
export function createApp(options: AppOptions): Koa {
  const log = options.log ?? ((line: string) => void process.stderr.write(`${line}\n`));
  const app = new Koa();
  app.on("error", (error: unknown) => {
    if (!isDisconnect(error)) log(describeFault(error));
  });
  app.use(answerErrors(options.errorBodyAt ?? (() => plainErrorBody), log));
  for (const middleware of options.before ?? []) app.use(middleware);
  for (const router of options.routers) app.use(router.routes());
  app.use(refuseUnrouted);
  return app;
}

function answerErrors(errorBodyAt: (path: string) => ErrorBody, log: (line: string) => void): Middleware {
  return async (ctx, next) => {
    ctx.set("Cache-Control", "no-store");
    ctx.set("X-Content-Type-Options", "nosniff");
    try {
      await next();
    } catch (error) {
      // After the headers are sent, only closing the connection signals an error; Koa would leave it open.
      if (ctx.headerSent) {
        if (!ctx.res.writableEnded) ctx.res.destroy();
        throw error;
      }
      const refusal = toHttpError(error);
      if (refusal.status >= 500 && refusal !== error && !isDisconnect(error)) log(describeFault(error));
      ctx.status = refusal.status;
      ctx.set(refusal.headers);
      ctx.body = errorBodyAt(ctx.path)(refusal);
    }
  };
}

/** The methods that a path supports, for requests that no route handled. */
export function methodsOf(ctx: Context): string[] {
  const matched: { methods: string[] }[] = ctx.matched ?? [];
  return [...new Set(matched.flatMap((layer) => layer.methods))].sort();
}

/** Reached only when no route answered. */
const refuseUnrouted: Middleware = (ctx) => {
  const methods = methodsOf(ctx);
  if (methods.length === 0) throw new HttpError(404, `Nothing found at ${ctx.path}.`);
  throw new HttpError(405, `${ctx.path} accepts ${methods.join(", ")}, not ${ctx.method}.`, {
    headers: { Allow: methods.join(", ") },
  });
};

function describeFault(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
