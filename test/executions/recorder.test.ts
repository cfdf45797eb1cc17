/** What a service keeps of its requests, without a service. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { ExecutionRecorder, executionEndpoints, Histogram, percentiles } from "../../src/executions/index.js";
import { createApp, routesOf } from "../../src/http/index.js";

function begin(recorder = new ExecutionRecorder(), input: unknown = {}) {
  const start = {
    endpoint: "/v1/responses",
    parentId: null,
    model: "m",
    thinking: null,
    stream: true,
    input,
  };
  const trace = recorder.begin(start);
  return { trace, read: () => recorder.find(trace.id as string) };
}

/** Kind and text of every event behind the first, which says that the request was received. */
const told = (record: ReturnType<ReturnType<typeof begin>["read"]>) =>
  record?.events.slice(1).map(({ kind, text }) => [kind, text]);

const data = (...parts: object[]) => parts.map((part) => `data: ${JSON.stringify(part)}\n\n`).join("");

test("durations: eight buckets per doubling, from 10 µs to about 40 minutes", () => {
  const histogram = new Histogram();
  assert.equal(
    [histogram.percentile(0.5), percentiles(histogram)],
    [null, { p50: null, p95: null, p99: null }],
  );
  histogram.add(1, 90);
  histogram.add(100, 10);
  histogram.add(-5);
  assert.equal([histogram.count, histogram.sum], [101, 1090]);
  // Half a bucket is 2 ** (1 / 16) - 1 = 4.4 %; what is said lies within one of what was added.
  for (const [fraction, seconds] of [
    [0.5, 1],
    [0.8, 1],
    [0.95, 100],
  ] as const) {
    assert.ok(Math.abs(Math.log2((histogram.percentile(fraction) as number) / seconds)) <= 1 / 8);
  }
  assert.equal(
    [0.5e-5, 1e-5, 0.9, 1.2, 90, 120, 1e9].map((seconds) => histogram.atMost(seconds)),
    [0, 1, 1, 91, 91, 101, 101],
  );
  // Half of two is one: the shorter.
  const two = new Histogram();
  two.add(1);
  two.add(100);
  assert.ok((two.percentile(0.5) as number) < 2);
  // All of one duration: its bucket's middle, in hundredths of a millisecond. 2 ** 17 * 1e-5 s is a bound.
  const one = new Histogram();
  one.add(2 ** 17 * 1e-5);
  // 1,310.72 ms * 2 ** (-1 / 16)
  assert.equal(percentiles(one), { p50: 1255.15, p95: 1255.15, p99: 1255.15 });
  const long = new Histogram();
  long.add(1e7);
  // The last of 224 buckets: 2 ** (222.5 / 8) * 1e-5 s.
  assert.ok(Math.abs((long.percentile(1) as number) - 2357.2) < 1);
});

test("what a tapline object was told stands in the record, as lines", () => {
  const { trace, read } = begin();
  const did = { kind: "steer", vector: "calm", layer: 3, strength: 2, strength_unit: "row_norm" };
  trace.sent(
    data({
      choices: [
        {
          index: 1,
          delta: {},
          tapline: {
            pair_of: 0,
            interventions: [
              { ...did, rows: 5, mean_row_length: 123.456, mean_change_length: 0.5, note: "Said so." },
              { kind: "ablate", layer: 0, strength: 1, rows: 0 },
            ],
            capture: { id: "abc", rows: 7 },
          },
        },
      ],
    }),
  );
  assert.equal(told(read()), [
    ["lifecycle", "baseline of choice 0, without its interventions"],
    [
      "lifecycle",
      "steer calm at layer 3, strength 2 row_norm: 5 positions, mean change 0.5000 of norm 123.5. Said so.",
    ],
    ["lifecycle", "ablate at layer 0, strength 1: 0 positions, mean change ? of norm ?"],
    ["lifecycle", "captured 7 activations as abc"],
  ]);
  assert.equal(
    read()?.events.map(({ choice }) => choice),
    [0, 1, 1, 1, 1],
  );
});

