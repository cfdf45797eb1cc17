/** The engine's answers in other APIs' forms: every expectation written out by hand. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { ResponsesRequest } from "../../src/contracts/responses.js";
import { CompletionForm } from "../../src/inference/forms/completion.js";
import {
  type AnswerForm,
  type ChatAnswer,
  type ChatChoice,
  translate,
} from "../../src/inference/forms/form.js";
import { MessagesForm } from "../../src/inference/forms/messages-answer.js";
import { ResponsesForm } from "../../src/inference/forms/responses-answer.js";

const usage = {
  prompt_tokens: 10,
  completion_tokens: 4,
  total_tokens: 14,
  prompt_tokens_details: { cached_tokens: 3 },
};
const answer = (choice: Partial<ChatChoice> | null, more: Partial<ChatAnswer> = {}): ChatAnswer =>
  ({
    id: "e",
    created: 1,
    model: "m",
    choices: choice === null ? [] : [{ index: 0, finish_reason: null, ...choice }],
    ...more,
  }) as ChatAnswer;

interface Event {
  type: string;
  [field: string]: unknown;
}

/** The events of a text; each names itself twice. */
function events(text: string): Event[] {
  return text
    .split("\n\n")
    .filter((part) => part !== "")
    .map((part) => {
      const [name, data] = part.split("\n") as [string, string];
      const event = JSON.parse(data.slice("data: ".length)) as Event;
      assert.is(name, `event: ${event.type}`);
      return event;
    });
}

/** Ids are random: their beginnings in their place. */
function plain<T>(value: T): T {
  const text = JSON.stringify(value, (key, one) =>
    ["created_at", "completed_at"].includes(key) && one !== null
      ? "now"
      : typeof one === "string"
        ? one.replace(/^([a-z]+)_[0-9a-f]{32}$/, "$1")
        : one,
  );
  return JSON.parse(text) as T;
}

const call = (index: number, more: object) => ({ delta: { tool_calls: [{ index, ...more }] } });
const parts: Partial<ChatChoice>[] = [
  { delta: { content: "" } },
  { delta: { reasoning_content: "hm" } },
  { delta: { reasoning_content: "m" }, tapline: { tokens: [1] } },
  { delta: { content: "Pa" }, logprobs: { content: [{ token: "Pa", logprob: -1 }] } },
  { delta: { content: "ris" }, tapline: { tokens: [2] } },
  call(0, { id: "c0", function: { name: "f", arguments: "" } }),
  call(0, { function: { arguments: '{"a"' } }),
  call(0, { function: { arguments: ":1}" } }),
  call(1, { function: { name: "g", arguments: "[" } }),
  { finish_reason: "tool_calls", delta: {} },
];

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

test("a stream's part is translated event by event; other lines are none", () => {
  const calls: string[] = [];
  const form: AnswerForm = {
    whole: () => ({}),
    event: ({ id }) => {
      calls.push(id);
      return `<${id}>`;
    },
    end: () => "<end>",
    fault: (sentence) => `<${sentence}>`,
  };
  const text = translate(
    form,
    ': note\ndata: {"id":"1","choices":[]}\n\ndata: {"error":{"message":"bad"}}\n\nid: 3\n\ndata: [DONE]\n\n',
  );
  assert.is(text, "<1><bad><end>");
  assert.equal(calls, ["1"]);
});

const lists = ({ choices: [choice] }: { choices: Record<string, unknown>[] }) =>
  (choice as Record<string, unknown>).logprobs as { text_offset: number[]; top_logprobs: object[] };

test("completions: the prompt in front, log-probabilities as parallel lists", () => {
  const bytes = (text: string) => Buffer.from(text);
  const prompt = {
    text: "Hé",
    before: 1,
    scored: [
      { bytes: bytes("\u2581"), logprob: null, top: null },
      {
        bytes: bytes("H"),
        logprob: -1,
        top: [
          { bytes: bytes("T"), logprob: -0.5 },
          { bytes: bytes("T"), logprob: -2 },
        ],
      },
      { bytes: Buffer.from([0xc3]), logprob: -2, top: [{ bytes: Buffer.from([0xc3]), logprob: -2 }] },
      { bytes: Buffer.from([0xa9]), logprob: -3, top: [] },
    ],
  };
  const form = new CompletionForm([prompt], 1, 2, false);
  const first = form.whole(
    answer({
      text: " x",
      logprobs: { content: [{ token: " x", logprob: -4, top_logprobs: [{ token: " y", logprob: -3 }] }] },
    }),
  ) as { choices: Record<string, unknown>[] };
  assert.equal(first.choices[0], {
    index: 0,
    finish_reason: null,
    text: "Hé x",
    logprobs: {
      tokens: ["\u2581", "H", "bytes:\\xc3", "bytes:\\xa9", " x"],
      token_logprobs: [null, -1, -2, -3, -4],
      top_logprobs: [
        null,
        { T: -0.5, H: -1 },
        { "bytes:\\xc3": -2 },
        { "bytes:\\xa9": -3 },
        { " y": -3, " x": -4 },
      ],
      text_offset: [0, 0, 1, 1, 2],
    },
  });
  // What follows does not begin with the prompt again.
  const next = form.whole(
    answer({ text: "z", logprobs: { content: [{ token: "z", logprob: -5 }] } }),
  ) as typeof first;
  assert.equal(next.choices[0]?.text, "z");
  assert.equal(lists(next).text_offset, [4]);
  // Prompts of several answers each: 0 and 1 are the first prompt's, 2 and 3 the second's.
  const two = new CompletionForm(
    [
      { text: "a", scored: [] },
      { text: "b", scored: [] },
    ],
    2,
    0,
    false,
  );
  const texts = [0, 1, 2, 3, 4].map(
    (index) => (two.whole(answer({ index, text: "!" })) as typeof first).choices[0]?.text,
  );
  assert.equal(texts, ["a!", "a!", "b!", "b!", "a!"]);
  assert.not(
    "logprobs" in ((two.whole(answer({ index: 9, text: "" })) as typeof first).choices[0] as object),
  );
  // With no alternatives asked for, the token alone.
  const alone = new CompletionForm([], 1, 0, false).whole(
    answer({
      text: "x",
      logprobs: {
        content: [{ token: "x", bytes: [120], logprob: -1, top_logprobs: [{ token: "y", logprob: 0 }] }],
      },
    }),
  ) as typeof first;
  assert.equal(lists(alone).top_logprobs, [{ x: -1 }]);
  // Where no token was asked for, the engine's one is left out, and so is its count.
  const silent = new CompletionForm([{ text: "p", scored: [] }], 1, 0, true);
  const said = silent.whole(
    answer(
      { text: "x", finish_reason: "stop", logprobs: { content: [{ token: "x", logprob: -1 }] } },
      { usage },
    ),
  ) as typeof first & { usage: object };
  assert.equal(said.choices[0], {
    index: 0,
    finish_reason: "length",
    text: "p",
    logprobs: { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] },
  });
  assert.equal(said.usage, { ...usage, completion_tokens: 0, total_tokens: 10 });
  assert.is((silent.whole(answer({ index: 5, text: "x" })) as typeof first).choices[0]?.finish_reason, null);
  assert.is(form.event(answer({ text: "q" })).slice(0, 6), "data: ");
  assert.is(form.end(), "data: [DONE]\n\n");
  assert.is(
    form.fault("No."),
    'data: {"error":{"message":"No.","type":"server_error","param":null,"code":null}}\n\n',
  );
});

test.run();
