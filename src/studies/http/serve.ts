import { createServer as createHttpServer, type Server } from "node:http";
import { createServer as createHttpsServer, Server as HttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import type Koa from "koa";
import { UserError } from "../../contracts/user-error.js";
import { closeServer, describeBindFailure } from "../../http/listen.js";

export interface Serving {
  readonly port: number;
  /** Replaces the certificate for new connections. @throws if it is unusable; the old one then stays in use */
  renew(tls: Tls): void;
  /** Stops accepting, lets running requests finish for two seconds, ends every connection. Idempotent. */
  close(): Promise<void>;
}

/** Certificate and key in PEM. */
export interface Tls {
  cert: string;
  key: string;
}

/**
 * Serves an application.
 * @param tls null only behind a trusted proxy that terminates TLS
 * @param make creates the application once the port is known; requests wait for it
 */
export async function serve(
  { host, port, tls }: { host: string; port: number; tls: Tls | null },
  make: (port: number) => Promise<Koa>,
): Promise<Serving> {
  const limits = { requestTimeout: 60_000, headersTimeout: 15_000, keepAliveTimeout: 30_000 };
  let server: Server;
  try {
    server =
      tls === null
        ? createHttpServer(limits)
        : createHttpsServer({ ...limits, ...tls, minVersion: "TLSv1.2" });
  } catch (error) {
    throw new UserError(`The TLS certificate or its key is unusable (${(error as { code?: string }).code}).`);
  }
  server.maxHeadersCount = 100;
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(describeBindFailure(error, host, port)));
    server.listen(port, host, resolve);
  });
  // For example a client that speaks plain HTTP to the TLS port, or aborts the handshake.
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  let closed: Promise<void> | undefined;
  const serving: Serving = {
    port: (server.address() as AddressInfo).port,
    renew(renewed) {
      if (server instanceof HttpsServer) server.setSecureContext({ ...renewed, minVersion: "TLSv1.2" });
    },
    close() {
      closed ??= closeServer(server, 2000);
      return closed;
    },
  };
  const handler = make(serving.port).then((app) => app.callback());
  server.on("request", (request, response) => {
    handler.then(
      (handle) => handle(request, response),
      () => response.destroy(),
    );
  });
  try {
    await handler;
  } catch (error) {
    await serving.close();
    throw error;
  }
  return serving;
}
