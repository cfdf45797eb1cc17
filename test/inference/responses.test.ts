/** Responses out of a chat's answer: items, events and their numbers, by hand. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { ResponsesRequest } from "../../src/contracts/responses.js";
import { ResponsesForm } from "../../src/inference/forms/responses-answer.js";
import { answer, type Event, events, parts, plain, usage } from "./support/an-answer.js";

test("Responses: items are opened, filled and closed, each event numbered", () => {
  const form = new ResponsesForm({ input: "x" } as ResponsesRequest, "m");
  const told = parts.map((part) => plain(events(form.event(answer(part)))));
  const end = plain(events(form.event(answer(null, { usage })) + form.end()));
  const all = [...told.flat(), ...end];
  assert.equal(
    all.map(({ sequence_number }) => sequence_number),
    all.map((_, index) => index),
  );
  const [first] = all;
  assert.equal((first as { response?: object }).response, {
    id: "resp",
    object: "response",
    created_at: "now",
    status: "in_progress",
    completed_at: null,
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    metadata: {},
    model: "m",
    output: [],
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    store: false,
    temperature: null,
    text: { format: { type: "text" } },
    tool_choice: "auto",
    tools: [],
    top_p: null,
    truncation: "disabled",
    usage: null,
  });
  const bare = (list: Event[]) =>
    list.map(({ sequence_number: _number, response: _response, ...event }) => event);
  const reasoning = { type: "reasoning", id: "rs", summary: [] };
  const message = { type: "message", id: "msg", role: "assistant" };
  const part = (text: string, logprobs: object[] = []) => ({
    type: "output_text",
    annotations: [],
    logprobs,
    text,
  });
  const chosen = { token: "Pa", logprob: -1 };
  assert.equal(told.map(bare), [
    [{ type: "response.created" }, { type: "response.in_progress" }],
    [
      {
        type: "response.output_item.added",
        output_index: 0,
        item: { ...reasoning, status: "in_progress", content: [] },
      },
      {
        type: "response.content_part.added",
        item_id: "rs",
        output_index: 0,
        content_index: 0,
        part: { type: "reasoning_text", text: "" },
      },
      {
        type: "response.reasoning_text.delta",
        item_id: "rs",
        output_index: 0,
        content_index: 0,
        delta: "hm",
      },
    ],
    [
      {
        type: "response.reasoning_text.delta",
        item_id: "rs",
        output_index: 0,
        content_index: 0,
        delta: "m",
        tapline: { tokens: [1] },
      },
    ],
    [
      { type: "response.reasoning_text.done", item_id: "rs", output_index: 0, content_index: 0, text: "hmm" },
      {
        type: "response.content_part.done",
        item_id: "rs",
        output_index: 0,
        content_index: 0,
        part: { type: "reasoning_text", text: "hmm" },
      },
      {
        type: "response.output_item.done",
        output_index: 0,
        item: { ...reasoning, status: "completed", content: [{ type: "reasoning_text", text: "hmm" }] },
      },
      {
        type: "response.output_item.added",
        output_index: 1,
        item: { ...message, status: "in_progress", content: [] },
      },
      {
        type: "response.content_part.added",
        item_id: "msg",
        output_index: 1,
        content_index: 0,
        part: part(""),
      },
      {
        type: "response.output_text.delta",
        item_id: "msg",
        output_index: 1,
        content_index: 0,
        delta: "Pa",
        logprobs: [chosen],
      },
    ],
    [
      {
        type: "response.output_text.delta",
        item_id: "msg",
        output_index: 1,
        content_index: 0,
        delta: "ris",
        logprobs: [],
        tapline: { tokens: [2] },
      },
    ],
    [
      {
        type: "response.output_text.done",
        item_id: "msg",
        output_index: 1,
        content_index: 0,
        text: "Paris",
        logprobs: [chosen],
      },
      {
        type: "response.content_part.done",
        item_id: "msg",
        output_index: 1,
        content_index: 0,
        part: part("Paris", [chosen]),
      },
      {
        type: "response.output_item.done",
        output_index: 1,
        item: { ...message, status: "completed", content: [part("Paris", [chosen])] },
      },
      {
        type: "response.output_item.added",
        output_index: 2,
        item: {
          type: "function_call",
          id: "fc",
          status: "in_progress",
          call_id: "c0",
          name: "f",
          arguments: "",
        },
      },
    ],
    [{ type: "response.function_call_arguments.delta", item_id: "fc", output_index: 2, delta: '{"a"' }],
    [{ type: "response.function_call_arguments.delta", item_id: "fc", output_index: 2, delta: ":1}" }],
    [
      {
        type: "response.function_call_arguments.done",
        item_id: "fc",
        output_index: 2,
        name: "f",
        arguments: '{"a":1}',
      },
      {
        type: "response.output_item.done",
        output_index: 2,
        item: {
          type: "function_call",
          id: "fc",
          status: "completed",
          call_id: "c0",
          name: "f",
          arguments: '{"a":1}',
        },
      },
      {
        type: "response.output_item.added",
        output_index: 3,
        item: {
          type: "function_call",
          id: "fc",
          status: "in_progress",
          call_id: "call",
          name: "g",
          arguments: "",
        },
      },
      { type: "response.function_call_arguments.delta", item_id: "fc", output_index: 3, delta: "[" },
    ],
    [],
  ]);
  const last = end.at(-1) as Event & { response: Record<string, unknown> };
  assert.equal(
    end.map(({ type }) => type),
    ["response.function_call_arguments.done", "response.output_item.done", "response.completed"],
  );
  assert.equal([last.response.status, last.response.completed_at], ["completed", "now"]);
  assert.equal(
    (last.response.output as { type: string; status: string }[]).map(({ type, status }) => [type, status]),
    ["reasoning", "message", "function_call", "function_call"].map((type) => [type, "completed"]),
  );
  // How many of the tokens were reasoning nobody knows.
  assert.equal(last.response.usage, {
    input_tokens: 10,
    input_tokens_details: { cached_tokens: 3 },
    output_tokens: 4,
    total_tokens: 14,
  });
  assert.equal(last.response.tapline, { tokens: [1, 2] });
});

test("Responses: an answer that was cut off, a fault, and an answer as a whole", () => {
  const request = {
    input: "x",
    instructions: "i",
    max_output_tokens: 3,
    metadata: { a: "b" },
    top_p: 0.5,
    temperature: 0,
  };
  const cut = new ResponsesForm(request as unknown as ResponsesRequest, "m");
  cut.event(answer({ delta: { reasoning_content: "r" } }));
  cut.event(answer({ delta: { content: "t" }, finish_reason: "length" }));
  const last = plain(events(cut.end())).at(-1) as Event & { response: Record<string, unknown> };
  assert.is(last.type, "response.incomplete");
  const {
    status,
    completed_at,
    incomplete_details,
    instructions,
    max_output_tokens,
    metadata,
    top_p,
    temperature,
  } = last.response;
  assert.equal(
    [status, completed_at, incomplete_details],
    ["incomplete", null, { reason: "max_output_tokens" }],
  );
  assert.equal([instructions, max_output_tokens, metadata, top_p, temperature], ["i", 3, { a: "b" }, 0.5, 0]);
  assert.equal(
    (last.response.output as { status: string }[]).map((item) => item.status),
    ["completed", "incomplete"],
  );
  const failing = new ResponsesForm({ input: "x" } as ResponsesRequest, "m");
  const fault = plain(events(failing.fault("It broke."))) as (Event & {
    response: Record<string, unknown>;
  })[];
  assert.equal(
    fault.map(({ type, sequence_number }) => [type, sequence_number]),
    [
      ["response.created", 0],
      ["response.in_progress", 1],
      ["response.failed", 2],
    ],
  );
  assert.equal(
    [fault[2]?.response.status, fault[2]?.response.error],
    ["failed", { code: "server_error", message: "It broke." }],
  );

  const whole = plain(
    new ResponsesForm(
      {
        input: "x",
        tools: [{ type: "function", name: "f" }],
        tool_choice: "none",
      } as unknown as ResponsesRequest,
      "m",
    ).whole(
      answer(
        {
          finish_reason: "stop",
          message: {
            content: "t",
            tool_calls: [
              { function: { name: "f", arguments: "{}" } },
              { id: "i", function: { name: "g", arguments: "[]" } },
            ],
          },
        },
        { usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 } },
      ),
    ),
  ) as Record<string, unknown>;
  assert.equal(
    [whole.status, whole.tools, whole.tool_choice],
    ["completed", [{ type: "function", name: "f" }], "none"],
  );
  assert.equal(whole.output, [
    {
      type: "message",
      id: "msg",
      status: "completed",
      role: "assistant",
      content: [{ type: "output_text", annotations: [], logprobs: [], text: "t" }],
    },
    { type: "function_call", id: "fc", status: "completed", call_id: "call", name: "f", arguments: "{}" },
    { type: "function_call", id: "fc", status: "completed", call_id: "i", name: "g", arguments: "[]" },
  ]);
  assert.equal(whole.usage, {
    input_tokens: 1,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 2,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 3,
  });
});

test.run();
