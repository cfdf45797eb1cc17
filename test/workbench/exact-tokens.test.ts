/** Everything that a model had read up to a token of an answer, as its tokens. */
import type { ServerResponse } from "node:http";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { HttpError } from "../../src/http/index.js";
import { contextOf } from "../../src/workbench/exact-tokens.js";
import type { AnswerToken, Turn } from "../../src/workbench/wire.js";
import { refusalBy } from "../support/refusal.js";
import { closeAll, open } from "./asking.js";

const refusal = refusalBy(HttpError);
test.after.each(closeAll);

const answerTokens: AnswerToken[] = [
  { id: 1, text: "<think>", thinking: true, special: true },
  { id: 2, text: "Hm", thinking: true },
  { id: 3, text: "Paris" },
];

function turnOf(request: Turn["request"], more: Partial<Turn> = {}): Turn {
  return {
    ...{ question: "Hi", request, model: "m", interventions: [], layers: [], kept: 0 },
    answers: [{ state: "done", edited: true, tokens: answerTokens, finish: "stop" }],
    ...more,
  };
}

const chat = { path: "/v1/chat/completions", body: { messages: [{ role: "user", content: "Hi" }] } };

/** The server's tokens are the templated text's characters as codes. */
async function opened() {
  const parts = await open({
    "POST /apply-template": { prompt: "<|user|>Hi" },
    "POST /tokenize": { tokens: [90, 91, 92] },
    "POST /detokenize": (response: ServerResponse, { body }: { body: string }) =>
      response.end(JSON.stringify({ content: `text of ${JSON.parse(body).tokens.join(" ")}` })),
  });
  await parts.services.look();
  return parts;
}

test("the chat template, thinking and control tokens are part of the context", async () => {
  const { services, asked } = await opened();
  assert.equal(await contextOf(services, [turnOf(chat)], { turn: 0, answer: 0, token: 2 }), {
    tokens: [90, 91, 92, 1, 2, 3],
    text: "text of 90 91 92 1 2 3",
  });
  assert.equal(asked(), [
    ["POST", "/apply-template", { messages: [{ role: "user", content: "Hi" }] }],
    ["POST", "/tokenize", { content: "<|user|>Hi", add_special: true, parse_special: true }],
    ["POST", "/detokenize", { tokens: [90, 91, 92, 1, 2, 3] }],
  ]);
  const first = await contextOf(services, [turnOf(chat)], { turn: 0, answer: 0, token: 0 });
  assert.equal(first.tokens, [90, 91, 92, 1]);
});

test("tokens carried over from another answer count once", async () => {
  const { services } = await opened();
  const forked = turnOf({ path: "/v1/completions", body: { prompt: [7, 8, 1, 2] } }, { kept: 2 });
  const { tokens } = await contextOf(services, [forked], { turn: 0, answer: 0, token: 2 });
  assert.equal(tokens, [7, 8, 1, 2, 3]);
});

test("refuses missing answers, tokens without an id, and other models", async () => {
  const { services } = await opened();
  const said = (turn: Turn, place: object) =>
    refusal(() => contextOf(services, [turn], { turn: 0, answer: 0, token: 0, ...place }));
  assert.is(await said(turnOf(chat), { turn: 1 }), "This answer does not exist.");
  assert.is(await said(turnOf(chat), { answer: 1 }), "This answer does not exist.");
  assert.is(await said(turnOf(chat), { token: 3 }), "The answer has 3 tokens; got 3.");
  assert.is(
    await said(turnOf(chat, { model: "older" }), {}),
    "This conversation was made with older; m uses a different tokenizer.",
  );
  const bare = turnOf(chat);
  bare.answers = [{ state: "done", edited: true, tokens: [{ text: "a" }], finish: "stop" }];
  assert.is(
    await said(bare, {}),
    "Some earlier tokens have no recorded id, so this answer cannot be inspected here.",
  );
});

test.run();
