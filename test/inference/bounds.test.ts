/** Requests at their bounds: no token, many prompts, prompts of two kinds, a thought cut off at its first tag. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { withoutLoneTag } from "../../src/inference/reply.js";
import { chatAnswer, type Reply, stand } from "./support/stand.js";

const messages = [{ role: "user", content: "a" }];
const reached = { ...chatAnswer.choices[0], finish_reason: "stop", stop_reason: "Hi" };
const timings = { predicted_n: 1 };

/** Answers with these events where the request wants a stream, with the whole otherwise. */
const replying =
  (whole: object, events: object[]): Reply =>
  ({ body }) => {
    if (body.stream !== true) return { body: JSON.stringify(whole) };
    return {
      parts: (async function* () {
        for (const event of events) yield { data: `data: ${JSON.stringify(event)}\n\n`, tokens: [1] };
        yield { data: "data: [DONE]\n\n", tokens: [] };
      })(),
    };
  };
const eventsOf = (bytes: Buffer) =>
  bytes
    .toString()
    .split("\n\n")
    .filter((event) => event.startsWith("data: {"))
    .map((event) => JSON.parse(event.slice(6)));

test("a chat that asks for no token gets none, whichever name says so", async () => {
  const { post, asked } = await stand({}, {}, replying({ ...chatAnswer, choices: [reached], timings }, []));
  for (const limit of [
    { max_tokens: 0 },
    { max_completion_tokens: 0 },
    { n_predict: 0 },
    { n_predict: 0, max_completion_tokens: 3, max_tokens: 5 },
    { max_completion_tokens: 0, max_tokens: 5 },
  ]) {
    const { status, body } = await post("/v1/chat/completions", { messages, ...limit });
    assert.is(status, 200);
    const { choices, usage } = body;
    assert.equal(choices[0].message, { role: "assistant", content: "" });
    assert.equal([choices[0].finish_reason, "stop_reason" in choices[0]], ["length", false]);
    assert.equal(usage, { prompt_tokens: 3, completion_tokens: 0, total_tokens: 3 });
    // The engine gets the limit as it was written.
    const [name] = Object.keys(limit) as ["max_tokens"];
    assert.is(asked.at(-1)?.body[name], 0);
  }
  const { body } = await post("/v1/chat/completions", { messages, max_completion_tokens: 1, max_tokens: 0 });
  assert.equal([body.choices[0].message.content, body.usage.completion_tokens], ["Hi", 1]);
});

test("a stream for no token has its two ends, and nothing between them", async () => {
  const events = [
    { choices: [{ index: 0, finish_reason: null, delta: { role: "assistant", content: null } }] },
    { choices: [{ index: 0, finish_reason: null, delta: { content: "Hi" } }] },
    { choices: [{ index: 0, finish_reason: null, delta: { reasoning_content: "Hm" } }] },
    { choices: [{ index: 0, finish_reason: "stop", delta: {} }] },
    { choices: [], usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 } },
  ];
  const { post } = await stand({}, {}, replying({}, events));
  const { bytes } = await post("/v1/chat/completions", { messages, max_tokens: 0, stream: true });
  const told = eventsOf(bytes);
  assert.equal(told[0].choices[0].delta, { role: "assistant", content: null });
  for (const { choices } of told.slice(1, 4)) assert.equal(choices[0].delta, {});
  assert.is(told[3].choices[0].finish_reason, "length");
  assert.equal(told[4].usage, { prompt_tokens: 3, completion_tokens: 0, total_tokens: 3 });
  assert.ok(bytes.toString().endsWith("data: [DONE]\n\n"));
});

test("llama-server's completions make no token either", async () => {
  const whole = {
    ...{ index: 0, content: "ust", tokens: [7], tokens_predicted: 1, tokens_evaluated: 2, stop: true },
    ...{ stop_type: "word", stopping_word: "ust", completion_probabilities: [{ token: "ust" }] },
  };
  const none = {
    ...{ index: 0, content: "", tokens: [], tokens_predicted: 0, tokens_evaluated: 2, stop: true },
    ...{ stop_type: "limit", stopping_word: "", completion_probabilities: [] },
  };
  const part = { index: 0, content: "ust", tokens: [7], stop: false };
  const { post } = await stand({}, {}, replying(whole, [part, whole]));
  for (const path of ["/completion", "/infill"]) {
    const asked = { prompt: "a", input_prefix: "a", input_suffix: "b", n_predict: 0 };
    assert.equal((await post(path, asked)).body, none);
    const { bytes } = await post(path, { ...asked, stream: true });
    assert.equal(eventsOf(bytes), [{ index: 0, content: "", tokens: [], stop: false }, none]);
    assert.is((await post(path, { ...asked, n_predict: 1 })).body.content, "ust");
  }
  const several = await stand({}, {}, replying([whole, { ...whole, index: 1 }], []));
  const { body } = await several.post("/completion", { prompt: ["a", "b"], n_predict: 0 });
  assert.equal(body, [none, { ...none, index: 1 }]);
});

