import { test } from "uvu";
import * as assert from "uvu/assert";
import { Execution, ExecutionList } from "../../src/contracts/execution.js";
import { limits } from "../../src/contracts/limits.js";
import { validate } from "../../src/contracts/validate.js";
import { ExecutionRecorder } from "../../src/requests/index.js";
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

test("failures are told, unknown ids are 404, clearing keeps what runs", async () => {
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
  assert.is(recorder.find(steps.id ?? "")?.events.length, limits.execution_events);
  assert.is(recorder.find(steps.id ?? "")?.output_tokens, 3000);
});

test.run();
