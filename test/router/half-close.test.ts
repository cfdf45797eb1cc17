/** Clients of the serving process and of a router in front of it, with their sending side ended. */

import { connect } from "node:net";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Serving, serve } from "../../src/inference/process/supervisor.js";
import { send } from "../support/request.js";
import { until } from "../support/until.js";
import { messages, startRouting, type TestRouter } from "./support/routing.js";

let serving: Serving;
let router: TestRouter;

test.before(async () => {
  serving = await serve({ model: "demo", host: "127.0.0.1", port: 0, parallel: 1 });
  router = await startRouting([serving.url]);
});
test.after(async () => {
  await router?.close();
  await serving?.close();
});

const addresses = () => [serving.url, router.url];
const requests = async () => (await send(`${serving.url}/stats`, "GET")).body.requests;

/** Sends one request and ends the sending side with it. */
function ask(url: string, path: string, body: object) {
  const { hostname, port, host } = new URL(url);
  const bytes = JSON.stringify(body);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  socket.on("error", () => {});
  socket.end(
    `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(bytes)}\r\n\r\n${bytes}`,
  );
  return socket;
}

async function readAll(socket: ReturnType<typeof ask>): Promise<string> {
  let text = "";
  socket.on("data", (part) => {
    text += part;
  });
  await new Promise((resolve) => socket.once("close", resolve));
  return text.replaceAll("HTTP/1.1 100 Continue\r\n\r\n", "");
}

test("half-closed clients get whole and streamed answers, also via a router", async () => {
  const path = "/v1/chat/completions";
  for (const url of addresses()) {
    const chat = { messages, max_tokens: 40, ignore_eos: true, temperature: 0 };
    const whole = await readAll(ask(url, path, chat));
    assert.match(whole, /^HTTP\/1\.1 200 OK\r\n/);
    assert.match(whole, /"completion_tokens":40\b/);
    const stream = await readAll(ask(url, path, { ...chat, stream: true }));
    assert.match(stream, /^HTTP\/1\.1 200 OK\r\n/);
    assert.match(stream, /"finish_reason":"length"/);
    assert.match(stream, /data: \[DONE\]\n\n\r\n0+\r\n\r\n$/);
  }
});

test("half-closed clients that leave free their slots, whole and streamed", async () => {
  // Minutes of work, unless it is cancelled.
  const work = { prompt: Array(500).fill("The"), max_tokens: 400, ignore_eos: true };
  let left = 0;
  for (const url of addresses()) {
    for (const stream of [false, true]) {
      const socket = ask(url, "/v1/completions", { ...work, stream });
      let refusal = "";
      if (!stream)
        socket.on(
          "data",
          (part) => (refusal += part.toString().replace("HTTP/1.1 100 Continue\r\n\r\n", "")),
        );
      await until(async () => {
        assert.is(refusal, "");
        return (await requests()).active === 1;
      });
      socket.destroy();
      left++;
      await until(async () => (await requests()).active === 0);
      assert.is((await requests()).cancelled, left);
    }
  }
});

test.run();
