import type { IncomingMessage } from "node:http";

/** Headers of one connection, not of the message that it carries. */
const hopByHop = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
/** The router writes these itself. Without a coding that the client named, answers come plain, and can be recorded. */
const rewritten = new Set([
  "host",
  "content-length",
  "content-type",
  "expect",
  "accept-encoding",
  "via",
  "x-tapline-execution-id",
  "x-tapline-route",
]);

export interface ForwardedHeaders {
  /** Who the request passes through. */
  via: string;
  /** Whether the router has checked that the request comes from a program on this machine. */
  local: boolean;
  /** Id of the router's own record; null leaves the client's header as it is. */
  executionId: string | null;
  /** What the backend asks for. */
  apiKey: string | undefined;
  /** Whether the client's key is the router's, and nobody else's to see. */
  keyIsOurs: boolean;
}

/** The routers that a request has passed through: each adds itself, so that none sends on a request twice. */
export const routeHeader = "X-Tapline-Route";

/** Whether a request has passed through this router before. */
export function isComingBack({ headers }: Pick<IncomingMessage, "headers">, own: string): boolean {
  return [headers.via, headers["x-tapline-route"]].flat().some((route) => route?.includes(own));
}

/** The list of routers and proxies, with one more at its end. */
export function withVia(before: string | undefined, own: string): string {
  return before === undefined || before === "" ? own : `${before}, ${own}`;
}

/** The headers of a request as a backend gets them, names and values in turn. */
export function requestHeaders(request: IncomingMessage, own: ForwardedHeaders): string[] {
  const { rawHeaders } = request;
  const named = connectionOptions(request.headers.connection);
  // The router has read the body as JSON, and some servers refuse what curl calls it (x-www-form-urlencoded).
  const headers: string[] = ["Content-Type", "application/json"];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] as string).toLowerCase();
    if (hopByHop.has(name) || rewritten.has(name) || named?.includes(name)) continue;
    if ((name === "authorization" || name === "x-api-key") && (own.keyIsOurs || own.apiKey !== undefined))
      continue;
    headers.push(rawHeaders[index] as string, rawHeaders[index + 1] as string);
  }
  if (own.apiKey !== undefined) headers.push("Authorization", `Bearer ${own.apiKey}`);
  // Via says that the request may come from anywhere, and backends refuse it where they ask for a program on this machine.
  // Requests that this router has checked itself are sent without it.
  if (!own.local) headers.push("Via", withVia(request.headers.via, own.via));
  headers.push(routeHeader, withVia([request.headers["x-tapline-route"]].flat()[0], own.via));
  const executionId = own.executionId ?? request.headers["x-tapline-execution-id"];
  if (typeof executionId === "string") headers.push("X-Tapline-Execution-ID", executionId);
  return headers;
}

/** The headers of a backend's answer as the client gets them, names and values in turn. */
export function answerHeaders(raw: unknown, own: readonly string[]): string[] {
  const pairs = ((raw ?? []) as (Buffer | string)[]).map(text);
  const connection = pairs.findIndex((name, at) => at % 2 === 0 && name.toLowerCase() === "connection");
  const named = connection === -1 ? undefined : connectionOptions(pairs[connection + 1]);
  const headers: string[] = [];
  for (let index = 0; index < pairs.length; index += 2) {
    const name = pairs[index] as string;
    const key = name.toLowerCase();
    if (hopByHop.has(key) || key === "x-tapline-execution-id" || named?.includes(key)) continue;
    headers.push(name, pairs[index + 1] as string);
  }
  headers.push(...own);
  return headers;
}

/** Further headers that the connection claims for itself. */
function connectionOptions(connection: string | undefined): string[] | undefined {
  if (connection === undefined || /^(keep-alive|close)$/i.test(connection)) return undefined;
  return connection.split(",").map((option) => option.trim().toLowerCase());
}

function text(bytes: Buffer | string): string {
  return typeof bytes === "string" ? bytes : bytes.toString("latin1");
}
