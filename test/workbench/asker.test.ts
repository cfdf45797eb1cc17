/** What questions become on their way to the server, and what becomes of its answers, token by token; without a page. */
import type { ServerResponse } from "node:http";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { AskRequest, ForkRequest } from "../../src/contracts/workbench.js";
import type { HttpError } from "../../src/http/index.js";
import type { AnswerToken, Conversation, Turn, TurnAnswer } from "../../src/workbench/wire.js";
import { until } from "../support/until.js";
import { type Answers, capabilities, openParts, type Parts, stop, streams } from "./parts.js";

const opened: Parts[] = [];
test.after.each(async () => {
  for (const one of opened.splice(0)) await one.close();
});

const chatPath = "POST /v1/chat/completions";
const rawPath = "POST /v1/completions";

async function open(answers: Answers = {}): Promise<Parts> {
  const parts = await openParts(answers);
  opened.push(parts);
  return parts;
}

const ended = async (
  { conversations }: Parts,
  { conversation, turn }: { conversation: string; turn: number },
) => {
  const found = () => conversations.get(conversation).turns[turn] as Turn;
  await until(() => found().answers.every(({ state }) => state !== "running"));
  await conversations.settled();
  return found();
};

/** Asks, waits for the answer and gives its question as it was kept. */
async function ask(parts: Parts, asked: Partial<AskRequest>, id?: string) {
  const place = await parts.asker.ask(id, { text: "Hi", ...asked });
  return { ...place, kept: await ended(parts, place) };
}

/** The body that a question was sent with. */
async function bodyOf(asked: Partial<AskRequest>, answers: Answers = {}): Promise<Record<string, unknown>> {
  const parts = await open({ [chatPath]: streams([stop()]), [rawPath]: streams([stop()]), ...answers });
  await ask(parts, asked);
  const [, , body] = parts.asked().findLast(([, path]) => path.startsWith("/v1/")) as [
    string,
    string,
    object,
  ];
  return body as Record<string, unknown>;
}

const refusal = (work: Promise<unknown>): Promise<[number, string]> =>
  work.then(
    () => assert.unreachable("It should have been refused.") as never,
    (error: HttpError) => [error.status, error.message],
  );

test("a question as it is sent: with what can be watched of each token, and candidates", async () => {
  assert.equal(await bodyOf({}), {
    messages: [{ role: "user", content: "Hi" }],
    max_tokens: 256,
    temperature: 0,
    tapline: { watch: { layers: [0, 1, 2, 3], norms: true, lens: 5 } },
    logprobs: true,
    top_logprobs: 5,
    stream: true,
  });
  const interventions = [{ kind: "scale", layer: 1, strength: 2 }] as AskRequest["interventions"];
  assert.equal(
    await bodyOf({
      ...{ interventions, pair: true, layers: [2], probes: ["p"], max_tokens: 9, temperature: 0.5, seed: 0 },
      thinking: false,
    }),
    {
      messages: [{ role: "user", content: "Hi" }],
      ...{ max_tokens: 9, temperature: 0.5, seed: 0 },
      tapline: { interventions, pair: true, watch: { layers: [2], norms: true, lens: 5, probes: ["p"] } },
      ...{ logprobs: true, top_logprobs: 5, chat_template_kwargs: { enable_thinking: false }, stream: true },
    },
  );
  assert.equal(await bodyOf({ raw: true, pair: true, layers: [1], probes: [] }), {
    ...{ prompt: "Hi", max_tokens: 256, temperature: 0, logprobs: 5, stream: true },
    tapline: { watch: { layers: [1], norms: true, lens: 5 } },
  });
  const unpaired = (await bodyOf({ interventions, pair: false })).tapline as object;
  assert.equal(Object.keys(unpaired), ["interventions", "watch"]);
});

test("which layers are watched: all of eight, or eight of more, the first and the last among them", async () => {
  for (const [blocks, layers] of [
    [1, [0]],
    [8, [0, 1, 2, 3, 4, 5, 6, 7]],
    [9, [0, 1, 2, 3, 5, 6, 7, 8]],
    [30, [0, 4, 8, 12, 17, 21, 25, 29]],
  ] as const) {
    const { tapline } = await bodyOf({}, { "GET /lab/capabilities": capabilities(blocks) });
    assert.equal((tapline as { watch: { layers: number[] } }).watch.layers, [...layers], String(blocks));
  }
  const unknown = { "GET /lab/capabilities": capabilities(null) };
  assert.is((await bodyOf({}, unknown)).tapline, undefined, "of a model that tells of none");
  assert.is((await bodyOf({ layers: [] })).tapline, undefined);
});

