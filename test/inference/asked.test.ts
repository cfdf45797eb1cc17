/** What becomes of a request before the engine has it, and of its answer: the application on a stand-in for the engine. */
import type { Server } from "node:http";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Listening, listen } from "../../src/http/index.js";
import { inferenceApp } from "../../src/inference/app.js";
import type { LiveLibrary } from "../../src/inference/live/library.js";
import { createService, type InferenceService, type ServiceParts } from "../../src/inference/service.js";
import type { EngineInfo, EngineReply } from "../../src/native/engine.js";
import { NativeError } from "../../src/native/index.js";
import { type Answer, send } from "../support/request.js";

type Body = Record<string, unknown>;

/** What a stand-in was asked. */
interface Asked {
  route: string;
  body: Body;
}

type Reply = (asked: Asked, signal: AbortSignal) => Partial<EngineReply> | Promise<Partial<EngineReply>>;

interface Stand {
  asked: Asked[];
  service: InferenceService;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** Asks, and tells what the engine was asked. */
  engine(path: string, body: unknown): Promise<Asked>;
  /** Asks for what is refused. */
  refusal(path: string, body: unknown): Promise<[status: number, message: string, param: string | null]>;
}

const chatAnswer = {
  id: "x",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, text: "Hi", finish_reason: "stop" }],
  usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
};

const open: { listening: Listening; server: Server }[] = [];
test.after(async () => {
  for (const { listening } of open) await listening.close();
});

const usual: Reply = ({ route }) =>
  route === "apply-template"
    ? { body: JSON.stringify({ prompt: "<made>" }) }
    : route === "tokenize"
      ? { body: JSON.stringify({ tokens: [1, 2, 3, 4, 5] }) }
      : route === "detokenize"
        ? { body: JSON.stringify({ content: "said" }) }
        : {};

async function stand(
  info: Partial<EngineInfo> = {},
  parts: Partial<ServiceParts> = {},
  reply: Reply = usual,
): Promise<Stand> {
  const asked: Asked[] = [];
  const engine = {
    info: {
      ...{ id: "m", slots: 2, slotContext: 100, nLayer: 4, nEmbd: 2, nVocab: 50, captures: true },
      ...{
        noCaptureReason: "No captures here.",
        images: false,
        thinking: true,
        templateSupportsThinking: true,
      },
      ...{ templateCapabilities: { supports_tools: true }, points: [], ...info },
    },
    request: async (route: string, body: Body, signal: AbortSignal) => {
      asked.push({ route, body });
      const told = await reply({ route, body }, signal);
      return {
        ...{ status: 200, contentType: "application/json", body: JSON.stringify(chatAnswer) },
        ...{ times: [], parts: null, ...told },
      };
    },
  };
  const service = createService(
    {
      ...{ engine, backend: { backend: "test" }, resolved: {}, requestedModel: "m", requestedRevision: null },
      library: { model: { id: "m" } } as unknown as LiveLibrary,
      ...parts,
    } as unknown as ServiceParts,
    1000,
  );
  const listening = await listen(
    inferenceApp(service, () => {}),
    { port: 0 },
  );
  open.push({ listening, server: listening.server });
  const post: Stand["post"] = (path, body, headers) => send(`${listening.url}${path}`, "POST", body, headers);
  return {
    ...{ asked, service, post },
    async engine(path, body) {
      asked.length = 0;
      const answer = await post(path, body);
      assert.is(answer.status, 200, `${path} ${answer.bytes}`);
      return asked.at(-1) as Asked;
    },
    async refusal(path, body) {
      asked.length = 0;
      const { status, body: told } = await post(path, body);
      assert.equal(asked, [], "the engine is not asked");
      return [status, told.error.message, told.error.param];
    },
  };
}

const messages = [{ role: "user", content: "a" }];
const chat = "/v1/chat/completions";

