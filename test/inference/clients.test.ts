import { createOpenAI } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import { HumanMessage } from "@langchain/core/messages";
import { tool as langChainTool } from "@langchain/core/tools";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { Agent, tool as agentTool, OpenAIProvider, Runner } from "@openai/agents";
import { generateObject, generateText, tool as sdkTool, stepCountIs, streamText } from "ai";
import OpenAI from "openai";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { z } from "zod";
import { startServer, type TestServer } from "./support/serving.js";
import { toolTemplate } from "./support/tool-template.js";

// People's own clients with the defaults that they come with: only the address and the model are told to them.
let server: TestServer;
let tools: TestServer;
let baseURL: string;
const apiKey = "none";
const model = "tapline-demo";
const question = "What is the capital of France?";
const answer = "The capital of France is Paris.";
/** Nobody taught the model to call: the bias begins the call, the grammar does the rest. */
const bias = { "{": 100 };
const biased: typeof fetch = (url, init) =>
  fetch(url, { ...init, body: JSON.stringify({ ...JSON.parse(String(init?.body)), logit_bias: bias }) });
const parameters = {
  type: "object" as const,
  properties: { on: { type: "boolean" } },
  required: ["on"],
  additionalProperties: false,
};

test.before(async () => {
  [server, tools] = await Promise.all([
    startServer(),
    startServer({ chatTemplate: toolTemplate, parallel: 1 }),
  ]);
  baseURL = `${server.url}/v1`;
});
test.after(async () => {
  await Promise.all([server.close(), tools.close()]);
});

test("OpenAI: a response, whole and streamed, say the same", async () => {
  const client = new OpenAI({ baseURL, apiKey });
  const ask = { model, input: question, temperature: 0, max_output_tokens: 60 };
  const whole = await client.responses.create(ask);
  assert.equal([whole.status, whole.output_text], ["completed", answer]);
  assert.equal(
    whole.output.map(({ type }) => type),
    ["reasoning", "message"],
  );
  const stream = client.responses.stream(ask);
  let text = "";
  let next = 0;
  for await (const event of stream) {
    assert.is(event.sequence_number, next++);
    if (event.type === "response.output_text.delta") text += event.delta;
  }
  const final = await stream.finalResponse();
  assert.equal([text, final.output_text], [answer, answer]);
  assert.equal(
    final.usage?.total_tokens,
    (final.usage?.input_tokens ?? 0) + (final.usage?.output_tokens ?? 0),
  );
  // What came back is what the next request sends.
  const more = await client.responses.create({
    ...ask,
    instructions: "Answer.",
    input: [
      { role: "user", content: question },
      ...(final.output as OpenAI.Responses.ResponseInputItem[]),
      { role: "user", content: question },
    ],
  });
  assert.ok(more.output_text.length > 0);
});

test("OpenAI: a response that is cut says so, and one of a schema follows it", async () => {
  const client = new OpenAI({ baseURL, apiKey });
  const cut = await client.responses.create({ model, input: question, max_output_tokens: 3 });
  assert.equal([cut.status, cut.incomplete_details?.reason], ["incomplete", "max_output_tokens"]);
  const schema = {
    type: "object",
    properties: { city: { enum: ["Paris", "Rome"] } },
    required: ["city"],
    additionalProperties: false,
  };
  const formed = await client.responses.create({
    model,
    input: question,
    text: { format: { type: "json_schema", name: "city", schema } },
  });
  assert.ok(["Paris", "Rome"].includes(JSON.parse(formed.output_text).city));
});

test("OpenAI: a function is called in a response, and its output goes back", async () => {
  const client = new OpenAI({ baseURL: `${tools.url}/v1`, apiKey });
  const ask = {
    model,
    input: question,
    temperature: 0,
    max_output_tokens: 120,
    tools: [{ type: "function" as const, name: "heat", parameters, strict: true }],
    tool_choice: { type: "function" as const, name: "heat" },
    parallel_tool_calls: false,
    logit_bias: bias,
  };
  const whole = await client.responses.create(ask as OpenAI.Responses.ResponseCreateParamsNonStreaming);
  const stream = client.responses.stream(ask as unknown as OpenAI.Responses.ResponseCreateParamsStreaming);
  const streamed = await stream.finalResponse();
  for (const { output } of [whole, streamed]) {
    const call = output.at(-1);
    assert.ok(call?.type === "function_call");
    assert.is(call.name, "heat");
    assert.type(JSON.parse(call.arguments).on, "boolean");
    const back = await client.responses.create({
      model,
      max_output_tokens: 5,
      input: [
        { role: "user", content: question },
        ...(output as OpenAI.Responses.ResponseInputItem[]),
        { type: "function_call_output", call_id: call.call_id, output: "done" },
      ],
    });
    assert.ok(["completed", "incomplete"].includes(back.status as string));
  }
});

