/** A question asked again in its place, its control, and the system message. */
import type { ServerResponse } from "node:http";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Asker } from "../../src/workbench/asker.js";
import type { TurnAnswer } from "../../src/workbench/wire.js";
import { until } from "../support/until.js";
import { ask, chatPath, closeAll, ended, open, refusal } from "./asking.js";
import { stop, streams } from "./parts.js";

test.after.each(closeAll);

const delta = (content: string, index = 0) => ({
  index,
  delta: { content },
  tapline: { tokens: [{ token_id: content.length, token: content }] },
});
const steer = (strength: number, vector = "contrast-french-01234567") => ({
  ...{ kind: "steer" as const, layer: 1, vector, strength },
});
const textOf = (answer: TurnAnswer | undefined) => answer?.tokens.map(({ text }) => text).join("");

test("the last question is asked again in its conversation, with the older request cancelled", async () => {
  const responses: ServerResponse[] = [];
  const parts = await open({
    [chatPath]: (response: ServerResponse, { body }: { body: string }) => {
      responses.push(response);
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      const strength = JSON.parse(body).tapline.interventions[0].strength;
      response.write(`data: ${JSON.stringify({ choices: [delta(`at ${strength}`)] })}\n\n`);
      if (strength === 0.3)
        response.end(`data: ${JSON.stringify({ choices: [stop()] })}\n\ndata: [DONE]\n\n`);
    },
  });
  const first = await parts.asker.ask(undefined, { text: "Hi", interventions: [steer(0.2, "own")] });
  const { turns } = parts.conversations.get(first.conversation);
  await until(() => textOf(turns[0]?.answers[0]) === "at 0.2");
  const closed = new Promise((resolve) => responses[0]?.once("close", resolve));
  const again = await parts.asker.ask(first.conversation, {
    ...{ text: "Hi", instead_of: 0, in_place: true, interventions: [steer(0.3, "own")] },
  });
  assert.equal(again, { conversation: first.conversation, turn: 0 });
  await closed;
  const kept = await ended(parts, again);
  assert.equal([turns.length, textOf(kept.answers[0]), kept.answers[0]?.state], [1, "at 0.3", "done"]);
  assert.is(parts.conversations.list().length, 1, "no further conversation");
  // Nothing of the older answer is published after the new question.
  const since = parts.told.slice(parts.told.findLastIndex(({ type }) => type === "turn") + 1);
  for (const event of since) {
    if (event.type === "tokens")
      assert.equal(
        event.tokens.map(({ text }) => text),
        ["at 0.3"],
      );
    if (event.type === "answer") assert.is(event.state, "done");
  }
});

test("only the last question can be asked again in place", async () => {
  const parts = await open({ [chatPath]: streams([delta("a")], [stop()]) });
  const { conversation } = await ask(parts, {});
  await ask(parts, { text: "Then?" }, conversation);
  const sentence = "in_place: only the last question can be asked again in its conversation.";
  for (const asked of [{ instead_of: 0 }, {}] as const) {
    assert.equal(await refusal(parts.asker.ask(conversation, { text: "Hi", in_place: true, ...asked })), [
      400,
      sentence,
    ]);
  }
  assert.equal(await refusal(parts.asker.ask(undefined, { text: "Hi", in_place: true })), [400, sentence]);
});

test("a contrast set's direction is also asked with its random control", async () => {
  const bodies: { tapline: { interventions: { vector: string }[]; pair?: boolean } }[] = [];
  const parts = await open({
    [chatPath]: (response: ServerResponse, { body }: { body: string }) => {
      const sent = JSON.parse(body);
      bodies.push(sent);
      const isControl = sent.tapline.interventions[0].vector.endsWith("-random");
      streams(
        isControl ? [delta("as"), delta(" before")] : [delta("oui"), delta("yes", 1)],
        isControl ? [stop()] : [stop(), { ...stop(), index: 1 }],
      )(response, undefined as never);
    },
  });
  const asker = new Asker(parts.services, parts.conversations, parts.events, (vector) =>
    vector.startsWith("contrast-") ? `${vector}-random` : undefined,
  );
  const both = [steer(0.3), { kind: "ablate" as const, layer: 0, strength: 0.5 }];
  const place = await asker.ask(undefined, { text: "Hi", interventions: both, pair: true });
  const turn = parts.conversations.get(place.conversation).turns[0];
  assert.is(turn?.control?.state, "running");
  await until(() => turn?.control?.state === "done");
  assert.is(turn?.control?.text, "as before");
  assert.equal(
    bodies.map(({ tapline }) => [tapline.interventions.map(({ vector }) => vector), tapline.pair]),
    [
      [["contrast-french-01234567", undefined], true],
      [["contrast-french-01234567-random", undefined], undefined],
    ],
  );
  assert.ok(parts.told.some((event) => event.type === "control" && event.control.text === "as before"));
  // Directions without a control, and answers without a baseline, have none.
  for (const asked of [{ interventions: [steer(0.3, "own")], pair: true }, { interventions: [steer(0.3)] }]) {
    const other = await asker.ask(undefined, { text: "Hi", ...asked });
    assert.is(parts.conversations.get(other.conversation).turns[0]?.control, undefined);
    await ended(parts, other);
  }
});

test("the system message precedes the conversation, and raw texts have none", async () => {
  const parts = await open({
    [chatPath]: streams([delta("a")], [stop()]),
    "POST /v1/completions": streams([stop()]),
  });
  await ask(parts, { system: "Be brief." });
  await ask(parts, { system: "Be brief.", raw: true });
  const [chat, raw] = parts.asked().map(([, , body]) => body as { messages?: object[]; prompt?: string });
  assert.equal(chat?.messages, [
    { role: "system", content: "Be brief." },
    { role: "user", content: "Hi" },
  ]);
  assert.is(raw?.prompt, "Hi");
});

test.run();
