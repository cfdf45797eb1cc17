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
  "expect",
  "accept-encoding",
  "via",
  "x-tapline-execution-id",
]);

export interface ForwardedHeaders {
  /** Who the request passes through. */
  via: string;
  /** Id of the router's own record; null leaves the client's header as it is. */
  executionId: string | null;
  /** What the backend asks for. */
  apiKey: string | undefined;
  /** Whether the client's key is the router's, and nobody else's to see. */
  keyIsOurs: boolean;
}

/** The Via header of a request that passes through one more. */
export function withVia(before: string | undefined, own: string): string {
  return before === undefined || before === "" ? own : `${before}, ${own}`;
}

/** The headers of a request as a backend gets them, names and values in turn. */
export function requestHeaders(request: IncomingMessage, own: ForwardedHeaders): string[] {
  const { rawHeaders } = request;
  const named = connectionOptions(request.headers.connection);
  const headers: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] as string).toLowerCase();
    if (hopByHop.has(name) || rewritten.has(name) || named?.includes(name)) continue;
    if ((name === "authorization" || name === "x-api-key") && (own.keyIsOurs || own.apiKey !== undefined))
      continue;
    headers.push(rawHeaders[index] as string, rawHeaders[index + 1] as string);
  }
  if (own.apiKey !== undefined) headers.push("Authorization", `Bearer ${own.apiKey}`);
  headers.push("Via", withVia(request.headers.via, own.via));
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