test("a dictionary's layer is watched, too, in place of its nearest where there are eight", async () => {
  const answers = (layer: number, blocks: number) => ({
    "GET /lab/capabilities": capabilities(blocks),
    "GET /lab/dictionaries": {
      dictionaries: [
        { name: "other", layer: 0 },
        { name: "d", layer },
      ],
    },
  });
  const watched = async (layer: number, blocks: number, asked: Partial<AskRequest> = {}) =>
    ((await bodyOf({ dictionary: "d", ...asked }, answers(layer, blocks))).tapline as { watch: object })
      .watch;
  const rest = { norms: true, lens: 5, states: true };
  assert.equal(await watched(3, 4), { layers: [0, 1, 2, 3], ...rest });
  assert.equal(await watched(9, 30), { layers: [0, 4, 9, 12, 17, 21, 25, 29], ...rest });
  assert.equal(await watched(28, 30), { layers: [0, 4, 8, 12, 17, 21, 25, 28], ...rest });
  assert.equal(await watched(9, 30, { layers: [11, 2] }), { layers: [2, 9, 11], ...rest });
  const seven = [0, 1, 2, 3, 4, 5, 6];
  assert.equal(await watched(9, 30, { layers: seven }), { layers: [...seven, 9], ...rest });
  const parts = await open(answers(3, 4));
  assert.equal(await refusal(parts.asker.ask(undefined, { text: "a", dictionary: "x" })), [
    ...[404, "There is no dictionary x."],
  ]);
  assert.equal(parts.conversations.list(), [], "nothing has begun");
});

const token = (id: number, text: string, more: object = {}) => ({ token_id: id, token: text, ...more });
/** An event of a chat's answer that tells of these tokens. */
const said = (content: string, tokens: object[], more: object = {}) => ({
  index: 0,
  delta: { content },
  tapline: { tokens },
  ...more,
});

test("a conversation goes on with what was said, without what was thought or ends the text", async () => {
  const thinks = [
    [
      {
        index: 0,
        delta: { reasoning_content: "<think>Hm." },
        tapline: { tokens: [token(1, "<think>"), token(2, "Hm.")] },
      },
    ],
    [said("Hello.", [token(3, "</think>"), token(4, "Hello.")])],
    [said("", [token(9, "<end>")], { logprobs: { content: [{ token: "", logprob: 0 }] } })],
    [stop()],
  ];
  const parts = await open({
    [chatPath]: streams(...thinks),
    [rawPath]: streams([{ index: 0, text: " is" }], [stop()]),
  });
  const first = await ask(parts, { text: "One?", interventions: [] });
  const second = await ask(parts, { text: "Two?" }, first.conversation);
  assert.equal([second.conversation, first.turn, second.turn], [first.conversation, 0, 1]);
  assert.equal((parts.asked()[1]![2] as { messages: object }).messages, [
    { role: "user", content: "One?" },
    { role: "assistant", content: "Hello." },
    { role: "user", content: "Two?" },
  ]);
  // In the place of the second question: a conversation of its own, which has the first.
  const other = await ask(parts, { text: "Other?", instead_of: 1 }, first.conversation);
  assert.is.not(other.conversation, first.conversation);
  assert.is(other.turn, 1);
  const kept = parts.conversations.get(other.conversation);
  assert.equal([kept.from, kept.title], [{ conversation: first.conversation, turn: 1 }, "Other?"]);
  assert.equal(
    kept.turns.map(({ question }) => question),
    ["One?", "Other?"],
  );
  assert.is(parts.conversations.get(first.conversation).turns.length, 2);
  const instead = (place: number, id?: string) =>
    refusal(parts.asker.ask(id, { text: "a", instead_of: place }));
  assert.equal(await instead(2, first.conversation), [
    ...[400, "There is no question 2 in whose place this could stand."],
  ]);
  assert.equal(await instead(0), [400, "There is no question 0 in whose place this could stand."]);
  assert.is((await refusal(parts.asker.ask("0".repeat(16), { text: "a" })))[0], 404);

  const raw = await ask(parts, { text: "Paris", raw: true });
  await ask(parts, { text: " not?" }, raw.conversation);
  assert.is((parts.asked().at(-1)![2] as { prompt: string }).prompt, "Paris is not?");
});