test("the record ends with mean and maximum of each watched probe and direction", () => {
  const { trace, read } = begin();
  const token = (text: string, truth: number | null, polite: number) => ({
    token: text,
    probes: { truth },
    projections: { polite },
  });
  const chunk = (more: object) => data({ choices: [{ index: 0, delta: {}, ...more }] });
  trace.sent(chunk({ tapline: { tokens: [token("a", 0.25, -3), token(' "b"', 0.75, -1)] } }));
  trace.sent(chunk({ tapline: { tokens: [token("c", null, -2), { probes: "odd" }, {}] } }));
  const steered = { kind: "steer", vector: { feature: ["toy", 2] }, layer: 5, strength: 1 };
  const interventions = [{ ...steered, rows: 1, mean_row_length: 2, mean_change_length: 1 }];
  trace.sent(chunk({ finish_reason: "stop", tapline: { tokens: [token("", 0.2, -2)], interventions } }));
  assert.equal(told(read()), [
    ["lifecycle", "steer feature toy:2 at layer 5, strength 1: 1 positions, mean change 1.000 of norm 2.000"],
    ["lifecycle", 'probe truth: mean 0.4000 of 3 tokens, highest 0.7500 at " \\"b\\""'],
    ["lifecycle", 'projection polite: mean -2.000 of 4 tokens, highest -1.000 at " \\"b\\""'],
  ]);
});

test("calls of tools are kept, whichever API's form they have; another item is none", () => {
  const call = { type: "function_call", name: "f", arguments: "{}" };
  const { trace, read } = begin();
  trace.sent(
    data(
      { type: "response.output_item.done", item: { type: "message" } },
      { type: "response.output_item.done", item: call },
      { type: "response.failed", response: { error: { message: "too much" } } },
    ),
  );
  assert.equal(told(read()), [
    ["tool", JSON.stringify([call])],
    ["error", "too much"],
  ]);
  const messages = begin();
  const use = { type: "tool_use", name: "f", input: {} };
  messages.trace.answered(JSON.stringify({ content: [use], stop_reason: "tool_use" }));
  assert.equal(told(messages.read()), [["tool", JSON.stringify([use])]]);
  assert.is(messages.read()?.finish_reason, "tool_use");
});

test("llama-server's own answers are kept, and its count of tokens", () => {
  const { trace, read } = begin();
  trace.sent(
    data(
      { content: "a", timings: { predicted_n: 3 } },
      { content: "b", stop_type: "eos", timings: { predicted_n: 9 } },
    ),
  );
  assert.equal(told(read()), [["output", "ab"]]);
  assert.equal([read()?.output_tokens, read()?.finish_reason], [9, "eos"]);
});

test("token counts of complete answers come from the backend, by either API", () => {
  const counted = (usage: object | undefined) => {
    const { trace, read } = begin();
    trace.answered(JSON.stringify({ choices: [{ message: { content: "a b c" } }], usage }));
    return read()?.output_tokens;
  };
  assert.is(counted({ prompt_tokens: 9, completion_tokens: 3 }), 3);
  assert.is(counted({ input_tokens: 9, output_tokens: 4 }), 4);
  assert.is(counted({ completion_tokens: "5" }), 0);
  assert.is(counted(undefined), 0);
});

test("what is no JSON is passed over; a request ends once", () => {
  const { trace, read } = begin();
  trace.answered("<html>");
  trace.sent("data: {half\n\n: a comment\n\ndata: [DONE]\n\n");
  const spaceless = begin();
  spaceless.trace.sent(data({ choices: [{ delta: { content: "a" } }] }).replace("data: ", "data:"));
  assert.equal(told(spaceless.read()), [["output", "a"]]);
  trace.ended("cancelled");
  trace.ended("completed");
  assert.equal(told(read()), [["lifecycle", "cancelled"]]);
  assert.is(read()?.status, "cancelled");
});

test("inputs of 256 KiB are kept whole; longer ones are truncated", () => {
  const limit = 262_144;
  for (const [length, truncated] of [
    [limit, false],
    [limit + 1, true],
  ] as const) {
    const text = "x".repeat(length - 2); // in quotation marks
    const bytes = new TextEncoder().encode(JSON.stringify(text));
    assert.is(bytes.length, length);
    for (const input of [text, bytes]) {
      const record = begin(undefined, input).read();
      assert.is(record?.truncated, truncated);
      assert.is(record?.input, truncated ? JSON.stringify(text).slice(0, limit) : text);
    }
  }
  // Bytes count, not characters, and the last one is whole: two bytes, then 87,380 of three, and two are left.
  const wide = `a${"語".repeat(100_000)}`;
  for (const input of [wide, new TextEncoder().encode(JSON.stringify(wide))]) {
    const record = begin(undefined, input).read();
    assert.is(record?.truncated, true);
    assert.is(record?.input, `"a${"語".repeat(87_380)}`);
  }
  assert.is(begin(undefined, Buffer.from("no JSON")).read()?.input, "no JSON");
  // Bytes are what counts, and no character is cut: a quotation mark, and 87,381 signs of three bytes.
  const euros = "€".repeat(100_000);
  for (const input of [euros, Buffer.from(JSON.stringify(euros))]) {
    const { input: kept, truncated } = begin(undefined, input).read() ?? {};
    assert.equal([kept, truncated], [`"${"€".repeat(87_381)}`, true]);
  }
});

