import { test } from "uvu";
import * as assert from "uvu/assert";
import { assertLinted } from "../support/lint-openapi.js";
import { startServer, streamEvents, type TestServer, user } from "./support/serving.js";

let server: TestServer;
const prompt = "The capital of France is";
const exact = { temperature: 0, max_tokens: 3 };

test.before(async () => {
  server = await startServer();
});
test.after(() => server.close());

test("the native completion: whole, several prompts, streamed, without [DONE]", async () => {
  const { status, body } = await server.post("/completion", {
    prompt,
    n_predict: 3,
    temperature: 0,
    n_probs: 2,
  });
  assert.is(status, 200);
  assert.equal([body.content, body.stop, body.tokens_predicted], [" Paris.", true, 3]);
  assert.is(body.completion_probabilities[0].top_logprobs.length, 2);
  const many = await server.post("/completions", {
    prompt: [prompt, "The"],
    n_predict: 2,
    response_fields: ["content", "truncated"],
  });
  assert.equal(
    many.body.map((one: object) => Object.keys(one)),
    [
      ["content", "truncated"],
      ["content", "truncated"],
    ],
  );
  const text = (await server.post("/completion", { prompt, ...exact, stream: true })).bytes.toString();
  assert.not.match(text, /\[DONE\]/);
  const events = streamEvents(text);
  assert.is(events.map(({ content }) => content).join(""), " Paris.");
  assert.is(events.at(-1)?.stop, true);
});

test("the server's properties and health", async () => {
  const { body: props } = await server.get("/props");
  assert.equal([props.total_slots, props.model_alias], [4, "tapline-demo"]);
  assert.match(props.chat_template, "im_start");
  const { body: slots } = await server.get("/slots");
  assert.equal(
    slots.map(({ id, is_processing }: { id: number; is_processing: boolean }) => [id, is_processing]),
    [0, 1, 2, 3].map((id) => [id, false]),
  );
  assert.equal((await server.get("/lora-adapters")).body, []);
  assert.equal((await server.get("/v1/health")).body, { status: "ok" });
  assert.is((await server.post("/props", {})).status, 405);
  assert.is((await server.post("/lora-adapters", [])).status, 405);
});

test("the description names every path, and validates with the schemas themselves", async () => {
  const { body: document } = await server.get("/openapi.json");
  for (const [path, { get, post }] of Object.entries(document.paths) as [string, Record<string, object>][]) {
    assert.ok(get ?? post);
    // "{name}" isn't a name, and no capture is called "{id}".
    const absent = path.startsWith("/lab/captures/{id}") ? 404 : 400;
    if (get !== undefined)
      assert.is((await server.get(path)).status, path.includes("{") ? absent : 200, path);
    if (post !== undefined) assert.is((await server.post(path, "no object")).status, 400, path);
  }
  const { model, messages, tapline } = document.components.schemas.ChatRequest.properties;
  assert.ok(model && messages);
  assert.is(tapline.$ref, "#/components/schemas/LiveRequest");
  assertLinted(document);
});