test("each endpoint asks for what it is, and the model by any of its names or none", async () => {
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
  for (const model of ["m", "other"]) assert.is((await engine(chat, { model, messages })).body.model, model);
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

test("OpenAI's words in the engine's: seeds of 32 bits, one alternative for none, the server's defaults", async () => {
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

test("whether an answer thinks: what the request says where the template knows it, else what the server does", async () => {
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
  const mute = await stand({ templateCapabilities: { supports_tools: false } });
  assert.equal(await says({ tools, tool_choice: "required" }, mute.refusal), [
    "tool_choice: this model's chat template cannot express tools.",
    "tool_choice",
  ]);
});

test("completions: best_of is n, and log-probabilities of a prompt are not of something else than its answer", async () => {
  const { engine, refusal } = await stand();
  const path = "/v1/completions";
  for (const body of [{ best_of: 1 }, { n: 2, best_of: 2 }, { n: 1, n_cmpl: 2, best_of: 2 }]) {
    const { body: asked } = await engine(path, { prompt: "a", ...body });
    assert.not("best_of" in asked || "echo" in asked);
  }
  const says = async (more: object, from = refusal) => (await from(path, { prompt: "a", ...more })).slice(1);
  const best = (n: number, of: number) => [
    `best_of: must be n (${n}), got ${of}; ask for more and choose.`,
    "best_of",
  ];
  assert.equal(await says({ best_of: 2 }), best(1, 2));
  assert.equal(await says({ n: 2, best_of: 1 }), best(2, 1));
  assert.equal(await says({ n: 2, n_cmpl: 1, best_of: 2 }), best(1, 2));
  const scored = { echo: true, logprobs: 2 };
  const intervention = { kind: "ablate", layer: 1 };
  assert.equal(await says({ ...scored, tapline: { interventions: [intervention] } }), [
    "logprobs: with echo not beside interventions; the prompt's are those without any.",
    "logprobs",
  ]);
  assert.equal(await says({ ...scored, post_sampling_probs: true }), [
    "post_sampling_probs: not with echo; a prompt's tokens are not sampled.",
    "post_sampling_probs",
  ]);
  const blind = await stand({ captures: false });
  assert.equal(await says(scored, blind.refusal), [
    "logprobs: with echo the prompt's are made as captures are. No captures here.",
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

test("images: their tokens are not counted, and what counts by tokens of text is refused beside them", async () => {
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
  const seeing = [{ role: "user", content: [{ type: "text", text: "a" }, image] }];
  const { engine, refusal } = await stand({ images: true });
  assert.is((await engine(chat, { messages: seeing })).route, "chat");
  const says = async (path: string, more: object = {}) =>
    (await refusal(path, { messages: seeing, ...more })).slice(1);
  assert.equal(await says(`${chat}/input_tokens`), [
    "messages: the tokens of images are known only once they are encoded; count texts.",
    "messages",
  ]);
  assert.equal(await says(chat, { tapline: { watch: { layers: [1], norms: true } } }), [
    "tapline: a chat that shows images is neither changed nor watched.",
    "tapline",
  ]);
  for (const field of ["n", "n_cmpl"]) {
    assert.equal(await says(chat, { [field]: 2 }), [
      "n: a chat that shows images has one answer, got 2.",
      "n",
    ]);
  }
  assert.is((await engine(chat, { messages: seeing, n: 1 })).route, "chat");
});

test("a streamed message begins with its prompt's length, which a whole one does not ask for", async () => {
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
    [true, true, false, true],
  );
  assert.equal(service.stats.requests.completed, 4);
  const { body: counted } = await post("/v1/messages/count_tokens", { messages });
  assert.equal(counted, { input_tokens: 5 });
  const { body: responses } = await post("/v1/responses/input_tokens", { input: "a" });
  assert.equal(responses, { input_tokens: 5, object: "response.input_tokens" });
});

test("how a request ends is counted and recorded: with its answer, a fault, in its stream, with the server", async () => {
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
    [503, "The server is ending.", "5"],
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
  assert.match(cut.bytes.toString(), /"message":"The server is ending\."/);
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
  const slots = (count: number) => [
    `tapline.pair: it takes ${count} slots at once; this server has 2.`,
    "tapline.pair",
  ];
  assert.equal(await says("/v1/completions", { prompt: ["a", "b"] }), slots(4));
  assert.equal(await says("/v1/completions", { prompt: ["a", "b"], n: 2 }), slots(8));
  assert.equal(await says("/v1/completions", { prompt: [[1, 2], [3]] }), slots(4));
  assert.equal(await says("/v1/completions", { prompt: [1, 2, 3], n: 2 }), slots(4));
  assert.equal(await says("/v1/completions", { prompt: "a", n: 1, n_cmpl: 2 }), slots(4));
  assert.equal(await says(chat, { messages, n: 2 }), slots(4));
  assert.equal(await says(chat, { messages, n: 1, tapline: { pair: true } }), [
    "tapline.pair: there are no interventions to leave out beside it.",
    "tapline.pair",
  ]);
  assert.equal(await says("/v1/responses", { input: "a" }), [
    "tapline.pair: this API's answers are one; ask /v1/chat/completions.",
    "tapline.pair",
  ]);
});

test.run();