test("thirty things that happened are told, and the end; of each sentence 1,024 bytes", () => {
  const { trace, read } = begin();
  for (let count = 1; count < 30; count++) trace.lifecycle(`step ${count}`);
  assert.is(read()?.truncated, false);
  trace.lifecycle("one too many");
  assert.is(read()?.truncated, true);
  trace.ended("completed");
  assert.equal(told(read())?.slice(-2), [
    ["lifecycle", "step 29"],
    ["lifecycle", "completed"],
  ]);
  for (const [length, truncated] of [
    [1024, false],
    [1025, true],
  ] as const) {
    const one = begin();
    one.trace.failed("e".repeat(length));
    assert.equal(told(one.read()), [["error", "e".repeat(1024)]]);
    assert.is(one.read()?.truncated, truncated);
  }
});

test("text that fills the record to its last byte is whole", () => {
  const room = 262_144 - 32_768;
  const piece = (length: number) => data({ choices: [{ delta: { content: "x".repeat(length) } }] });
  const { trace, read } = begin();
  trace.sent(piece(room - 1));
  trace.sent(piece(1));
  assert.equal([read()?.truncated, read()?.events.length], [false, 2]);
  trace.sent(piece(1));
  assert.equal([read()?.truncated, read()?.events.length], [true, 3]);
  trace.sent(piece(1));
  assert.is(read()?.events.length, 3, "its end is told once");
});

test("the record of a streamed answer ends after 992 parts", () => {
  const { trace, read } = begin();
  trace.lifecycle("sent");
  const piece = (at: number) =>
    data({ choices: [{ delta: at % 2 === 0 ? { content: "x" } : { reasoning_content: "y" } }] });
  for (let at = 0; at < 992; at++) trace.sent(piece(at));
  assert.equal([read()?.truncated, read()?.events.length], [false, 2 + 992]);
  trace.sent(piece(992));
  assert.equal([read()?.truncated, read()?.events.length], [true, 2 + 992 + 1]);
  assert.match(read()?.events.at(-1)?.text ?? "", "the record of the answer is truncated here");
});

test("text and thought in Anthropic's pieces", () => {
  const { trace, read } = begin();
  const piece = (delta: object) => ({ type: "content_block_delta", index: 0, delta });
  trace.sent(
    data(piece({ type: "thinking_delta", thinking: "hm" }), piece({ type: "text_delta", text: "he" })),
  );
  assert.equal(told(read()), [
    ["thinking", "hm"],
    ["output", "he"],
  ]);
});

test("streamed answers: tool arguments, numbers only, errors next to an event", () => {
  const { trace, read } = begin();
  trace.sent(
    data(
      { type: "content_block_delta", delta: { type: "input_json_delta", partial_json: '{"a"' } },
      { type: "response.in_progress", error: { message: "slow" } },
      { usage: { completion_tokens: 5 } },
    ),
  );
  assert.equal(told(read()), [
    ["tool", '[{"partial_json":"{\\"a\\""}]'],
    ["error", "slow"],
  ]);
  assert.equal([read()?.output_tokens, read()?.usage], [5, { completion_tokens: 5 }]);
  for (const body of ["5", "null", '"text"', "[]"]) {
    const other = begin();
    other.trace.answered(body);
    assert.equal(told(other.read()), [], body);
  }
});

test("without a count, events with text, reasoning or a tool call are tokens", () => {
  const { trace, read } = begin();
  const choice = (delta: object, more: object = {}) => ({ choices: [{ delta, ...more }] });
  trace.sent(data(choice({ role: "assistant" })));
  assert.is(read()?.output_tokens, 0);
  const events = [
    { content: "a" },
    { reasoning_content: "b" },
    { reasoning: "c" },
    { tool_calls: [{ index: 0 }] },
  ];
  for (const delta of events) trace.sent(data(choice(delta)));
  trace.sent(data(choice({ tool_calls: [] }), choice({}, { finish_reason: "stop" })));
  assert.is(read()?.output_tokens, 4);
  trace.sent(data(choice({ content: "d" })), 3);
  assert.is(read()?.output_tokens, 7);
  assert.is(read()?.finish_reason, "stop");
});