test("a browser is greeted with a page that lists the endpoints, without script", async () => {
  const page = await server.get("/", { "Sec-Fetch-Site": "none", Cookie: "a=b", Accept: "text/html" });
  assert.is(page.status, 200);
  const text = page.bytes.toString();
  assert.match(page.headers["content-type"] as string, "text/html");
  assert.match(page.headers["content-security-policy"] as string, /^default-src 'none'; style-src 'sha256-/);
  assert.is(page.headers["access-control-allow-origin"], undefined);
  assert.match(text, "Serving tapline-demo (qwen3");
  assert.not.match(text, /<script|https?:\/\/(?!localhost|127)/);
  for (const [, method, path] of text.matchAll(/<dt>(GET|POST) ([^<]+)<\/dt>/g)) {
    const { status } = await (method === "GET"
      ? server.get(path as string)
      : server.post(path as string, {}));
    assert.is.not(status, 404, path);
  }
  assert.is((await server.get("/", { Host: "elsewhere.example" })).status, 403);
  assert.is((await server.post("/", {})).status, 404);
});

test("filling in and reranking name the model's missing support", async () => {
  const infill = await server.post("/infill", { input_prefix: "a", input_suffix: "b" });
  assert.equal(
    [infill.status, infill.body.error],
    [
      400,
      {
        code: 400,
        message: "This model cannot fill in: its vocabulary has no token for prefix suffix middle.",
        type: "invalid_request_error",
        param: null,
      },
    ],
  );
  const rerank = await server.post("/v1/rerank", { query: "a", documents: ["b"] });
  assert.is(rerank.status, 400);
  assert.match(rerank.body.error.message, "cannot rerank");
  assert.is((await server.post("/v1/rerank", { query: "a", documents: [] })).status, 400);
});

test("legacy log-probabilities are parallel lists with text offsets", async () => {
  const { body } = await server.post("/v1/completions", { prompt, ...exact, logprobs: 2 });
  const [{ text, logprobs }] = body.choices;
  assert.is(logprobs.tokens.join(""), text);
  for (const [index, token] of logprobs.tokens.entries()) {
    assert.is(text.slice(logprobs.text_offset[index], logprobs.text_offset[index] + token.length), token);
    assert.is(logprobs.top_logprobs[index][token], logprobs.token_logprobs[index]); // greedy
    assert.is(Object.keys(logprobs.top_logprobs[index]).length, 2);
  }
  const streamed = streamEvents(
    (await server.post("/v1/completions", { prompt, ...exact, logprobs: 2, stream: true })).bytes.toString(),
  ).flatMap(({ choices }) => (choices as (typeof body)["choices"]) ?? []);
  const joined = (name: string) => streamed.flatMap((choice: typeof body) => choice.logprobs?.[name] ?? []);
  for (const name of ["tokens", "text_offset"]) assert.equal(joined(name), logprobs[name], name);
  const chosen = await server.post("/v1/completions", { prompt, ...exact, logprobs: 0 });
  assert.equal(
    chosen.body.choices[0].logprobs.top_logprobs.map(Object.keys),
    logprobs.tokens.map((token: string) => [token]),
  );
});

test("echo puts the prompt in front of each of its answers, whole and streamed", async () => {
  const { tokens } = (await server.post("/tokenize", { content: "The" })).body;
  for (const [asked, texts] of [
    [prompt, [prompt, prompt]],
    [
      [prompt, "The"],
      [prompt, prompt, "The", "The"],
    ],
    [[tokens], ["The", "The"]],
  ] as const) {
    const ask = { prompt: asked, ...exact, n: 2, seed: 1 };
    const bare = (await server.post("/v1/completions", ask)).body.choices;
    const { body } = await server.post("/v1/completions", { ...ask, echo: true });
    assert.equal(
      body.choices.map(({ text }: { text: string }) => text),
      bare.map(({ text }: { text: string }, index: number) => `${texts[index]}${text}`),
    );
    const streamed = ["", "", "", ""];
    const stream = (
      await server.post("/v1/completions", { ...ask, echo: true, stream: true })
    ).bytes.toString();
    for (const { choices } of streamEvents(stream)) {
      for (const { index, text } of choices as { index: number; text: string }[]) streamed[index] += text;
    }
    assert.equal(
      streamed.slice(0, texts.length),
      body.choices.map(({ text }: { text: string }) => text),
    );
  }
});

test("max_tokens 0 returns no tokens; with echo the answer is the prompt", async () => {
  for (const [extra, text] of [
    [{}, ""],
    [{ echo: true }, prompt],
    [{ logprobs: 2 }, ""],
  ] as const) {
    const ask = { prompt, max_tokens: 0, ...extra };
    const { body } = await server.post("/v1/completions", ask);
    assert.equal([body.choices[0].text, body.choices[0].finish_reason], [text, "length"]);
    assert.equal([body.usage.completion_tokens, body.usage.total_tokens], [0, body.usage.prompt_tokens]);
    if ("logprobs" in extra) assert.equal(body.choices[0].logprobs.tokens, []);
    const events = streamEvents(
      (await server.post("/v1/completions", { ...ask, stream: true })).bytes.toString(),
    );
    const streamed = events.flatMap(({ choices }) => choices as { text: string }[]);
    assert.is(streamed.map((choice) => choice.text).join(""), text);
  }
});

test("fields that would change an answer and do not exist here are refused by name", async () => {
  const messages = user("a");
  const cases: [path: string, body: object, param: string][] = [
    ["/v1/chat/completions", { messages, functions: [{ name: "f" }] }, "functions"],
    ["/v1/chat/completions", { messages, function_call: "auto" }, "function_call"],
    ["/v1/chat/completions", { messages, repetition_penalty: 1.1 }, "repetition_penalty"],
    [
      "/v1/chat/completions",
      { messages, grammar: 'root ::= "a"', response_format: { type: "json_object" } },
      "grammar",
    ],
    [
      "/v1/chat/completions",
      { messages, json_schema: {}, response_format: { type: "json_object" } },
      "json_schema",
    ],
    ["/v1/completions", { prompt, suffix: "b" }, "suffix"],
    ["/v1/completions", { prompt, best_of: 3 }, "best_of"],
    ["/v1/completions", { prompt, response_format: { type: "json_object" } }, "response_format"],
    ["/v1/chat/completions", { messages, enable_thinking: false }, "enable_thinking"],
    ["/v1/chat/completions", { messages, thinking: { type: "disabled" } }, "thinking"],
    ["/v1/chat/completions", { messages, do_sample: false }, "do_sample"],
    ["/v1/completions", { prompt, max_new_tokens: 3 }, "max_new_tokens"],
    ["/v1/completions", { prompt, prompt_logprobs: 1 }, "prompt_logprobs"],
    ["/completion", { prompt, response_format: { type: "json_object" } }, "response_format"],
  ];
  for (const [path, body, param] of cases) {
    const answer = await server.post(path, body);
    assert.is(answer.status, 400, param);
    assert.is(answer.body.error.param, param);
  }
  const harmless = { prompt, ...exact, suffix: "", bad_words: [], best_of: 1, user: "me", store: true, n: 1 };
  assert.is((await server.post("/v1/completions", harmless)).status, 200);
});

test("tokenizer endpoints of vLLM agree with llama-server's", async () => {
  const { body: info } = await server.get("/tokenizer_info");
  const { body: props } = await server.get("/props");
  assert.equal(
    [info.bos_token, info.eos_token, info.chat_template],
    [props.bos_token, props.eos_token, props.chat_template],
  );
  assert.match(info.chat_template, /message/);
  const own = { content: "The capital", add_special: false, parse_special: true };
  const { tokens } = (await server.post("/tokenize", own)).body;
  const theirs = { prompt: "The capital", add_special_tokens: false };
  const { slotContext } = server.service.engine.info;
  assert.equal((await server.post("/tokenize", theirs)).body, {
    ...{ count: tokens.length, max_model_len: slotContext, tokens },
  });
  const [bos] = (await server.post("/tokenize", { prompt: info.bos_token, add_special_tokens: false })).body
    .tokens;
  const special = (await server.post("/tokenize", { prompt: "The capital" })).body.tokens;
  assert.equal(special, [bos, ...tokens]);
  assert.is((await server.post("/detokenize", { tokens })).body.prompt, "The capital");
  const both = await server.post("/tokenize", { ...own, ...theirs });
  assert.equal([both.status, both.body.error.param], [400, "content"]);
});

test.run();
