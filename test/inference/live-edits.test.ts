/** What edits do to answers of each kind, and that they do nothing to anybody else's. */
import { request as open } from "node:http";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Model } from "../../src/native/index.js";
import {
  aroundServer,
  complete,
  heldOut,
  layer,
  question,
  server,
  steer,
  type Told,
  textOf,
  vectorOf,
} from "./support/live.js";
import { untilIdle } from "./support/serving.js";

aroundServer();

test("the direction makes known capitals unknown, its reverse takes that back, a random one does neither", async () => {
  for (const country of heldOut.real) {
    const plain = textOf(await complete(question(country)));
    assert.not.match(plain, /unknown/, country);
    assert.match(textOf(await complete(question(country), steer("unknown", 2))), /unknown/, country);
    assert.is(textOf(await complete(question(country), steer("random", 2))), plain, country);
  }
  for (const country of heldOut.invented) {
    assert.match(textOf(await complete(question(country))), /unknown/, country);
    assert.not.match(textOf(await complete(question(country), steer("unknown", -2))), /unknown/, country);
    assert.match(textOf(await complete(question(country), steer("random", -2))), /unknown/, country);
  }
});

test("an edited completion is the isolated sweep's under the same edit", async () => {
  const vector = await vectorOf("unknown", layer);
  const model = await Model.open(server.service.engine.info.path);
  const context = await model.createContext({ threads: 1, nCtx: 512, maxSequences: 4 });
  try {
    for (const positions of ["all", "last", "generated"] as const) {
      const tokens = await model.tokenize(question("Sweden"), { special: true });
      const [trial] = await context.sweep({
        prompts: [tokens],
        plans: [[{ layer, vector, strength: 2, positions }]],
        maxTokens: 8,
      });
      const expected = await model.detokenize(trial!.rows[0]!.continuation);
      const body = await complete(question("Sweden"), steer("unknown", 2, { positions }), { max_tokens: 8 });
      assert.is(textOf(body).trim(), expected.trim(), positions);
    }
  } finally {
    await context.close();
    await model.close();
  }
});

test("the effect of an edit is reported; a neutral edit changes nothing", async () => {
  const { body: stored } = await server.get("/lab/vectors/unknown");
  const options = { logprobs: 3, cache_prompt: false };
  const plain = await complete(question("Italy"), undefined, options);
  const neutral = await complete(question("Italy"), steer("unknown", 0), options);
  assert.equal(neutral.choices[0].logprobs, plain.choices[0].logprobs);
  const [idle] = neutral.choices[0].tapline.interventions;
  assert.is(idle.mean_change_length, 0);
  assert.match(idle.note, /zero/);
  const edited = await complete(question("Italy"), steer("unknown", 0.5), options);
  const [told] = edited.choices[0].tapline.interventions;
  assert.is(told.sha256, stored.sha256);
  assert.is(told.layer, layer);
  // Every token of the prompt, and every generated one that the model read again.
  assert.is(told.rows, edited.usage.prompt_tokens + edited.usage.completion_tokens - 1);
  assert.ok(Math.abs(told.mean_change_length - 0.5 * stored.layers[1].length) < 1e-2);
  assert.ok(told.mean_row_length > 50);
  // The inspector tells it, too.
  const { body: list } = await server.get("/executions");
  const { body: record } = await server.get(`/executions/${list.executions[0].id}`);
  const line = record.events.map(({ text }: Told) => text).find((text: string) => text.startsWith("steer"));
  assert.match(
    line,
    /^steer unknown at layer 5, strength 0\.5 vector: \d+ positions, mean change [\d.]+ of norm [\d.]+$/,
  );
  assert.is(record.input.tapline.interventions[0].strength, 0.5);
});

