/** What becomes of the server's answers, token by token; without a page. */
import { existsSync, readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { AskRequest } from "../../src/contracts/workbench.js";
import type { HttpError } from "../../src/http/index.js";
import { comparisonOf } from "../../src/workbench/page/differences.js";
import type { AnswerToken, Turn, TurnAnswer } from "../../src/workbench/wire.js";
import { until } from "../support/until.js";
import { ask, chatPath, closeAll, ended, open, rawPath, said, thoughts, token } from "./asking.js";
import { type Answers, stop, streams } from "./parts.js";

test.after.each(closeAll);

test("a question and its answer are saved and reported while running", async () => {
  const interventions = [{ kind: "scale", layer: 1, strength: 2 }] as NonNullable<
    AskRequest["interventions"]
  >;
  const edits = [{ kind: "scale", layer: 1, rows: 3 }];
  const parts = await open({
    [chatPath]: streams(
      [said("Par", [token(1, "Par")])],
      [{ ...said("Lon", [token(2, "Lon")]), index: 1 }],
      [{ ...said("?", [token(3, "?")]), index: 7 }],
      [said("", [])],
      [{ ...stop(0, "length"), tapline: { interventions: edits } }],
      [stop(1)],
    ),
  });
  const place = await parts.asker.ask(undefined, { text: "a  b\n", interventions, pair: true, layers: [3] });
  const running = parts.told.find(({ type }) => type === "turn") as {
    turn: Turn;
    index: number;
    conversation: string;
  };
  assert.equal([running.index, running.conversation], [0, place.conversation]);
  assert.equal(
    running.turn.answers,
    [true, false].map((edited) => ({ state: "running", edited, tokens: [], finish: null })),
  );
  assert.ok(parts.conversations.list()[0]?.running);
  const kept = await ended(parts, place);
  const { question, model, layers, kept: before } = kept;
  assert.equal([question, model, layers, before, kept.interventions], ["a  b\n", "m", [3], 0, interventions]);
  assert.is(kept.dictionary, undefined);
  assert.equal(kept.answers, [
    {
      state: "done",
      edited: true,
      tokens: [{ id: 1, text: "Par" }],
      finish: "length",
      edits: edits as never,
    },
    { state: "done", edited: false, tokens: [{ id: 2, text: "Lon" }], finish: "stop" },
  ]);
  const { conversation } = place;
  // And on disk, for the next start.
  const file = join(parts.folder, `${conversation}.json`);
  await until(() => existsSync(file));
  assert.equal(JSON.parse(readFileSync(file, "utf8")).turns[0].answers, kept.answers);
  const events = parts.told.filter(({ type }) => type === "tokens" || type === "answer");
  assert.equal(events, [
    { type: "tokens", conversation, turn: 0, answer: 0, at: 0, tokens: [{ id: 1, text: "Par" }] },
    { type: "tokens", conversation, turn: 0, answer: 1, at: 0, tokens: [{ id: 2, text: "Lon" }] },
    {
      type: "answer",
      conversation,
      turn: 0,
      answer: 0,
      state: "done",
      finish: "length",
      edits: edits as never,
    },
    { type: "answer", conversation, turn: 0, answer: 1, state: "done", finish: "stop" },
  ]);
  const lists = parts.told.filter(({ type }) => type === "conversations");
  assert.equal(
    lists.map((event) => (event as { conversations: { running: boolean }[] }).conversations[0]?.running),
    [false, true, false],
  );
});

test("an answer that fails, ends early or is stopped keeps what came, and says so", async () => {
  const begun = [said("Par", [token(1, "Par")])];
  const answers: Answers = {};
  const parts = await open(answers);
  const answer = async (given: Answers[string]) => {
    answers[chatPath] = given;
    const { kept } = await ask(parts, {});
    const { state, error, tokens } = kept.answers[0] as TurnAnswer;
    const told = parts.told.findLast(({ type }) => type === "answer") as { state: string; error?: string };
    assert.equal([told.state, told.error], [state, error]);
    return [state, error, tokens.length];
  };
  assert.equal(await answer(undefined), ["failed", "Nothing is at /v1/chat/completions.", 0]);
  assert.equal(await answer(streams(begun)), ["failed", "The answer ended early.", 1]);
  const cut: Answers[string] = (response: ServerResponse) => {
    response.writeHead(200).end(`data: ${JSON.stringify({ choices: begun })}\n\n`);
  };
  assert.equal(await answer(cut), ["failed", "The answer ended before it was complete.", 1]);
  const odd: Answers[string] = (response: ServerResponse) => {
    response.writeHead(200).end("data: {\n\n");
  };
  assert.equal(await answer(odd), ["failed", "An event of the stream is not JSON.", 0]);

  answers[chatPath] = (response: ServerResponse) => {
    response.writeHead(200).write(`data: ${JSON.stringify({ choices: begun })}\n\n`);
  };
  for (const end of ["stop", "close"] as const) {
    const place = await parts.asker.ask(undefined, { text: "a" });
    const [{ answers: given }] = parts.conversations.get(place.conversation).turns as [Turn];
    const [first] = given as [TurnAnswer];
    await until(() => first.tokens.length === 1);
    if (end === "stop") parts.asker.stop(place.conversation);
    else parts.asker.close();
    await ended(parts, place);
    assert.equal([first.state, first.error, first.tokens.length], ["stopped", undefined, 1], end);
    parts.asker.stop(place.conversation); // which has ended
  }
  assert.throws(
    () => parts.asker.stop("0".repeat(16)),
    (error: HttpError) => error.status === 404,
  );
});

test("both answers of a pair fail with the server's sentence for a vector of another model", async () => {
  const message =
    "The vector joy was made for other.gguf (0123456789abcdef), not for m.gguf (fedcba9876543210).";
  const parts = await open({
    [chatPath]: (response: ServerResponse) => {
      response.writeHead(400, { "Content-Type": "application/json" });
      response.end(JSON.stringify({ error: { message, type: "invalid_request_error" } }));
    },
  });
  const interventions = [{ kind: "steer", vector: "joy", layer: 1 }] as AskRequest["interventions"];
  const { answers } = (await ask(parts, { interventions, pair: true })).kept;
  assert.equal(
    answers.map(({ state, error, tokens, edited }) => [edited, state, error, tokens.length]),
    [
      [true, "failed", message, 0],
      [false, "failed", message, 0],
    ],
  );
  assert.is(comparisonOf(answers), undefined);
});

/** The tokens that an answer of these events has. */
async function tokensOf(events: object[], asked: Partial<AskRequest> = {}): Promise<AnswerToken[]> {
  const answer = streams(...events.map((one) => [one]), [stop()]);
  const parts = await open({ [chatPath]: answer, [rawPath]: answer });
  return (await ask(parts, asked)).kept.answers[0]?.tokens as AnswerToken[];
}

test("a token lists all readings in the order of the requested layers", async () => {
  const lens = (id: number) => [{ token_id: id, token: `l${id}`, probability: 0.5 }];
  const told = token(5, "a", {
    norms: { 1: 2.5, 3: 4.5 },
    lens: { 3: lens(3) },
    probes: { p: 0.25, q: null },
  });
  const top_logprobs = [{ id: 6, token: "b", logprob: Math.log(0.25) }];
  const [read] = await tokensOf(
    [said("a", [told], { logprobs: { content: [{ id: 5, token: "a", logprob: 0, top_logprobs }] } })],
    { layers: [3, 1] },
  );
  assert.equal(read, {
    ...{
      id: 5,
      text: "a",
      probability: 1,
      norms: [4.5, 2.5],
      lens: [lens(3), []],
      probes: { p: 0.25, q: null },
    },
    candidates: [{ token_id: 6, token: "b", probability: 0.25 }],
  });
  const [bare] = await tokensOf([said("a", [token(5, "a", { norms: { 1: 2.5 } })])], { layers: [3] });
  assert.ok(Number.isNaN(bare?.norms?.[0]));
  assert.equal(Object.keys(bare ?? {}), ["id", "text", "norms"]);
  const [nameless] = await tokensOf([said("", [{ token_id: 7 }])]);
  assert.equal(nameless, { id: 7, text: "" });
});

test("probabilities are of the last tokens of an event, and of none but the same", async () => {
  const logprobs = (...all: [number | undefined, string, number][]) => ({
    logprobs: { content: all.map(([id, token, logprob]) => ({ id, token, logprob, top_logprobs: [] })) },
  });
  const two = [token(1, "a"), token(2, "b")];
  const probabilities = async (more: object) =>
    (await tokensOf([said("ab", two, more)])).map(({ probability }) => probability);
  assert.equal(await probabilities(logprobs([2, "b", 0])), [undefined, 1]);
  assert.equal(await probabilities(logprobs([1, "a", 0], [2, "b", Math.log(0.5)])), [1, 0.5]);
  assert.equal(await probabilities(logprobs([1, "a", 0])), [undefined, undefined], "another token's");
  assert.equal(await probabilities(logprobs([undefined, "b", 0])), [undefined, 1]);
  assert.equal(await probabilities({}), [undefined, undefined]);
});

test("end tokens are not part of the text, and events without tokens are ignored", async () => {
  const logprobs = { content: [{ token: "", logprob: 0, top_logprobs: [] }] };
  const [end] = await tokensOf([said("", [token(9, "<end>")], { logprobs })]);
  assert.equal([end?.special, end?.text], [true, "<end>"]);
  // Where there is text, or its own token has some, it is text.
  const [text] = await tokensOf([said("<end>", [token(9, "<end>")], { logprobs })]);
  assert.is(text?.special, undefined);
  const seen = { content: [{ token: "x", logprob: 0, top_logprobs: [] }] };
  assert.is((await tokensOf([said("", [token(9, "x")], { logprobs: seen })]))[0]?.special, undefined);
  assert.equal(await tokensOf([said("", [{ token: "x" }]), said("", [])]), []);
});

test("a server that watches nothing still says what it answers, thoughts apart", async () => {
  const logprobs = {
    content: [
      { id: 1, token: "x", logprob: Math.log(0.5), top_logprobs: [] },
      { id: 2, token: "y", logprob: 0, top_logprobs: [{ token: "z", logprob: 0 }] },
    ],
  };
  assert.equal(
    await tokensOf([
      { index: 0, delta: { reasoning_content: "Hm." } },
      { index: 0, delta: { content: "xy" }, logprobs },
    ]),
    [
      { text: "Hm.", thinking: true },
      { text: "xy", probability: 1, candidates: [{ token_id: -1, token: "z", probability: 1 }] },
    ],
  );
});

test("a raw text names its candidates by their texts: the lens and the token itself know some numbers", async () => {
  const lens = { 0: [{ token_id: 8, token: "known", probability: 0.5 }] };
  const candidates = { known: 0, a: 0, new: 0 };
  const [read] = await tokensOf(
    [
      {
        ...{ index: 0, text: "a", tapline: { tokens: [token(5, "a", { lens })] } },
        logprobs: { tokens: ["a"], token_logprobs: [0], top_logprobs: [candidates] },
      },
    ],
    { raw: true, layers: [0] },
  );
  assert.equal(
    read?.candidates?.map(({ token_id, token }) => [token_id, token]),
    [
      [8, "known"],
      [5, "a"],
      [-1, "new"],
    ],
  );
  const [unsaid] = await tokensOf(
    [{ index: 0, text: "a", logprobs: { tokens: ["a"], token_logprobs: [null], top_logprobs: [{}] } }],
    { raw: true },
  );
  assert.equal(unsaid, { text: "a" }, "no number, no probability");
});

test("which tokens are thought: until the first text of the answer, which an event may have in its middle", async () => {
  const one = (text: string, delta: object, id = 1) => ({
    index: 0,
    delta,
    tapline: { tokens: [token(id, text)] },
  });
  const many = (texts: string[], delta: object) => ({
    ...{ index: 0, delta, tapline: { tokens: texts.map((text, at) => token(at, text)) } },
  });
  assert.is(
    thoughts(
      await tokensOf([
        one("<think>", {}),
        one("\n", {}),
        one("Hm", { reasoning_content: "Hm" }),
        many(["</think>", "\n", "It", " is"], { content: "It is" }),
        one("!", { content: "!" }),
        one("", {}),
      ]),
    ),
    "(<think>) (\n) (Hm) (</think>) (\n) It  is ! ",
  );
  assert.is(thoughts(await tokensOf([one("<|think_on|>", {}), one("a", {})])), "(<|think_on|>) (a)");
  assert.is(thoughts(await tokensOf([one("<thinking", {}), one("think", {})])), "<thinking think");
  assert.is(thoughts(await tokensOf([many(["a", "b"], { content: "ab" })])), "a b");
  assert.is(thoughts(await tokensOf([one("Hm", { reasoning_content: "Hm" }), one(".", {})])), "(Hm) (.)");
});

test("token features come from the predicting rows, which are then deleted", async () => {
  const rows = [2, 3, 4, 9].map((index) => ({ index, features: [{ feature: index, activation: 0.5 }] }));
  const answers: Answers = {
    "GET /lab/dictionaries": { dictionaries: [{ name: "d e", n_embd: 8, layer: 2 }] },
    "GET /lab/captures/c%2F1/features?dictionary=d+e&top=8": { prompt_tokens: 3, rows },
    "DELETE /lab/captures/c%2F1": {},
    "POST /apply-template": { prompt: "<user>Hi" },
    "POST /tokenize": { tokens: [10, 11, 12] },
    [rawPath]: streams(
      [{ index: 0, text: "d", tapline: { tokens: [token(4, "d")] } }],
      [{ ...stop(), tapline: { capture: { id: "c2", rows: 1, layers: [2] } } }],
    ),
    "GET /lab/captures/c2/features?dictionary=d+e&top=8": {
      prompt_tokens: 5,
      rows: [{ index: 4, features: [{ feature: 7, activation: 1 }] }],
    },
    "DELETE /lab/captures/c2": {},
    [chatPath]: streams(
      [said("a", [token(1, "a")])],
      [said("bc", [token(2, "b"), token(3, "c")])],
      [{ ...stop(), tapline: { capture: { id: "c/1", rows: 3, layers: [2] } } }],
    ),
  };
  const parts = await open(answers);
  const { kept, conversation } = await ask(parts, { dictionary: "d e" });
  assert.equal(kept.dictionary, { name: "d e", layer: 2 });
  const [answer] = kept.answers as [TurnAnswer];
  assert.equal(
    answer.tokens.map(({ features }) => features?.[0]?.feature),
    [2, 3, 4],
    "the last token of the prompt chose the first",
  );
  assert.equal([answer.state, answer.unread], ["done", undefined]);
  assert.ok(parts.asked().some(([method]) => method === "DELETE"));
  const told = parts.told.filter(({ type }) => type === "tokens" || type === "answer");
  assert.equal(
    told.map(({ type }) => type),
    ["tokens", "tokens", "tokens", "answer"],
  );
  const last = told[2] as { at: number; tokens: AnswerToken[] };
  assert.equal([last.at, last.tokens], [0, answer.tokens]);
  // What goes on behind two of its tokens has five before it, and the last of these chose the first new one.
  const fork = await parts.asker.fork(conversation, { turn: 0, answer: 0, token: 2 });
  assert.equal(
    (await ended(parts, fork)).answers[0]?.tokens.map(({ text, features }) => [text, features?.[0]?.feature]),
    [
      ["a", 2],
      ["b", 3],
      ["d", 7],
    ],
  );

  delete answers["GET /lab/captures/c%2F1/features?dictionary=d+e&top=8"];
  const unread = (await ask(parts, { dictionary: "d e" })).kept.answers[0] as TurnAnswer;
  const sentence = `Could not read features: Nothing is at /lab/captures/c%2F1/features?dictionary=d+e&top=8.`;
  assert.equal([unread.state, unread.unread], ["done", sentence]);
  const answered = parts.told.findLast(({ type }) => type === "answer") as { unread?: string };
  assert.is(answered.unread, sentence);
  // Without a dictionary nothing is read, whatever the server kept.
  const before = parts.asked().length;
  assert.is((await ask(parts, {})).kept.answers[0]?.unread, undefined);
  assert.is(parts.asked().length, before + 1);
});

test.run();
