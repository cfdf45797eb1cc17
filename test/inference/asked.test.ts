/** What becomes of a request before the engine has it, and of its answer: the application on a stand-in for the engine. */
import { request } from "node:http";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { EngineInfo, EngineReply } from "../../src/native/engine.js";
import { NativeError } from "../../src/native/index.js";
import { until } from "../support/until.js";
import { chatAnswer, type Reply, stand, usual } from "./support/stand.js";

const messages = [{ role: "user", content: "a" }];
const chat = "/v1/chat/completions";

test("each endpoint asks the engine correctly, by any name of the model or none", async () => {
  const { engine, refusal, service } = await stand({}, { aliases: ["m", "other"] });
  for (const [path, body, route] of [
    [chat, { messages }, "chat"],
    ["/v1/responses", { input: "a" }, "chat"],
    ["/v1/messages", { messages, max_tokens: 3 }, "chat"],
    ["/v1/completions", { prompt: "a" }, "completion"],
    ["/completion", { prompt: "a" }, "native-completion"],
    ["/completions", { prompt: "a" }, "native-completion"],
    ["/infill", { input_prefix: "a", input_suffix: "b" }, "infill"],
  ] as const) {
    assert.is((await engine(path, body)).route, route, path);
  }
  for (const model of ["m", "other"]) {
    assert.is((await engine(chat, { model, messages })).body.model, model);
    // However it was asked for, what answered is recorded.
    assert.is(service.executions.list().executions[0]!.model, "m");
  }
  assert.equal(await refusal(chat, { model: "n".repeat(300), messages }), [
    404,
    `The model ${"n".repeat(200)} is not served here; m is.`,
    "model",
  ]);
  assert.equal(service.stats.requests, {
    total: 9,
    active: 0,
    completed: 9,
    failed: 0,
    cancelled: 0,
    refused: 1,
  });
  assert.is(service.admission.inside, 0);
});

test("OpenAI fields are translated: 32-bit seeds, alternatives, defaults", async () => {
  const { engine } = await stand({}, { sampling: { temperature: 0.25, top_k: 7 } });
  const body = async (more: object) => (await engine(chat, { messages, ...more })).body;
  const plain = await body({});
  assert.equal([plain.temperature, plain.top_k], [0.25, 7]);
  for (const field of ["seed", "top_logprobs", "logprobs"]) assert.not(field in plain, field);
  assert.equal((await body({ temperature: 0 })).temperature, 0);
  for (const [seed, meant] of [
    [-1, 4_294_967_295],
    [0, 0],
    [7, 7],
    [4_294_967_295, 4_294_967_295],
    [4_294_967_296, 0],
    [4_294_967_301, 5],
  ] as const) {
    assert.is((await body({ seed })).seed, meant, `seed ${seed}`);
  }
  assert.is((await body({ logprobs: true, top_logprobs: 0 })).top_logprobs, 1);
  assert.is((await body({ logprobs: true, top_logprobs: 3 })).top_logprobs, 3);
  const legacy = async (logprobs: number) =>
    (await engine("/v1/completions", { prompt: "a", logprobs })).body;
  assert.equal([(await legacy(0)).logprobs, (await legacy(4)).logprobs], [1, 4]);
});

test("the request decides about thinking if the template supports it", async () => {
  const thinking = async (body: object, info: Partial<EngineInfo> = {}) => {
    const { engine, service } = await stand(info);
    const { body: asked } = await engine(chat, { messages, ...body });
    const { id } = service.executions.list().executions[0]!;
    return [service.executions.find(id)?.thinking, asked.chat_template_kwargs];
  };
  const off = { chat_template_kwargs: { enable_thinking: false, other: 1 } };
  assert.equal(await thinking({}), [true, undefined]);
  assert.equal(await thinking({}, { thinking: false }), [false, undefined]);
  assert.equal(await thinking(off), [false, { enable_thinking: false, other: 1 }]);
  assert.equal(await thinking({ reasoning_effort: "none" }), [false, undefined]);
  assert.equal(await thinking({ reasoning_effort: "low" }), [true, undefined]);
  const none = { templateSupportsThinking: false };
  assert.equal(await thinking({}, none), [null, undefined]);
  assert.equal(await thinking(off, none), [null, { other: 1 }]);
});

