import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  createApp,
  createRouter,
  HttpError,
  type Listening,
  listen,
  openAiErrorBody,
  readJson,
} from "../../src/http/index.js";
import { until } from "../support/until.js";
import { exchange } from "./raw.js";

const logged: string[] = [];
let server: Listening;

test.before(async () => {
  const router = createRouter("/api");
  router.get("/thing", (ctx) => {
    ctx.body = { ok: true };
  });
  router.post("/echo", async (ctx) => {
    ctx.body = { got: await readJson(ctx, { limit: 1000 }) };
  });
  router.post("/optional", async (ctx) => {
    ctx.body = { got: await readJson(ctx, { limit: 1000, optional: true }) };
  });
  router.get("/fault", () => {
    throw new Error("secret detail");
  });
  router.get("/gone", () => {
    throw Object.assign(new Error("write EPIPE"), { code: "EPIPE" });
  });
  router.get("/half", (ctx) => {
    ctx.res.writeHead(200).write("half");
    throw new Error("broke in the middle");
  });
  router.get("/shown", () => {
    throw Object.assign(new Error("Not so."), { status: 409, expose: true });
  });
  for (const path of ["/thing", "/many"]) router.delete(`/two${path}`, (ctx) => ctx.throw(500));
  router.get("/two/:any", (ctx) => {
    ctx.body = {};
  });
  router.get("/busy", () => {
    throw new HttpError(503, "No place is free.", { headers: { "Retry-After": "2" } });
  });
  server = await listen(createApp({ routers: [router], log: (line) => logged.push(line) }), { port: 0 });
});

test.after(() => server.close());

async function call(path: string, init?: RequestInit) {
  const response = await fetch(server.url + path, init);
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as { error: string; got?: unknown; ok?: boolean },
  };
}

test("answers are never stored and never sniffed", async () => {
  const { headers, status } = await call("/api/thing");
  assert.is(status, 200);
  assert.is(headers.get("cache-control"), "no-store");
  assert.is(headers.get("x-content-type-options"), "nosniff");
  assert.is(headers.get("access-control-allow-origin"), null);
});

test("unknown routes, other case, trailing slash: 404 with a sentence", async () => {
  for (const path of ["/", "/api", "/api/none", "/API/thing", "/api/thing/", "/api/%zz", "//api/thing"]) {
    const { status, body } = await call(path);
    assert.is(status, 404, path);
    assert.type(body.error, "string");
  }
});

test("known routes with another method: 405 with Allow", async () => {
  for (const method of ["DELETE", "POST", "OPTIONS", "PATCH", "PROPFIND"]) {
    const { status, headers, body } = await call("/api/thing", { method });
    assert.is(status, 405, method);
    assert.is(headers.get("allow"), "GET, HEAD");
    assert.match(body.error, method);
  }
});

test("faults are a 500 without details, which go to the log", async () => {
  const { status, body } = await call("/api/fault");
  assert.is(status, 500);
  assert.not.match(JSON.stringify(body), "secret");
  assert.match(logged.join("\n"), "secret detail");
});

test("refusals carry their headers and, like lost clients, are not logged", async () => {
  logged.length = 0;
  const { status, headers } = await call("/api/busy");
  assert.is(status, 503);
  assert.is(headers.get("retry-after"), "2");
  assert.equal([(await call("/api/gone")).status, logged], [500, []]);
  const { status: shown, body } = await call("/api/shown");
  assert.equal([shown, body.error, logged], [409, "Not so.", []]);
});

test("an answer that breaks in its middle is cut, and told in the log", async () => {
  logged.length = 0;
  const text = await exchange(server.port, "GET /api/half HTTP/1.1\r\nHost: a\r\n\r\n").catch(() => "cut");
  assert.not.match(text, /\r\n0\r\n/);
  await until(() => logged.length > 0);
  assert.match(logged[0]!, /^Error: broke in the middle\n +at /);
});

test("405 names each method once, in their order", async () => {
  const { status, headers, body } = await call("/api/two/thing", { method: "POST" });
  assert.equal(
    [status, headers.get("allow"), body.error],
    [405, "DELETE, GET, HEAD", "/api/two/thing accepts DELETE, GET, HEAD, not POST."],
  );
  assert.is((await call("/api/none")).body.error, "Nothing found at /api/none.");
});

test("bodies: limit, UTF-8, JSON, content coding, empty", async () => {
  const post = (body: string | Uint8Array | undefined, headers: Record<string, string> = {}) =>
    call("/api/echo", { method: "POST", headers, ...(body === undefined ? {} : { body }) });
  assert.equal((await post('{"a":[1]}')).body, { got: { a: [1] } });
  assert.equal((await post(JSON.stringify("x".repeat(998)))).status, 200);
  const long = await post(JSON.stringify("x".repeat(999)));
  assert.is(long.status, 400);
  assert.match(long.body.error, "1001 bytes; at most 1000");
  assert.match((await post(new Uint8Array([34, 0xff, 34]))).body.error, "UTF-8");
  assert.match((await post('{"a":')).body.error, "not valid JSON");
  assert.match((await post(undefined)).body.error, "empty");
  assert.match((await post("{}", { "content-encoding": "gzip" })).body.error, "gzip");
  assert.equal((await call("/api/optional", { method: "POST" })).body, { got: {} });
});

test("a chunked body over the limit is refused and the connection stays usable", async () => {
  const chunk = `400\r\n${"x".repeat(0x400)}\r\n`;
  const text = await exchange(
    server.port,
    `POST /api/echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(200)}0\r\n\r\n` +
      "GET /api/thing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
  );
  assert.match(text, "HTTP/1.1 400");
  assert.match(text, "more than 1000 bytes");
  assert.match(text, '{"ok":true}');
});

test("bytes that are no HTTP get a JSON sentence", async () => {
  const text = await exchange(server.port, "NONSENSE\r\n\r\n");
  assert.match(text, "HTTP/1.1 400");
  assert.match(text, '{"error":');
});

test("OpenAI error shape", () => {
  const error = new HttpError(404, "No such model.", { param: "model", code: "model_not_found" });
  assert.equal(openAiErrorBody(error), {
    error: { message: "No such model.", type: "not_found_error", param: "model", code: "model_not_found" },
  });
});

test.run();
