/**
 * `node --expose-gc --import tsx load-cycles.ts N`: N times a server with its model, a chat, a capture, and the end
 * of all; prints the bytes that this process holds after each as JSON. See cycles.test.ts.
 */
import * as assert from "uvu/assert";
import { startServer, user } from "../../inference/support/serving.js";

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

const held: number[] = [];
for (let i = 0; i < Number(process.argv[2]); i++) {
  await cycle();
  globalThis.gc?.();
  held.push(process.memoryUsage.rss());
}
console.log(JSON.stringify(held));
