/** Entries of requests to a serving model. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Entry } from "../../src/contracts/studies/index.js";
import { executionEvidence, liveEvidence } from "../../src/study/index.js";
import { execution } from "./evidence.js";

test("requests to a serving model: conversation, answers, settings, omissions", () => {
  const of = (change: Parameters<typeof execution>[0]) => {
    const { entries, omissions, model, method } = executionEvidence(execution(change), "run");
    return { entry: entries[0] as Entry, omissions, model, method };
  };
  const input = {
    messages: [{ role: "user", content: "Q" }],
    temperature: 10,
    seed: 0,
    max_tokens: 1_000_000,
  };
  const settings = (change: object, thinking: boolean | null = null) =>
    of({ input: { ...input, ...change }, thinking }).entry.settings;
  assert.equal(settings({}), { temperature: 10, seed: 0, maxTokens: 1_000_000, thinking: "default" });
  assert.equal([settings({}, true)?.thinking, settings({}, false)?.thinking], ["on", "off"]);
  for (const wrong of [
    { temperature: 10.1 },
    { temperature: -0.1 },
    { temperature: "1" },
    { seed: 0.5 },
    { max_tokens: 0 },
    { max_tokens: 1_000_001 },
    { seed: undefined },
  ])
    assert.is(settings(wrong), undefined, JSON.stringify(wrong));
  const message = (role: string, content: unknown) => ({ role, content });
  const said = of({
    input: { messages: [message("user", "first"), message("system", "late"), message("assistant", "last")] },
  });
  assert.equal(
    [said.entry.system, said.entry.prompt, said.entry.context?.map(({ role }) => role)],
    [undefined, undefined, ["user", "system", "assistant"]],
  );
  const talk = Array.from({ length: 204 }, (_, at) => message("user", `${at}`));
  const { entry, omissions } = of({ input: { messages: talk } });
  assert.equal(
    [entry.prompt, entry.context?.length, entry.context?.[0]?.content, entry.context?.at(-1)?.content],
    ["203", 200, "3", "202"],
    "the last ones before the question",
  );
  assert.match(omissions[0] ?? "", /or exceed the limit: 3\.$/);
  const great = of({
    input: { messages: [message("assistant", "é".repeat(100_001)), message("user", "Q")] },
  }).entry.context?.[0]?.content;
  assert.equal([great?.length, great?.at(-1)], [100_000, "…"]);
  const parts = of({
    input: { messages: [message("user", [{ type: "text", text: "a" }, "b"]), message("user", [])] },
  });
  assert.equal(
    [parts.entry.prompt, parts.omissions],
    [
      "ab",
      [
        "Messages of request ffffffff that are not plain text by system, user or assistant, or exceed the limit: 1.",
      ],
    ],
  );
  const event = (kind: "output" | "tool" | "thinking", text: string, choice = 0) => ({
    id: 0,
    kind,
    text,
    time: 1,
    updated: 1,
    choice,
  });
  const several = of({
    events: [
      event("output", "a"),
      event("output", "x", 1),
      event("output", "y", 2),
      event("output", "z", 2),
      event("output", "b"),
      event("tool", "t"),
    ],
  });
  assert.equal([several.entry.answer, several.entry.thinking], ["ab", undefined]);
  assert.equal(several.omissions, [
    "Choices of request ffffffff other than the first: 2.",
    "Tool calls of request ffffffff.",
  ]);
  const failed = of({
    status: "failed",
    input: "plain",
    endpoint: "/v1/completions",
    finish_reason: "f".repeat(101),
    model: "/x/m.gguf",
  });
  assert.equal(
    [failed.entry.kind, failed.entry.prompt, failed.entry.finishReason?.length],
    ["error", "plain", 100],
  );
  assert.equal(
    [failed.model, failed.method],
    [
      { name: "m.gguf", revision: null, runtime: "run" },
      "A request to /v1/completions of a serving model, as recorded by its execution inspector.",
    ],
  );
  assert.match(failed.entry.title, "/v1/completions: plain");
  assert.match(
    failed.entry.note as string,
    /^Request f{32}, 2023-11-14T22:13:20\.000Z, failed\.\nParameters: \{"model":"m\.gguf"\}\nUsage: \{"completion_tokens":3\}$/,
  );
  assert.equal(of({ truncated: true }).omissions, [
    "Text of request ffffffff beyond the execution inspector's limit.",
  ]);
});

test("what a serving model was asked by a recipe's step, question by question", () => {
  const work = {
    id: "steered",
    what: "steered answers",
    method: "2 answers.",
    request: { a: 1 },
    result: [1, 2],
  };
  const exchanges = [
    { asked: "One\nis", answer: "two\nthree", finish: "stop" },
    { asked: "Two is", answer: "", finish: "length" },
  ];
  const { entries, spare, model, method } = liveEvidence({ ...work, exchanges }, "/x/m.gguf", "run");
  const [asked, request, made, json] = entries as [Entry, Entry, Entry, Entry];
  assert.equal(
    [asked.title, asked.prompt, asked.kind],
    ["steered: steered answers", "One\nis\nTwo is", "prompt"],
  );
  assert.equal(
    [request.parent, request.title, request.note],
    [asked.id, "Requests of steered", '{\n "a": 1\n}'],
  );
  assert.equal(
    [made.parent, made.kind, made.answer],
    [asked.id, "result", "One is | two three | stop\nTwo is |  | length"],
  );
  assert.equal([json.parent, json.title, json.note], [made.id, "Result of steered as JSON", "[1,2]"]);
  assert.equal(spare, [
    { what: "The requests of steered", ids: [request.id] },
    { what: "The whole result of steered as JSON", ids: [json.id] },
  ]);
  assert.equal([model, method], [{ name: "m.gguf", revision: null, runtime: "run" }, "2 answers."]);
  const none = liveEvidence({ ...work, exchanges: [] }, "demo", "run").entries;
  assert.equal([none[0]?.prompt, none[2]?.answer], [undefined, "steered answers: done."]);
});

test.run();
