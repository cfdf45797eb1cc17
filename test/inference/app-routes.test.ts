/** Every route of the serving port, and who may use it: on a stand-in for the engine. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { servingDocument } from "../../src/inference/endpoints.js";
import type { EngineMetrics } from "../../src/native/engine.js";
import { NativeError } from "../../src/native/index.js";
import { until } from "../support/until.js";
import { type Reply, type Stand, stand } from "./support/stand.js";

const about = {
  ...{ architecture: "llama", quantization: "F16", nCtxTrain: 2048, nParams: 7, bytes: 14, embeddings: true },
  pooling: "mean",
} as const;
const metrics = { deferred: 3, busy_slots: 1, prompt_tokens: 5 } as EngineMetrics;
const withMetrics = { metrics: async () => metrics };
const told = ({ status, body }: Awaited<ReturnType<Stand["send"]>>) => [status, body];

test("the model in the list and on its own page, by any of its names", async () => {
  const { send, service } = await stand(about, { aliases: ["m", "own/er"] });
  const model = {
    ...{
      id: "m",
      object: "model",
      created: service.startedAt,
      owned_by: "tapline",
      aliases: ["m", "own/er"],
    },
    meta: {
      ...{
        architecture: "llama",
        quantization: "F16",
        n_vocab: 50,
        n_ctx: 100,
        n_ctx_train: 2048,
        n_embd: 2,
      },
      ...{ n_layer: 4, n_params: 7, pooling: "mean", size: 14 },
    },
  };
  const now = Date.now() / 1000;
  assert.ok(service.startedAt <= now && service.startedAt > now - 60 && Number.isInteger(service.startedAt));
  assert.equal(told(await send("GET", "/v1/models")), [200, { object: "list", data: [model] }]);
  for (const name of ["m", "own/er"])
    assert.equal(told(await send("GET", `/v1/models/${name}`)), [200, model]);
  const { status, body } = await send("GET", "/v1/models/other");
  assert.equal(
    [status, body.error.message, body.error.param, body.error.code],
    [404, "The model other is not served here; m is.", "model", "model_not_found"],
  );
  const alone = await stand({ ...about, embeddings: false }, { aliases: ["m"] });
  const [only] = (await alone.send("GET", "/v1/models")).body.data;
  assert.equal([only.aliases, only.meta.pooling], [undefined, undefined]);
});

test("embeddings and reranking pass supported fields on and refuse the others", async () => {
  const reply: Reply = ({ route }) => ({ body: JSON.stringify({ of: route }) });
  const { send, asked, service, refusal } = await stand(about, {}, reply);
  const input = ["a", "b"];
  const answer = await send("POST", "/v1/embeddings", { input, dimensions: 2, encoding_format: "base64" });
  assert.equal(told(answer), [200, { of: "embeddings" }]);
  assert.is(answer.headers["content-type"], "application/json; charset=utf-8");
  assert.equal(asked, [{ route: "embeddings", body: { input, encoding_format: "base64" } }]);
  assert.equal(await refusal("/v1/embeddings", { input, dimensions: 3 }), [
    ...[400, "dimensions: must be 2 for this model, got 3.", "dimensions"],
  ]);
  for (const path of ["/v1/rerank", "/v1/reranking"]) {
    asked.length = 0;
    const ranked = await send("POST", path, { query: "q", documents: ["d"], top_n: 1 });
    assert.equal(told(ranked), [200, { of: "rerank" }]);
    assert.is(ranked.headers["content-type"], "application/json; charset=utf-8");
    assert.equal(asked, [{ route: "rerank", body: { query: "q", documents: ["d"], top_n: 1 } }]);
  }
  assert.is((await refusal("/v1/rerank", { model: "x", query: "q", documents: ["d"] }))[0], 404);
  assert.is((await refusal("/v1/embeddings", { model: "x", input }))[0], 404);
  assert.is(service.admission.inside, 0);
  const off = await stand({ ...about, embeddings: false });
  assert.equal((await off.refusal("/v1/embeddings", { input })).slice(0, 2), [
    ...[400, "Embeddings are disabled; start the server with --embeddings."],
  ]);
});

test("text, tokens and template routes call the engine, and refuse bad fields", async () => {
  const reply: Reply = ({ route }) => ({ body: JSON.stringify({ of: route }) });
  const { send, asked, refusal } = await stand({ nVocab: 50 }, {}, reply);
  const messages = [{ role: "user", content: "a" }];
  for (const [path, body, route] of [
    ["/tokenize", { content: "a", add_special: true }, "tokenize"],
    ["/apply-template", { messages }, "apply-template"],
  ] as const) {
    asked.length = 0;
    const answer = await send("POST", path, body);
    assert.equal(
      [told(answer), answer.headers["content-type"]],
      [[200, { of: route }], "application/json; charset=utf-8"],
    );
    assert.equal(asked, [{ route, body }]);
  }
  asked.length = 0;
  await send("POST", "/detokenize", { tokens: [0, 49] });
  assert.equal(asked, [{ route: "detokenize", body: { tokens: [0, 49] } }]);
  assert.equal(await refusal("/detokenize", { tokens: [50] }), [
    ...[400, "tokens: the vocabulary has 50 tokens, got 50.", "tokens"],
  ]);
  assert.equal((await refusal("/apply-template", { messages: [{ role: "user" }] })).slice(1), [
    "messages[0].content is required.",
    "messages[0].content",
  ]);
});

test("llama-server's properties have the server's defaults and are read only", async () => {
  const reply: Reply = ({ route }) => ({
    body:
      route === "properties"
        ? '{"default_generation_settings":{"params":{"temperature":0.8,"top_k":40}},"x":1}'
        : JSON.stringify([route]),
  });
  const { send, asked } = await stand({}, { sampling: { temperature: 0 } }, reply);
  assert.equal(told(await send("GET", "/props")), [
    200,
    { default_generation_settings: { params: { temperature: 0, top_k: 40 } }, x: 1 },
  ]);
  assert.equal(told(await send("GET", "/slots")), [200, ["slots"]]);
  assert.equal(told(await send("GET", "/lora-adapters")), [200, ["adapters"]]);
  assert.equal(
    asked,
    ["properties", "slots", "adapters"].map((route) => ({ route, body: {} })),
  );
  for (const path of ["/props", "/lora-adapters"]) {
    const { status, headers, body } = await send("POST", path, {});
    assert.equal(
      [status, headers.allow, body.error.message],
      [405, "GET, HEAD", `${path} is read only here.`],
    );
  }
  const { body } = await send("GET", "/openapi.json", undefined, { Host: "localhost:7" });
  assert.equal(body, JSON.parse(JSON.stringify(servingDocument("http://localhost:7"))));
});

test("health, statistics, Prometheus' metrics, and the available captures", async () => {
  const { send, service } = await stand(about, {}, undefined, withMetrics);
  for (const path of ["/health", "/v1/health"])
    assert.equal(told(await send("GET", path)), [200, { status: "ok" }]);
  const { body: stats } = await send("GET", "/stats");
  assert.equal([stats.model, stats.requests.queued, stats.slots], ["m", 3, { total: 2, busy: 1 }]);
  const text = await send("GET", "/metrics");
  assert.equal(
    [text.headers["content-type"], text.bytes.toString().includes("\ntapline_requests_deferred 3\n")],
    ["text/plain; version=0.0.4; charset=utf-8", true],
  );
  const capabilities = {
    ...{ serving_activations: true, model: "m", max_layers: 4, max_input_tokens: 256, n_layer: 4, n_embd: 2 },
    ...{ architecture: "llama", backend: "test", points: [], pending: false },
    forward: { sequences: 64, sequence_tokens: 100, bytes: 2_000_000_000 },
  };
  assert.equal(told(await send("GET", "/lab/capabilities")), [200, capabilities]);
  assert.is((await send("POST", "/lab/activations", { model: "other", prompt: "p" })).status, 409);
  assert.is(service.stats.captures.rejected, 1);
  // A prompt of the greatest length in any characters fits.
  const { status, body } = await send("POST", "/lab/activations", "x".repeat(2_000_000));
  assert.is(status, 400);
  assert.match(body.error, /^The body has 2000000 bytes; at most 500000 are accepted\.$/);
});

test("with a key all but health require it, also inside; pages are refused first", async () => {
  const { send } = await stand({}, { apiKey: "secret" }, undefined, withMetrics);
  const as = async (method: string, path: string, headers: Record<string, string> = {}) =>
    (await send(method, path, method === "GET" ? undefined : {}, headers)).status;
  const bearer = { Authorization: "Bearer secret" };
  for (const path of [
    "/v1/models",
    "/props",
    "/slots",
    "/lora-adapters",
    "/stats",
    "/metrics",
    "/openapi.json",
    "/lab/capabilities",
    "/lab/captures",
    "/executions",
    "/executions/0123456789abcdef0123456789abcdef",
  ]) {
    assert.equal([await as("GET", path), (await as("GET", path, bearer)) === 401], [401, false], path);
  }
  for (const path of [
    "/v1/chat/completions",
    "/completion",
    "/infill",
    "/tokenize",
    "/nothing",
    "/lab/activations",
  ]) {
    assert.equal([await as("POST", path), (await as("POST", path, bearer)) === 401], [401, false], path);
  }
  const forget = async (headers = {}) => (await send("DELETE", "/executions", undefined, headers)).status;
  assert.equal([await forget(), await forget(bearer)], [401, 200]);
  for (const path of ["/health", "/v1/health"]) assert.is(await as("GET", path), 200, path);
  for (const path of ["/lab/capabilities", "/executions", "/lab/captures"]) {
    assert.is(await as("GET", path, { Origin: "http://localhost" }), 403, path);
  }
});

test("other machines get /v1 and health, more with a key, internals never", async () => {
  const elsewhere = async (apiKey?: string) => {
    const { send, comeFrom } = await stand(
      about,
      apiKey === undefined ? {} : { apiKey },
      undefined,
      withMetrics,
    );
    comeFrom("192.0.2.7");
    const headers: Record<string, string> = apiKey === undefined ? {} : { Authorization: `Bearer ${apiKey}` };
    return async (path: string) => (await send("GET", path, undefined, headers)).status;
  };
  const [bare, keyed] = [await elsewhere(), await elsewhere("secret")];
  for (const path of ["/v1/models", "/v1/health", "/health"]) {
    assert.equal([await bare(path), await keyed(path)], [200, 200], path);
  }
  for (const path of ["/stats", "/metrics", "/openapi.json"]) {
    assert.equal([await bare(path), await keyed(path)], [403, 200], path);
  }
  for (const path of ["/lab/capabilities", "/executions", "/lab/captures", "/lab/vectors"]) {
    assert.equal([await bare(path), await keyed(path)], [403, 403], path);
  }
  const { send, comeFrom } = await stand();
  comeFrom("192.0.2.7");
  const { body } = await send("GET", "/stats");
  assert.is(body.error, "Without an API key, other machines may use /v1 and /health only.");
  // The page that greets a browser is for this machine.
  assert.is((await send("GET", "/")).status, 403);
});

test("pages of allowed origins may use /v1, and nothing else", async () => {
  const page = "https://page.example";
  const { send } = await stand(about, { cors: [page] }, undefined, withMetrics);
  const headers = { Origin: page, "Content-Type": "text/plain" };
  const allowed = async (path: string, method = "GET", more: Record<string, string> = {}) => {
    const answer = await send(method, path, undefined, { ...headers, ...more });
    return [answer.status, answer.headers["access-control-allow-origin"]];
  };
  assert.equal(await allowed("/v1/models"), [200, page]);
  assert.equal(await allowed("/stats"), [403, undefined]);
  assert.equal(
    await allowed("/v1/chat/completions", "OPTIONS", { "Access-Control-Request-Method": "POST" }),
    [204, page],
  );
  const keyed = await stand(about, { cors: [page], apiKey: "secret" });
  const question = { Origin: "https://other.example", "Access-Control-Request-Method": "POST" };
  const answer = await keyed.send("OPTIONS", "/v1/chat/completions", undefined, question);
  assert.equal(
    [answer.status, answer.body.error.message],
    [403, "Pages of https://other.example may not use this server; allow the origin with --cors."],
  );
  assert.equal((await send("POST", "/v1/tokens", "{}", { Origin: "https://other.example" })).status, 403);
});

test("a refusal has its API's form: OpenAI, Anthropic, llama-server or ours", async () => {
  const { send } = await stand();
  const shape = async (path: string, body: unknown = {}) => (await send("POST", path, body)).body;
  const missing = "messages is required.";
  assert.equal((await shape("/v1/chat/completions")).error.type, "invalid_request_error");
  assert.equal(await shape("/v1/messages", { max_tokens: 3 }), {
    ...{ type: "error", error: { type: "invalid_request_error", message: missing } },
  });
  const other = await shape("/v1/messages", {
    model: "x",
    max_tokens: 3,
    messages: [{ role: "user", content: "a" }],
  });
  assert.equal([other.type, other.error.type], ["error", "not_found_error"]);
  const own = (await shape("/completion")).error;
  assert.equal([own.code, own.type, own.param], [400, "invalid_request_error", "prompt"]);
  assert.type((await shape("/lab/vectors")).error, "string");
});

test("Anthropic's names of refusals", async () => {
  let status = 400;
  const reply: Reply = () => ({ status, body: '{"error":{"message":"No.","type":"x"}}' });
  const { send } = await stand({}, {}, reply);
  for (const [code, type] of [
    [400, "invalid_request_error"],
    [401, "authentication_error"],
    [403, "permission_error"],
    [404, "not_found_error"],
    [422, "invalid_request_error"],
    [429, "rate_limit_error"],
    [500, "api_error"],
    [502, "api_error"],
    [503, "overloaded_error"],
  ] as const) {
    status = code;
    const body = { max_tokens: 1, messages: [{ role: "user", content: "a" }] };
    assert.equal((await send("POST", "/v1/messages", body)).body, {
      ...{ type: "error", error: { type, message: "No." } },
    });
  }
});

test("refusals are counted once; faults and counted requests are not", async () => {
  let status = 400;
  const reply: Reply = () => ({ status, body: '{"error":{"message":"No.","type":"x"}}' });
  const { send, service, faults } = await stand(about, {}, reply);
  const after = async (method: string, path: string, body?: unknown) => {
    const { status: told } = await send(method, path, body);
    return [told, service.stats.requests.refused];
  };
  assert.equal(await after("GET", "/nothing"), [404, 1]);
  assert.equal(await after("GET", "/v1/chat/completions"), [405, 2]);
  assert.equal(await after("POST", "/tokenize", { content: "a" }), [400, 3]);
  // A generation that the engine refuses has failed, and is counted as that.
  assert.equal(await after("POST", "/completion", { prompt: "a" }), [400, 3]);
  assert.is(service.stats.requests.failed, 1);
  status = 500;
  assert.equal(await after("POST", "/tokenize", { content: "a" }), [500, 3]);
  assert.equal(faults, []);
});

test("admitted requests are always released, and too many are refused", async () => {
  let fails = false;
  let held: (() => void) | undefined;
  const reply: Reply = async () => {
    if (fails) throw new Error("It broke.");
    await new Promise<void>((resolve) => {
      held = resolve;
    });
    return { body: "{}" };
  };
  const { send, service, faults } = await stand({ ...about, slots: 1 }, { waiting: 0 }, reply);
  const paths: [string, object][] = [
    ["/tokenize", { content: "a" }],
    ["/v1/embeddings", { input: "a" }],
    ["/v1/rerank", { query: "a", documents: ["b"] }],
    ["/completion", { prompt: "a" }],
  ];
  for (const [path, body] of paths) {
    held = undefined;
    const first = send("POST", path, body);
    await until(() => held);
    assert.is(service.admission.inside, 1, path);
    const second = await send("POST", path, body);
    assert.equal(
      [second.status, second.headers["retry-after"], second.body.error.type],
      [503, "1", "overloaded_error"],
      path,
    );
    (held as unknown as () => void)();
    assert.is((await first).status, 200, path);
    assert.is(service.admission.inside, 0, path);
  }
  fails = true;
  for (const [path, body] of paths) {
    assert.is((await send("POST", path, body)).status, 500, path);
    assert.is(service.admission.inside, 0, path);
  }
  assert.is(faults.length, paths.length);
});

test("a dropped request gets Retry-After at shutdown and is a fault otherwise", async () => {
  let code: "CLOSED" | "CANCELLED" | "INTERNAL" = "CLOSED";
  const reply: Reply = () => {
    throw new NativeError(code, "The engine says so.");
  };
  const { send, faults } = await stand({}, {}, reply);
  const ask = async () => {
    const { status, headers, body } = await send("POST", "/tokenize", { content: "a" });
    return [status, headers["retry-after"], body.error.message];
  };
  assert.equal(await ask(), [503, "5", "The server is shutting down."]);
  assert.is(faults.length, 0);
  // The client is still there: a cancellation without its wish.
  code = "CANCELLED";
  assert.is((await ask())[0], 500);
  code = "INTERNAL";
  assert.is((await ask())[0], 500);
  assert.is(faults.length, 2);
});

test("the page that greets a browser shows the model and its names", async () => {
  const page = async (parts: object, info: object = {}) => {
    const { send } = await stand({ ...about, ...info }, parts);
    return (await send("GET", "/")).bytes.toString();
  };
  const plain = await page({});
  assert.match(plain, "<title>tapline serve</title>");
  assert.match(plain, "Serving m (llama, F16): 2 slots of 100 tokens.");
  assert.match(plain, "embeddings, pooling mean");
  const named = await page({ aliases: ["m", "a", "b"] }, { embeddings: false });
  assert.match(named, "Serving m, also available as a, b (llama, F16)");
  assert.match(named, "<dt>POST /v1/embeddings</dt><dd>disabled</dd>");
});

/** What of the description of a path says when it is answered how. */
type Described = Record<string, Record<string, { operationId: string; responses: Record<string, unknown> }>>;

