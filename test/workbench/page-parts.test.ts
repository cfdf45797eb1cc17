/** What the page makes of an answer's numbers, of words that it keeps, and of the ways on from what one asked for. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { firstChange } from "../../src/workbench/page/first-change.js";
import { numbersOf, parseLayers } from "../../src/workbench/page/lists.js";
import { gridJobs, gridLayers, mostGridLayers, steerForm } from "../../src/workbench/page/steer-request.js";
import type { AnswerToken, Turn, TurnAnswer } from "../../src/workbench/wire.js";
import { pageModule } from "./page-modules.js";

interface Numbers {
  head: string[];
  rows: (string | number | null)[][];
}
const { answerNumbers, insideNumbers } = await pageModule<{
  answerNumbers(turn: Turn, answer: TurnAnswer): Numbers;
  insideNumbers(turn: Turn, token: AnswerToken): Numbers;
}>("chat-numbers");

const turn: Turn = {
  ...{ question: "q", request: { path: "/", body: {} }, interventions: [], kept: 0, answers: [] },
  layers: [1, 3],
  dictionary: { name: "d", layer: 3 },
};
const candidate = (token_id: number, token: string, probability: number) => ({
  token_id,
  token,
  probability,
});
const token: AnswerToken = {
  ...{ id: 7, text: " b", probability: 0.5 },
  candidates: [candidate(7, " b", 0.5), candidate(8, " c", 0.25), candidate(9, " d", 0.25)],
  norms: [2.5, Number.NaN],
  lens: [[candidate(5, " l", 0.125)], []],
  probes: { kind: 0.75, other: null },
  features: [
    { feature: 11, activation: 4 },
    { feature: 12, activation: 2 },
  ],
};

test("an answer's numbers: a row a token, of all that was watched, nothing where it was not told", () => {
  const answer: TurnAnswer = {
    ...{ state: "done", edited: true, finish: "stop" },
    tokens: [{ text: "hm", thinking: true }, token, { id: 2, text: "<end>", special: true, thinking: true }],
  };
  const { head, rows } = answerNumbers(turn, answer);
  assert.equal(head, [
    ...["token", "id", "text", "part", "probability", "entropy (lower bound, bits)"],
    ...["probe kind", "probe other"],
    ...["norm at layer 1", "lens at layer 1", "lens probability at layer 1"],
    ...["norm at layer 3", "lens at layer 3", "lens probability at layer 3"],
    ...["strongest feature of d", "feature activation"],
  ]);
  const nothing = Array(12).fill(null);
  assert.equal(rows, [
    [0, null, "hm", "thinking", ...nothing],
    [1, 7, " b", "answer", 0.5, 1.5, 0.75, null, 2.5, " l", 0.125, null, null, null, 11, 4],
    [2, 2, "<end>", "special", ...nothing],
  ]);
  const { dictionary: _, ...plain } = turn;
  assert.equal(answerNumbers({ ...plain, layers: [] }, { ...answer, tokens: [token] }).rows, [
    [0, 7, " b", "answer", 0.5, 1.5, 0.75, null],
  ]);
});

test("a token shows its alternatives and the readings of the row that predicted it", () => {
  const { head, rows } = insideNumbers(turn, token);
  assert.equal(head, ["kind", "layer", "rank", "id", "token or name", "value"]);
  assert.equal(rows, [
    ["candidate", null, 1, 7, " b", 0.5],
    ["candidate", null, 2, 8, " c", 0.25],
    ["candidate", null, 3, 9, " d", 0.25],
    ["lens", 1, 1, 5, " l", 0.125],
    ["norm", 1, null, null, null, 2.5],
    ["norm", 3, null, null, null, null],
    ["probe", null, null, null, "kind", 0.75],
    ["probe", null, null, null, "other", null],
    ["feature", 3, 1, 11, "d", 4],
    ["feature", 3, 2, 12, "d", 2],
  ]);
});

test("the first change: more of it where rows are as narrow as the embedded model's", () => {
  const strengths = [64, 128, 129, 4096, null].map((width) => firstChange(width).strength);
  assert.equal(strengths, [0.9, 0.9, 0.5, 0.5, 0.5]);
  assert.equal(firstChange(4096), { kind: "ablate", layer: 0, strength: 0.5, positions: "prompt" });
});

test("lists: each index once, in the order in which it was first named", () => {
  assert.equal(parseLayers("3, 0-2 1\n3"), [3, 0, 1, 2]);
  assert.is(parseLayers(" , "), undefined);
  assert.equal(numbersOf("3, -1 3", "Tokens"), [3, -1]);
  assert.equal(gridLayers({ ...steerForm, layers: "0-11" }, []).length, 12);
  assert.is(mostGridLayers, 12);
  const ids = ["a", "b"].map((letter) => letter.repeat(32)) as [string, string];
  assert.equal(gridJobs(ids[0], new URLSearchParams({ with: `${ids[1]},${ids[0]},x,${ids[1]}` })), ids);
});

test("kept words come back as they were, and what is none of them is left", async () => {
  const stored = new Map<string, string>();
  const before = Object.getOwnPropertyDescriptor(globalThis, "localStorage");
  Object.defineProperty(globalThis, "localStorage", {
    configurable: true,
    value: {
      getItem: (name: string) => stored.get(name) ?? null,
      setItem: (name: string, value: string) => void stored.set(name, value),
      removeItem: (name: string) => void stored.delete(name),
    },
  });
  try {
    const { savedWords, saveWords } = await pageModule<{
      savedWords(): Record<string, unknown>;
      saveWords(words: object | undefined): void;
    }>("draft");
    const none = {
      ...{ title: "", question: "", hypothesis: "", method: "", finding: "", limitations: "", license: "" },
      omissions: [],
    };
    assert.equal(savedWords(), none);
    saveWords({ ...none, title: "T", omissions: ["one"] });
    assert.equal(savedWords(), { ...none, title: "T", omissions: ["one"] });
    const [name] = [...stored.keys()] as [string];
    for (const [text, words] of [
      ['{"title": 5, "question": "Q", "more": "x", "omissions": "all"}', { ...none, question: "Q" }],
      ['{"title": null, "omissions": [1, "two"]}', { ...none, omissions: ["1", "two"] }],
      ["{", none],
      ["null", none],
    ] as const) {
      stored.set(name, text);
      assert.equal(savedWords(), words, text);
    }
    saveWords(undefined);
    assert.is(stored.size, 0);
  } finally {
    if (before === undefined) Reflect.deleteProperty(globalThis, "localStorage");
    else Object.defineProperty(globalThis, "localStorage", before);
  }
});

test.run();
