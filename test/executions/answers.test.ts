/** An answer or an event of each API, in the one form that a record reads: every pair by hand. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { liveLines, readAnswer } from "../../src/executions/answer.js";
import { Watched } from "../../src/executions/watched.js";

const usage = { output_tokens: 4 };
const delta = (one: object, more: object = {}) => ({ choices: [{ delta: one, ...more }] });
const error = { message: "No." };

test("a chat's answer is taken as it is, and what is no object is none", () => {
  for (const answer of [
    { choices: [] },
    { choices: [{ text: "a" }], type: "response.completed" },
    "text",
    5,
  ]) {
    assert.is(readAnswer(answer), answer);
  }
  assert.equal([readAnswer(null), readAnswer(undefined), readAnswer({})], [{}, {}, {}]);
  assert.equal(readAnswer({ error }), { error });
  assert.equal(readAnswer({ error, usage }), { error, usage });
  assert.equal(readAnswer({ error: null, usage: null, other: 1 }), {});
});

test("OpenAI's Responses API, event by event and as a whole", () => {
  const call = { type: "function_call", name: "f" };
  for (const [event, read] of [
    [{ type: "response.output_text.delta", delta: "a" }, delta({ content: "a" })],
    [{ type: "response.reasoning_text.delta", delta: "a" }, delta({ reasoning_content: "a" })],
    [{ type: "response.output_item.done", item: call }, delta({ tool_calls: [call] })],
    [{ type: "response.output_item.done", item: { type: "message" } }, {}],
    [{ type: "response.output_item.done" }, {}],
    [{ type: "response.output_item.added", item: call }, {}],
    [{ type: "response.created", response: { status: "in_progress", usage: null } }, {}],
    [
      { type: "response.completed", response: { status: "completed", usage } },
      { usage, choices: [{ finish_reason: "completed" }] },
    ],
    [
      { type: "response.completed", response: { usage } },
      { usage, choices: [{ finish_reason: null }] },
    ],
    [{ type: "response.failed", response: { error, usage: null } }, { error }],
    [
      { type: "response.output_text.delta", delta: "a", error },
      { ...delta({ content: "a" }), error },
    ],
    [{ type: "responses.other", delta: "a" }, {}],
  ] as [object, object][]) {
    assert.equal(readAnswer(event), read, JSON.stringify(event));
  }
  const text = (part: string) => ({ type: "output_text", text: part });
  const whole = {
    ...{ object: "response", status: "incomplete", usage },
    output: [
      { type: "reasoning", content: [{ text: "h" }, { text: "m" }] },
      { type: "message", content: [text("a"), {}, text("b")] },
      call,
      { type: "message", content: [text("c")] },
      { type: "message" },
      { type: "other", text: "x" },
    ],
  };
  const message = { content: "abc", reasoning_content: "hm", tool_calls: [call] };
  assert.equal(readAnswer(whole), { choices: [{ message, finish_reason: "incomplete" }], usage });
  const nothing = { content: "", reasoning_content: "", tool_calls: [] };
  assert.equal(readAnswer({ object: "response" }), { choices: [{ message: nothing, finish_reason: null }] });
});

test("Anthropic's Messages, event by event and as a whole", () => {
  const block = (one: object) => ({ type: "content_block_delta", index: 0, delta: one });
  for (const [event, read] of [
    [block({ type: "text_delta", text: "a" }), delta({ content: "a" })],
    [block({ type: "text_delta", text: "" }), delta({ content: "" })],
    [block({ type: "thinking_delta", thinking: "h" }), delta({ reasoning_content: "h" })],
    [block({ type: "input_json_delta", partial_json: "" }), delta({ tool_calls: [{ partial_json: "" }] })],
    [block({ type: "signature_delta", signature: "s" }), delta({})],
    [{ type: "content_block_stop" }, delta({})],
    [
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage },
      { ...delta({}, { finish_reason: "end_turn" }), usage },
    ],
    [{ type: "message_delta", delta: { stop_reason: null } }, delta({})],
    [{ type: "message_start", message: {} }, {}],
    [{ type: "error", error }, { error }],
  ] as [object, object][]) {
    assert.equal(readAnswer(event), read, JSON.stringify(event));
  }
  const use = { type: "tool_use", name: "f" };
  const content = [
    { type: "thinking", thinking: "h" },
    { type: "text", text: "a" },
    use,
    { type: "text", text: "b" },
  ];
  const message = { content: "ab", reasoning_content: "h", tool_calls: [use] };
  assert.equal(readAnswer({ type: "message", content, stop_reason: "tool_use", usage }), {
    ...{ choices: [{ message, finish_reason: "tool_use" }], usage },
  });
});

test("llama-server's completion, with its reason and its count where it has them", () => {
  const timings = { predicted_n: 3 };
  assert.equal(readAnswer({ content: "a" }), { choices: [{ text: "a" }] });
  assert.equal(readAnswer({ content: "", stop_type: "none", timings }), {
    ...{ choices: [{ text: "", finish_reason: "none" }], timings },
  });
});

test("the record describes a tapline object in lines: edit, amount, comparison", () => {
  const did = { kind: "steer", layer: 2, strength: -1 };
  assert.equal(liveLines({}), []);
  assert.equal(
    liveLines({
      interventions: [
        { ...did, vector: "v", rows: 3, mean_row_length: 12.34567, mean_change_length: 0.00012341 },
        { ...did, vector: { feature: ["d", 4] }, strength_unit: "unit", rows: 0, note: "It did nothing." },
        did,
      ],
      ...{ capture: { id: "c", rows: 2 }, pair_of: 0 },
    }),
    [
      "baseline of choice 0, without its interventions",
      "steer v at layer 2, strength -1: 3 positions, mean change 0.0001234 of norm 12.35",
      "steer feature d:4 at layer 2, strength -1 unit: 0 positions, mean change ? of norm ?. It did nothing.",
      "steer at layer 2, strength -1: ? positions, mean change ? of norm ?",
      "captured 2 activations as c",
    ],
  );
});

test("what was watched: the mean and the first highest of each, of thirty-two names", () => {
  const watched = new Watched();
  assert.equal(watched.lines(), []);
  watched.add([{ token: "a", probes: { p: -2 } }]);
  assert.equal(watched.lines(), ['probe p: mean -2.000 of 1 token, highest -2.000 at "a"']);
  watched.add([
    { token: "b", probes: { p: 1 }, projections: { p: 5 } },
    { token: "c".repeat(50), probes: { p: 1 } },
    { token: 7, probes: { p: 4 } },
    { token: "d", probes: { p: Number.NaN, q: "1" }, projections: null },
  ]);
  assert.equal(watched.lines(), [
    'probe p: mean 1.000 of 4 tokens, highest 4.000 at ""',
    'projection p: mean 5.000 of 1 token, highest 5.000 at "b"',
  ]);
  const long = new Watched();
  long.add([
    { token: "c".repeat(50), probes: { p: 1 } },
    { token: "later", probes: { p: 1 } },
  ]);
  assert.equal(long.lines(), [`probe p: mean 1.000 of 2 tokens, highest 1.000 at "${"c".repeat(40)}"`]);
  const many = new Watched();
  for (let name = 0; name < 33; name++) many.add([{ token: "a", probes: { [name]: 1 } }]);
  assert.equal([many.lines().length, many.lines().at(-1)?.slice(0, 8)], [32, "probe 31"]);
  // Those that are known are followed further.
  many.add([{ token: "b", probes: { 31: 3, 32: 3 } }]);
  assert.equal(many.lines().slice(-1), ['probe 31: mean 2.000 of 2 tokens, highest 3.000 at "b"']);
});

test.run();
