/** Messages out of a chat's answer: blocks, events and reasons, by hand. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { ChatChoice } from "../../src/inference/forms/form.js";
import { MessagesForm } from "../../src/inference/forms/messages-answer.js";
import { answer, type Event, events, parts, plain, usage } from "./support/an-answer.js";

test("Messages: blocks are opened, filled and closed", () => {
  const form = new MessagesForm("m", ["END"], 8);
  const told = parts.map((part) => plain(events(form.event(answer(part)))));
  const end = plain(events(form.event(answer(null, { usage })) + form.end()));
  const counts = (input: number, output: number, cached = 0) => ({
    input_tokens: input,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached,
    output_tokens: output,
  });
  const delta = (index: number, value: object, more: object = {}) => ({
    type: "content_block_delta",
    index,
    delta: value,
    ...more,
  });
  assert.equal(told, [
    [
      {
        type: "message_start",
        message: {
          id: "msg",
          type: "message",
          role: "assistant",
          model: "m",
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: counts(8, 0),
        },
      },
    ],
    [
      {
        type: "content_block_start",
        index: 0,
        content_block: { type: "thinking", thinking: "", signature: "" },
      },
      delta(0, { type: "thinking_delta", thinking: "hm" }),
    ],
    [delta(0, { type: "thinking_delta", thinking: "m" }, { tapline: { tokens: [1] } })],
    [
      delta(0, { type: "signature_delta", signature: "" }),
      { type: "content_block_stop", index: 0 },
      { type: "content_block_start", index: 1, content_block: { type: "text", text: "", citations: null } },
      delta(1, { type: "text_delta", text: "Pa" }),
    ],
    [delta(1, { type: "text_delta", text: "ris" }, { tapline: { tokens: [2] } })],
    [
      { type: "content_block_stop", index: 1 },
      {
        type: "content_block_start",
        index: 2,
        content_block: { type: "tool_use", id: "c0", name: "f", input: {} },
      },
      delta(2, { type: "input_json_delta", partial_json: "" }),
    ],
    [delta(2, { type: "input_json_delta", partial_json: '{"a"' })],
    [delta(2, { type: "input_json_delta", partial_json: ":1}" })],
    [
      { type: "content_block_stop", index: 2 },
      {
        type: "content_block_start",
        index: 3,
        content_block: { type: "tool_use", id: "toolu", name: "g", input: {} },
      },
      delta(3, { type: "input_json_delta", partial_json: "[" }),
    ],
    [],
  ] as unknown as Event[][]);
  assert.equal(end, [
    { type: "content_block_stop", index: 3 },
    {
      type: "message_delta",
      delta: { stop_reason: "tool_use", stop_sequence: null },
      usage: counts(7, 4, 3),
      tapline: { tokens: [1, 2] },
    },
    { type: "message_stop" },
  ] as unknown as Event[]);
  assert.equal(events(form.fault("It broke.")), [
    { type: "error", error: { type: "api_error", message: "It broke." } },
  ] as unknown as Event[]);
});

test("Messages: why an answer ended, and an answer as a whole", () => {
  const ending = (choice: Partial<ChatChoice>) => {
    const whole = new MessagesForm("m", ["END"]).whole(
      answer({ message: { content: "t" }, ...choice }),
    ) as Record<string, unknown>;
    return [whole.stop_reason, whole.stop_sequence];
  };
  assert.equal(ending({ finish_reason: "stop" }), ["end_turn", null]);
  assert.equal(ending({ finish_reason: "length" }), ["max_tokens", null]);
  assert.equal(ending({ finish_reason: "tool_calls" }), ["tool_use", null]);
  assert.equal(ending({ finish_reason: "stop", stop_reason: "END" }), ["stop_sequence", "END"]);
  assert.equal(ending({ finish_reason: "stop", stop_reason: "another" }), ["end_turn", null]);
  assert.equal(ending({ finish_reason: null }), ["end_turn", null]);
  const whole = plain(
    new MessagesForm("m", []).whole(
      answer(
        {
          finish_reason: "stop",
          message: {
            reasoning_content: "r",
            content: "t",
            tool_calls: [
              { id: "i", function: { name: "f", arguments: "" } },
              { function: { name: "g", arguments: '{"cut' } },
            ],
          },
        },
        { usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 } },
      ),
    ),
  ) as Record<string, unknown>;
  assert.equal(whole, {
    id: "msg",
    type: "message",
    role: "assistant",
    model: "m",
    content: [
      { type: "thinking", thinking: "r", signature: "" },
      { type: "text", text: "t", citations: null },
      { type: "tool_use", id: "i", name: "f", input: {} },
      { type: "tool_use", id: "toolu", name: "g", input: {} },
    ],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 1, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 2 },
  });
});

test.run();
