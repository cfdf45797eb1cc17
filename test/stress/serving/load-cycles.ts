/**
 * `node --expose-gc --import tsx load-cycles.ts N MODULE`: N times a server with its model, a chat, a capture, and the
 * end of all; prints what this process holds after each as JSON. MODULE is in-use.c, built. See cycles.test.ts.
 */
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";
import * as assert from "uvu/assert";
import { startServer, user } from "../../inference/support/serving.js";

export interface Held {
  /** Bytes that malloc has given out. */
  native: number;
  /** Bytes of JavaScript's objects. */
  heap: number;
  threads: number;
  /** Pieces of model files that are mapped. */
  mapped: number;
}

async function cycle(): Promise<void> {
  const server = await startServer({ parallel: 2 });
  const chat = await server.post("/v1/chat/completions", {
    messages: user("What is the capital of France?"),
    max_tokens: 10,
  });
  assert.is(chat.status, 200);
  const capture = await server.post("/lab/activations", {
    model: server.service.engine.info.id,
    prompt: "The capital of France is",
    layers: [2, 5],
  });
  assert.is(capture.status, 200, capture.bytes.toString());
  await server.close();
}

const [times, module] = process.argv.slice(2);
const nativeBytes: () => number = createRequire(import.meta.url)(module!);
const held: Held[] = [];
for (let i = 0; i < Number(times); i++) {
  await cycle();
  await pause(20); // sockets that have ended are released a turn later
  globalThis.gc?.();
  held.push({
    native: nativeBytes(),
    heap: process.memoryUsage().heapUsed,
    threads: readdirSync("/proc/self/task").length,
    mapped: readFileSync("/proc/self/maps", "utf8").match(/\.gguf$/gm)?.length ?? 0,
  });
}
console.log(JSON.stringify(held));
