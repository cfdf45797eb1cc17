import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { createApp, createRouter, listen } from "../../src/http/index.js";

function app(gate: Promise<unknown> = Promise.resolve()) {
  const router = createRouter();
  router.get("/", (ctx) => {
    ctx.body = { ok: true };
  });
  router.get("/slow", async (ctx) => {
    await gate;
    ctx.body = { ok: true };
  });
  return createApp({ routers: [router], log: () => {} });
}

test("close ends idle keep-alive connections and is idempotent", async () => {
  const server = await listen(app(), { port: 0 });
  const socket = connect(server.port, "127.0.0.1");
  socket.write(`GET / HTTP/1.1\r\nHost: localhost:${server.port}\r\n\r\n`);
  await once(socket, "data");
  const ended = once(socket, "close");
  await Promise.all([server.close(), server.close(), ended]);
  await server.close();
});

test("close lets a running request finish", async () => {
  let open: (value?: unknown) => void = () => {};
  const server = await listen(app(new Promise((resolve) => (open = resolve))), { port: 0, graceMs: 60_000 });
  const answer = fetch(`${server.url}/slow`);
  await once(server.server, "request");
  const closed = server.close();
  open();
  assert.equal(await (await answer).json(), { ok: true });
  await closed;
});

test("close cuts a request that outlasts the grace time", async () => {
  const server = await listen(app(new Promise(() => {})), { port: 0, graceMs: 50 });
  const answer = fetch(`${server.url}/slow`).then(
    () => "answered",
    () => "cut",
  );
  await once(server.server, "request");
  await server.close();
  assert.is(await answer, "cut");
});

test("a closed connection closes all its responses, pipelined ones included", async () => {
  let here = 0;
  let closed = 0;
  const server = await listen(
    {
      callback: () => (_request, response) => {
        here++;
        response.once("close", () => closed++);
        if (here === 1) response.write("begun");
      },
    },
    { port: 0 },
  );
  const socket = connect(server.port, "127.0.0.1");
  socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(3));
  await once(socket, "data");
  while (here < 3) await sleep(5);
  socket.destroy();
  while (closed < 3) await sleep(5);
  await server.close();
  assert.is(closed, 3);
});

test("a taken port is one sentence", async () => {
  const first = await listen(app(), { port: 0 });
  try {
    await listen(app(), { port: first.port });
    assert.unreachable();
  } catch (error) {
    assert.is((error as Error).name, "UserError");
    assert.match((error as Error).message, `Port ${first.port} on 127.0.0.1 is already in use`);
  } finally {
    await first.close();
  }
});

test.run();
