/** One try of a request, and what of it goes into the record, without a network. */
import type { ServerResponse } from "node:http";
import type { Dispatcher } from "undici";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { ExecutionRecorder, type ExecutionTrace } from "../../src/executions/index.js";
import { AnswerTrace } from "../../src/router/answer-trace.js";
import { Attempt } from "../../src/router/attempt.js";
import { Backend } from "../../src/router/backend.js";
import { Client } from "./support/client.js";
import { event } from "./support/fake.js";

/** A try whose backend is the test: it calls the handler as undici does. */
function attempt(client: Client) {
  const called: string[] = [];
  const controller = (...rawHeaders: string[]) =>
    ({
      rawHeaders,
      pause: () => called.push("pause"),
      resume: () => called.push("resume"),
      abort: () => called.push("abort"),
    }) as unknown as Dispatcher.DispatchController;
  let handler = undefined as unknown as Required<Dispatcher.DispatchHandler>;
  const pool = {
    dispatch: (_: unknown, given: typeof handler) => {
      handler = given;
    },
  };
  const backend = { attempts: new Set(), pool, prefix: "", lastSeen: 0 } as unknown as Backend;
  const started: unknown[] = [];
  const passed: string[] = [];
  const end = Attempt.run(
    backend,
    { path: "/v1/chat/completions", headers: [], body: Buffer.alloc(0), fresh: false },
    client as unknown as ServerResponse,
    ["X-Own", "1"],
    { started: (...words) => started.push(words), passed: (chunk) => passed.push(chunk.toString()) },
  );
  return { end, backend, controller, called, handler, started, passed };
}

test("an answer passes unchanged, with its length, and leaves nothing open", async () => {
  const client = new Client();
  const { end, backend, controller, called, handler, started, passed } = attempt(client);
  const raw = controller("X-A", "b", "Content-Type", "text/plain", "Content-Length", "4");
  handler.onRequestStart(raw, {});
  handler.onResponseStart(raw, 201, {}, "Made");
  handler.onResponseData(raw, Buffer.from("some"));
  handler.onResponseEnd(raw, {});
  assert.equal(await end, { kind: "answered", status: 201 });
  assert.equal(client.head, [
    201,
    "Made",
    ["X-A", "b", "Content-Type", "text/plain", "Content-Length", "4", "X-Own", "1"],
  ]);
  assert.equal(client.chunks, ["some"]);
  assert.equal(started, [[201, "text/plain"]]);
  assert.equal(passed, ["some"]);
  assert.equal(called, []);
  assert.is(backend.attempts.size, 0);
  assert.equal([client.listenerCount("close"), client.listenerCount("drain")], [0, 0]);
});

test("without a length it is chunked; a slow client pauses the backend", async () => {
  const client = new Client();
  const { end, controller, called, handler, started } = attempt(client);
  const raw = controller();
  handler.onRequestStart(raw, {});
  handler.onResponseStart(raw, 200, {});
  client.slow = true;
  handler.onResponseData(raw, Buffer.from("0123456789abcdef"));
  assert.equal(called, ["pause"]);
  client.emit("drain");
  assert.equal(called, ["pause", "resume"]);
  handler.onResponseEnd(raw, {});
  await end;
  assert.equal(started, [[200, ""]]);
  assert.equal(client.chunks.join(""), "10\r\n0123456789abcdef\r\n0\r\n\r\n");
});

test("a refusal is held back entirely; a lost client ends the request", async () => {
  const client = new Client();
  const one = attempt(client);
  const raw = one.controller("Retry-After", "3");
  one.handler.onRequestStart(raw, {});
  one.handler.onResponseStart(raw, 429, {});
  one.handler.onResponseData(raw, Buffer.from("not "));
  one.handler.onResponseData(raw, Buffer.from("now"));
  one.handler.onResponseEnd(raw, {});
  const refusal = { status: 429, headers: ["Retry-After", "3", "X-Own", "1"], body: Buffer.from("not now") };
  assert.equal(await one.end, { kind: "refused", refusal });
  assert.equal([client.chunks, client.head, one.called], [[], [], []]);

  const two = attempt(client);
  two.handler.onRequestStart(two.controller(), {});
  client.emit("close");
  assert.equal(await two.end, { kind: "gone" });
  assert.equal(two.called, ["abort"]);
});

test("which statuses mean that another backend is asked", async () => {
  for (const [status, kind] of [
    [429, "refused"],
    [500, "answered"],
    [501, "answered"],
    [502, "refused"],
    [503, "refused"],
    [504, "refused"],
    [505, "answered"],
    [508, "refused"],
    [400, "answered"],
    [200, "answered"],
  ] as const) {
    const { end, controller, handler } = attempt(new Client());
    const raw = controller();
    handler.onRequestStart(raw, {});
    handler.onResponseStart(raw, status, {});
    handler.onResponseData(raw, Buffer.from("x"));
    handler.onResponseEnd(raw, {});
    assert.is((await end).kind, kind, String(status));
  }
});

test("a retired backend closes its pools; a due check is not in the past", async () => {
  const backend = new Backend({ url: "http://127.0.0.1:9" });
  backend.state = "aside";
  backend.nextCheck = 3000;
  assert.is(backend.report(1000).next_check_seconds, 2);
  assert.is(backend.report(5000).next_check_seconds, 0);
  backend.retire();
  assert.equal([backend.pool.closed, backend.fresh.closed], [true, true]);
  await backend.destroy();
});

function record() {
  const recorder = new ExecutionRecorder();
  const trace: ExecutionTrace = recorder.begin({
    endpoint: "/v1/chat/completions",
    parentId: null,
    model: "m",
    thinking: null,
    stream: true,
    input: {},
  });
  return { answer: new AnswerTrace(trace), read: () => recorder.find(trace.id as string) };
}

test("a whole answer of a mebibyte is read, and one byte more is not", () => {
  const shell = JSON.stringify({ choices: [{ message: { content: "" }, finish_reason: "stop" }] });
  for (const [length, finish] of [
    [1_048_576, "stop"],
    [1_048_577, null],
  ] as const) {
    const { answer, read } = record();
    answer.started("application/json");
    const body = Buffer.from(shell.replace('""', `"${"x".repeat(length - shell.length)}"`));
    assert.is(body.length, length);
    answer.passed(body.subarray(0, 1_000_000));
    answer.passed(body.subarray(1_000_000));
    answer.ended();
    assert.is(read()?.finish_reason, finish);
    const notes = read()
      ?.events.filter(({ kind }) => kind === "lifecycle")
      .map(({ text }) => text);
    const last = finish === null ? "1048576 bytes and is not recorded" : "is truncated here";
    assert.match(notes?.at(-1) ?? "", last);
  }
});

test("events are read across any cuts, even within a character", async () => {
  const { answer, read } = record();
  answer.started("text/event-stream; charset=utf-8");
  const bytes = Buffer.from(event("é".repeat(20_000)) + event("é".repeat(20_000)) + event("end"));
  for (let at = 0; at < bytes.length; at += 20_001) answer.passed(bytes.subarray(at, at + 20_001));
  await new Promise((resolve) => setImmediate(resolve));
  assert.is(
    read()
      ?.events.filter(({ kind }) => kind === "output")
      .map(({ text }) => text)
      .join(""),
    `${"é".repeat(40_000)}end`,
  );
});

test.run();