test("a named tool is the only one that is offered, and required", async () => {
  const tool = (name: string) => ({ type: "function", function: { name, parameters: { type: "object" } } });
  const tools = [tool("a"), tool("b")];
  const { engine, refusal } = await stand();
  const asks = async (more: object) => {
    const { body } = await engine(chat, { messages, ...more });
    return [
      body.tool_choice,
      (body.tools as { function: { name: string } }[] | undefined)?.map((one) => one.function.name),
    ];
  };
  const named = (name: string) => ({ type: "function", function: { name } });
  assert.equal(await asks({ tools, tool_choice: named("b") }), ["required", ["b"]]);
  assert.equal(await asks({ tools, tool_choice: "required" }), ["required", ["a", "b"]]);
  for (const tool_choice of ["auto", "none", undefined]) {
    assert.equal(await asks({ tools, tool_choice }), [tool_choice, ["a", "b"]]);
  }
  for (const tool_choice of ["auto", "none"])
    assert.equal(await asks({ tool_choice }), [tool_choice, undefined]);
  const says = async (more: object, from = refusal) => (await from(chat, { messages, ...more })).slice(1);
  assert.equal(await says({ tool_choice: "required" }), ["tool_choice: no tools are given.", "tool_choice"]);
  assert.equal(await says({ tools, tool_choice: named("c") }), [
    "tool_choice: no tool is named c.",
    "tool_choice",
  ]);
});

test("tools and calls that the chat template would leave out are refused in every API", async () => {
  const mute = await stand({ templateCapabilities: { supports_tools: false, supports_tool_calls: false } });
  const tools = [{ type: "function", function: { name: "a", parameters: { type: "object" } } }];
  const sentence = "this model's chat template does not support";
  const offered = [400, `tools: ${sentence} tools; start the server with --chat-template and one that does.`];
  for (const choice of [{}, { tool_choice: "auto" }, { tool_choice: "required" }]) {
    assert.equal(await mute.refusal(chat, { messages, tools, ...choice }), [...offered, "tools"]);
  }
  const flat = [{ type: "function", name: "a", parameters: {} }];
  assert.equal(await mute.refusal("/v1/responses", { input: "a", tools: flat }), [...offered, "tools"]);
  const anthropic = { messages, tools: [{ name: "a", input_schema: {} }] };
  for (const path of ["/v1/messages", "/v1/messages/count_tokens"]) {
    const { status, body } = await mute.post(path, { ...anthropic, max_tokens: 1 });
    assert.equal([status, body.error.message], offered);
  }
  const path = "/apply-template";
  assert.equal((await mute.refusal(path, { messages, tools })).slice(0, 2), offered);

  const tool_calls = [{ id: "1", type: "function", function: { name: "a", arguments: "{}" } }];
  const called = [...messages, { role: "assistant", content: null, tool_calls }];
  const param = "messages[1].tool_calls";
  for (const at of [chat, path]) {
    assert.equal(await mute.refusal(at, { messages: called }), [
      ...[400, `${param}: ${sentence} tool calls.`, param],
    ]);
  }
  // Where no tool may be called, and where none was, nothing is lost.
  const none = [...messages, { role: "assistant", content: "b", tool_calls: [] }, ...messages];
  for (const body of [
    { messages, tools, tool_choice: "none" },
    { messages, tools: [] },
    { messages: none },
  ]) {
    assert.is((await mute.post(chat, body)).status, 200, JSON.stringify(body));
  }
});

test("completions: best_of must equal n; prompt log-probabilities need echo", async () => {
  const { engine, refusal } = await stand();
  const path = "/v1/completions";
  for (const body of [{ best_of: 1 }, { n: 2, best_of: 2 }, { n: 1, n_cmpl: 2, best_of: 2 }]) {
    const { body: asked } = await engine(path, { prompt: "a", ...body });
    assert.not("best_of" in asked || "echo" in asked);
  }
  const says = async (more: object, from = refusal) => (await from(path, { prompt: "a", ...more })).slice(1);
  const best = (n: number, of: number) => [
    `best_of: must be n (${n}), got ${of}; request more answers and choose among them.`,
    "best_of",
  ];
  assert.equal(await says({ best_of: 2 }), best(1, 2));
  assert.equal(await says({ n: 2, best_of: 1 }), best(2, 1));
  assert.equal(await says({ n: 2, n_cmpl: 1, best_of: 2 }), best(1, 2));
  const scored = { echo: true, logprobs: 2 };
  assert.equal(await says({ ...scored, post_sampling_probs: true }), [
    "post_sampling_probs: not supported with echo, because prompt tokens are not sampled.",
    "post_sampling_probs",
  ]);
  const blind = await stand({ captures: false });
  assert.equal(await says(scored, blind.refusal), [
    "logprobs: with echo, these need captures of the prompt. No captures here.",
    "logprobs",
  ]);
  // Without log-probabilities the prompt is only text.
  const { body } = await blind.post(path, { prompt: [[1, 2]], echo: true });
  assert.is(body.choices[0].text, "saidHi");
  assert.equal(
    blind.asked.map(({ route }) => route),
    ["detokenize", "completion"],
  );
});

