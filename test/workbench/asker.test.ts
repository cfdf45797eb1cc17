/** What questions become on their way to the server; without a page. */
import type { ServerResponse } from "node:http";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { AskRequest } from "../../src/contracts/workbench.js";
import type { Turn } from "../../src/workbench/wire.js";
import { until } from "../support/until.js";
import { ask, chatPath, closeAll, ended, open, rawPath, refusal, said, token } from "./asking.js";
import { type Answers, capabilities, stop, streams } from "./parts.js";

test.after.each(closeAll);

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
  const alone = await open({ [chatPath]: streams([stop()]) });
  const { answers } = (await ask(alone, { pair: true })).kept;
  assert.equal(
    answers.map(({ state, edited }) => [state, edited]),
    [["done", true]],
    "no other answer is waited for where there is nothing to compare",
  );
  const unpaired = (await bodyOf({ interventions, pair: false })).tapline as object;
  assert.equal(Object.keys(unpaired), ["interventions", "watch"]);
});

test("which layers are watched: all of eight, or eight of more, the last among them", async () => {
  for (const [blocks, layers] of [
    [1, [0]],
    [8, [0, 1, 2, 3, 4, 5, 6, 7]],
    [9, [0, 1, 2, 4, 5, 6, 7, 8]],
    [30, [3, 7, 10, 14, 18, 22, 25, 29]],
  ] as const) {
    const { tapline } = await bodyOf({}, { "GET /lab/capabilities": capabilities(blocks) });
    assert.equal((tapline as { watch: { layers: number[] } }).watch.layers, [...layers], String(blocks));
  }
  const unknown = { "GET /lab/capabilities": capabilities(null) };
  assert.is((await bodyOf({}, unknown)).tapline, undefined, "of a model that tells of none");
  assert.is((await bodyOf({ layers: [] })).tapline, undefined);
});

test("a dictionary's layer is also watched, replacing the nearest of eight", async () => {
  const answers = (layer: number, blocks: number) => ({
    "GET /lab/capabilities": capabilities(blocks),
    "GET /lab/dictionaries": {
      dictionaries: [
        { name: "other", n_embd: 8, layer: 0 },
        { name: "d", n_embd: 8, layer },
      ],
    },
  });
  const watched = async (layer: number, blocks: number, asked: Partial<AskRequest> = {}) =>
    ((await bodyOf({ dictionary: "d", ...asked }, answers(layer, blocks))).tapline as { watch: object })
      .watch;
  const rest = { norms: true, lens: 5, states: true };
  assert.equal(await watched(3, 4), { layers: [0, 1, 2, 3], ...rest });
  assert.equal(await watched(9, 30), { layers: [3, 7, 9, 14, 18, 22, 25, 29], ...rest });
  assert.equal(await watched(28, 30), { layers: [3, 7, 10, 14, 18, 22, 25, 28], ...rest });
  assert.equal(await watched(9, 30, { layers: [11, 2] }), { layers: [2, 9, 11], ...rest });
  const seven = [0, 1, 2, 3, 4, 5, 6];
  assert.equal(await watched(9, 30, { layers: seven }), { layers: [...seven, 9], ...rest });
  const parts = await open(answers(3, 4));
  assert.equal(await refusal(parts.asker.ask(undefined, { text: "a", dictionary: "x" })), [
    ...[404, "Dictionary x does not exist."],
  ]);
  assert.equal(parts.conversations.list(), [], "nothing has begun");
});

test("a dictionary for another model is refused with 409 before anything begins", async () => {
  const parts = await open({
    "GET /lab/dictionaries": {
      dictionaries: [
        { name: "wide", n_embd: 9, layer: 0 },
        { name: "deep", n_embd: 8, layer: 4 },
      ],
    },
  });
  const refused = (dictionary: string) => refusal(parts.asker.ask(undefined, { text: "a", dictionary }));
  assert.equal(await refused("wide"), [
    409,
    "The dictionary wide is for another model: its hidden size is 9, the served model's 8.",
  ]);
  assert.equal(await refused("deep"), [
    409,
    "The dictionary deep is for another model: it reads layer 4; the served model has layers 0 to 3.",
  ]);
  assert.equal(parts.conversations.list(), []);
  assert.equal(
    parts.asked().filter(([method]) => method === "POST"),
    [],
  );
});

test("a conversation continues with the answers, without thinking or end tokens", async () => {
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
  assert.equal(await instead(2, first.conversation), [...[400, "There is no question 2 to replace."]]);
  assert.equal(await instead(0), [400, "There is no question 0 to replace."]);
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
    ...[409, "An answer is still being generated. Stop it first."],
  ]);
  await until(() => parts.asked().length > 0);
  const finishFirst = finish;
  // Another wording is a conversation of its own.
  const other = await parts.asker.ask(place.conversation, { text: "c", instead_of: 0 });
  assert.is.not(other.conversation, place.conversation);
  parts.asker.stop(other.conversation);
  await ended(parts, other);
  finishFirst();
  await ended(parts, place);
  const { turns } = parts.conversations.get(place.conversation);
  while (turns.length < 200) turns.push(structuredClone(turns[0] as Turn));
  assert.equal(await refusal(parts.asker.ask(place.conversation, { text: "b" })), [
    ...[409, "A conversation can have at most 200 questions; start a new one."],
  ]);
  turns.pop();
  const last = parts.asker.ask(place.conversation, { text: "b" });
  assert.is((await last).turn, 199);
});

test("of two questions at once, each with a dictionary that is looked for first, one is asked", async () => {
  const answers: Answers = {
    [chatPath]: streams([stop()]),
    "GET /lab/dictionaries": { dictionaries: [{ name: "d", n_embd: 8, layer: 1 }] },
  };
  const parts = await open(answers);
  const { conversation } = await ask(parts, { text: "a" });
  answers[chatPath] = (response: ServerResponse) => response.writeHead(200).write("\n");
  const both = ["b", "c"].map((text) => parts.asker.ask(conversation, { text, dictionary: "d" }));
  const states = await Promise.allSettled(both);
  assert.equal(states.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
  parts.asker.stop(conversation);
  await ended(parts, { conversation, turn: 1 });
  assert.is(parts.conversations.get(conversation).turns.length, 2);
});

test("an unreachable server is tried once more, and the reason is reported", async () => {
  const answers: Answers = { "GET /lab/capabilities": capabilities(4, null), [chatPath]: streams([stop()]) };
  const parts = await open(answers);
  assert.equal(await refusal(parts.asker.ask(undefined, { text: "a" })), [...[503, "no model loaded"]]);
  answers["GET /lab/capabilities"] = capabilities(4);
  await ask(parts, {});
  answers["GET /lab/capabilities"] = capabilities(4, null);
  await ask(parts, {});
});

test.run();
