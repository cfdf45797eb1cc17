import { createHash, randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import type { Context, Middleware } from "koa";
import { constantRequestId, type ErrorBody } from "../../contracts/studies/index.js";
import { methodsOf, type RouteContext, type Routes } from "../../http/app.js";
import { type Endpoint, routesOf } from "../../http/endpoints.js";
import { isDisconnect } from "../../http/errors.js";
import { ApiError } from "../api-error.js";
import { answeredAsKnown, etagOf, pack, sendPacked, wantsGzip } from "../http/conditional.js";
import { isSecure } from "../http/transport.js";
import { isDisabled, logFault, type Service } from "../service.js";
import type { Credential } from "../store/admission.js";
import { AccountSuspended } from "../store/store.js";
import { authenticate, revoked } from "./authenticate.js";
import { type ApiEndpoint, apiEndpoints, openApi } from "./endpoints.js";
import { setQuotaHeaders } from "./quota-headers.js";

/** The API's routes. Paths must match exactly, including case and trailing slash. */
export function apiRoutes(service: Service): Routes {
  const description = Buffer.from(JSON.stringify(openApi(service.origin)));
  const endpoints = apiEndpoints.map(
    (endpoint): Endpoint<Service> => ({
      ...endpoint,
      answer: (_, ctx) => respond(service, endpoint, ctx),
    }),
  );
  const own: Endpoint<Service> = {
    at: "GET /api/v1/openapi.json",
    unlisted: "the OpenAPI document itself, which needs no token",
    answer(_, ctx) {
      checkSecure(service, ctx);
      return send(ctx, 200, description, true);
    },
  };
  return routesOf([...endpoints, own], service);
}

/** Answers requests under /api, including refusals, and passes other requests on. */
export function api(service: Service): Middleware {
  const routes = apiRoutes(service).routes();
  return async (ctx, next) => {
    if (ctx.path !== "/api" && !ctx.path.startsWith("/api/")) return next();
    ctx.set("Cache-Control", "no-store");
    ctx.set("X-Content-Type-Options", "nosniff");
    setQuotaHeaders(ctx as Context);
    await refusing(service, ctx as Context, () =>
      routes(ctx, async () => {
        throw unrouted(methodsOf(ctx as Context));
      }),
    );
  };
}

/** Authenticates a request, answers it, and records it. */
async function respond(service: Service, endpoint: ApiEndpoint, ctx: RouteContext): Promise<void> {
  let resource = resourceOf(ctx.captures[0] ?? "");
  let credential: Credential | undefined;
  await refusing(service, ctx, async () => {
    checkSecure(service, ctx);
    if (isDisabled(service)) {
      throw new ApiError("disabled", "The API is temporarily disabled; the website still works.", {
        headers: { "Retry-After": "60" },
      });
    }
    const admitted = await authenticate(service, ctx, endpoint.scope, (found) => {
      credential = found;
    });
    const answer = await endpoint.respond(service, ctx, admitted, ctx.captures);
    resource = answer.resource;
    await send(ctx, answer.status, answer.body, answer.shared);
  });
  if (credential) service.activity.record(credential.tokenId, endpoint.action, ctx.status, resource);
}

function checkSecure(service: Service, ctx: Context): void {
  if (!isSecure(service, ctx)) throw new ApiError("https_required", "The API is available over HTTPS only.");
}

/** @param shared whether every token gets the same answer, which makes compression safe */
async function send(
  ctx: Context,
  status: number,
  body: Buffer | readonly Buffer[],
  shared = false,
): Promise<void> {
  ctx.status = status;
  ctx.set("Content-Type", "application/json; charset=utf-8");
  const parts = Buffer.isBuffer(body) ? [body] : body;
  if (status < 300) {
    const hash = createHash("sha256");
    for (const part of parts) hash.update(part);
    const sha256 = hash.digest("hex");
    ctx.set("X-Content-SHA256", sha256);
    if (shared) {
      if (answeredAsKnown(ctx, etagOf(sha256))) return;
      if (wantsGzip(ctx)) return sendPacked(ctx, await pack(Buffer.concat(parts), sha256));
    }
  }
  // A package may have a megabyte, so its parts are streamed without copying.
  ctx.body = Buffer.isBuffer(body) ? body : Readable.from(body);
  ctx.length = parts.reduce((length, part) => length + part.length, 0);
}

/** Runs the handler and turns errors into error answers. */
async function refusing(service: Service, ctx: Context, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const requestId = randomUUID();
    const { message, code, field, reason, headers, status } = refusalOf(service, requestId, error);
    ctx.set(headers);
    const body: ErrorBody = {
      error: message,
      code,
      ...(field === undefined ? {} : { field }),
      ...(reason === undefined ? {} : { reason }),
      request_id: code === "not_found" ? constantRequestId : requestId,
    };
    await send(ctx, status, Buffer.from(JSON.stringify(body)));
  }
}

function refusalOf(service: Service, requestId: string, error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  // The account was suspended between the token check and the write.
  if (error instanceof AccountSuspended) return revoked(service);
  if (!isDisconnect(error)) logFault(service, requestId, error);
  return new ApiError(
    "unavailable",
    "The service is temporarily unavailable; a write may or may not have happened.",
    { headers: { "Retry-After": "5" } },
  );
}

/** @param methods the methods that the path supports */
function unrouted(methods: string[]): ApiError {
  if (methods.length === 0) return new ApiError("not_found", "No such path in the API.");
  const allowed = methods.join(", ");
  return new ApiError("method_not_allowed", `This path accepts ${allowed}.`, { headers: { Allow: allowed } });
}

/** Activity records store ids only, because any other path text comes from the client. */
function resourceOf(segment: string): string | null {
  return /^[0-9a-fA-F-]{36}$/.test(segment) ? segment.toLowerCase() : null;
}
