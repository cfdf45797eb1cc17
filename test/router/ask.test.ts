import { test } from "uvu";
import * as assert from "uvu/assert";
import { ask, Silence } from "../../src/router/ask.js";
import { cast } from "./support/cast.js";

const { fake, endAll } = cast();
test.after.each(endAll);

const never = new AbortController().signal;

test("a process that stood still itself takes nobody for frozen", async () => {
  const backend = await fake();
  const asked = ask(`${backend.url}/health`, undefined, 400, never);
  // Suspended, or starved: nothing runs here for twice the time that an answer may take.
  for (const end = performance.now() + 800; performance.now() < end; );
  assert.equal(await asked, { status: 200, body: { status: "ok" } });
});

test("one that says nothing is silent in the end", async () => {
  const backend = await fake({ pages: { "/health": () => {} } });
  const fault = await ask(`${backend.url}/health`, undefined, 100, never).catch((error) => error);
  assert.instance(fault, Silence);
});

test("a probe request has fixed headers and reads a bounded answer", async () => {
  const most = 4 * 1024 * 1024;
  const seen: (string | undefined)[][] = [];
  const backend = await fake({
    pages: {
      "/large": (response) => response.end(`"${"x".repeat(most - 2)}"`),
      "/larger": (response) => response.end(`"${"x".repeat(most - 1)}"`),
      "/page": (response) => response.writeHead(404).end("<html>"),
      "/head": (response) => {
        const { headers } = response.req;
        seen.push([
          headers.accept,
          headers.authorization,
          headers["x-tapline-route"]?.toString(),
          headers.connection,
        ]);
        response.end("{}");
      },
    },
  });
  const read = (path: string, key?: string, route?: string) =>
    ask(backend.url + path, key, 60_000, never, route);
  assert.is(((await read("/large")).body as string).length, most - 2);
  const fault = await read("/larger").catch((error: Error) => error.message);
  assert.is(fault, "an answer has more than 4194304 bytes");
  assert.equal(await read("/page"), { status: 404, body: undefined });
  await read("/head");
  await read("/head", "key", "1.1 one");
  assert.equal(seen, [
    // On a connection of its own: that proves that it still accepts some.
    ["application/json", undefined, undefined, "close"],
    ["application/json", "Bearer key", "1.1 one", "close"],
  ]);
});

test.run();