test("who is being answered is not asked, and two hundred questions are enough", async () => {
  let finish = () => {};
  const parts = await open({
    [chatPath]: (response: ServerResponse) => {
      response.writeHead(200).write("\n");
      finish = () => response.end(`data: ${JSON.stringify({ choices: [stop()] })}\n\ndata: [DONE]\n\n`);
    },
  });
  const place = await parts.asker.ask(undefined, { text: "a" });
  assert.equal(await refusal(parts.asker.ask(place.conversation, { text: "b" })), [
    ...[409, "This conversation is being answered; stop that first."],
  ]);
  await until(() => parts.asked().length > 0);
  finish();
  await ended(parts, place);
  const { turns } = parts.conversations.get(place.conversation);
  while (turns.length < 200) turns.push(structuredClone(turns[0] as Turn));
  assert.equal(await refusal(parts.asker.ask(place.conversation, { text: "b" })), [
    ...[409, "A conversation has at most 200 questions; begin another."],
  ]);
  turns.pop();
  const last = parts.asker.ask(place.conversation, { text: "b" });
  assert.is((await last).turn, 199);
});

test("a server that is not there is looked at once more, and why is told", async () => {
  const answers: Answers = { "GET /lab/capabilities": capabilities(4, null), [chatPath]: streams([stop()]) };
  const parts = await open(answers);
  assert.equal(await refusal(parts.asker.ask(undefined, { text: "a" })), [
    ...[503, "It holds no model at the moment."],
  ]);
  answers["GET /lab/capabilities"] = capabilities(4);
  await ask(parts, {});
  answers["GET /lab/capabilities"] = capabilities(4, null);
  await ask(parts, {});
});