test("requests that would abort or overload the engine are refused per endpoint", async () => {
  const { refusal, engine, post } = await stand();
  const slot = [400, "id_slot: must be from 0 to 1 (the server's slots), got 2.", "id_slot"];
  for (const [path, body] of [
    [chat, { messages }],
    ["/v1/completions", { prompt: "a" }],
    ["/completion", { prompt: "a" }],
    ["/infill", { input_prefix: "a", input_suffix: "b" }],
  ] as const) {
    assert.equal(await refusal(path, { ...body, id_slot: 2 }), slot, path);
    await engine(path, { ...body, id_slot: 1 });
  }
  const continued = [...messages, { role: "assistant", content: "a\0b" }];
  const field = "messages[1].content";
  assert.equal(await refusal(chat, { messages: continued, json_schema: {} }), [
    ...[
      400,
      `${field}: must not contain a NUL character if the answer is continued with json_schema.`,
      field,
    ],
  ]);
  await engine(chat, { messages: continued });
  const infill = { input_prefix: "a", input_suffix: "b" };
  const message = { messages, max_tokens: 3 };
  // What this server does not do, in the words of each API.
  for (const [path, body, field] of [
    [chat, { messages, functions: [{}] }, "functions"],
    [`${chat}/input_tokens`, { messages, echo: true }, "echo"],
    ["/v1/completions", { prompt: "a", response_format: {} }, "response_format"],
    ["/completion", { prompt: "a", tapline: {} }, "tapline"],
    ["/infill", { ...infill, tapline: {} }, "tapline"],
    ["/v1/responses", { input: "a", previous_response_id: "r" }, "previous_response_id"],
    ["/v1/responses/input_tokens", { input: "a", conversation: "c" }, "conversation"],
  ] as const) {
    assert.is((await refusal(path, body))[2], field, path);
  }
  for (const path of ["/v1/messages", "/v1/messages/count_tokens"]) {
    const { status, body } = await post(path, { ...message, container: "c" });
    assert.equal(
      [status, body.error.message],
      [400, "container: not supported; there are no containers here."],
    );
  }
});

test("an echoed prompt accepts an empty list of interventions", async () => {
  const scored: object[] = [];
  const score = async ({ tokens, top }: { tokens: Int32Array; top: number }) => {
    scored.push([...tokens]);
    const rows = tokens.length - 1;
    const pieces = new Map([...tokens].map((id) => [id, Buffer.from(`${id}`)]));
    const zeros = new Float64Array(rows * top);
    return {
      top,
      pieces,
      logProbabilities: zeros.subarray(0, rows),
      topIds: zeros,
      topLogProbabilities: zeros,
    };
  };
  const { post } = await stand({}, {}, undefined, { score });
  const asks = { prompt: "12345", echo: true, logprobs: 1, tapline: { interventions: [] } };
  const { status, body } = await post("/v1/completions", asks);
  assert.equal([status, body.choices?.[0].text, scored], [200, "12345Hi", [[1, 2, 3, 4, 5]]]);
});

