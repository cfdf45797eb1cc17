import { test } from "uvu";
import * as assert from "uvu/assert";
import { findExecution } from "../../src/cli/commands/executions-find.js";
import { events } from "../../src/client/event-stream.js";
import { ServingModel, TaplineError } from "../../src/client/index.js";
import { Transport } from "../../src/client/transport.js";
import type { Execution } from "../../src/contracts/execution.js";
import { stand } from "../inference/support/stand.js";
import { fc } from "../support/fc.js";
import { until } from "../support/until.js";
import { scripted, sendJson } from "./scripted.js";

const question = [{ role: "user", content: "Hello?" }];

function event(delta: object, finish_reason: string | null = null): string {
  return `data: ${JSON.stringify({ choices: [{ delta, finish_reason }] })}\n\n`;
}

test("inspecting asks for the resident model's exact name first", async () => {
  const service = await scripted(({ path }, response) =>
    sendJson(response, 200, path === "/lab/capabilities" ? { model: "the-model" } : { tokens: ["a"] }),
  );
  const serving = new ServingModel(service.url);
  await serving.inspect("Hello", { layers: [0, 3], maxInputTokens: 7 });
  await serving.inspect("Hello");
  await serving.inspect("Hello", { model: "known" });
  await service.close();
  assert.equal(
    service.seen.map(({ method, path }) => `${method} ${path}`),
    [
      "GET /lab/capabilities",
      "POST /lab/activations",
      "GET /lab/capabilities",
      "POST /lab/activations",
      "POST /lab/activations",
    ],
  );
  assert.equal(JSON.parse(service.seen[1]!.body), {
    model: "the-model",
    prompt: "Hello",
    layers: [0, 3],
    max_input_tokens: 7,
  });
  assert.equal(JSON.parse(service.seen[3]!.body), { model: "the-model", prompt: "Hello" });
  assert.equal(JSON.parse(service.seen[4]!.body), { model: "known", prompt: "Hello" });
});

test("a server without a model is the library's error, and nothing is submitted", async () => {
  const service = await scripted((_request, response) => sendJson(response, 200, { model: null }));
  const error = await new ServingModel(service.port).inspect("Hello").catch((reason) => reason);
  await service.close();
  assert.instance(error, TaplineError);
  assert.is(service.seen.length, 1);
});

test("an answer arrives piece by piece, thinking apart from words", async () => {
  const service = await scripted((_request, response) => {
    response.write(event({ role: "assistant", content: null }));
    response.write(event({ reasoning_content: "Hm." }));
    response.write(event({ content: "Par" }) + event({ content: "is." }));
    response.end(`${event({}, "stop")}data: [DONE]\n\n`);
  });
  const pieces = [];
  for await (const piece of new ServingModel(service.port).chat(question, { request: { max_tokens: 9 } })) {
    pieces.push(piece);
  }
  await service.close();
  assert.equal(pieces, [
    { choice: 0, content: "", reasoning: "Hm.", finishReason: null },
    { choice: 0, content: "Par", reasoning: "", finishReason: null },
    { choice: 0, content: "is.", reasoning: "", finishReason: null },
    { choice: 0, content: "", reasoning: "", finishReason: "stop" },
  ]);
  assert.equal(JSON.parse(service.seen[0]!.body), { max_tokens: 9, messages: question, stream: true });
});

test("both answers of a pair have text and readings per choice, chat and raw", async () => {
  const event = (choice: object) => `data: ${JSON.stringify({ choices: [choice] })}\n\n`;
  const token = (index: number) => ({ index, token_id: 40 + index, norms: { 3: 1.5 } });
  const service = await scripted(({ path }, response) => {
    const said = (text: string) => (path === "/v1/completions" ? { text } : { delta: { content: text } });
    response.write(event({ index: 1, ...said("Par"), tapline: { tokens: [token(0)], pair_of: 0 } }));
    response.write(event({ index: 0, ...said("un"), tapline: { tokens: [token(0)] } }));
    response.write(event({ index: 0, ...said("known"), tapline: { tokens: [token(1), token(2)] } }));
    response.write(event({ index: 1, ...said("is"), finish_reason: "stop" }));
    const interventions = [{ rows: 3, sha256: "ab" }];
    response.end(
      `${event({ index: 0, finish_reason: "monitor", tapline: { interventions } })}data: [DONE]\n\n`,
    );
  });
  const serving = new ServingModel(service.port);
  const request = { tapline: { pair: true } };
  for (const asked of ["The capital is", question]) {
    assert.equal(await serving.answers(asked, { request }), [
      {
        choice: 0,
        text: "unknown",
        reasoning: "",
        finishReason: "monitor",
        tapline: { tokens: [token(0), token(1), token(2)], interventions: [{ rows: 3, sha256: "ab" }] },
      },
      {
        choice: 1,
        text: "Paris",
        reasoning: "",
        finishReason: "stop",
        tapline: { tokens: [token(0)], pair_of: 0 },
      },
    ]);
  }
  await service.close();
  assert.equal(
    service.seen.map(({ path, body }) => [path, JSON.parse(body)]),
    [
      ["/v1/completions", { ...request, prompt: "The capital is", stream: true }],
      ["/v1/chat/completions", { ...request, messages: question, stream: true }],
    ],
  );
});

