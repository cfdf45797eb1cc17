import { createHash, randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import type { Context, Middleware } from "koa";
import { constantRequestId, type ErrorBody } from "../../contracts/studies/index.js";
import { isDisconnect } from "../../http/errors.js";
import { ApiError } from "../api-error.js";
import { answeredAsKnown, etagOf, pack, sendPacked, wantsGzip } from "../http/conditional.js";
import { isSecure } from "../http/transport.js";
import { isDisabled, logFault, type Service } from "../service.js";
import type { Credential } from "../store/admission.js";
import { AccountSuspended } from "../store/store.js";
import {
  createEndpoint,
  discussionEndpoint,
  type Endpoint,
  listEndpoint,
  studyEndpoint,
  versionEndpoint,
} from "./answers.js";
import { authenticate, revoked } from "./authenticate.js";
import { openApi } from "./endpoints.js";
import { setQuotaHeaders } from "./quota-headers.js";

type Found = { endpoints: Endpoint[]; segment: string; version: string } | "openapi" | null;

/** Everything under /api: paths match exactly as they stand, without decoding, case or trailing slash rules. */
function route(path: string): Found {
  if (path === "/api/v1/openapi.json") return "openapi";
  const match = /^\/api\/v1\/studies(?:\/([^/]+)(?:(\/discussion)|\/versions\/([^/]+))?)?$/.exec(path);
  if (match === null) return null;
  const [, segment = "", discussion, version = ""] = match;
  if (segment === "") return { endpoints: [listEndpoint, createEndpoint], segment, version };
  const plain = discussion === undefined ? studyEndpoint : discussionEndpoint;
  return { endpoints: [version === "" ? plain : versionEndpoint], segment, version };
}

/** Answers requests under /api, refusals included; others go on. */
export function api(service: Service): Middleware {
  const description = Buffer.from(JSON.stringify(openApi(service.origin)));
  return async (ctx, next) => {
    if (ctx.path !== "/api" && !ctx.path.startsWith("/api/")) return next();
    const requestId = randomUUID();
    const record: { endpoint?: Endpoint; credential?: Credential; resource: string | null } = {
      resource: null,
    };
    ctx.set("Cache-Control", "no-store");
    ctx.set("X-Content-Type-Options", "nosniff");
    setQuotaHeaders(ctx as Context);
    try {
      const found = route(ctx.path);
      if (found === null) throw new ApiError("not_found", "The API has no such path.");
      const methods = found === "openapi" ? ["GET"] : found.endpoints.map(({ method }) => method);
      const method = ctx.method === "HEAD" ? "GET" : ctx.method;
      if (!methods.some((accepted) => accepted === method)) throw wrongMethod(methods);
      if (!isSecure(service, ctx as Context)) {
        throw new ApiError("https_required", "The API answers over HTTPS only.");
      }
      if (found === "openapi") {
        await send(ctx as Context, 200, description, true);
        return;
      }
      if (isDisabled(service)) {
        throw new ApiError("disabled", "The API is switched off for the moment; the website is not.", {
          headers: { "Retry-After": "60" },
        });
      }
      const endpoint = found.endpoints.find((candidate) => candidate.method === method) as Endpoint;
      record.endpoint = endpoint;
      record.resource = resourceOf(found.segment);
      const admitted = await authenticate(service, ctx as Context, endpoint.scope, (credential) => {
        record.credential = credential;
      });
      const answer = await endpoint.answer(service, ctx as Context, admitted, found.segment, found.version);
      record.resource = answer.resource;
      await send(ctx as Context, answer.status, answer.body, answer.shared);
    } catch (error) {
      await refuse(service, ctx as Context, requestId, error);
    }
    if (record.endpoint && record.credential) {
      service.activity.record(record.credential.tokenId, record.endpoint.action, ctx.status, record.resource);
    }
  };
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

async function refuse(service: Service, ctx: Context, requestId: string, error: unknown): Promise<void> {
  let refusal: ApiError;
  if (error instanceof ApiError) {
    refusal = error;
  } else if (error instanceof AccountSuspended) {
    // Between the token's check and the write.
    refusal = revoked(service);
  } else {
    if (!isDisconnect(error)) logFault(service, requestId, error);
    refusal = new ApiError(
      "unavailable",
      "The service cannot answer just now; whether a write happened is open.",
      {
        headers: { "Retry-After": "5" },
      },
    );
  }
  ctx.set(refusal.headers);
  const body: ErrorBody = {
    error: refusal.message,
    code: refusal.code,
    ...(refusal.field === undefined ? {} : { field: refusal.field }),
    ...(refusal.reason === undefined ? {} : { reason: refusal.reason }),
    request_id: refusal.code === "not_found" ? constantRequestId : requestId,
  };
  await send(ctx, refusal.status, Buffer.from(JSON.stringify(body)));
}

function wrongMethod(methods: string[]): ApiError {
  const allowed = methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])).join(", ");
  return new ApiError("method_not_allowed", `This path accepts ${allowed}.`, { headers: { Allow: allowed } });
}

/** Only ids enter activity records: what else stands in a path is text of the client's. */
function resourceOf(segment: string): string | null {
  return /^[0-9a-fA-F-]{36}$/.test(segment) ? segment.toLowerCase() : null;
}
