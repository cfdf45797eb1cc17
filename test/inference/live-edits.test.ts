/** What edits do to an answer, and that they do nothing to anybody else's. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { request as open } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { encodeSafetensors } from "../../src/formats/safetensors.js";
import { Dictionaries } from "../../src/library/index.js";
import { Model } from "../../src/native/index.js";
import {
  aroundServer,
  complete,
  heldOut,
  home,
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

test("what an edit did is told: rows, lengths, the vector's hash; a neutral one equals none", async () => {
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
    /^steer unknown at layer 5, strength 0\.5 vector: \d+ rows, changed by [\d.]+ of [\d.]+$/,
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

test("what an edit left in a cache is nobody's prompt: after, before, and after it was cancelled", async () => {
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

test("a feature of a stored dictionary steers as the vector that its decoder row is, at its own block alone", async () => {
  const row = await vectorOf("unknown", layer);
  const hidden = row.length;
  const folder = mkdtempSync(join(tmpdir(), "tapline-live-sae-"));
  const decoder = new Float32Array(3 * hidden);
  decoder.set(row, 2 * hidden);
  const one = (shape: number[], data = new Float32Array(shape.reduce((a, b) => a * b, 1))) => ({
    shape,
    data,
  });
  const tensors = {
    W_enc: one([hidden, 3]),
    W_dec: one([3, hidden], decoder),
    b_enc: one([3]),
    b_dec: one([hidden]),
  };
  writeFileSync(join(folder, "sae_weights.safetensors"), encodeSafetensors(tensors));
  const metadata = { hook_name: `blocks.${layer}.hook_resid_post` };
  writeFileSync(join(folder, "cfg.json"), JSON.stringify({ architecture: "standard", metadata }));
  await new Dictionaries(home).add("toy", folder);
  const along = (index: number, more: object = {}) => ({
    interventions: [
      { kind: "steer", vector: { feature: ["toy", index] }, strength: 2, strength_unit: "vector", ...more },
    ],
  });
  const options = { logprobs: 3, cache_prompt: false };
  const named = await complete(question("Austria"), steer("unknown", 2), options);
  const found = await complete(question("Austria"), along(2), options);
  assert.match(textOf(found), /unknown/);
  assert.equal(found.choices[0].logprobs, named.choices[0].logprobs);
  // This feature's encoder is zero, so that it is never active of itself: held at 2, it steers by 2.
  const held = (more: object) => ({
    interventions: [{ kind: "clamp", vector: { feature: ["toy", 2] }, ...more }],
  });
  const clamped = await complete(question("Austria"), held({ min: 2, max: 2 }), options);
  assert.equal(clamped.choices[0].logprobs, named.choices[0].logprobs);
  const within = await complete(question("Austria"), held({ max: 0 }), options);
  const plain = await complete(question("Austria"), undefined, options);
  assert.is(textOf(within), textOf(plain));
  const refused = async (tapline: object) => {
    const { status, body } = await server.post("/v1/completions", { prompt: "a", tapline });
    assert.is(status, 400);
    return body.error.message;
  };
  assert.match(await refused(along(2, { layer: 4 })), /toy reads block 5, not 4/);
  assert.match(
    await refused(held({ min: 2, strength_unit: "unit" })),
    /strength_unit has no meaning for a feature's clamp/,
  );
  assert.match(await refused(along(3)), /has 3 features, 0 to 2; got 3/);
  assert.match(
    await refused({ interventions: [{ kind: "steer", vector: { feature: [2, "toy"] } }] }),
    /in this order/,
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
    assert.match(bytes.toString(), /non-finite; the change is too large/);
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
