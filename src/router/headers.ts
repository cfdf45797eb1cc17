import type { IncomingMessage } from "node:http";

/** Hop-by-hop headers, which must not be forwarded. */
const hopByHop = new Set(
  (
    "connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding " +
    "upgrade"
  ).split(" "),
);
/** Headers that the router sets itself. Without Accept-Encoding, answers are uncompressed and can be recorded. */
const rewritten = new Set(
  (
    "host content-length content-type expect accept-encoding via x-tapline-execution-id " + "x-tapline-route"
  ).split(" "),
);

export interface ForwardedHeaders {
  /** This router's entry in Via. */
  via: string;
  /** Whether the router has verified that the request comes from a program on this machine. */
  local: boolean;
  /** Id of the router's record; null passes on the client's header. */
  executionId: string | null;
  /** The backend's key. */
  apiKey: string | undefined;
  /** Whether the client's key is for the router, and must not be forwarded. */
  keyIsOurs: boolean;
}

/** Lists the routers that a request has passed through, to detect loops. */
export const routeHeader = "X-Tapline-Route";

/** Whether a request has passed through this router before. */
export function isLoop({ headers }: Pick<IncomingMessage, "headers">, own: string): boolean {
  return [headers.via, headers["x-tapline-route"]].flat().some((route) => route?.includes(own));
}

/** Appends an entry to a Via list. */
export function withVia(before: string | undefined, own: string): string {
  return before === undefined || before === "" ? own : `${before}, ${own}`;
}

/** The request headers for a backend: names and values alternate. */
export function requestHeaders(request: IncomingMessage, own: ForwardedHeaders): string[] {
  const { rawHeaders } = request;
  const named = connectionOptions(request.headers.connection);
  // The body is JSON, but some servers reject curl's default x-www-form-urlencoded.
  const headers: string[] = ["Content-Type", "application/json"];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] as string).toLowerCase();
    if (hopByHop.has(name) || rewritten.has(name) || named?.includes(name)) continue;
    if ((name === "authorization" || name === "x-api-key") && (own.keyIsOurs || own.apiKey !== undefined))
      continue;
    headers.push(rawHeaders[index] as string, rawHeaders[index + 1] as string);
  }
  if (own.apiKey !== undefined) headers.push("Authorization", `Bearer ${own.apiKey}`);
  // Backends reject requests with Via on endpoints for programs on this machine, since they may come from anywhere.
  // Requests that this router has verified are sent without it.
  if (!own.local) headers.push("Via", withVia(request.headers.via, own.via));
  headers.push(routeHeader, withVia([request.headers["x-tapline-route"]].flat()[0], own.via));
  const executionId = own.executionId ?? request.headers["x-tapline-execution-id"];
  if (typeof executionId === "string") headers.push("X-Tapline-Execution-ID", executionId);
  return headers;
}

/** The response headers for the client: names and values alternate. */
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

/** Headers that Connection declares as hop-by-hop. */
function connectionOptions(connection: string | undefined): string[] | undefined {
  if (connection === undefined || /^(keep-alive|close)$/i.test(connection)) return undefined;
  return connection.split(",").map((option) => option.trim().toLowerCase());
}

function text(bytes: Buffer | string): string {
  return typeof bytes === "string" ? bytes : bytes.toString("latin1");
}
