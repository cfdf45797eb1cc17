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

/** The API's routes: paths match exactly as they stand, without case or trailing slash rules. */
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
    unlisted: "the description itself, which needs no token",
    answer(_, ctx) {
      checkSecure(service, ctx);
      return send(ctx, 200, description, true);
    },
  };
  return routesOf([...endpoints, own], service);
}

/** Answers requests under /api, refusals included; others go on. */
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

/** Admits a request to an endpoint, answers it, and writes down that it was made. */
async function respond(service: Service, endpoint: ApiEndpoint, ctx: RouteContext): Promise<void> {
  let resource = resourceOf(ctx.captures[0] ?? "");
  let credential: Credential | undefined;
  await refusing(service, ctx, async () => {
    checkSecure(service, ctx);
    if (isDisabled(service)) {
      throw new ApiError("disabled", "The API is switched off for the moment; the website is not.", {
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
  if (!isSecure(service, ctx)) throw new ApiError("https_required", "The API answers over HTTPS only.");
}

/** @param shared whether every token gets the same, so that it may be compressed */
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
  // A package may have a megabyte: it goes out as it was read, not as a copy.
  ctx.body = Buffer.isBuffer(body) ? body : Readable.from(body);
  ctx.length = parts.reduce((length, part) => length + part.length, 0);
}

/** Does what answers a request, and says why it was not done. */
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
  // Between the token's check and the write.
  if (error instanceof AccountSuspended) return revoked(service);
  if (!isDisconnect(error)) logFault(service, requestId, error);
  return new ApiError(
    "unavailable",
    "The service cannot answer just now; whether a write happened is open.",
    { headers: { "Retry-After": "5" } },
  );
}

/** @param methods that the path has */
function unrouted(methods: string[]): ApiError {
  if (methods.length === 0) return new ApiError("not_found", "The API has no such path.");
  const allowed = methods.join(", ");
  return new ApiError("method_not_allowed", `This path accepts ${allowed}.`, { headers: { Allow: allowed } });
}

/** Only ids enter activity records: what else stands in a path is text of the client's. */
function resourceOf(segment: string): string | null {
  return /^[0-9a-fA-F-]{36}$/.test(segment) ? segment.toLowerCase() : null;
}