test("row_norm moves a row by its own length; scale, ablate, project_out and clamp do what they say", async () => {
  const effect = async (intervention: object, prompt = question("Spain")) => {
    const body = await complete(prompt, { interventions: [{ layer, positions: "all", ...intervention }] });
    const { mean_change_length: change, mean_row_length: row } = body.choices[0].tapline.interventions[0];
    return change / row;
  };
  const near = (value: number, expected: number) =>
    assert.ok(Math.abs(value - expected) < 1e-4, `${value}, not ${expected}`);
  near(await effect({ kind: "steer", vector: "unknown", strength: 0.25, strength_unit: "row_norm" }), 0.25);
  near(await effect({ kind: "scale", strength: 1.5 }), 0.5);
  near(await effect({ kind: "ablate", strength: 1 }), 1);
  const projected = await effect({ kind: "project_out", vector: "unknown" });
  assert.ok(projected > 0 && projected < 1);
  near(await effect({ kind: "clamp", vector: "unknown", min: -1e5, max: 1e5 }), 0);
  const clamp = { kind: "clamp", vector: "unknown", layer, max: -1.5 };
  const [told] = (await complete("x", { interventions: [clamp] })).choices[0].tapline.interventions;
  assert.equal([told.min, told.max], [undefined, -1.5]);
});

test("neighbours of edited requests answer as if those were not there, edited ones each as alone", async () => {
  const asked = [
    [question("France"), undefined],
    [question("France"), steer("unknown", 2)],
    [question("Drovenia"), steer("unknown", -2)],
    [question("Poland"), undefined],
    [question("Japan"), steer("random", 2)],
    [question("Japan"), { watch: { layers: [3, 7], norms: true, lens: 2 } }],
    [question("Vestria"), undefined],
    [question("Norway"), steer("unknown", 2, { positions: "last" })],
  ] as const;
  const alone: string[] = [];
  for (const [prompt, tapline] of asked) alone.push(textOf(await complete(prompt, tapline)));
  assert.ok(new Set(alone).size >= 4, "the edits do nothing");
  for (let round = 0; round < 4; round++) {
    const together = await Promise.all(
      asked.map(([prompt, tapline]) => complete(prompt, tapline, { cache_prompt: round % 2 === 0 })),
    );
    assert.equal(together.map(textOf), alone);
  }
});

test("later requests never reuse rows that an edit left in the cache", async () => {
  const long = `${"The review says that the film was good. ".repeat(6)}${question("France")}`;
  const options = { logprobs: 2, id_slot: 0 };
  const clean = await complete(long, undefined, { ...options, cache_prompt: false });
  const near = (body: Told, what: string) => {
    const of = (answer: Told): number[] => answer.choices[0].logprobs.token_logprobs;
    for (const [index, value] of of(body).entries()) {
      assert.ok(Math.abs(value - of(clean)[index]!) < 1e-3, `${what}: ${value}, not ${of(clean)[index]}`);
    }
  };
  const steered = steer("unknown", 2);
  for (const positions of ["all", "prompt", [[0, 3]], "last", "generated"]) {
    await complete(long, steer("unknown", 2, { positions }), { id_slot: 0 });
    near(await complete(long, undefined, options), `after ${JSON.stringify(positions)}`);
  }
  // A longer conversation that begins with an edited answer.
  const answer = textOf(await complete(long, steered, { id_slot: 0 }));
  const fresh = await complete(`${long}${answer}. ${question("Spain")}`, undefined, {
    ...options,
    cache_prompt: false,
  });
  const reused = await complete(`${long}${answer}. ${question("Spain")}`, undefined, options);
  assert.is(textOf(reused), textOf(fresh));
  // An edit inside the prompt computes it anew, whatever a plain request left.
  const { usage } = await complete(long, steered, { id_slot: 0 });
  assert.is(usage.prompt_tokens_details?.cached_tokens ?? 0, 0);
  for (let round = 0; round < 5; round++) {
    await leaveAfterFirstPart("/v1/completions", {
      prompt: long,
      max_tokens: 200,
      id_slot: 0,
      stream: true,
      tapline: steered,
    });
    await untilIdle(server.service);
    near(await complete(long, undefined, options), "after a cancelled one");
  }
});