test("OpenAI: unsupported fields of a response are refused by name", async () => {
  const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
  const refused = (extra: object) =>
    client.responses
      .create({ model, input: question, ...extra } as OpenAI.Responses.ResponseCreateParamsNonStreaming)
      .then(
        () => "accepted",
        (error: InstanceType<typeof OpenAI.APIError>) => `${error.status} ${error.param}`,
      );
  assert.is(await refused({ previous_response_id: "resp_1" }), "400 previous_response_id");
  assert.is(await refused({ background: true }), "400 background");
  assert.is(await refused({ tools: [{ type: "web_search" }] }), "400 tools[0]");
  assert.is(
    await refused({ input: [{ role: "user", content: [{ type: "input_file", file_id: "f" }] }] }),
    "400 input[0].content[0]",
  );
  // An input that fits is answered, whether it could be cut or not.
  assert.is(await refused({ truncation: "auto", max_output_tokens: 1 }), "accepted");
});

test("Anthropic: a message, whole and streamed, and its tokens counted before", async () => {
  const client = new Anthropic({ baseURL: server.url, apiKey });
  const ask = {
    model,
    max_tokens: 60,
    temperature: 0,
    messages: [{ role: "user" as const, content: question }],
  };
  const { input_tokens } = await client.messages.countTokens({ model, messages: ask.messages });
  const whole = await client.messages.create(ask);
  assert.equal(
    [whole.stop_reason, whole.content.map((block) => (block.type === "text" ? block.text : block.type))],
    ["end_turn", [answer]],
  );
  const counted = ({ usage }: Anthropic.Message) => usage.input_tokens + (usage.cache_read_input_tokens ?? 0);
  assert.is(counted(whole), input_tokens);
  const stream = client.messages.stream({
    ...ask,
    thinking: { type: "enabled", budget_tokens: 1024 },
    max_tokens: 2048,
  });
  let started = 0;
  stream.on("streamEvent", (event) => {
    if (event.type === "message_start") started = event.message.usage.input_tokens;
  });
  const final = await stream.finalMessage();
  assert.equal(
    final.content.map(({ type }) => type),
    ["thinking", "text"],
  );
  assert.is(await stream.finalText(), answer);
  assert.equal([started, counted(final)], [started, started]);
  assert.ok(started > 0);
  const stopped = await client.messages.create({ ...ask, stop_sequences: ["Paris", "never"] });
  assert.equal([stopped.stop_reason, stopped.stop_sequence], ["stop_sequence", "Paris"]);
  const cut = await client.messages.create({ ...ask, max_tokens: 2 });
  assert.is(cut.stop_reason, "max_tokens");
});

test("Anthropic: a tool is used, its result goes back, and errors have Anthropic's form", async () => {
  const client = new Anthropic({ baseURL: tools.url, apiKey, maxRetries: 0 });
  const ask = {
    model,
    max_tokens: 120,
    temperature: 0,
    messages: [{ role: "user" as const, content: question }],
    tools: [{ name: "heat", description: "Switches the heating.", input_schema: parameters }],
    tool_choice: { type: "tool" as const, name: "heat", disable_parallel_tool_use: true },
    logit_bias: bias,
  };
  const whole = await client.messages.create(ask);
  const streamed = await client.messages.stream(ask).finalMessage();
  for (const { stop_reason, content } of [whole, streamed]) {
    const use = content.at(-1);
    assert.ok(use?.type === "tool_use");
    assert.equal([stop_reason, use.name], ["tool_use", "heat"]);
    assert.type((use.input as { on: unknown }).on, "boolean");
    const back = await client.messages.create({
      model,
      max_tokens: 5,
      messages: [
        ...ask.messages,
        { role: "assistant", content },
        {
          role: "user",
          content: [{ type: "tool_result", tool_use_id: use.id, content: [{ type: "text", text: "done" }] }],
        },
      ],
    });
    assert.is(back.role, "assistant");
  }
  const error = await client.messages.create({ ...ask, model: "other" }).then(
    () => null,
    (thrown) => thrown,
  );
  assert.ok(error instanceof Anthropic.NotFoundError);
  assert.match(error.message, "other is not served here");
});

