/** Bodies of other APIs as chats: every expectation written out by hand. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { MessagesRequest } from "../../src/contracts/messages.js";
import type { ResponsesRequest } from "../../src/contracts/responses.js";
import type { HttpError } from "../../src/http/index.js";
import { messagesErrorBody } from "../../src/inference/forms/form.js";
import { chatOfCount, chatOfMessages } from "../../src/inference/forms/messages-request.js";
import { chatOfResponses } from "../../src/inference/forms/responses-request.js";

function refusal(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    assert.is((error as HttpError).status, 400);
    return (error as HttpError).message;
  }
  return "accepted";
}

const responses = (body: object) => chatOfResponses(body as ResponsesRequest) as Record<string, unknown>;

test("Responses: fields are renamed for a chat, and absent ones stay absent", () => {
  assert.equal(responses({ input: "hi" }), { messages: [{ role: "user", content: "hi" }] });
  assert.equal(
    responses({
      model: "m",
      input: "hi",
      instructions: "Be brief.",
      stream: true,
      parallel_tool_calls: false,
      temperature: 0,
      top_p: 0.5,
      top_k: 1,
      min_p: 0.1,
      seed: 3,
      presence_penalty: 1,
      frequency_penalty: 2,
      logit_bias: { 5: 1 },
      chat_template_kwargs: { a: 1 },
      tapline: {},
      max_output_tokens: 7,
      tools: [],
      tool_choice: "required",
      reasoning: { effort: "low" },
      text: { format: { type: "json_schema", schema: { type: "object" } } },
      top_logprobs: 2,
    }),
    {
      model: "m",
      stream: true,
      parallel_tool_calls: false,
      temperature: 0,
      top_p: 0.5,
      top_k: 1,
      min_p: 0.1,
      seed: 3,
      presence_penalty: 1,
      frequency_penalty: 2,
      logit_bias: { 5: 1 },
      chat_template_kwargs: { a: 1 },
      tapline: {},
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "hi" },
      ],
      max_tokens: 7,
      tool_choice: "required",
      reasoning_effort: "low",
      response_format: { type: "json_schema", json_schema: { schema: { type: "object" } } },
      logprobs: true,
      top_logprobs: 2,
    },
  );
  assert.equal(responses({ input: "x", text: { format: { type: "json_schema" } } }).response_format, {
    type: "json_schema",
    json_schema: { schema: {} },
  });
  assert.equal(responses({ input: "x", text: { format: { type: "text" } } }).response_format, {
    type: "text",
  });
  const included = responses({ input: "x", include: ["message.output_text.logprobs"] });
  assert.equal([included.logprobs, included.top_logprobs], [true, 0]);
  assert.not("logprobs" in responses({ input: "x", include: ["other"] }));
  assert.equal(responses({ input: "x", tool_choice: { type: "function", name: "f" } }).tool_choice, {
    type: "function",
    function: { name: "f" },
  });
  const tools = [
    { type: "function", name: "f", description: "d", parameters: { type: "object" } },
    { type: "function", name: "g", description: "" },
  ];
  assert.equal(responses({ input: "x", tools }).tools, [
    { type: "function", function: { name: "f", description: "d", parameters: { type: "object" } } },
    { type: "function", function: { name: "g" } },
  ]);
});

test("Responses: items become a conversation", () => {
  const messages = (...input: object[]) => responses({ input }).messages;
  assert.equal(
    messages(
      { role: "developer", content: "d" },
      {
        type: "message",
        role: "user",
        content: [
          { type: "input_text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
      {
        type: "reasoning",
        summary: [{ type: "summary_text", text: "s" }],
        content: [{ type: "reasoning_text", text: "r" }],
      },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "one " }] },
      { type: "message", role: "assistant", content: [{ type: "refusal", refusal: "two" }] },
      { type: "function_call", call_id: "c1", name: "f", arguments: "{}" },
      { type: "function_call", call_id: "c2", name: "g", arguments: "[]" },
      { type: "message", role: "assistant", content: "behind calls" },
      { type: "function_call_output", call_id: "c1", output: "out" },
      { type: "function_call_output", call_id: "c2", output: [{ type: "input_text", text: "x" }] },
      { type: "reasoning", summary: [] },
      { type: "function_call", call_id: "c3", name: "h", arguments: "" },
    ),
    [
      { role: "system", content: "d" },
      { role: "user", content: "a\nb" },
      {
        role: "assistant",
        content: "one two",
        reasoning_content: "r\ns",
        tool_calls: [
          { id: "c1", type: "function", function: { name: "f", arguments: "{}" } },
          { id: "c2", type: "function", function: { name: "g", arguments: "[]" } },
        ],
      },
      { role: "assistant", content: "behind calls" },
      { role: "tool", tool_call_id: "c1", content: "out" },
      { role: "tool", tool_call_id: "c2", content: "x" },
      {
        role: "assistant",
        content: "",
        tool_calls: [{ id: "c3", type: "function", function: { name: "h", arguments: "" } }],
      },
    ],
  );
  assert.equal(
    messages({
      role: "user",
      content: [
        { type: "input_text", text: "a" },
        { type: "input_image", image_url: "u" },
      ],
    }),
    [
      {
        role: "user",
        content: [
          { type: "text", text: "a" },
          { type: "image_url", image_url: { url: "u" } },
        ],
      },
    ],
  );
  assert.equal(
    messages({
      role: "assistant",
      content: [
        { type: "input_text", text: "a" },
        { type: "input_text", text: "b" },
      ],
    }),
    [{ role: "assistant", content: "a\nb" }],
  );
});

test("Responses: what lacks something or is of another kind is refused by its place", () => {
  const item = (one: object) => refusal(() => responses({ input: [{ role: "user", content: "x" }, one] }));
  for (const [one, sentence] of [
    [{ content: "x" }, "input[1].role is required."],
    [{ role: "user" }, "input[1].content is required."],
    [{ type: "function_call", name: "f", arguments: "" }, "input[1].call_id is required."],
    [{ type: "function_call", call_id: "c", arguments: "" }, "input[1].name is required."],
    [{ type: "function_call", call_id: "c", name: "f" }, "input[1].arguments is required."],
    [{ type: "function_call_output", output: "x" }, "input[1].call_id is required."],
    [{ type: "function_call_output", call_id: "c" }, "input[1].output is required."],
    [
      { type: "web_search_call" },
      "input[1]: supported items are message, reasoning, function_call and function_call_output, got web_search_call.",
    ],
    [{ role: "user", content: [{ type: "input_text" }] }, "input[1].content[0].text is required."],
    [
      { role: "user", content: [{ type: "input_text", text: "" }, { type: "input_image" }] },
      "input[1].content[1].image_url is required.",
    ],
    [
      { role: "user", content: [{ type: "input_file" }] },
      "input[1].content[0]: supported parts are input_text, output_text and input_image, got input_file.",
    ],
    [
      { type: "function_call_output", call_id: "c", output: [{ type: "text" }] },
      "input[1].output[0].text is required.",
    ],
  ] as const) {
    assert.is(item(one), sentence);
  }
  const tool = (one: object) =>
    refusal(() => responses({ input: "x", tools: [{ type: "function", name: "f" }, one] }));
  assert.is(
    tool({ type: "web_search" }),
    "tools[1]: only tools of type function are supported, got web_search.",
  );
  assert.is(tool({ type: "function" }), "tools[1].name is required.");
});

const body = (more: object) =>
  ({ model: "m", max_tokens: 5, messages: [{ role: "user", content: "hi" }], ...more }) as MessagesRequest;
const chat = (more: object) => chatOfMessages(body(more)) as unknown as Record<string, unknown>;
const quiet = { chat_template_kwargs: { enable_thinking: false } };

test("Messages: fields under their own names in a chat", () => {
  const user = [{ role: "user", content: "hi" }];
  assert.equal(chat({}), { messages: user, ...quiet, max_tokens: 5 });
  assert.equal(
    chat({
      stream: false,
      temperature: 0,
      top_p: 1,
      top_k: 0,
      seed: 0,
      logit_bias: { 1: 2 },
      tapline: {},
      stop_sequences: ["a"],
      system: [
        { type: "text", text: "one " },
        { type: "text", text: "two" },
      ],
      tools: [
        { name: "f", description: "", input_schema: { type: "object" } },
        { name: "g", input_schema: {} },
      ],
      tool_choice: { type: "tool", name: "f", disable_parallel_tool_use: true },
      thinking: { type: "enabled", budget_tokens: 0 },
      output_config: { effort: "high", format: { type: "json_schema", schema: { a: 1 } } },
      chat_template_kwargs: { other: 1 },
    }),
    {
      messages: [{ role: "system", content: "one two" }, ...user],
      max_tokens: 5,
      stream: false,
      temperature: 0,
      top_p: 1,
      top_k: 0,
      seed: 0,
      logit_bias: { 1: 2 },
      tapline: {},
      stop: ["a"],
      tools: [
        { type: "function", function: { name: "f", description: "", parameters: { type: "object" } } },
        { type: "function", function: { name: "g", parameters: {} } },
      ],
      tool_choice: { type: "function", function: { name: "f" } },
      parallel_tool_calls: false,
      chat_template_kwargs: { enable_thinking: true, other: 1 },
      thinking_budget_tokens: 0,
      reasoning_effort: "high",
      response_format: { type: "json_schema", json_schema: { schema: { a: 1 } } },
    },
  );
  assert.equal(chat({ system: "s", tools: [], thinking: { type: "disabled" } }), {
    messages: [{ role: "system", content: "s" }, ...user],
    ...quiet,
    max_tokens: 5,
  });
  for (const [type, expected] of [
    ["auto", "auto"],
    ["none", "none"],
    ["any", "required"],
  ]) {
    assert.is(chat({ tool_choice: { type } }).tool_choice, expected);
  }
  assert.is(
    chat({ tool_choice: { type: "auto", disable_parallel_tool_use: false } }).parallel_tool_calls,
    true,
  );
  assert.not("parallel_tool_calls" in chat({ tool_choice: { type: "auto" } }));
  assert.equal(chat({ chat_template_kwargs: { enable_thinking: true } }).chat_template_kwargs, {
    enable_thinking: true,
  });
  assert.is(
    refusal(() => chat({ tool_choice: { type: "tool" } })),
    "tool_choice.name is required.",
  );
  // Only what becomes the prompt is counted.
  assert.equal(chatOfCount(body({ temperature: 1, stop_sequences: ["a"] })), { messages: user, ...quiet });
});

test("Messages: blocks become a conversation, or are refused by their place", () => {
  const blocks = (role: string, ...content: object[]) => chat({ messages: [{ role, content }] }).messages;
  assert.equal(blocks("user", { type: "text", text: "a" }, { type: "text", text: "b" }), [
    { role: "user", content: "a\nb" },
  ]);
  assert.equal(blocks("user"), []);
  assert.equal(
    blocks(
      "assistant",
      { type: "thinking", thinking: "one " },
      { type: "thinking", thinking: "two" },
      { type: "text", text: "t" },
      { type: "tool_use", id: "i", name: "f", input: { a: 1 } },
      { type: "tool_use", id: "j", name: "g" },
    ),
    [
      {
        role: "assistant",
        content: "t",
        tool_calls: [
          { id: "i", type: "function", function: { name: "f", arguments: '{"a":1}' } },
          { id: "j", type: "function", function: { name: "g", arguments: "{}" } },
        ],
        reasoning_content: "one two",
      },
    ],
  );
  assert.equal(blocks("assistant", { type: "thinking", thinking: "t" }), [
    { role: "assistant", content: "", reasoning_content: "t" },
  ]);
  assert.equal(blocks("assistant", { type: "tool_use", id: "i", name: "f" }), [
    {
      role: "assistant",
      content: "",
      tool_calls: [{ id: "i", type: "function", function: { name: "f", arguments: "{}" } }],
    },
  ]);
  const image = (url: string) => ({ type: "image_url", image_url: { url } });
  assert.equal(
    blocks(
      "user",
      { type: "tool_result", tool_use_id: "i", content: "r" },
      { type: "tool_result", tool_use_id: "j" },
      { type: "tool_result", tool_use_id: "k", content: [{ type: "text", text: "a" }, { type: "text" }] },
      {
        type: "tool_result",
        tool_use_id: "l",
        content: [{ type: "image", source: { type: "url", url: "u" } }],
      },
      { type: "image", source: { type: "base64", data: "QQ==" } },
      { type: "image", source: { type: "base64", data: "QQ==", media_type: "image/png" } },
      { type: "text", text: "t" },
    ),
    [
      { role: "tool", tool_call_id: "i", content: "r" },
      { role: "tool", tool_call_id: "j", content: "" },
      { role: "tool", tool_call_id: "k", content: "a\n" },
      { role: "tool", tool_call_id: "l", content: [image("u")] },
      {
        role: "user",
        content: [
          image("data:image/jpeg;base64,QQ=="),
          image("data:image/png;base64,QQ=="),
          { type: "text", text: "t" },
        ],
      },
    ],
  );
  for (const [block, name] of [
    [{ type: "text" }, "text"],
    [{ type: "image" }, "source"],
    [{ type: "thinking" }, "thinking"],
    [{ type: "tool_use", name: "f" }, "id"],
    [{ type: "tool_use", id: "i" }, "name"],
    [{ type: "tool_result" }, "tool_use_id"],
  ] as const) {
    assert.is(
      refusal(() => blocks("user", { type: "text", text: "" }, block)),
      `messages[0].content[1].${name} is required.`,
    );
  }
  const wanting = "source: must have base64 data or a url.";
  for (const source of [{ type: "base64" }, { type: "url" }, { type: "file", data: "x", url: "u" }]) {
    assert.is(
      refusal(() => blocks("user", { type: "image", source })),
      `messages[0].content[0].${wanting}`,
    );
  }
  const result = {
    type: "tool_result",
    tool_use_id: "i",
    content: [{ type: "text", text: "" }, { type: "image" }],
  };
  assert.is(
    refusal(() => blocks("user", result)),
    `messages[0].content[0].content[1].${wanting}`,
  );
});

test("Messages: each status has Anthropic's word", () => {
  const word = (status: number) =>
    (messagesErrorBody({ status, message: "m" } as HttpError) as { error: { type: string } }).error.type;
  assert.equal(messagesErrorBody({ status: 400, message: "m" } as HttpError), {
    type: "error",
    error: { type: "invalid_request_error", message: "m" },
  });
  assert.equal([401, 403, 404, 408, 429, 499, 500, 502, 503].map(word), [
    "authentication_error",
    "permission_error",
    "not_found_error",
    "invalid_request_error",
    "rate_limit_error",
    "invalid_request_error",
    "api_error",
    "api_error",
    "overloaded_error",
  ]);
});

test.run();
