/** The serving process: loads the model and answers the connections that its parent hands it. */

import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { createHttpServer } from "../../http/index.js";
import { inferenceApp } from "../app.js";
import { endService, loadService } from "../server.js";
import type { InferenceService } from "../service.js";
import { Connection } from "./connection.js";
import { ConnectionStates, statesDescriptor } from "./connection-states.js";
import type { StartOptions, ToChild, ToParent } from "./messages.js";

/** Clients read the end of a connection before that: an answer's end shuts the connection down for all its copies. */
const collectMs = 10;

let service: InferenceService | undefined;
const connections = new WeakMap<Duplex, Connection>();
const states = new ConnectionStates(statesDescriptor);
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

/** @param socket undefined if the client has disconnected during the handover */
function take(id: number, socket: Socket | undefined): void {
  const state = states.add(id);
  const closed = () => reportClosed(id, state.remove);
  if (socket === undefined) {
    closed();
    return;
  }
  socket.setNoDelay(true);
  connections.set(socket, new Connection(socket, { waits: state.waits, closed }));
  server.emit("connection", socket);
}

const ended: { id: number; remove: () => void }[] = [];

/** Reports connections that end at about the same time in one message: each message wakes the parent. */
function reportClosed(id: number, remove: () => void): void {
  if (ended.push({ id, remove }) > 1) return;
  setTimeout(() => {
    const all = ended.splice(0);
    send({ type: "closed", ids: all.map((one) => one.id) });
    for (const one of all) one.remove();
  }, collectMs);
}

process.on("message", (message: ToChild, socket: unknown) => {
  switch (message.type) {
    case "start":
      void start(message.options);
      break;
    case "connection":
      take(message.id, socket as Socket | undefined);
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
