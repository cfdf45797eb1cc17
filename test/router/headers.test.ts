/** Which headers go through, either way, and what the router adds; how long its idle connections live. */
import type { IncomingMessage } from "node:http";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Backend } from "../../src/router/backend.js";
import { answerHeaders, type ForwardedHeaders, requestHeaders, withVia } from "../../src/router/headers.js";

const own: ForwardedHeaders = {
  ...{ via: "1.1 me", local: false, executionId: "id", apiKey: undefined, keyIsOurs: false },
};

function forwarded(raw: string[], more: Partial<ForwardedHeaders> = {}): string[] {
  const headers: Record<string, string> = {};
  for (let index = 0; index < raw.length; index += 2)
    headers[(raw[index] as string).toLowerCase()] = raw[index + 1] as string;
  const sent = requestHeaders({ rawHeaders: raw, headers } as unknown as IncomingMessage, {
    ...own,
    ...more,
  });
  assert.equal(sent.slice(0, 2), ["Content-Type", "application/json"]);
  return sent.slice(2);
}

const way = ["Via", "1.1 me", "X-Tapline-Route", "1.1 me"];
const added = [...way, "X-Tapline-Execution-ID", "id"];

test("a request's headers go on as they were written, those of its connection do not", () => {
  assert.equal(forwarded(["X-One", "1", "X-Two", "2", "X-One", "3"]), [
    "X-One",
    "1",
    "X-Two",
    "2",
    "X-One",
    "3",
    ...added,
  ]);
  for (const name of [
    "Connection",
    "Keep-Alive",
    "Proxy-Authenticate",
    "Proxy-Authorization",
    "Proxy-Connection",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
    "Host",
    "Content-Length",
    "Expect",
    "Accept-Encoding",
  ]) {
    assert.equal(forwarded([name, "keep-alive", "A", "b"]), ["A", "b", ...added], name);
  }
  // What the connection claims for itself stays with it.
  assert.equal(
    forwarded(["Connection", "close, X-Mine ,x-yours", "X-Mine", "1", "X-Yours", "2", "X-Else", "3"]),
    ["X-Else", "3", ...added],
  );
  for (const only of ["close", "Keep-Alive"]) {
    assert.equal(forwarded(["Connection", only, "Close", "1"]), ["Close", "1", ...added]);
  }
});

test("a body that the router read as JSON is sent as JSON, whatever its client calls it", () => {
  for (const type of ["application/x-www-form-urlencoded", "text/plain", "application/json; charset=utf-8"]) {
    assert.equal(forwarded(["Content-Type", type, "content-type", type]), added);
  }
});

test("the route and record id are passed on, the client's own id without a record", () => {
  assert.is(withVia(undefined, "1.1 me"), "1.1 me");
  assert.is(withVia("", "1.1 me"), "1.1 me");
  assert.equal(forwarded(["Via", "1.1 other"]).slice(0, 2), ["Via", "1.1 other, 1.1 me"]);
  assert.equal(forwarded(["X-Tapline-Execution-ID", "theirs"]), added);
  assert.equal(forwarded(["X-Tapline-Execution-ID", "theirs"], { executionId: null }), [
    ...way,
    "X-Tapline-Execution-ID",
    "theirs",
  ]);
  assert.equal(forwarded([], { executionId: null }), way);
  assert.equal(forwarded(["X-Tapline-Route", "1.1 other"], { executionId: null }), [
    ...["Via", "1.1 me", "X-Tapline-Route", "1.1 other, 1.1 me"],
  ]);
  // Requests that the router has checked to come from this machine have no Via.
  assert.equal(forwarded([], { local: true, executionId: null }), ["X-Tapline-Route", "1.1 me"]);
});

test("a client's key is passed on unless the router or a backend has a key", () => {
  const keys = ["Authorization", "Bearer c", "X-Api-Key", "c"];
  assert.equal(forwarded(keys), [...keys, ...added]);
  assert.equal(forwarded(keys, { keyIsOurs: true }), added);
  assert.equal(forwarded(keys, { apiKey: "b" }), ["Authorization", "Bearer b", ...added]);
  assert.equal(forwarded(keys, { apiKey: "b", keyIsOurs: true }), ["Authorization", "Bearer b", ...added]);
});

test("an answer's headers are passed on unchanged, followed by the router's", () => {
  const raw = ["Content-Type", "text/plain", "Set-Cookie", "a=1", "Set-Cookie", "b=2"];
  assert.equal(answerHeaders(raw, ["X-Own", "1"]), [...raw, "X-Own", "1"]);
  assert.equal(
    answerHeaders(
      raw.map((text) => Buffer.from(text)),
      [],
    ),
    raw,
  );
  assert.equal(answerHeaders(undefined, ["X-Own", "1"]), ["X-Own", "1"]);
  const hop = [
    "Transfer-Encoding",
    "chunked",
    "Connection",
    "X-Mine",
    "X-Mine",
    "1",
    "X-Tapline-Execution-ID",
    "t",
    "A",
    "b",
  ];
  assert.equal(answerHeaders(hop, []), ["A", "b"]);
  // A value that reads as the name is none.
  assert.equal(answerHeaders(["X-A", "connection", "A", "b"], []), ["X-A", "connection", "A", "b"]);
});

test("the router ends an idle connection before a server would, and lets streams take their time", async () => {
  const backend = new Backend({ url: "http://127.0.0.1:9" });
  for (const pool of [backend.pool, backend.fresh]) {
    // undici tells its options nowhere else.
    const options = Object.getOwnPropertySymbols(pool).find(({ description }) => description === "options");
    const { keepAliveTimeout, headersTimeout, bodyTimeout } = Reflect.get(pool, options as symbol) as Record<
      string,
      number
    >;
    // Node's own servers and llama.cpp's end one after five seconds.
    assert.equal([keepAliveTimeout, headersTimeout, bodyTimeout], [4000, 0, 0]);
  }
  await backend.destroy();
});

test.run();
