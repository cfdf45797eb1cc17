import OpenAI from "openai";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { startServer, type TestServer, untilIdle, user } from "./support/serving.js";
import { taggedToolTemplate, thinkingToolTemplate, toolTemplate } from "./support/tool-template.js";

// The official client against the server, unchanged: what works here is what "compatible" means.
let server: TestServer;
let client: OpenAI;
const model = "tapline-demo";
const messages = [{ role: "user" as const, content: "What is the capital of France?" }];
const exact = { model, temperature: 0, max_tokens: 40 };

test.before(async () => {
  server = await startServer();
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
});
test.after(() => server.close());

test("models are listed and found", async () => {
  const list = await client.models.list();
  assert.equal(
    list.data.map(({ id }) => id),
    [model],
  );
  assert.is((await client.models.retrieve(model)).object, "model");
});

test("chat answers, with reasoning apart and usage", async () => {
  const answer = await client.chat.completions.create({ ...exact, messages });
  const message = answer.choices[0]?.message as { content: string; reasoning_content?: string };
  assert.is(answer.object, "chat.completion");
  assert.ok(message.content.length > 0);
  assert.ok((message.reasoning_content ?? "").length > 0);
  assert.is(
    answer.usage?.total_tokens,
    (answer.usage?.prompt_tokens ?? 0) + (answer.usage?.completion_tokens ?? 0),
  );
});

test("a stream spells the same answer, and ends with its usage", async () => {
  const whole = await client.chat.completions.create({ ...exact, messages });
  const stream = await client.chat.completions.create({
    ...exact,
    messages,
    stream: true,
    stream_options: { include_usage: true },
  });
  let text = "";
  let reasoning = "";
  let finish: string | null = null;
  let tokens = 0;
  for await (const { choices, usage } of stream) {
    const delta = choices[0]?.delta as { content?: string; reasoning_content?: string } | undefined;
    text += delta?.content ?? "";
    reasoning += delta?.reasoning_content ?? "";
    finish = choices[0]?.finish_reason ?? finish;
    tokens = usage?.completion_tokens ?? tokens;
  }
  const message = whole.choices[0]?.message as { content: string; reasoning_content?: string };
  assert.is(text, message.content);
  assert.is(reasoning, message.reasoning_content ?? "");
  assert.is(finish, whole.choices[0]?.finish_reason);
  assert.is(tokens, whole.usage?.completion_tokens);
});

test("log-probabilities: an entry per token, sorted, including the chosen one", async () => {
  const answer = await client.chat.completions.create({
    ...exact,
    messages,
    max_tokens: 6,
    logprobs: true,
    top_logprobs: 5,
  });
  const content = answer.choices[0]?.logprobs?.content ?? [];
  assert.is(content.length, 6);
  for (const { token, logprob, top_logprobs: top } of content) {
    assert.is(top.length, 5);
    assert.ok(logprob <= 0);
    assert.is(top[0]?.token, token); // greedy
    for (let i = 1; i < top.length; i++) assert.ok((top[i - 1]?.logprob ?? 0) >= (top[i]?.logprob ?? 0));
    assert.ok(top.reduce((sum, entry) => sum + Math.exp(entry.logprob), 0) <= 1 + 1e-4);
  }
});

test("no alternatives are no reason to leave the log probability out", async () => {
  const chat = { model, messages, max_tokens: 3, logprobs: true, top_logprobs: 0 };
  const { choices } = await client.chat.completions.create(chat);
  assert.is(choices[0]?.logprobs?.content?.length, 3);
  const completion = await client.completions.create({ model, prompt: "The", max_tokens: 3, logprobs: 0 });
  assert.ok(completion.choices[0]?.logprobs);
});

