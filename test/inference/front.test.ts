/** The port while nobody serves, and who gets its connections. */

import type { Socket } from "node:net";
import { connect } from "node:net";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { UserError } from "../../src/contracts/user-error.js";
import { Front } from "../../src/inference/process/front.js";
import { type Answer, send } from "../support/request.js";

async function withFront(use: (front: Front) => Promise<void>): Promise<void> {
  const front = await Front.open("127.0.0.1", 0);
  try {
    await use(front);
  } finally {
    front.close();
  }
}

const told = ({ status, body, headers }: Answer) => [
  status,
  body.error.message,
  headers["retry-after"],
  headers.connection,
  headers["cache-control"],
  headers["content-type"],
];
const as503 = (sentence: string) => [
  503,
  sentence,
  "1",
  "close",
  "no-store",
  "application/json; charset=utf-8",
];

test("until somebody serves, every request is answered with 503, in its API's form, whatever it sends", () =>
  withFront(async (front) => {
    assert.equal([front.host, front.url], ["127.0.0.1", `http://127.0.0.1:${front.port}`]);
    const loading = "The model is loading; retry in a moment.";
    const asked = await send(`${front.url}/v1/models`, "GET");
    assert.equal(told(asked), as503(loading));
    assert.equal(asked.body, {
      error: { message: loading, type: "overloaded_error", param: null, code: "unavailable" },
    });
    assert.equal(
      told(await send(`${front.url}/v1/chat/completions`, "POST", { messages: [] })),
      as503(loading),
    );
    assert.equal((await send(`${front.url}/lab/capabilities`, "GET")).body, { error: loading });
    front.away("Something else.");
    assert.equal(told(await send(`${front.url}/v1/models`, "GET")), as503("Something else."));
  }));

const origin = "https://page.example";
const cors = ({ headers }: Answer) => [
  headers["access-control-allow-origin"],
  headers["access-control-expose-headers"],
  headers.vary,
];

test("pages of allowed origins can read 503, and only those below /v1", async () => {
  const front = await Front.open("127.0.0.1", 0, [origin]);
  try {
    const ask = (path: string, method: string, headers: Record<string, string>) =>
      send(`${front.url}${path}`, method, undefined, headers);
    const refused = await ask("/v1/messages?beta=true", "POST", { Origin: origin });
    assert.is(refused.status, 503);
    assert.equal(cors(refused), [origin, "Retry-After, X-Tapline-Execution-ID", "Origin"]);
    assert.is(refused.body.type, "error"); // Anthropic's form, whatever the query
    const asks = { "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-a" };
    const preflight = await ask("/v1/chat/completions", "OPTIONS", { Origin: origin, ...asks });
    assert.is(preflight.status, 204);
    assert.equal(cors(preflight), [origin, "Retry-After, X-Tapline-Execution-ID", "Origin"]);
    assert.is(preflight.headers["access-control-allow-headers"], "x-a");
    const other = await ask("/v1/models", "OPTIONS", { Origin: "https://other.example", ...asks });
    assert.is(other.status, 503);
    assert.equal(cors(other), [undefined, undefined, "Origin"]);
    assert.equal(cors(await ask("/lab/capabilities", "GET", { Origin: origin })), Array(3).fill(undefined));
  } finally {
    front.close();
  }
});

test("connections go to the serving process; without one, the front answers", () =>
  withFront(async (front) => {
    const handed: Socket[] = [];
    front.handTo((socket) => {
      handed.push(socket);
      socket.end("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
      socket.resume();
    });
    assert.is((await send(`${front.url}/v1/models`, "GET")).status, 204);
    assert.is(handed.length, 1);
    assert.ok(handed[0]!.isPaused() === false);
    front.away("Gone.");
    assert.equal(told(await send(`${front.url}/v1/models`, "GET")), as503("Gone."));
    assert.is(handed.length, 1);
    // One that was handed on and not taken is answered, too: nothing of it was read.
    front.handTo((socket) => {
      assert.ok(socket.isPaused());
      front.refuse(socket);
    });
    assert.equal(told(await send(`${front.url}/v1/models`, "GET")), as503("Gone."));
  }));

test("a taken port is reported, and a closed front accepts no connections", async () => {
  let port = 0;
  await withFront(async (front) => {
    port = front.port;
    const taken = await Front.open("127.0.0.1", port).then(
      () => undefined,
      (error: Error) => error,
    );
    assert.instance(taken, UserError);
    assert.match(taken!.message, new RegExp(`${port}.*already in use`));
    // A client that says nothing is sent away, too.
    const silent = connect(port, "127.0.0.1");
    await new Promise((resolve) => silent.once("connect", resolve));
    await send(`${front.url}/v1/models`, "GET");
    const gone = new Promise((resolve) => silent.once("close", resolve));
    silent.on("error", () => {});
    front.close();
    await gone;
  });
  const error = await send(`http://127.0.0.1:${port}/`, "GET").catch(
    (fault: NodeJS.ErrnoException) => fault.code,
  );
  assert.is(error, "ECONNREFUSED");
});

test.run();