test("what is kept of a question and its answer, and told on the way", async () => {
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
  assert.equal(await answer(odd), ["failed", "The service failed; its log says where.", 0]);

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

/** The tokens that an answer of these events has. */
async function tokensOf(events: object[], asked: Partial<AskRequest> = {}): Promise<AnswerToken[]> {
  const answer = streams(...events.map((one) => [one]), [stop()]);
  const parts = await open({ [chatPath]: answer, [rawPath]: answer });
  return (await ask(parts, asked)).kept.answers[0]?.tokens as AnswerToken[];
}

test("a token with all that is told of it, in the order of the layers that were asked for", async () => {
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

test("what ends the text is none of it; tokens without a number, and events without either, are nothing", async () => {
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

const thoughts = (tokens: AnswerToken[]) =>
  tokens.map(({ text, thinking }) => (thinking ? `(${text})` : text)).join(" ");

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

test("features of an answer's tokens are those of the rows that chose them; the kept rows are let go", async () => {
  const rows = [2, 3, 4, 9].map((index) => ({ index, features: [{ feature: index, activation: 0.5 }] }));
  const answers: Answers = {
    "GET /lab/dictionaries": { dictionaries: [{ name: "d e", layer: 2 }] },
    "GET /lab/captures/c%2F1/features?dictionary=d+e&top=8": { prompt_tokens: 3, rows },
    "DELETE /lab/captures/c%2F1": {},
    [chatPath]: streams(
      [said("a", [token(1, "a")])],
      [said("bc", [token(2, "b"), token(3, "c")])],
      [{ ...stop(), tapline: { capture: { id: "c/1", rows: 3, layers: [2] } } }],
    ),
  };
  const parts = await open(answers);
  const { kept } = await ask(parts, { dictionary: "d e" });
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

  delete answers["GET /lab/captures/c%2F1/features?dictionary=d+e&top=8"];
  const unread = (await ask(parts, { dictionary: "d e" })).kept.answers[0] as TurnAnswer;
  const sentence = `Features were not read: Nothing is at /lab/captures/c%2F1/features?dictionary=d+e&top=8.`;
  assert.equal([unread.state, unread.unread], ["done", sentence]);
  const answered = parts.told.findLast(({ type }) => type === "answer") as { unread?: string };
  assert.is(answered.unread, sentence);
  // Without a dictionary nothing is read, whatever the server kept.
  const before = parts.asked().length;
  assert.is((await ask(parts, {})).kept.answers[0]?.unread, undefined);
  assert.is(parts.asked().length, before + 1);
});

/** A conversation with one question, whose answer has three tokens, and the parts around it. */
async function answered(asked: Partial<AskRequest> = {}, more: Answers = {}) {
  const lens = { 0: [{ token_id: 71, token: " lens", probability: 0.1 }] };
  const top_logprobs = [{ id: 70, token: " candidate", logprob: 0 }];
  const events = [
    [{ index: 0, delta: { reasoning_content: "Hm" }, tapline: { tokens: [token(1, "Hm", { lens })] } }],
    [
      said("a", [token(2, "a", { lens })], {
        logprobs: { content: [{ id: 2, token: "a", logprob: 0, top_logprobs }] },
      }),
    ],
    [{ index: 0, text: "b", delta: { content: "b" }, tapline: { tokens: [token(3, "b")] } }],
    [stop()],
  ];
  const parts = await open({
    [chatPath]: streams(...events),
    [rawPath]: streams([{ index: 0, text: "c", tapline: { tokens: [token(4, "c")] } }], [stop()]),
    "POST /apply-template": { prompt: "<user>Hi" },
    "POST /tokenize": { tokens: [10, 11] },
    ...more,
  });
  const first = await ask(parts, asked);
  return { parts, ...first };
}

async function fork(parts: Parts, id: string, given: Partial<ForkRequest>) {
  const place = await parts.asker.fork(id, { turn: 0, answer: 0, token: 0, ...given });
  const kept = await ended(parts, place);
  const sent = parts.asked().findLast(([, path]) => path === "/v1/completions")?.[2] as Record<
    string,
    unknown
  >;
  return { ...place, kept, sent, conversation: parts.conversations.get(place.conversation) as Conversation };
}

test("from a token on: what was asked and the tokens before it are sent as tokens, and stand before the new ones", async () => {
  const interventions = [{ kind: "scale", layer: 1, strength: 2 }] as NonNullable<
    AskRequest["interventions"]
  >;
  const { parts, conversation } = await answered({
    interventions,
    pair: true,
    layers: [0, 3],
    thinking: true,
    seed: 3,
  });
  const { kept, sent, turn, conversation: made } = await fork(parts, conversation, { token: 2 });
  assert.is(turn, 0);
  assert.equal(parts.asked().slice(1, 3), [
    [
      "POST",
      "/apply-template",
      { messages: [{ role: "user", content: "Hi" }], chat_template_kwargs: { enable_thinking: true } },
    ],
    ["POST", "/tokenize", { content: "<user>Hi", add_special: true, parse_special: true }],
  ]);
  assert.equal(sent, {
    prompt: [10, 11, 1, 2],
    ...{ max_tokens: 256, temperature: 0, seed: 3, logprobs: 5, stream: true },
    tapline: { interventions, watch: { layers: [0, 3], norms: true, lens: 5 } },
  });
  assert.equal(made.from, { conversation, turn: 0 });
  assert.equal([made.title, made.raw], ["Hi", false]);
  assert.equal([kept.kept, kept.question, kept.layers, kept.model], [2, "Hi", [0, 3], "m"]);
  assert.equal(kept.interventions, interventions);
  const [answer] = kept.answers as [TurnAnswer];
  assert.equal([kept.answers.length, answer.edited, answer.state], [1, true, "done"]);
  // The text goes on after a thought's end: what follows is none.
  assert.is(thoughts(answer.tokens), "(Hm) a c");
  // The answer beside it was given without the interventions, and so it goes on.
  const beside = parts.conversations.get(conversation).turns[0]?.answers[1] as TurnAnswer;
  beside.tokens = [{ id: 9, text: "z" }];
  const plain = await fork(parts, conversation, { answer: 1, token: 1 });
  assert.equal(plain.sent.tapline, { watch: { layers: [0, 3], norms: true, lens: 5 } });
  assert.equal([plain.kept.interventions, plain.sent.prompt], [[], [10, 11, 9]]);
});

test("another token in a token's place: its text is known from what could have stood there, or asked for", async () => {
  const { parts, conversation } = await answered({}, { "POST /detokenize": { content: " asked" } });
  for (const [token_id, text] of [
    [70, " candidate"],
    [71, " lens"],
    [72, " asked"],
  ] as const) {
    const { kept, sent } = await fork(parts, conversation, { token: 1, token_id });
    assert.equal((kept.answers[0] as TurnAnswer).tokens.slice(0, 2), [
      { id: 1, text: "Hm", thinking: true, lens: kept.answers[0]?.tokens[0]?.lens as never },
      { id: token_id, text },
    ]);
    assert.equal([sent.prompt, kept.kept], [[10, 11, 1, token_id], 2]);
  }
  assert.equal(
    parts.asked().filter(([, path]) => path === "/detokenize"),
    [["POST", "/detokenize", { tokens: [72] }]],
  );
  const thought = await fork(parts, conversation, { token: 0, token_id: 71 });
  assert.equal(thought.kept.answers[0]?.tokens[0], { id: 71, text: " lens", thinking: true });
  // Behind the last one there is nobody whose place it takes.
  const behind = await fork(parts, conversation, { token: 3, token_id: 72 });
  assert.equal(behind.kept.answers[0]?.tokens[3], { id: 72, text: " asked" });
});

test("a text of one's own in a token's place is taken apart by the server", async () => {
  const pieces = [
    { id: 20, piece: " x" },
    { id: 21, piece: [0xc3] },
  ];
  const tokenised: Answers[string] = (response: ServerResponse, { body }: { body: string }) => {
    const tokens = JSON.parse(body).with_pieces ? pieces : [10];
    response.writeHead(200).end(JSON.stringify({ tokens }));
  };
  const { parts, conversation } = await answered({}, { "POST /tokenize": tokenised });
  const { kept, sent } = await fork(parts, conversation, { token: 1, text: " xé" });
  assert.equal(kept.answers[0]?.tokens.slice(1, 3), [
    { id: 20, text: " x" },
    { id: 21, text: "\ufffd" },
  ]);
  assert.equal([sent.prompt, kept.kept], [[10, 1, 20, 21], 3]);
  assert.ok(
    parts
      .asked()
      .some(
        ([, , body]) => JSON.stringify(body) === '{"content":" xé","add_special":false,"with_pieces":true}',
      ),
  );
  const thought = await fork(parts, conversation, { token: 0, text: " x" });
  assert.equal(
    thought.kept.answers[0]?.tokens.slice(0, 2).map(({ thinking }) => thinking),
    [true, true],
  );
});

test("a raw text is tokenised as it was sent, and one that was forked has its tokens already", async () => {
  const { parts, conversation } = await answered({ raw: true });
  const first = await fork(parts, conversation, { token: 1 });
  assert.equal(parts.asked()[1], [
    ...["POST", "/tokenize", { content: "Hi", add_special: true, parse_special: true }],
  ]);
  assert.equal([first.sent.prompt, first.conversation.raw], [[10, 11, 4], true]);
  const before = parts.asked().length;
  const again = await fork(parts, first.conversation.id, { token: 2 });
  assert.equal(again.sent.prompt, [10, 11, 4, 4, 4]);
  assert.is(parts.asked().length, before + 1);
});

test("what cannot be gone on from is refused with its reason", async () => {
  const answers: Answers = {};
  const { parts, conversation } = await answered({}, answers);
  const refused = (given: Partial<ForkRequest>) =>
    refusal(parts.asker.fork(conversation, { turn: 0, answer: 0, token: 0, ...given }));
  assert.equal(await refused({ turn: 1 }), [404, "There is no such answer."]);
  assert.equal(await refused({ answer: 1 }), [404, "There is no such answer."]);
  assert.equal(await refused({ token: 4 }), [400, "The answer has 3 tokens; got 4."]);
  await fork(parts, conversation, { token: 3 });
  const turn = parts.conversations.get(conversation).turns[0] as Turn;
  const { tokens } = turn.answers[0] as TurnAnswer;
  delete (tokens[1] as AnswerToken).id;
  assert.equal(await refused({ token: 2 }), [409, "Not every token before it is known by its number."]);
  await fork(parts, conversation, { token: 1 });
  turn.model = "older";
  assert.equal(await refused({ token: 1 }), [
    ...[409, "These tokens are older's, and m is served now, whose tokens are others."],
  ]);
  delete turn.model; // kept by an earlier version, which did not say
  turn.layers = [2, 3, 4];
  turn.dictionary = { name: "d", layer: 3 };
  const { kept } = await fork(parts, conversation, { token: 1 });
  assert.equal([kept.layers, kept.dictionary], [[2, 3], { name: "d", layer: 3 }], "blocks that there are");
});

test("a fork of a later question keeps those before it", async () => {
  const { parts, conversation } = await answered();
  await ask(parts, { text: "Then?" }, conversation);
  const { turn, conversation: made } = await fork(parts, conversation, { turn: 1, token: 1 });
  assert.is(turn, 1);
  assert.equal(
    made.turns.map(({ question, kept }) => [question, kept]),
    [
      ["Hi", 0],
      ["Then?", 1],
    ],
  );
  assert.equal(made.from, { conversation, turn: 1 });
});

test.run();