test("thinking that is cut off at its tag is not part of the answer", () => {
  const answer = (message: object) => JSON.stringify({ choices: [{ index: 0, message }] });
  const told = (message: object, tag = "<think>") =>
    JSON.parse(withoutLoneTag(answer(message), tag)).choices[0].message;
  for (const content of ["<think>", "<think>\n", "<think>\n\n "]) {
    assert.equal(told({ content }), { content: "", reasoning_content: "" });
  }
  assert.equal(told({ content: "[THINK]" }, "[THINK]"), { content: "", reasoning_content: "" });
  assert.equal(told({ content: '"<t>' }, '"<t>\n'), { content: "", reasoning_content: "" });
  for (const message of [
    { content: "<think> is a tag" },
    { content: "The tag is <think>" },
    { content: "<think>", reasoning_content: "Hm" },
    { content: null },
    { content: "" },
  ]) {
    assert.equal(told(message), message);
  }
  for (const tag of ["", "\n"]) assert.equal(told({ content: "<think>" }, tag), { content: "<think>" });
});

test("up to 2,048 prompts, texts and tokens mixed, go to the engine as they are", async () => {
  const { engine, refusal } = await stand();
  for (const prompt of [
    Array.from({ length: 2048 }, (_, i) => `Hello ${i}`),
    Array.from({ length: 2048 }, (_, i) => [i % 50]),
    ["a", [1, 2], "b"],
    [[1], "b"],
    Array(3000).fill(1),
  ]) {
    assert.equal((await engine("/v1/completions", { prompt })).body.prompt, prompt);
    assert.equal((await engine("/completion", { prompt })).body.prompt, prompt);
  }
  const sentences: [prompt: unknown, sentence: string, param: string][] = [
    [Array(2049).fill("a"), "prompt: at most 2048 prompts, got 2049.", "prompt"],
    [Array(2049).fill([1]), "prompt: at most 2048 prompts, got 2049.", "prompt"],
    [["a", 3], "prompt[1]: must be a string or an array, got 3.", "prompt[1]"],
    [[1, "b"], 'prompt[1]: must be an integer, got "b".', "prompt[1]"],
    [["a", []], "prompt[1]: at least 1 entry, got 0.", "prompt[1]"],
    [["a", [1.5]], "prompt[1][0]: must be an integer, got 1.5.", "prompt[1][0]"],
    [[[-1]], "prompt[0][0]: at least 0, got -1.", "prompt[0][0]"],
    [[null], "prompt[0]: must be an integer, a string or an array, got null.", "prompt[0]"],
    [7, "prompt: must be a string or an array, got 7.", "prompt"],
  ];
  for (const [prompt, sentence, param] of sentences) {
    assert.equal(await refusal("/v1/completions", { prompt }), [400, sentence, param]);
  }
  const many = await stand({ slots: 16 });
  const prompt = Array(2048).fill("a");
  assert.is((await many.engine("/v1/completions", { prompt, n: 8 })).body.n, 8);
  assert.equal(await many.refusal("/v1/completions", { prompt, n: 9 }), [
    ...[400, "n: at most 16384 answers in total, got 18432.", "n"],
  ]);
});

test("ranges of tokens run forwards", async () => {
  const { refusal } = await stand();
  const at = async (tapline: object) => refusal("/v1/chat/completions", { messages, tapline });
  const edit = (positions: number[][]) => ({
    interventions: [{ kind: "scale", layer: 1, strength: 2, positions }],
  });
  for (const [positions, range, ends] of [
    [[[5, 2]], 0, "5 and 2"],
    [
      [
        [0, 1],
        [-1, -3],
      ],
      1,
      "-1 and -3",
    ],
  ] as const) {
    const path = `tapline.interventions[0].positions[${range}]`;
    const sentence = `${path}: must not start after its end, got ${ends}.`;
    assert.equal(await at(edit(positions as unknown as number[][])), [400, sentence, path]);
  }
  const path = "tapline.watch.positions[0]";
  assert.equal(await at({ watch: { layers: [0], norms: true, positions: [[3, 1]] } }), [
    ...[400, `${path}: must not start after its end, got 3 and 1.`, path],
  ]);
});

test("a response may be asked for with either truncation", async () => {
  const { engine, refusal } = await stand();
  for (const truncation of ["auto", "disabled"]) {
    assert.not("truncation" in (await engine("/v1/responses", { input: "a", truncation })).body);
  }
  assert.equal(await refusal("/v1/responses", { input: "a", truncation: "never" }), [
    ...[400, 'truncation: must be disabled or auto, got "never".', "truncation"],
  ]);
});

test("log-probabilities of a prompt are refused with where they are", async () => {
  const { refusal } = await stand();
  assert.equal(await refusal("/v1/completions", { prompt: "a", prompt_logprobs: 1 }), [
    400,
    "prompt_logprobs: not supported; use echo with logprobs on /v1/completions.",
    "prompt_logprobs",
  ]);
});

test.run();