test("the oldest finished record is evicted first; clearing also clears counts", () => {
  const recorder = new ExecutionRecorder();
  const traces = Array.from({ length: 67 }, () => {
    const { trace } = begin(recorder);
    trace.ended("completed");
    return trace;
  });
  assert.equal(
    recorder.list().executions.map(({ id }) => id),
    traces
      .slice(3)
      .map(({ id }) => id)
      .reverse(),
  );
  const full = new ExecutionRecorder();
  for (let count = 0; count < 66; count++) begin(full);
  assert.is(full.list().dropped, 2);
  full.clear();
  assert.equal([full.list().dropped, full.list().executions.length], [0, 64]);
});

test("times are Unix seconds; late readers are awaited before a record is read", () => {
  const before = Date.now();
  const recorder = new ExecutionRecorder();
  const { trace, read } = begin(recorder);
  assert.is(read()?.ended, null);
  trace.beforeReading(() => trace.sent(data({ choices: [{ delta: { content: "late" } }] }), 1, 12.5));
  assert.is(recorder.list().executions[0]?.preview, "late");
  trace.beforeReading(() => {});
  trace.ended("completed");
  const record = read();
  const after = Date.now();
  for (const time of [record?.started, record?.ended, record?.events[0]?.time, record?.events.at(-1)?.time]) {
    assert.ok((time as number) * 1000 >= before - 1 && (time as number) * 1000 <= after + 1, String(time));
  }
  assert.equal([record?.events[1]?.time, record?.events[1]?.updated], [12.5, 12.5]);
});

test("consecutive events of one choice are merged, those of another are not", () => {
  const { trace, read } = begin();
  const says = (index: number, content: string, time: number) =>
    trace.sent(data({ choices: [{ index, delta: { content } }] }), 1, time);
  says(0, "a", 10);
  says(0, "b", 11);
  says(1, "c", 12);
  says(0, "d", 13);
  assert.equal(
    read()
      ?.events.slice(1)
      .map(({ text, choice, time, updated }) => [text, choice, time, updated]),
    [
      ["ab", 0, 10, 11],
      ["c", 1, 12, 12],
      ["d", 0, 13, 13],
    ],
  );
});

test("what is cut is cut between characters, and nothing is cut that fits", () => {
  const { trace, read } = begin();
  // 1,023 bytes and the first half of a character of two.
  trace.failed(`${"e".repeat(1023)}é`);
  // Half of a surrogate pair takes three bytes in UTF-8: 1,024 in all.
  trace.failed(`\ud800${"e".repeat(1021)}`);
  assert.equal(told(read()), [
    ["error", "e".repeat(1023)],
    ["error", `\ud800${"e".repeat(1021)}`],
  ]);
});

test("a preview is the first answer's first 180 characters, trimmed", () => {
  const { trace, read } = begin();
  const text = (content: string, index: number) => data({ choices: [{ index, delta: { content } }] });
  trace.sent(text(" \n", 0));
  trace.sent(text("other", 1));
  trace.sent(text("😀".repeat(100), 0));
  trace.sent(text("😀".repeat(79), 0));
  assert.is(read()?.preview, "😀".repeat(179));
  trace.sent(text("ab", 0));
  assert.is(read()?.preview, `${"😀".repeat(179)}a`);
});

test("records are listed, read by their id and forgotten at their addresses", async () => {
  const recorder = new ExecutionRecorder();
  const { trace } = begin(recorder);
  trace.ended("completed");
  const app = createApp({ routers: [routesOf(executionEndpoints, recorder)] });
  const server = createServer(app.callback());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}/executions`;
  const ask = async (path: string, method = "GET") => {
    const answer = await fetch(at + path, { method });
    return [answer.status, (await answer.json()) as { id?: string }] as const;
  };
  try {
    const [, list] = await ask("");
    assert.equal(list, JSON.parse(JSON.stringify(recorder.list())));
    const [status, record] = await ask(`/${trace.id}`);
    assert.equal([status, record.id], [200, trace.id]);
    const [none, refused] = await ask("/other");
    assert.is(none, 404);
    assert.match(JSON.stringify(refused), "There is no such execution.");
    assert.equal(await ask("", "DELETE"), [200, { cleared: true }]);
    assert.is((await ask(`/${trace.id}`))[0], 404);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test.run();