test("a pair adds the unedited answer, sampled with the same random numbers", async () => {
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
    [{ pair: true, watch: { layers: [1], norms: true } }, {}, /needs interventions/],
    [{ ...steer("unknown", 1), pair: true }, { n: 3 }, /^tapline\.pair: needs 6 slots; this server has 4\.$/],
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

test("edits of thinking or answer affect only that part; each token is reported once", async () => {
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
  assert.match(raw.body.error.message, /is available only in chats/);
});

test("Responses and Messages take the same object and report the same, also streamed", async () => {
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
    assert.match(JSON.stringify(paired.body), /this API returns a single answer/);
    const outside = await server.post(path, { ...common, ...body }, { Origin: "http://localhost:3000" });
    assert.is(outside.status, 403);
  }
});

test("a range that ends before it begins in its prompt is refused with both tokens", async () => {
  const prompt = question("Sweden");
  const { tokens } = (await (
    await fetch(`${server.url}/tokenize`, {
      method: "POST",
      body: JSON.stringify({ content: prompt, add_special: true }),
    })
  ).json()) as { tokens: unknown[] };
  const n = tokens.length;
  const refused = async (tapline: object) => {
    const body = JSON.stringify({ prompt, max_tokens: 1, tapline });
    const answer = await fetch(`${server.url}/v1/completions`, { method: "POST", body });
    const { error } = (await answer.json()) as { error?: { message: string } };
    return [answer.status, error?.message];
  };
  const sentence = (range: string, first: number, last: number) => [
    400,
    `tapline: positions ${range} of a prompt of ${n} tokens begin at token ${first} and end at token ${last}, ` +
      "before they begin.",
  ];
  const edit = (positions: number[][]) => steer("unknown", 1, { positions });
  assert.equal(
    await refused(
      edit([
        [0, 0],
        [2, -n],
      ]),
    ),
    sentence(`[2, -${n}]`, 2, 0),
  );
  assert.equal(await refused(edit([[-1, 0]])), sentence("[-1, 0]", n - 1, 0));
  const watch = { layers: [layer], norms: true, positions: [[n, -1]] };
  assert.equal(await refused({ watch }), sentence(`[${n}, -1]`, n, n - 1));
  assert.equal(
    (
      await refused(
        edit([
          [1, -1],
          [-1, n + 5],
          [0, -n],
        ]),
      )
    ).slice(0, 1),
    [200],
  );
});

test("several completions of one prompt wear the same edits", async () => {
  const body = await complete(
    question("Sweden"),
    { ...steer("unknown", 2), watch: { layers: [3], norms: true } },
    {
      n: 3,
    },
  );
  assert.is(body.choices.length, 3);
  for (const choice of body.choices) {
    assert.match(choice.text, /unknown/);
    assert.equal(
      choice.tapline.tokens.map(({ index }: Told) => index),
      [...choice.tapline.tokens.keys()],
    );
  }
});

test("numbers that overflow end that answer in one sentence, and nobody else's", async () => {
  const options = { logprobs: 2, id_slot: 0, cache_prompt: false };
  const before = await complete(question("Italy"), undefined, options);
  for (const stream of [false, true]) {
    const { status, body, bytes } = await server.post("/v1/completions", {
      prompt: question("Italy"),
      max_tokens: 8,
      id_slot: 0,
      stream,
      tapline: {
        interventions: [
          { kind: "scale", layer: 3, strength: 1e6 },
          ...Array(6).fill({ kind: "scale", layer: 3, strength: 1e6 }),
        ],
      },
    });
    // A stream that has begun ends with an error event.
    assert.is(status, stream && body === null ? 200 : 400);
    assert.match(
      bytes.toString(),
      /The interventions made the model's numbers non-finite: the change is too large\./,
    );
  }
  const after = await complete(question("Italy"), undefined, options);
  assert.equal(after.choices[0].logprobs, before.choices[0].logprobs);
});

/** A client that goes away in the middle of a stream. */
function leaveAfterFirstPart(path: string, body: object): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = open(`${server.url}${path}`, { method: "POST", agent: false }, (response) => {
      response
        .on("error", () => {})
        .once("data", () => {
          request.destroy();
          resolve();
        });
    });
    request.on("error", reject);
    request.end(JSON.stringify(body));
  });
}

test.run();
