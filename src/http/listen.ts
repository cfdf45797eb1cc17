import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { PortInUse, UserError } from "../contracts/user-error.js";
import { answerHalfClosed } from "./half-close.js";

export interface ListenOptions {
  /** Address to bind; default: loopback. */
  host?: string;
  /** 0 chooses a free port. */
  port: number;
  /** How long `close` waits for running requests before it closes their connections, in milliseconds. */
  graceMs?: number;
}

export interface Listening {
  readonly server: Server;
  readonly host: string;
  readonly port: number;
  /** Origin for reaching this server from this machine, without a trailing slash. */
  readonly url: string;
  /** Stops accepting, waits up to the grace time for running requests, closes every connection. Idempotent. */
  close(): Promise<void>;
}

/** Serves an application (Koa or anything with a request handler). @throws UserError if the port is taken or not allowed */
export async function listen(
  app: { callback(): RequestListener },
  options: ListenOptions,
): Promise<Listening> {
  const host = options.host ?? "127.0.0.1";
  const server = createHttpServer(app.callback());
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(describeBindFailure(error, host, options.port)));
    server.listen(options.port, host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  let closed: Promise<void> | undefined;
  const closing = () => closed !== undefined;
  server.on("request", (_request, response: ServerResponse) => {
    response.once("close", () => {
      if (closing()) server.closeIdleConnections();
    });
  });
  return {
    server,
    host,
    port,
    url: `http://${urlHost(host)}:${port}`,
    close() {
      closed ??= closeServer(server, options.graceMs ?? 2000);
      return closed;
    },
  };
}

/** A server with the error handling that all services share; not listening yet. */
export function createHttpServer(handler: RequestListener): Server {
  // We reject requests without Host ourselves, with a body that explains why.
  const server = createServer({ requireHostHeader: false }, handler);
  server.on("clientError", refuseUnparsable);
  server.on("request", closePipelined);
  answerHalfClosed(server);
  return server;
}

/**
 * When a connection ends, Node closes only the active response. Responses to pipelined requests after it would never learn
 * that the client is gone.
 */
function closePipelined({ socket }: IncomingMessage, response: ServerResponse): void {
  if (response.socket !== null) return;
  const onGone = () => {
    if (response.socket !== null) return;
    response.destroy();
    response.emit("close");
  };
  socket.setMaxListeners(0).once("close", onGone);
  response.once("close", () => socket.off("close", onGone));
}

/** Stops accepting, waits up to the grace time for running requests, closes every connection. */
export function closeServer(
  server: Pick<Server, "close" | "closeAllConnections" | "closeIdleConnections">,
  graceMs: number,
): Promise<void> {
  return new Promise((resolve) => {
    const deadline = setTimeout(() => server.closeAllConnections(), graceMs);
    server.close(() => {
      clearTimeout(deadline);
      resolve();
    });
    server.closeIdleConnections();
  });
}

/** The URL host for reaching, from this machine, a server bound to `host`. */
export function urlHost(host: string): string {
  if (host === "0.0.0.0" || host === "::") return "127.0.0.1";
  return host.includes(":") ? `[${host}]` : host;
}

/** The error for a port that could not be bound; a UserError if the reason is known. */
export function describeBindFailure(error: NodeJS.ErrnoException, host: string, port: number): Error {
  switch (error.code) {
    case "EADDRINUSE":
      return new PortInUse(host, port);
    case "EACCES":
      return new UserError(`This user may not use port ${port} on ${host}; choose a port above 1023.`);
    case "EADDRNOTAVAIL":
      return new UserError(`Cannot listen on ${host}: this machine does not have that address.`);
    case "ENOTFOUND":
    case "EAI_AGAIN":
    case "EINVAL":
      return new UserError(`Cannot listen on ${host} (${error.code}).`);
    default:
      return error;
  }
}

function refuseUnparsable(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const [status, sentence] =
    error.code === "HPE_HEADER_OVERFLOW"
      ? ["431 Request Header Fields Too Large", "The request's headers are too large."]
      : error.code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? ["408 Request Timeout", "The request did not arrive in time."]
        : ["400 Bad Request", "The request is not valid HTTP."];
  const body = JSON.stringify({ error: sentence });
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}