test("probabilities of tokens come as chats and as raw prompts have them", async () => {
  const scripts = [
    {
      delta: { content: "a" },
      logprobs: {
        content: [
          { id: 5, token: "a", logprob: 0, top_logprobs: [{ id: 6, token: "b", logprob: Math.log(0.25) }] },
          { token: "c", logprob: Math.log(0.5) },
        ],
      },
    },
    {
      text: "a",
      logprobs: { tokens: ["a", "c"], token_logprobs: [0, null], top_logprobs: [{ b: Math.log(0.25) }] },
    },
    { text: "a", logprobs: null },
  ];
  const service = await scripted((_request, response) =>
    response.end(`data: ${JSON.stringify({ choices: [scripts.shift()] })}\n\ndata: [DONE]\n\n`),
  );
  const read = async (asked: string | typeof question) => {
    const found = [];
    for await (const { probabilities } of new ServingModel(service.port).chat(asked as never))
      found.push(probabilities);
    return found;
  };
  const [chat, raw, none] = [await read(question), await read("x"), await read("x")];
  await service.close();
  const b = { token: "b", probability: 0.25 };
  assert.equal(chat, [
    [
      { token_id: 5, token: "a", probability: 1, candidates: [{ token_id: 6, ...b }] },
      { token: "c", probability: 0.5, candidates: [] },
    ],
  ]);
  assert.equal(raw, [
    [
      { token: "a", probability: 1, candidates: [b] },
      { token: "c", probability: Number.NaN, candidates: [] },
    ],
  ]);
  assert.equal(none, [undefined]);
});

test("an event without words is told where it tells of tokens, and of nothing else", async () => {
  const silent = { token: "", logprob: 0 };
  const choices = [
    { delta: { content: "" } },
    { delta: {} },
    { delta: { content: "" }, logprobs: { content: [silent] } },
    { delta: { content: "" }, logprobs: { content: [] } },
    { delta: { content: null }, tapline: { tokens: [] } },
    { delta: {}, finish_reason: "stop" },
  ];
  const service = await scripted((_request, response) =>
    response.end(
      `${choices.map((choice) => `data: ${JSON.stringify({ choices: [choice] })}\n\n`).join("")}data: [DONE]\n\n`,
    ),
  );
  const told = [];
  for await (const delta of new ServingModel(service.port).chat(question)) told.push(delta);
  await service.close();
  const none = { choice: 0, content: "", reasoning: "", finishReason: null };
  assert.equal(told, [
    { ...none, probabilities: [{ token: "", probability: 1, candidates: [] }] },
    { ...none, tapline: { tokens: [] } },
    { ...none, finishReason: "stop" },
  ]);
});

test("refusals, faults in the middle and early ends of an answer all raise", async () => {
  const scripts: Array<(response: import("node:http").ServerResponse) => void> = [
    (response) =>
      sendJson(response, 503, { error: { message: "All places are taken.", type: "overloaded_error" } }),
    (response) => response.end(`data: {"error":{"message":"The model failed."}}\n\n`),
    (response) => response.end(event({ content: "Par" })),
    (response) => response.end("data: {half\n\n"),
  ];
  const service = await scripted((_request, response) => scripts.shift()!(response));
  const serving = new ServingModel(service.port);
  const read = async () => {
    for await (const _ of serving.chat(question));
  };
  const messages = [];
  for (let count = 0; count < 4; count++) {
    messages.push(
      await read().catch((error: Error) => {
        assert.instance(error, TaplineError);
        return error.message;
      }),
    );
  }
  await service.close();
  assert.equal(messages, [
    "All places are taken.",
    "The model failed.",
    "The answer ended before it was complete.",
    "An event of the stream is not JSON.",
  ]);
});