test("AI SDK: its default provider, text, stream, object and tool", async () => {
  const provider = createOpenAI({ baseURL, apiKey });
  const ask = { model: provider(model), prompt: question };
  const { text, usage } = await generateText({ ...ask, temperature: 0 });
  assert.is(text, answer);
  assert.ok((usage.outputTokens ?? 0) > 0);
  let streamed = "";
  const stream = streamText({ ...ask, temperature: 0 });
  for await (const part of stream.textStream) streamed += part;
  assert.equal([streamed, await stream.finishReason], [answer, "stop"]);
  const { object } = await generateObject({ ...ask, schema: z.object({ city: z.enum(["Paris", "Rome"]) }) });
  assert.ok(["Paris", "Rome"].includes(object.city));
  let got: unknown;
  const calls = await generateText({
    model: createOpenAI({ baseURL: `${tools.url}/v1`, apiKey, fetch: biased })(model),
    prompt: question,
    tools: {
      heat: sdkTool({
        inputSchema: z.object({ on: z.boolean() }),
        execute: (input) => {
          got = input.on;
          return "done";
        },
      }),
    },
    toolChoice: "required",
    providerOptions: { openai: { parallelToolCalls: false } },
    stopWhen: stepCountIs(1),
  });
  assert.is(calls.toolCalls[0]?.toolName, "heat");
  assert.type(got, "boolean");
});

test("OpenAI's agents: an answer, and a stream of one", async () => {
  const agent = new Agent({ name: "Guide", instructions: "Answer.", model, tools: [] });
  const runner = new Runner({
    modelProvider: new OpenAIProvider({ baseURL, apiKey, useResponses: true }),
    tracingDisabled: true,
  });
  const { finalOutput } = await runner.run(agent, question);
  assert.type(finalOutput, "string");
  assert.ok((finalOutput as string).length > 0);
  const stream = await runner.run(agent, question, { stream: true });
  let text = "";
  for await (const part of stream.toTextStream()) text += part;
  await stream.completed;
  assert.is(text, stream.finalOutput);
  const heat = agentTool({
    name: "heat",
    description: "Switches the heating.",
    parameters: z.object({ on: z.boolean() }),
    execute: async ({ on }) => `heat is ${on}`,
  });
  const caller = new Agent({
    name: "Caller",
    model,
    tools: [heat],
    modelSettings: { toolChoice: "required", providerData: { logit_bias: bias } },
    toolUseBehavior: "stop_on_first_tool",
  });
  const called = await new Runner({
    modelProvider: new OpenAIProvider({ baseURL: `${tools.url}/v1`, apiKey, useResponses: true }),
    tracingDisabled: true,
  }).run(caller, question);
  assert.match(String(called.finalOutput), /^heat is (true|false)$/);
});

test("LangChain: chat, stream, structured output, tools, embeddings", async () => {
  const chat = new ChatOpenAI({ model, temperature: 0, apiKey, configuration: { baseURL } });
  const { content, usage_metadata: usage } = await chat.invoke([new HumanMessage(question)]);
  assert.is(content, answer);
  assert.ok((usage?.output_tokens ?? 0) > 0);
  let text = "";
  for await (const chunk of await chat.stream(question)) text += chunk.content;
  assert.is(text, answer);
  const formed = await chat
    .withStructuredOutput(z.object({ city: z.enum(["Paris", "Rome"]) }))
    .invoke(question);
  assert.ok(["Paris", "Rome"].includes(formed.city));
  const heat = langChainTool(async () => "done", {
    name: "heat",
    description: "Switches the heating.",
    schema: z.object({ on: z.boolean() }),
  });
  const calling = new ChatOpenAI({
    model,
    apiKey,
    configuration: { baseURL: `${tools.url}/v1` },
    modelKwargs: { logit_bias: bias },
  });
  const { tool_calls: calls } = await calling.bindTools([heat], { tool_choice: "heat" }).invoke(question);
  assert.is(calls?.[0]?.name, "heat");
  const embeddings = new OpenAIEmbeddings({ model, apiKey, configuration: { baseURL } });
  const vectors = await embeddings.embedDocuments(["a", "b"]);
  assert.equal(
    vectors.map(({ length }) => length),
    [server.service.engine.info.nEmbd, server.service.engine.info.nEmbd],
  );
});

test.run();
