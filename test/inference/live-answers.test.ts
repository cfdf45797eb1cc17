/** Edits and readings in each kind of answer: pairs, chats that think, Responses and Messages. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { aroundServer, complete, layer, question, server, steer, type Told, textOf } from "./support/live.js";

aroundServer();

test("a pair: the same answer without the edits beside it, drawn from the same numbers", async () => {
  const body = await complete(question("Sweden"), { ...steer("unknown", 2), pair: true });
  assert.is(body.choices.length, 2);
  const [edited, plain] = body.choices;
  assert.match(edited.text, /unknown/);
  assert.is(plain.text, textOf(await complete(question("Sweden"), undefined, { cache_prompt: false })));
  assert.is(plain.tapline.pair_of, 0);
  assert.is(plain.tapline.interventions, undefined);
  // A change of nothing leaves two equal answers, to the bit, whatever seed was drawn.
  const same = await complete(
    "I think the film was",
    { ...steer("unknown", 0), pair: true, watch: { layers: [layer], norms: true } },
    // So many and so odd that two drawings never say the same.
    { temperature: 2, max_tokens: 24, ignore_eos: true, n: 2, logprobs: 2 },
  );
  assert.equal(
    same.choices.map((choice: Told) => [choice.index, choice.tapline.pair_of]),
    [
      [0, undefined],
      [1, undefined],
      [2, 0],
      [3, 1],
    ],
  );
  for (const at of [0, 1]) {
    assert.equal(same.choices[at + 2].logprobs, same.choices[at].logprobs);
    assert.equal(same.choices[at + 2].tapline.tokens, same.choices[at].tapline.tokens);
  }
  assert.is.not(same.choices[0].text, same.choices[1].text);
  for (const [tapline, more, sentence] of [
    [{ pair: true, watch: { layers: [1], norms: true } }, {}, /no interventions to leave out/],
    [{ ...steer("unknown", 1), pair: true }, { n: 3 }, /takes 6 slots at once; this server has 4/],
  ] as const) {
    const refused = await server.post("/v1/completions", { prompt: "x", max_tokens: 1, tapline, ...more });
    assert.is(refused.status, 400);
    assert.match(refused.body.error.message, sentence);
  }
});

/** The same tokens, and their norms but for rounding: a prompt that is kept already is read in another batch. */
function same(found: Told[], expected: Told[]): void {
  const tokens = (all: Told[]) => all.map(({ norms: _, ...token }) => token);
  assert.equal(tokens(found), tokens(expected));
  for (const [at, { norms, index }] of found.entries()) {
    const [norm, wanted] = [norms[3], expected[at]!.norms[3]];
    assert.ok(Math.abs(norm / wanted - 1) < 1e-4, `token ${index}: ${norm}, not ${wanted}`);
  }
}

test("thinking and answer: each edit acts on its part of a chat alone, and each token is told once", async () => {
  const chat = async (tapline: object) => {
    const { status, body } = await server.post("/v1/chat/completions", {
      messages: [{ role: "user", content: "What is the capital of France?" }],
      temperature: 0,
      max_tokens: 60,
      chat_template_kwargs: { enable_thinking: true },
      tapline,
    });
    assert.is(status, 200, JSON.stringify(body));
    return body;
  };
  const watched = async (positions: string): Promise<Told[]> =>
    (await chat({ watch: { layers: [3], norms: true, positions } })).choices[0].tapline.tokens;
  const all = await watched("generated");
  const thinking = await watched("thinking");
  const answer = await watched("answer");
  const end = all.findIndex(({ token }) => token.includes("</think>"));
  assert.ok(end > 0 && end < all.length - 1, JSON.stringify(all.map(({ token }) => token)));
  // The template may have opened the thinking itself; a tag that the model writes belongs to neither.
  const first = all[0]!.token.includes("<think>") ? 1 : 0;
  same(thinking, all.slice(first, end + 1));
  same(answer, all.slice(end + 1));
  const rows = async (positions: string) => {
    const body = await chat({ interventions: [{ kind: "scale", layer: 3, strength: 1, positions }] });
    return body.choices[0].tapline.interventions[0].rows;
  };
  assert.is(await rows("thinking"), thinking.length);
  // The last token is read by nobody.
  assert.is(await rows("answer"), answer.length - 1);
  const raw = await server.post("/v1/completions", {
    prompt: "x",
    tapline: { interventions: [{ kind: "scale", layer: 3, strength: 1, positions: "answer" }] },
  });
  assert.is(raw.status, 400);
  assert.match(raw.body.error.message, /part of a chat's answer; this request is no chat/);
});

test("Responses and Messages take the same object, and tell the same, whole and streamed", async () => {
  const tapline = {
    interventions: [{ kind: "steer", vector: "unknown", layer, strength: 0.9, strength_unit: "row_norm" }],
    watch: { layers: [3], norms: true },
  };
  const messages = [{ role: "user", content: "What is the capital of Spain?" }];
  const common = { temperature: 0, tapline, chat_template_kwargs: { enable_thinking: false } };
  const chat = await server.post("/v1/chat/completions", { messages, ...common, max_tokens: 20 });
  const told = chat.body.choices[0].tapline;
  const plain = await server.post("/v1/chat/completions", {
    messages,
    ...common,
    tapline: undefined,
    max_tokens: 20,
  });
  const said: string = chat.body.choices[0].message.content;
  assert.is.not(said, plain.body.choices[0].message.content);
  const asked = [
    ["/v1/responses", { input: messages, max_output_tokens: 20 }, "response.completed"],
    ["/v1/messages", { messages, max_tokens: 20 }, "message_delta"],
  ] as const;
  for (const [path, body, last] of asked) {
    const whole = await server.post(path, { ...common, ...body });
    assert.is(whole.status, 200, JSON.stringify(whole.body));
    assert.match(JSON.stringify(whole.body), JSON.stringify(said));
    assert.equal(whole.body.tapline.interventions, told.interventions, path);
    assert.equal(whole.body.tapline.tokens, told.tokens, path);
    const { bytes } = await server.post(path, { ...common, ...body, stream: true });
    const line = bytes.toString().split(`event: ${last}\ndata: `)[1]!.split("\n")[0]!;
    const event = JSON.parse(line);
    const streamed = (event.response ?? event).tapline;
    // Beside the deltas as they come, each token once and in order; the end of the turn has no delta of its own.
    const deltas = bytes
      .toString()
      .split("\n\n")
      .filter((part) => /^event: \S+delta\n/.test(part) && !part.startsWith("event: message_delta"))
      .map((part) => JSON.parse(part.split("data: ")[1]!));
    const beside: Told[] = deltas.flatMap((delta: Told) => delta.tapline?.tokens ?? []);
    assert.ok(deltas.filter((delta: Told) => delta.tapline !== undefined).length >= 3, path);
    assert.equal(beside, streamed.tokens.slice(0, beside.length), path);
    assert.ok(beside.length >= streamed.tokens.length - 1, path);
    assert.equal(
      streamed.tokens.map(({ norms }: Told) => norms),
      told.tokens.map(({ norms }: Told) => norms),
    );
    const paired = await server.post(path, { ...common, ...body, tapline: { ...tapline, pair: true } });
    assert.is(paired.status, 400);
    assert.match(JSON.stringify(paired.body), /this API's answers are one/);
    const outside = await server.post(path, { ...common, ...body }, { Origin: "http://localhost:3000" });
    assert.is(outside.status, 403);
  }
});

test.run();