test("leaving the loop, or aborting, ends the request", async () => {
  let closed = 0;
  const service = await scripted((_request, response) => {
    response.once("close", () => closed++);
    response.write(event({ content: "Par" }));
  });
  const serving = new ServingModel(service.port);
  for await (const _ of serving.chat(question)) break;
  const stop = new AbortController();
  const reason = new Error("enough");
  const aborted = (async () => {
    for await (const _ of serving.chat(question, { signal: stop.signal })) stop.abort(reason);
  })();
  assert.is(await aborted.catch((error) => error), reason);
  await until(() => closed === 2);
  await service.close();
});

test("events are the same however the bytes are cut", async () => {
  const text = 'data: {"a":"é東👩"}\n\n: comment\ndata: one\r\ndata: two\r\n\r\nid: 3\n\ndata:[DONE]\n\n';
  const bytes = Buffer.from(text);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 30 }), async (cuts) => {
      const places = [0, ...cuts.sort((a, b) => a - b), bytes.length];
      const source = (async function* () {
        for (let index = 1; index < places.length; index++) {
          yield bytes.subarray(places[index - 1], places[index]);
        }
      })();
      const found = [];
      for await (const data of events(source)) found.push(data);
      assert.equal(found, ['{"a":"é東👩"}', "one\ntwo", "[DONE]"]);
    }),
    { numRuns: 300 },
  );
});

test("last is the newest finished request; a prefix names at most one", async () => {
  const ids = ["aa11", "bb22", "bb33"].map((start) => start.padEnd(32, "0"));
  const executions = ids.map((id, at) => ({ id, status: at === 0 ? "running" : "completed" }));
  const service = await scripted(({ path }, response) =>
    sendJson(
      response,
      200,
      path === "/executions" ? { executions } : { id: path.slice("/executions/".length) },
    ),
  );
  const http = new Transport(service.url, 10_000);
  const named = async (name: string) =>
    (await findExecution(http, name).catch((error) => error)) as Execution & Error;
  assert.is((await named("last")).id, ids[1]);
  assert.is((await named("aa")).id, ids[0]);
  assert.is((await named("bb3")).id, ids[2]);
  assert.is((await named("bb")).message, "2 requests start with bb.");
  assert.is(
    (await named("cc")).message,
    "The server has no record of request cc; it keeps only recent ones.",
  );
  assert.is((await named("f".repeat(32))).id, "f".repeat(32));
  await service.close();
});

test("a server with a key answers clients that have it, given or in TAPLINE_API_KEY", async () => {
  const before = process.env.TAPLINE_API_KEY;
  delete process.env.TAPLINE_API_KEY;
  try {
    const { url } = await stand({}, { apiKey: "secret" });
    const model = async (options?: { apiKey: string }) =>
      new ServingModel(url, options).capabilities().then(
        ({ model }) => model,
        ({ status, message }: TaplineError) => [status, message],
      );
    const refused = [
      401,
      "A valid API key is required: send Authorization: Bearer <key>. Set TAPLINE_API_KEY to the key.",
    ];
    assert.equal(await model(), refused);
    assert.is(await model({ apiKey: "secret" }), "m");
    process.env.TAPLINE_API_KEY = "secret";
    assert.is(await model(), "m");
    assert.equal(await model({ apiKey: "other" }), refused);
    assert.equal(await new Transport(url, 10_000, { service: "serve" }).json("/executions"), {
      ...{ executions: [], capacity: 64, text_limit: 262_144, dropped: 0 },
    });
    // A Lab has no key, and is not sent one.
    const lab = await scripted(({ headers }, response) => sendJson(response, 200, { sent: headers }));
    const { sent } = await new Transport(lab.url, 10_000, { service: "lab" }).json<{ sent: object }>("/");
    assert.not("authorization" in sent);
    await lab.close();
  } finally {
    if (before === undefined) delete process.env.TAPLINE_API_KEY;
    else process.env.TAPLINE_API_KEY = before;
  }
});

test.run();
