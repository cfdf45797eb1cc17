import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { developmentCertificate } from "../../src/studies/dev/certificate.js";

export interface HostileService {
  url: string;
  caFile: string;
  port: number;
  /** Requests that arrived, as "GET /path", with their headers. */
  seen: { line: string; headers: IncomingMessage["headers"]; body: string }[];
  /** The answers to the next requests. */
  answer: (request: IncomingMessage, response: ServerResponse) => void;
  close(): Promise<void>;
}

/** An HTTPS server on loopback that the client has to trust, and that answers as the test says. */
export async function startHostile(): Promise<HostileService> {
  const folder = mkdtempSync(join(tmpdir(), "tapline-hostile-"));
  const tls = await developmentCertificate();
  const caFile = join(folder, "ca.pem");
  writeFileSync(caFile, tls.cert);
  const service: HostileService = {
    url: "",
    caFile,
    port: 0,
    seen: [],
    answer: (_request, response) => response.end(),
    close: () =>
      new Promise((resolve) => {
        rmSync(folder, { recursive: true, force: true });
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  const server = createServer(tls, async (request, response) => {
    const parts: Buffer[] = [];
    try {
      for await (const part of request) parts.push(part);
    } catch {
      return; // the client went away
    }
    service.seen.push({
      line: `${request.method} ${request.url}`,
      headers: request.headers,
      body: Buffer.concat(parts).toString(),
    });
    response.on("error", () => {});
    service.answer(request, response);
  });
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  service.port = (server.address() as AddressInfo).port;
  service.url = `https://localhost:${service.port}`;
  return service;
}