test("the description lists each path's responses, with errors in its API's form", () => {
  const document = servingDocument("http://x") as { paths: Described; servers: object; security: object };
  assert.equal(
    [document.servers, document.security],
    [[{ url: "http://x", description: "This service." }], [{}, { key: [] }]],
  );
  const { paths } = document;
  const refusalOf = (path: string, status: string) => {
    const { content } = paths[path]!.post!.responses[status] as {
      content: { "application/json": { schema: { $ref: string } } };
    };
    return content["application/json"].schema.$ref.split("/").at(-1);
  };
  for (const [path, shape] of [
    ["/v1/chat/completions", "OpenAiError"],
    ["/v1/embeddings", "OpenAiError"],
    ["/completion", "LlamaServerError"],
    ["/tokenize", "LlamaServerError"],
    ["/infill", "LlamaServerError"],
    ["/lab/activations", "Error"],
    ["/lab/vectors", "Error"],
  ] as const) {
    assert.equal(
      [refusalOf(path, "400"), refusalOf(path, "503")].map((name) => name?.replace("Body", "")),
      [shape, shape],
    );
  }
  for (const [path, status] of [
    ["/lab/vectors", 201],
    ["/lab/probes", 201],
    ["/v1/completions", 200],
    ["/lab/activations", 200],
  ] as const) {
    assert.equal(Object.keys(paths[path]!.post!.responses).sort(), [String(status), "400", "503"].sort());
  }
  assert.equal(Object.keys(paths["/stats"]!.get!.responses), ["200", "403"]);
  // A path's requests and answers are next to each other.
  assert.equal(Object.keys(paths["/lab/vectors"]!).sort(), ["get", "post"]);
  const ids = Object.values(paths).flatMap((methods) =>
    Object.values(methods).flatMap(({ operationId }) => operationId ?? []),
  );
  assert.is(new Set(ids).size, ids.length, "each operation has a unique name");
});

test.run();