test("log-probabilities of completions: legacy lists on request, else the engine's", async () => {
  const content = [{ token: "Hi", logprob: -1 }];
  const said = { index: 0, text: "Hi", finish_reason: "stop", logprobs: { content } };
  const { post } = await stand({}, {}, () => ({ body: JSON.stringify({ ...chatAnswer, choices: [said] }) }));
  const choice = async (more: object) =>
    (await post("/v1/completions", { prompt: "a", ...more })).body.choices[0];
  for (const more of [{}, { n_probs: 0 }, { n_probs: 2, post_sampling_probs: true }, { echo: false }]) {
    assert.equal(await choice(more), said, JSON.stringify(more));
  }
  for (const more of [{ logprobs: 0 }, { logprobs: 2 }, { n_probs: 2 }]) {
    const { logprobs, text } = await choice(more);
    assert.equal(
      [text, logprobs.tokens, logprobs.token_logprobs],
      ["Hi", ["Hi"], [-1]],
      JSON.stringify(more),
    );
  }
  assert.is((await choice({ echo: true })).text, "aHi");
  assert.is((await choice({ echo: true, tapline: { interventions: [] } })).text, "aHi");
  assert.equal([(await choice({ max_tokens: 0 })).text, (await choice({ max_tokens: 1 })).text], ["", "Hi"]);
});

test("requests with images are not counted and refuse fields that count text tokens", async () => {
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
  const seeing = [{ role: "user", content: [{ type: "text", text: "a" }, image] }];
  const { engine, refusal } = await stand({ images: true });
  assert.is((await engine(chat, { messages: seeing })).route, "chat");
  const says = async (path: string, more: object = {}) =>
    (await refusal(path, { messages: seeing, ...more })).slice(1);
  const counted = [
    "messages: tokens of images are not known before encoding; only texts can be counted.",
    "messages",
  ];
  assert.equal(await says(`${chat}/input_tokens`), counted);
  // Wherever in the chat it stands.
  const first = [{ role: "user", content: [image, { type: "text", text: "a" }] }, ...messages];
  assert.equal(await says(`${chat}/input_tokens`, { messages: first }), counted);
  assert.equal(await says(chat, { tapline: { watch: { layers: [1], norms: true } } }), [
    "tapline: not supported in chats with images.",
    "tapline",
  ]);
  for (const field of ["n", "n_cmpl"]) {
    assert.equal(await says(chat, { [field]: 2 }), [
      "n: chats with images support only one answer, got 2.",
      "n",
    ]);
  }
  assert.is((await engine(chat, { messages: seeing, n: 1 })).route, "chat");
});

test("a streamed message begins with the prompt's length, a whole one omits it", async () => {
  const events = [
    {
      ...chatAnswer,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta: { content: "Hi" }, finish_reason: null }],
    },
    {
      ...chatAnswer,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta: {}, finish_reason: "stop" }],
    },
  ].map((event) => `data: ${JSON.stringify(event)}\n\n`);
  const streams: Reply = (one, signal) =>
    one.route === "chat" && one.body.stream === true
      ? {
          body: "",
          parts: (async function* () {
            for (const data of events) yield { data, tokens: [1] };
          })(),
        }
      : usual(one, signal);
  const { post, asked, service } = await stand({}, {}, streams);
  const body = { messages, max_tokens: 3 };
  const streamed = await post("/v1/messages", { ...body, stream: true });
  assert.equal(
    asked.map(({ route }) => route),
    ["apply-template", "tokenize", "chat"],
  );
  assert.equal(asked[1]!.body, { content: "<made>", add_special: true, parse_special: true });
  assert.equal(asked[2]!.body.stream_options, { include_usage: true });
  const start = /event: message_start\ndata: (.*)\n/.exec(streamed.bytes.toString())?.[1] as string;
  assert.is(JSON.parse(start).message.usage.input_tokens, 5);
  for (const stream of [false, undefined]) {
    asked.length = 0;
    await post("/v1/messages", { ...body, stream });
    assert.is(asked.length, 1, "its length comes with the whole answer");
  }
  asked.length = 0;
  await post("/v1/messages", body);
  assert.equal([asked.map(({ route }) => route), asked[0]!.body.stream_options], [["chat"], undefined]);
  asked.length = 0;
  await post("/v1/responses", { input: "a", stream: true });
  assert.equal(asked[0]!.body.stream_options, { include_usage: true });
  await post(chat, { messages, stream: true });
  assert.is(asked[1]!.body.stream_options, undefined, "a chat's usage is the client's choice");
  assert.equal(
    service.executions.list().executions.map(({ id }) => service.executions.find(id)?.stream),
    [true, true, false, false, false, true],
  );
  assert.equal(service.stats.requests.completed, 6);
  const { body: counted } = await post("/v1/messages/count_tokens", { messages });
  assert.equal(counted, { input_tokens: 5 });
  const { body: responses } = await post("/v1/responses/input_tokens", { input: "a" });
  assert.equal(responses, { input_tokens: 5, object: "response.input_tokens" });
});

