import type { IncomingHttpHeaders, IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { forwardedPaths } from "../contracts/router.js";
import { isDisconnect, toHttpError } from "../http/errors.js";
import {
  apiKeyCheck,
  corsHeaders,
  errorBodyAt,
  HttpError,
  isPreflight,
  localAccessFault,
  sharedAccessFault,
} from "../http/index.js";
import { forward } from "./forward.js";
import type { RouterService } from "./service.js";

const forwarded = new Set<string>(forwardedPaths);

/**
 * Handles forwarded requests before the Koa application: they are nearly all requests, and the middleware costs as much
 * time as the router's own work.
 */
export function frontHandler(
  service: RouterService,
  others: RequestListener,
  log: (line: string) => void,
): RequestListener {
  const checkKey = apiKeyCheck(service.apiKey);
  return (request, response) => {
    const path = pathOf(request);
    if (!forwarded.has(path) || isPreflight(request)) {
      others(request, response);
      return;
    }
    answer(service, request, response, path, checkKey).catch((error: unknown) => {
      refuse(service, request, response, error, log);
    });
  };
}

function pathOf({ url = "" }: IncomingMessage): string {
  const query = url.indexOf("?");
  return query === -1 ? url : url.slice(0, query);
}

async function answer(
  service: RouterService,
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  checkKey: (headers: IncomingHttpHeaders) => void,
): Promise<void> {
  const shared = path.startsWith("/v1/");
  // Paths outside /v1 are for programs on this machine only.
  const fault = shared ? sharedAccessFault(request, service.cors) : localAccessFault(request);
  if (fault !== null) throw new HttpError(403, fault);
  checkKey(request.headers);
  if (request.method !== "POST") {
    throw new HttpError(405, `${path} accepts POST, not ${request.method}.`, { headers: { Allow: "POST" } });
  }
  await forward(service, request, response, path);
}

function refuse(
  service: RouterService,
  request: IncomingMessage,
  response: ServerResponse,
  error: unknown,
  log: (line: string) => void,
): void {
  const refusal = toHttpError(error);
  if (refusal !== error && !isDisconnect(error))
    log(error instanceof Error ? `${error.stack}` : String(error));
  if (response.destroyed) return;
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const body = JSON.stringify(errorBodyAt(pathOf(request))(refusal));
  response.writeHead(refusal.status, {
    "Content-Type": "application/json; charset=utf-8",
    "Content-Length": Buffer.byteLength(body),
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    ...corsHeaders(request, service.cors),
    ...refusal.headers,
  });
  response.end(body);
}
