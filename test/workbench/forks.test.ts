/** Continuations of a conversation from one of its tokens; without a page. */
import type { ServerResponse } from "node:http";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { AskRequest, ForkRequest } from "../../src/contracts/workbench.js";
import type { AnswerToken, Conversation, Turn, TurnAnswer } from "../../src/workbench/wire.js";
import { ask, chatPath, closeAll, ended, open, rawPath, refusal, said, thoughts, token } from "./asking.js";
import { type Answers, type Parts, stop, streams } from "./parts.js";

test.after.each(closeAll);

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

test("continuing from a token sends the earlier tokens as ids and keeps them", async () => {
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
  // The text continues after a thought's end: the rest is not a thought.
  assert.is(thoughts(answer.tokens), "(Hm) a c");
  // The answer next to it was given without the interventions, and so it continues.
  const beside = parts.conversations.get(conversation).turns[0]?.answers[1] as TurnAnswer;
  beside.tokens = [{ id: 9, text: "z" }];
  const plain = await fork(parts, conversation, { answer: 1, token: 1 });
  assert.equal(plain.sent.tapline, { watch: { layers: [0, 3], norms: true, lens: 5 } });
  assert.equal([plain.kept.interventions, plain.sent.prompt], [[], [10, 11, 9]]);
  // It has no answer next to it.
  assert.equal(
    plain.kept.answers.map(({ edited }) => edited),
    [true],
  );
});

test("a replaced token gets its text from the candidates, or from the server", async () => {
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

test("a custom replacement for a token is tokenized by the server", async () => {
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

test("raw text is tokenised as sent; a fork already has its tokens", async () => {
  const { parts, conversation } = await answered({ raw: true });
  const first = await fork(parts, conversation, { token: 1 });
  assert.equal(parts.asked()[1], [
    ...["POST", "/tokenize", { content: "Hi", add_special: true, parse_special: true }],
  ]);
  assert.equal([first.sent.prompt, first.conversation.raw], [[10, 11, 4], true]);
  const before = parts.asked().length;
  const again = await fork(parts, first.conversation.id, { token: 2 });
  assert.equal(again.sent.prompt, [10, 11, 4, 4], "carried over once");
  assert.is(parts.asked().length, before + 1);
});

test("tokens that cannot be continued from are refused with the reason", async () => {
  const answers: Answers = {};
  const { parts, conversation } = await answered({}, answers);
  const refused = (given: Partial<ForkRequest>) =>
    refusal(parts.asker.fork(conversation, { turn: 0, answer: 0, token: 0, ...given }));
  assert.equal(await refused({ turn: 1 }), [404, "This answer does not exist."]);
  assert.equal(await refused({ answer: 1 }), [404, "This answer does not exist."]);
  assert.equal(await refused({ token: 4 }), [400, "The answer has 3 tokens; got 4."]);
  await fork(parts, conversation, { token: 3 });
  const turn = parts.conversations.get(conversation).turns[0] as Turn;
  const { tokens } = turn.answers[0] as TurnAnswer;
  delete (tokens[1] as AnswerToken).id;
  assert.equal(await refused({ token: 2 }), [
    409,
    "Some earlier tokens have no recorded id, so this answer cannot be continued here.",
  ]);
  await fork(parts, conversation, { token: 1 });
  turn.model = "older";
  assert.equal(await refused({ token: 1 }), [
    ...[409, "This conversation was made with older; m uses a different tokenizer."],
  ]);
  delete turn.model; // kept by an earlier version, which did not say
  turn.layers = [2, 3, 4];
  turn.dictionary = { name: "d", layer: 3 };
  const { kept } = await fork(parts, conversation, { token: 1 });
  assert.equal([kept.layers, kept.dictionary], [[2, 3], { name: "d", layer: 3 }], "blocks that there are");
});

test("a fork of a later question includes those before it", async () => {
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