test("structured output follows its schema", async () => {
  const schema = {
    type: "object",
    properties: { city: { enum: ["Paris", "Rome"] }, sure: { type: "boolean" } },
    required: ["city", "sure"],
    additionalProperties: false,
  };
  const answer = await client.chat.completions.create({
    ...exact,
    messages,
    max_tokens: 200,
    response_format: { type: "json_schema", json_schema: { name: "answer", schema, strict: true } },
  });
  const value = JSON.parse(answer.choices[0]?.message.content ?? "");
  assert.ok(["Paris", "Rome"].includes(value.city));
  assert.type(value.sure, "boolean");
});

test("a continued answer under a schema starts as the grammar requires", async () => {
  const asked = (content: unknown) => ({
    messages: [
      { role: "user", content: "Write JSON." },
      { role: "assistant", content },
    ],
    max_tokens: 4,
    response_format: { type: "json_schema", json_schema: { name: "x", schema: { type: "object" } } },
  });
  const path = "/v1/chat/completions";
  for (const content of ["{\0", "\0", [{ type: "text", text: "{\0" }]]) {
    const { status, body } = await server.post(path, asked(content));
    assert.is(status, 400);
    assert.equal(
      [body.error.param, body.error.message],
      [
        "messages[1].content",
        "messages[1].content: must not contain a NUL character if the answer is continued with response_format.",
      ],
    );
  }
  const { status, body } = await server.post(path, asked("{"));
  assert.is(status, 200);
  assert.match(body.choices[0].message.content, /^\{/);
  const { response_format: _, ...free } = asked("a\0b");
  assert.is((await server.post(path, free)).status, 200);
});

test("a continued answer that violates its format is refused", async () => {
  const schema = { type: "object", properties: { a: { type: "integer" } }, required: ["a"] };
  const messages = (content: string) => [...user("Write JSON."), { role: "assistant", content }];
  const formats = [{ response_format: { type: "json_object" } }, { json_schema: schema }];
  const cases = formats.flatMap((format) =>
    [false, true].map((stream): [string, object] => [
      "/v1/chat/completions",
      { messages: messages("hello"), ...format, stream },
    ]),
  );
  cases.push(["/v1/responses", { input: messages("hello"), text: { format: { type: "json_object" } } }]);
  cases.push(["/v1/chat/completions", { messages: messages('{"b": 1'), json_schema: schema }]);
  for (const [path, body] of cases) {
    const answer = await server.post(path, { model, ...body });
    assert.equal(
      [answer.status, answer.body.error?.message, answer.body.error?.type],
      [
        400,
        "The final assistant message, which is to be continued, does not match the required format (json_schema, response_format, text.format or tools).",
        "invalid_request_error",
      ],
    );
  }
  const fits = { messages: messages("{"), json_schema: schema, max_tokens: 2 };
  assert.is((await server.post("/v1/chat/completions", fits)).status, 200);
});

test("a named tool is called with arguments of its schema, whole and streamed", async () => {
  const tools = await startServer({ chatTemplate: toolTemplate, parallel: 1 });
  try {
    const other = new OpenAI({ baseURL: `${tools.url}/v1`, apiKey: "none", maxRetries: 0 });
    const parameters = {
      type: "object",
      properties: { on: { type: "boolean" } },
      required: ["on"],
      additionalProperties: false,
    };
    const ask = {
      ...exact,
      messages,
      max_tokens: 120,
      tools: ["light", "heat"].map((name) => ({ type: "function" as const, function: { name, parameters } })),
      tool_choice: { type: "function" as const, function: { name: "heat" } },
      parallel_tool_calls: false,
    };
    const answer = await other.chat.completions.create(ask);
    const call = answer.choices[0]?.message.tool_calls?.[0];
    assert.is(answer.choices[0]?.finish_reason, "tool_calls");
    assert.ok(call?.type === "function");
    assert.is(call.function.name, "heat");
    assert.type(JSON.parse(call.function.arguments).on, "boolean");
    const stream = other.chat.completions.stream({ ...ask, stream: true });
    const streamed = (await stream.finalChatCompletion()).choices[0]?.message.tool_calls?.[0];
    assert.ok(streamed?.type === "function");
    assert.equal(streamed.function.name, call.function.name);
    assert.equal(JSON.parse(streamed.function.arguments), JSON.parse(call.function.arguments));
  } finally {
    await tools.close();
  }
});

test("a required tool is called at once, or after the template's reasoning", async () => {
  const heat = { name: "heat", parameters: { type: "object", properties: {}, additionalProperties: false } };
  // The model is not trained on tools: what it writes freely is prose.
  for (const [chatTemplate, enable_thinking] of [
    [toolTemplate, undefined],
    [taggedToolTemplate, undefined],
    [thinkingToolTemplate, false],
  ] as const) {
    const tools = await startServer({ chatTemplate, parallel: 1 });
    try {
      const ask = async (tool_choice: string) => {
        const { body } = await tools.post("/v1/chat/completions", {
          ...{ messages, temperature: 0, max_tokens: 60, tools: [{ type: "function", function: heat }] },
          ...{ tool_choice, ...(enable_thinking === false && { chat_template_kwargs: { enable_thinking } }) },
        });
        return body.choices[0].message;
      };
      const free = await ask("auto");
      assert.equal([free.tool_calls, free.content.length > 0], [undefined, true]);
      const forced = await ask("required");
      assert.equal([forced.content, forced.tool_calls[0].function.name], ["", "heat"]);
    } finally {
      await tools.close();
    }
  }
});

test("requiring a tool of a template that knows none is refused", async () => {
  const tool = { type: "function", function: { name: "light", parameters: { type: "object" } } };
  const body = { messages, tools: [tool], tool_choice: "required" };
  const { status, body: answer } = await server.post("/v1/chat/completions", body);
  assert.is(status, 400);
  assert.match(answer.error.message, "template");
});

test("several choices, stop strings and seeds", async () => {
  const two = await client.chat.completions.create({
    model,
    messages,
    n: 2,
    seed: 7,
    max_tokens: 8,
    temperature: 1,
  });
  assert.equal(
    two.choices.map(({ index }) => index),
    [0, 1],
  );
  const again = await client.chat.completions.create({
    model,
    messages,
    n: 2,
    seed: 7,
    max_tokens: 8,
    temperature: 1,
  });
  assert.equal(
    again.choices.map(({ message }) => message),
    two.choices.map(({ message }) => message),
  );
  const stopped = await client.completions.create({
    ...exact,
    prompt: "The capital of France is",
    stop: [" is", "."],
  });
  assert.not.match(stopped.choices[0]?.text ?? "", ".");
});

test("completions take several prompts, embeddings come as floats and as base64", async () => {
  const texts = await client.completions.create({
    ...exact,
    prompt: ["The capital of", "Paris is"],
    max_tokens: 3,
  });
  assert.is(texts.choices.length, 2);
  assert.is(texts.usage?.completion_tokens, 6);
  const base64 = await client.embeddings.create({ model, input: ["Paris", "Rome"] }); // the client's default
  const floats = await client.embeddings.create({
    model,
    input: ["Paris", "Rome"],
    encoding_format: "float",
  });
  assert.is(floats.data.length, 2);
  for (const [index, { embedding }] of floats.data.entries()) {
    const length = Math.hypot(...embedding);
    assert.ok(Math.abs(length - 1) < 1e-4, `norm ${length}`);
    const other = base64.data[index]?.embedding ?? [];
    // One of them was computed on what the slot still held of the text before: rounded at other places.
    assert.ok(embedding.every((value, place) => Math.abs(value - (other[place] ?? 0)) < 1e-3));
  }
});

test("1,024 prompts of texts and tokens wait for slots and are answered in order", async () => {
  const prompts = Array.from({ length: 1024 }, (_, i) => (i % 2 === 0 ? `Number ${i}` : [10 + (i % 90), 20]));
  const asked = { model, max_tokens: 0, echo: true, prompt: prompts as string[] };
  const { choices } = await client.completions.create(asked);
  assert.equal(
    choices.map(({ index }) => index),
    prompts.map((_, index) => index),
  );
  for (const [index, { text }] of choices.entries()) {
    if (index % 2 === 0) assert.is(text, prompts[index]);
  }
  // Tokens 10 and 20 of the vocabulary, as the engine spells them, are the prompt of the other kind.
  const spelled = await (
    await fetch(`${server.url}/detokenize`, { method: "POST", body: JSON.stringify({ tokens: prompts[1] }) })
  ).json();
  assert.is(choices[1]?.text, (spelled as { content: string }).content);
});

test("a thought cut off at its tag, and no token at all, whole and streamed", async () => {
  for (const [max_tokens, used] of [
    [0, 0],
    [1, 1],
    [2, 2],
  ] as const) {
    const ask = { ...exact, messages, max_tokens };
    const { choices, usage } = await client.chat.completions.create(ask);
    assert.equal([choices[0]?.message.content, choices[0]?.finish_reason], ["", "length"]);
    assert.is(usage?.completion_tokens, used);
    let text = "";
    for await (const event of await client.chat.completions.create({ ...ask, stream: true })) {
      text += event.choices[0]?.delta.content ?? "";
    }
    assert.is(text, "");
  }
});

test("enable_thinking overrides the launch default", async () => {
  const ask = (enable_thinking: boolean) =>
    client.chat.completions.create({
      ...exact,
      messages,
      chat_template_kwargs: { enable_thinking },
    } as never);
  const thinking = (await ask(true)) as OpenAI.ChatCompletion;
  const direct = (await ask(false)) as OpenAI.ChatCompletion;
  const reasoning = (answer: OpenAI.ChatCompletion) =>
    (answer.choices[0]?.message as { reasoning_content?: string } | undefined)?.reasoning_content;
  assert.ok(reasoning(thinking));
  assert.not.ok(reasoning(direct));
});

test("errors have their status, code and parameter", async () => {
  const fails = async (body: object, check: (error: InstanceType<typeof OpenAI.APIError>) => void) => {
    try {
      await client.chat.completions.create({ ...exact, messages, ...body } as never);
    } catch (error) {
      assert.instance(error, OpenAI.APIError);
      check(error as InstanceType<typeof OpenAI.APIError>);
      return;
    }
    assert.unreachable("the request should have failed");
  };
  await fails({ model: "gpt-4o" }, (error) => {
    assert.instance(error, OpenAI.NotFoundError);
    assert.is(error.code, "model_not_found");
    assert.is(error.param, "model");
  });
  await fails({ temperature: "hot" }, (error) => {
    assert.instance(error, OpenAI.BadRequestError);
    assert.is(error.param, "temperature");
    assert.is(error.type, "invalid_request_error");
  });
  await fails({ messages: user("word ".repeat(3000)) }, (error) => {
    assert.instance(error, OpenAI.BadRequestError);
    assert.is(error.code, "context_length_exceeded");
  });
  await fails(
    {
      messages: [
        { role: "user", content: [{ type: "image_url", image_url: { url: "http://example.com" } }] },
      ],
    },
    (error) => {
      assert.instance(error, OpenAI.BadRequestError);
      assert.match(error.message, "images are not supported");
    },
  );
  await fails({ messages: [] }, (error) => assert.match(error.message, "at least 1 entry, got 0"));
  await fails({ stop: Array(65).fill("x") }, (error) =>
    assert.match(error.message, "at most 64 entries, got 65"),
  );
  await fails({ grammar: '%llguidance {} start: "a"' }, (error) => assert.match(error.message, "llguidance"));
});

test("an aborted stream frees its slot", async () => {
  const stream = await client.chat.completions.create({
    model,
    messages,
    stream: true,
    max_tokens: 400,
    ignore_eos: true,
  } as OpenAI.ChatCompletionCreateParamsStreaming);
  for await (const _ of stream) break; // leaving the loop aborts
  await untilIdle(server.service);
});

test.run();