test("each end of a request is counted: answered, failed, mid-stream, shutdown", async () => {
  let how: () => Partial<EngineReply> = () => ({});
  const { post, service } = await stand({}, {}, () => how());
  const parent = "0123456789abcdef0123456789abcdef";
  const counts = () => {
    const { completed, failed, cancelled, active } = service.stats.requests;
    return { completed, failed, cancelled, active };
  };
  const last = () => {
    const { id } = service.executions.list().executions[0]!;
    const { status, parent_id, events } = service.executions.find(id)!;
    return { id, status, parent_id, errors: events.filter(({ kind }) => kind === "error").length };
  };
  const good = await post(chat, { messages }, { "X-Tapline-Execution-ID": parent });
  assert.equal(good.body, chatAnswer);
  const { id, ...told } = last();
  assert.equal(told, { status: "completed", parent_id: parent, errors: 0 });
  assert.is(good.headers["x-tapline-execution-id"], id);
  assert.equal(counts(), { completed: 1, failed: 0, cancelled: 0, active: 0 });

  how = () => {
    throw new Error("It broke.");
  };
  assert.is((await post(chat, { messages })).status, 500);
  assert.equal({ ...last(), id: "" }, { id: "", status: "failed", parent_id: null, errors: 1 });

  how = () => {
    throw new NativeError("CLOSED", "The engine is closed.");
  };
  const ending = await post(chat, { messages });
  assert.equal(
    [ending.status, ending.body.error.message, ending.headers["retry-after"]],
    [503, "The server is shutting down.", "5"],
  );

  const parts = (fault?: Error, data = 'data: {"choices":[]}\n\n') => ({
    body: "",
    parts: (async function* () {
      yield { data, tokens: [] };
      if (fault !== undefined) throw fault;
    })(),
  });
  how = () => parts(undefined, 'data: {"error":{"message":"No."}}\n\n');
  await post(chat, { messages, stream: true });
  assert.is(last().status, "failed");
  how = () => parts(new NativeError("CLOSED", "The engine is closed."));
  const cut = await post(chat, { messages, stream: true });
  assert.match(cut.bytes.toString(), /"message":"The server is shutting down\."/);
  assert.equal([last().status, last().errors], ["failed", 1]);
  how = () => parts();
  await post(chat, { messages, stream: true });
  assert.equal(counts(), { completed: 2, failed: 4, cancelled: 0, active: 0 });
  assert.equal([service.admission.inside, service.stats.requests.total], [0, 6]);
});

test("a pair takes two slots for each of its answers", async () => {
  const { refusal } = await stand();
  const tapline = { pair: true, interventions: [{ kind: "ablate", layer: 1 }] };
  const says = async (path: string, body: object) => (await refusal(path, { tapline, ...body })).slice(1);
  const slots = (count: number) => [`tapline.pair: needs ${count} slots; this server has 2.`, "tapline.pair"];
  assert.equal(await says("/v1/completions", { prompt: ["a", "b"] }), slots(4));
  assert.equal(await says("/v1/completions", { prompt: ["a", "b"], n: 2 }), slots(8));
  assert.equal(await says("/v1/completions", { prompt: [[1, 2], [3]] }), slots(4));
  assert.equal(await says("/v1/completions", { prompt: [1, 2, 3], n: 2 }), slots(4));
  assert.equal(await says("/v1/completions", { prompt: "a", n: 1, n_cmpl: 2 }), slots(4));
  assert.equal(await says(chat, { messages, n: 2 }), slots(4));
  assert.equal(await says(chat, { messages, n: 1, tapline: { pair: true } }), [
    "tapline.pair: needs interventions.",
    "tapline.pair",
  ]);
  assert.equal(await says("/v1/responses", { input: "a" }), [
    "tapline.pair: this API returns a single answer; use /v1/chat/completions.",
    "tapline.pair",
  ]);
});

