/** The serving process: loads the model and answers the connections that its parent hands it. */

import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { createHttpServer } from "../../http/index.js";
import { inferenceApp } from "../app.js";
import { endService, loadService } from "../server.js";
import type { InferenceService } from "../service.js";
import { Connection } from "./connection.js";
import type { StartOptions, ToChild, ToParent } from "./messages.js";

let service: InferenceService | undefined;
const connections = new WeakMap<Duplex, Connection>();
const server = createHttpServer((request, response) => {
  connections.get(request.socket)?.asked(request, response);
  handler?.(request, response);
});
let handler: ReturnType<ReturnType<typeof inferenceApp>["callback"]> | undefined;
// This event starts Node's header and request time-outs; the parent listens instead of this server.
server.emit("listening");

function send(message: ToParent, then?: () => void): void {
  process.send?.(message, undefined, {}, () => then?.());
}

/** All state is in memory, so nothing is lost, and a load in progress cannot be interrupted in any other way. */
function endNow(): void {
  process.kill(process.pid, "SIGKILL");
}

async function start(options: StartOptions): Promise<void> {
  try {
    service = await loadService({
      ...options,
      onProgress: (stage, fraction, download) =>
        send({ type: "progress", stage, fraction, ...(download && { download }) }),
      onWarning: (sentence) => send({ type: "warning", sentence }),
      onFailure: (sentence) => send({ type: "failed", sentence }, endNow),
    });
    handler = inferenceApp(service, (line) => send({ type: "log", line })).callback();
    send({ type: "ready", info: service.engine.info, backend: service.backend.backend });
  } catch (error) {
    const plain = error instanceof Error && ["UserError", "NativeError", "AddonError"].includes(error.name);
    send(
      { type: "failed", sentence: plain ? (error as Error).message : String((error as Error).stack) },
      endNow,
    );
  }
}

async function end(graceMs: number): Promise<void> {
  if (service === undefined) endNow();
  else await endService(service, server, graceMs);
  process.exit(0);
}

process.on("message", (message: ToChild, socket: unknown) => {
  switch (message.type) {
    case "start":
      void start(message.options);
      break;
    case "connection":
      send({ type: "taken", id: message.id });
      // The client may have disconnected during the handover.
      if (socket) {
        (socket as Socket).setNoDelay(true);
        connections.set(socket as Socket, new Connection(message.id, socket as Socket, send));
        server.emit("connection", socket);
      } else send({ type: "closed", id: message.id });
      break;
    case "end":
      void end(message.graceMs);
      break;
  }
});
process.on("disconnect", endNow);
if (!process.connected) endNow(); // the parent exited while this file was loading
// The parent handles terminal signals and ends this process cleanly.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
