import { test } from "uvu";
import * as assert from "uvu/assert";
import { Execution, ExecutionList } from "../../src/contracts/execution.js";
import { limits } from "../../src/contracts/limits.js";
import { validate } from "../../src/contracts/validate.js";
import { ExecutionRecorder } from "../../src/executions/index.js";
import { send } from "../support/request.js";
import { startServer, type TestServer, user } from "./support/serving.js";

let server: TestServer;
const messages = user("What is the capital of France?");
const parent = "0123456789abcdef0123456789abcdef";

test.before(async () => {
  server = await startServer();
});
test.after(() => server.close());

test("a streamed and a whole chat leave the same trace", async () => {
  const body = { messages, temperature: 0, max_tokens: 40 };
  const whole = await server.post("/v1/chat/completions", body, { "X-Tapline-Execution-ID": parent });
  const stream = await server.post("/v1/chat/completions", { ...body, stream: true });
  const id = String(stream.headers["x-tapline-execution-id"]);
  const { body: list } = await server.get("/executions");
  validate(ExecutionList, list);
  assert.is(list.executions.length, 2);
  assert.is(list.executions[0].id, id); // newest first
  assert.is(list.executions[1].parent_id, parent);
  assert.not.ok("input" in list.executions[0]);
  const { body: streamed } = await server.get(`/executions/${id}`);
  const { body: answered } = await server.get(`/executions/${list.executions[1].id}`);
  for (const record of [streamed, answered]) {
    validate(Execution, record);
    assert.is(record.status, "completed");
    assert.is(record.stream, record === streamed);
    assert.is(record.thinking, true);
    assert.equal(record.input.messages, messages);
    const text = (kind: string) =>
      record.events
        .filter((event: { kind: string }) => event.kind === kind)
        .map((event: { text: string }) => event.text)
        .join("");
    assert.is(text("output"), whole.body.choices[0].message.content);
    assert.is(text("thinking"), whole.body.choices[0].message.reasoning_content);
    assert.is(record.output_tokens, whole.body.usage.completion_tokens);
    assert.is(record.finish_reason, whole.body.choices[0].finish_reason);
    assert.ok(whole.body.choices[0].message.content.trimStart().startsWith(record.preview));
  }
});

test("records show failures, unknown ids give 404, and clearing keeps running ones", async () => {
  await server.post("/v1/chat/completions", { messages: user("word ".repeat(3000)) });
  const { body: list } = await server.get("/executions");
  assert.is(list.executions[0].status, "failed");
  const { body: failed } = await server.get(`/executions/${list.executions[0].id}`);
  assert.ok(failed.events.some((event: { kind: string }) => event.kind === "error"));
  assert.is((await server.get(`/executions/${"0".repeat(32)}`)).status, 404);
  assert.equal((await send(`${server.url}/executions`, "DELETE")).body, { cleared: true });
  assert.equal((await server.get("/executions")).body.executions, []);
  assert.is((await server.get("/executions", { Cookie: "a=b" })).status, 403);
});

function begin(recorder: ExecutionRecorder, endpoint = "/v1/chat/completions") {
  return recorder.begin({ endpoint, parentId: null, model: "m", thinking: null, stream: true, input: {} });
}

test("history is bounded in all; active ones are never pushed out", () => {
  const recorder = new ExecutionRecorder();
  for (let i = 0; i < limits.execution_history; i++) begin(recorder);
  assert.is(begin(recorder).id, null);
  assert.is(recorder.list().dropped, 1);
  assert.is(begin(recorder, "/v1/completions").id, null);
  const other = new ExecutionRecorder();
  const traces = Array.from({ length: limits.execution_history + 10 }, () => {
    const trace = begin(other);
    trace.ended("completed");
    return trace;
  });
  assert.is(other.list().executions.length, limits.execution_history);
  assert.is(other.list().executions[0]?.id, traces.at(-1)?.id);
  recorder.clear();
  assert.is(recorder.list().executions.length, limits.execution_history);
});