const asks = { messages: [{ role: "user", content: "a" }] };
const paths: [string, object][] = [
  ["/v1/chat/completions", asks],
  ["/v1/messages", { ...asks, max_tokens: 3 }],
  ["/v1/completions", { prompt: "a" }],
  ["/completion", { prompt: "a" }],
  ["/infill", { input_prefix: "a", input_suffix: "b" }],
  ["/tokenize", { content: "a" }],
  ["/v1/embeddings", { input: "a" }],
  ["/v1/rerank", { query: "a", documents: ["b"] }],
];
/** Those that are recorded and counted by their end. */
const generations = 5;

/** Asks, and goes away once `left` is called. */
function begin(url: string, body: object): { left(): void; begun: Promise<void> } {
  const outgoing = request(url, { method: "POST", agent: false });
  const begun = new Promise<void>((resolve) => {
    outgoing.on("response", (incoming) => {
      incoming.on("error", () => {}).once("data", () => resolve());
    });
  });
  outgoing.on("error", () => {}).end(JSON.stringify(body));
  return { left: () => void outgoing.destroy(), begun };
}

const cancelled = () => new NativeError("CANCELLED", "The request was cancelled.");
const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));

test("a client that disconnects cancels its request without a fault or a failure", async () => {
  let waiting = false;
  const reply: Reply = async (_, signal) => {
    waiting = true;
    await untilAborted(signal);
    throw cancelled();
  };
  const { url, service, faults } = await stand({ embeddings: true }, {}, reply);
  for (const [path, body] of paths) {
    waiting = false;
    const { left } = begin(url + path, body);
    await until(() => waiting);
    assert.is(service.admission.inside, 1, path);
    left();
    await until(() => service.admission.inside === 0, path);
  }
  const { requests } = service.stats;
  assert.equal(requests, {
    ...requests,
    total: generations,
    active: 0,
    cancelled: generations,
    failed: 0,
    refused: 0,
  });
  for (const { status } of service.executions.list().executions) assert.is(status, "cancelled");
  assert.equal(faults, []);
});

test("an answer that completes after its client has gone counts as cancelled", async () => {
  let gone = false;
  const reply: Reply = async (_, signal) => {
    await untilAborted(signal);
    gone = true;
    return { body: JSON.stringify(chatAnswer) };
  };
  const { url, service } = await stand({}, {}, reply);
  const { left } = begin(`${url}/v1/chat/completions`, asks);
  await until(() => service.admission.inside === 1);
  left();
  await until(() => service.admission.inside === 0);
  assert.equal([gone, service.stats.requests.cancelled, service.stats.requests.completed], [true, 1, 0]);
});

test("a stream ends with its client, and is counted as cancelled", async () => {
  let ended = false;
  const reply: Reply = (_, signal) => ({
    body: "",
    parts: (async function* () {
      yield { data: `data: ${JSON.stringify(chatAnswer)}\n\n`, tokens: [1] };
      await untilAborted(signal);
      ended = true;
      throw cancelled();
    })() as EngineReply["parts"],
  });
  const { url, service, faults } = await stand({}, {}, reply);
  const { left, begun } = begin(`${url}/v1/chat/completions`, { ...asks, stream: true });
  await begun;
  left();
  await until(() => service.admission.inside === 0);
  const { requests } = service.stats;
  assert.equal([ended, requests.cancelled, requests.failed, faults], [true, 1, 0, []]);
  assert.is(service.executions.list().executions[0]!.status, "cancelled");
});

test("a cancelled generation whose client is still there has failed", async () => {
  const { post, service } = await stand({}, {}, () => {
    throw cancelled();
  });
  assert.is((await post("/v1/chat/completions", asks)).status, 500);
  const { requests } = service.stats;
  assert.equal([requests.failed, requests.cancelled, service.admission.inside], [1, 0, 0]);
});

test("a body has 8 MiB at most", async () => {
  const { post, asked, service } = await stand();
  const long = Buffer.alloc(8_388_609, " ");
  const own = ["/v1/chat/completions", "/tokenize"];
  for (const path of own) {
    const { status, body } = await post(path, long);
    assert.is(status, 400, path);
    assert.is(body.error.message, "The body has 8388609 bytes; at most 8388608 are accepted.", path);
  }
  assert.equal([asked, service.stats.requests.refused], [[], own.length]);
  const [path, content] = ["/tokenize", Buffer.alloc(8_388_608, " ")];
  content.write('{"content":"a"}');
  assert.is((await post(path, content)).status, 200);
});

test.run();
