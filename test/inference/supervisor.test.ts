import { once } from "node:events";
import { connect } from "node:net";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Serving, serve } from "../../src/inference/process/supervisor.js";
import { type Answer, send } from "../support/request.js";
import { until } from "../support/until.js";

async function answers(url: string, path = "/health"): Promise<number> {
  try {
    return (await send(`${url}${path}`, "GET")).status;
  } catch {
    return 0; // the connection was cut with the process
  }
}

test("a crash is survived: the port answers 503 meanwhile, then serves again", async () => {
  let meanwhile: Promise<Answer> | undefined;
  let crash: { sentence: string } | undefined;
  const serving: Serving = await serve({
    model: "demo",
    host: "127.0.0.1",
    port: 0,
    parallel: 1,
    onEvent: (event) => {
      if (event.event !== "crashed") return;
      crash = event;
      // Asked the moment it is known: long before another process can have loaded the model.
      meanwhile = send(`${serving.url}/v1/models`, "GET");
    },
  });
  try {
    const { url, pid } = serving;
    assert.is(await answers(url), 200);
    const messages = [{ role: "user", content: "Hello" }];
    const endless = { messages, max_tokens: 100_000, ignore_eos: true };
    const waiting = send(`${url}/v1/chat/completions`, "POST", endless);
    const busy = async () => (await send(`${url}/stats`, "GET")).body.requests.active === 1;
    await until(busy);
    process.kill(pid as number, "SIGSEGV");
    const unanswered = await waiting;
    assert.equal([unanswered.status, unanswered.body.error.code], [502, "server_crashed"]);
    const { status, headers, body } = (await until(() => meanwhile)) as Answer;
    assert.is(status, 503);
    assert.is(headers["retry-after"], "1");
    assert.type(body.error.message, "string");
    await until(async () => (await answers(url)) === 200);
    assert.is.not(serving.pid, pid);
    assert.match(crash?.sentence as string, "SIGSEGV");
    await Promise.all([serving.close(), serving.close()]);
    assert.is(await answers(url), 0);
  } finally {
    await serving.close();
  }
});

test("an answered connection ends for its client and in both processes", async () => {
  const connections = () =>
    process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length;
  const serving = await serve({ model: "demo", host: "127.0.0.1", port: 0, parallel: 1 });
  try {
    const before = connections();
    const ended = Array.from({ length: 20 }, async () => {
      const client = connect({ port: serving.port, host: "127.0.0.1" });
      client.end("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
      client.resume();
      await once(client, "close");
    });
    await until(() => connections() >= before + 20);
    await Promise.all(ended);
    await until(() => connections() === before);
  } finally {
    await serving.close();
  }
});

test("a missing model and a taken port are each reported in one sentence", async () => {
  const fails = async (options: { model: string; port: number }, sentence: RegExp) => {
    try {
      await serve({ host: "127.0.0.1", ...options });
      assert.unreachable("it should not have started");
    } catch (error) {
      assert.is((error as Error).name, "UserError");
      assert.match((error as Error).message, sentence);
    }
  };
  await fails({ model: "/nowhere/model.gguf", port: 0 }, /No model found at/);
  const first = await serve({ model: "demo", host: "127.0.0.1", port: 0, parallel: 1 });
  try {
    await fails({ model: "demo", port: first.port }, /already in use/);
  } finally {
    await first.close();
  }
});

test.run();