test("answers in any API's form are read: whole and in events", () => {
  const events = (parts: object[]) =>
    parts.map((part) => `event: x\ndata: ${JSON.stringify(part)}\n\n`).join("");
  const forms: Record<string, [streamed: object[], whole: object, finish: string]> = {
    responses: [
      [
        { type: "response.reasoning_text.delta", delta: "hm" },
        { type: "response.output_text.delta", delta: "Pa" },
        { type: "response.output_text.delta", delta: "ris" },
        { type: "response.output_text.done", text: "Paris" },
        { type: "response.completed", response: { status: "completed", usage: { output_tokens: 7 } } },
      ],
      {
        object: "response",
        status: "completed",
        output: [
          { type: "reasoning", content: [{ type: "reasoning_text", text: "hm" }] },
          { type: "message", content: [{ type: "output_text", text: "Paris" }] },
        ],
        usage: { output_tokens: 7 },
      },
      "completed",
    ],
    messages: [
      [
        { type: "message_start", message: { content: [] } },
        { type: "content_block_delta", delta: { type: "thinking_delta", thinking: "hm" } },
        { type: "content_block_delta", delta: { type: "text_delta", text: "Pa" } },
        { type: "content_block_delta", delta: { type: "text_delta", text: "ris" } },
        { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 7 } },
      ],
      {
        type: "message",
        content: [
          { type: "thinking", thinking: "hm" },
          { type: "text", text: "Paris" },
        ],
        stop_reason: "end_turn",
        usage: { output_tokens: 7 },
      },
      "end_turn",
    ],
  };
  for (const [name, [streamed, whole, finish]] of Object.entries(forms)) {
    const recorder = new ExecutionRecorder();
    const [stream, answer] = [begin(recorder), begin(recorder)];
    stream.sent(events(streamed));
    answer.answered(JSON.stringify(whole));
    for (const { id } of [stream, answer]) {
      const record = recorder.find(id ?? "");
      const text = (kind: string) =>
        record?.events
          .filter((event) => event.kind === kind)
          .map((event) => event.text)
          .join("");
      assert.equal([text("thinking"), text("output"), record?.preview], ["hm", "Paris", "Paris"], name);
      assert.equal([record?.finish_reason, record?.output_tokens], [finish, 7], name);
    }
  }
});

test("text and steps are bounded, and what is left out is said", () => {
  const recorder = new ExecutionRecorder();
  const part = (delta: object, index = 0) => `data: ${JSON.stringify({ choices: [{ index, delta }] })}\n\n`;
  const long = begin(recorder);
  const piece = "é".repeat(10_000);
  for (let i = 0; i < 20; i++) long.sent(part({ content: piece }), 1);
  const record = recorder.find(long.id ?? "");
  const bytes = (record?.events ?? []).reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
  assert.ok(bytes <= limits.execution_text_bytes && bytes > limits.execution_text_bytes / 2);
  assert.is(record?.truncated, true);
  assert.is([...(record?.preview ?? "")].length, limits.execution_preview_characters);
  const steps = begin(recorder);
  for (let i = 0; i < 3000; i++) steps.sent(part({ content: "a" }, i % 2), 1);
  const told = recorder.find(steps.id ?? "");
  // Received, 992 of the 3000, and that there were more.
  assert.equal(
    told?.events.map(({ kind }) => kind),
    ["lifecycle", ...Array(992).fill("output"), "lifecycle"],
  );
  assert.equal(
    told?.events.slice(1, 993).map(({ choice }) => choice),
    Array.from({ length: 992 }, (_, i) => i % 2),
  );
  assert.is(told?.output_tokens, 3000);
});

test("a truncated record keeps the answer's start, where it ends, and any error", () => {
  const recorder = new ExecutionRecorder();
  const part = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
  const trace = begin(recorder);
  const pieces = ["x".repeat(200_000), "é".repeat(20_000), "small"];
  for (const piece of pieces) trace.sent(part(piece), 1);
  for (let i = 0; i < 40; i++) trace.lifecycle(`sent to backend ${i}`);
  trace.sent(`data: ${JSON.stringify({ error: { message: "no" } })}\n\n`);
  trace.ended("failed");
  const record = recorder.find(trace.id ?? "");
  const texts = (kind: string) => (record?.events ?? []).filter((event) => event.kind === kind);
  const output = texts("output")
    .map(({ text }) => text)
    .join("");
  // 262144 bytes less the 32768 that are kept back: 200000 of one and 29376 / 2 characters of two.
  assert.is(output.length, 200_000 + 14_688);
  assert.ok(pieces.join("").startsWith(output));
  assert.is(record?.truncated, true);
  assert.match(record?.events[2]?.text ?? "", "is truncated here");
  assert.is(record?.events.at(-1)?.text, "failed");

  const failing = begin(recorder);
  for (const piece of pieces) failing.sent(part(piece), 1);
  failing.sent(`data: ${JSON.stringify({ error: { message: `no${"!".repeat(2000)}` } })}\n\n`);
  failing.failed("broke off");
  failing.ended("failed");
  const said = recorder.find(failing.id ?? "")?.events.filter(({ kind }) => kind !== "output");
  assert.equal(
    said?.map(({ kind, text }) => [kind, text.length < 100 ? text : text.length]),
    [
      ["lifecycle", "received"],
      ["lifecycle", "the record of the answer is truncated here"],
      ["error", 1024],
      ["error", "broke off"],
      ["lifecycle", "failed"],
    ],
  );
  assert.equal(
    recorder.find(failing.id ?? "")?.events.map(({ id }) => id),
    [0, 1, 2, 3, 4, 5],
  );
});

test.run();
