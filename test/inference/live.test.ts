import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request as open } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { encodeSafetensors } from "../../src/formats/safetensors.js";
import { RowStore } from "../../src/inference/live/row-store.js";
import { Dictionaries } from "../../src/library/index.js";
import { Model } from "../../src/native/index.js";
import { readNpz } from "../lab/npz-reader.js";
import { npyFile, zipOf } from "../support/npz-bytes.js";
import { startServer, streamEvents, type TestServer, untilIdle } from "./support/serving.js";

let server: TestServer;
const home = mkdtempSync(join(tmpdir(), "tapline-live-"));
const layer = 5;
const real = ["France", "Germany", "Spain", "Italy", "Portugal", "Poland", "Norway", "Japan"];
const invented = ["Brovia", "Quenland", "Tarsovia", "Melgria", "Zondia", "Plavenia", "Urdania", "Fenroy"];
const heldOut = { real: ["Sweden", "Austria", "Greece"], invented: ["Drovenia", "Kalmoria", "Vestria"] };
const question = (country: string) => `The capital of ${country} is`;

interface Told {
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever comes
  [field: string]: any;
}

const complete = async (prompt: string, tapline?: object, more: object = {}): Promise<Told> => {
  const { status, body } = await server.post("/v1/completions", {
    prompt,
    temperature: 0,
    max_tokens: 4,
    cache_prompt: true,
    ...(tapline && { tapline }),
    ...more,
  });
  assert.is(status, 200, JSON.stringify(body));
  return body;
};
const textOf = (body: Told): string => body.choices[0].text;
const steer = (vector: string, strength: number, more: object = {}) => ({
  interventions: [
    { kind: "steer", vector, layer, strength, strength_unit: "vector", positions: "all", ...more },
  ],
});

test.before(async () => {
  server = await startServer({ home, parallel: 4 });
  const made = await server.post("/lab/vectors", {
    name: "unknown",
    positive: invented.map(question),
    negative: real.map(question),
    layers: [4, layer],
  });
  assert.is(made.status, 201, JSON.stringify(made.body));
  // As long as "unknown", in no particular direction.
  const { length } = made.body.layers[1];
  const width = server.service.engine.info.nEmbd;
  const wave = Float32Array.from({ length: width }, (_, index) => Math.sin(12.9898 * (index + 1) ** 2));
  const scale = length / Math.sqrt(wave.reduce((sum, value) => sum + value * value, 0));
  const random = wave.map((value) => value * scale);
  const put = await server.put("/lab/vectors/random", zipOf({ layer_5: npyFile(random, [width]) }));
  assert.is(put.status, 200, JSON.stringify(put.body));
});
test.after(async () => {
  await server.close();
  rmSync(home, { recursive: true, force: true });
});

test("a direction says how well it separates texts that it was not made from", async () => {
  const { body } = await server.get("/lab/vectors/unknown");
  assert.is(body.operation, "add");
  assert.equal(
    body.layers.map((entry: Told) => entry.layer),
    [4, 5],
  );
  for (const entry of body.layers) {
    assert.ok(entry.separation >= 0.8, `separation ${entry.separation}`);
    assert.ok(entry.shuffled_separation < 0.65, `shuffled ${entry.shuffled_separation}`);
    assert.ok(entry.length > 20 && entry.typical_row > 50);
  }
});

test("position mean takes the mean over a text's tokens, last its last one", async () => {
  const texts = {
    positive: ["The capital of Brovia is", "Zondia"],
    negative: ["The capital of Spain is", "one"],
  };
  const model = await Model.open(server.service.engine.info.path);
  const context = await model.createContext({ threads: 1, nCtx: 64 });
  try {
    for (const position of ["mean", "last"] as const) {
      const { nEmbd: width } = server.service.engine.info;
      const expected = new Float64Array(width);
      for (const [sign, side] of [
        [1, texts.positive],
        [-1, texts.negative],
      ] as const) {
        for (const text of side) {
          await context.reset();
          const tokens = await model.tokenize(text, { special: true });
          const { states } = (await context.advance({ tokens, layers: [3] })).layers[0]!;
          const rows = position === "last" ? [tokens.length - 1] : [...tokens.keys()];
          for (const row of rows) {
            for (let i = 0; i < width; i++) {
              expected[i]! += (sign * states!.get(row, i)) / (side.length * rows.length);
            }
          }
        }
      }
      const made = await server.post("/lab/vectors", { name: "tokens", ...texts, layers: [3], position });
      assert.is(made.status, 201, JSON.stringify(made.body));
      for (const [place, value] of (await vectorOf("tokens", 3)).entries()) {
        assert.ok(
          Math.abs(value - expected[place]!) < 2e-2,
          `${position} ${place}: ${value}, ${expected[place]}`,
        );
      }
    }
  } finally {
    await context.close();
    await model.close();
    await server.service.library.vectors.remove("tokens");
  }
});

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

test("kept rows are read through a dictionary: the strongest features of each, as computed by hand", async () => {
  const { nEmbd: hidden } = server.service.engine.info;
  const folder = mkdtempSync(join(tmpdir(), "tapline-live-features-"));
  const one = (shape: number[], data: Float32Array) => ({ shape, data });
  // Feature f reads value f of the row, and feature 3 its negative.
  const features = 4;
  const encoder = new Float32Array(hidden * features);
  for (let f = 0; f < 3; f += 1) encoder[f * features + f] = 1;
  encoder[3] = -1;
  const tensors = {
    W_enc: one([hidden, features], encoder),
    W_dec: one([features, hidden], new Float32Array(features * hidden)),
    b_enc: one([features], Float32Array.of(0, 0.5, 0, 0)),
    b_dec: one([hidden], new Float32Array(hidden)),
  };
  writeFileSync(join(folder, "sae_weights.safetensors"), encodeSafetensors(tensors));
  const metadata = { hook_name: `blocks.${layer}.hook_resid_post` };
  writeFileSync(join(folder, "cfg.json"), JSON.stringify({ architecture: "standard", metadata }));
  await new Dictionaries(home).add("corner", folder);
  const body = await complete(question("Japan"), { watch: { layers: [layer], states: true } });
  const { capture } = body.choices[0].tapline;
  const path = `/lab/captures/${capture.id}`;
  const kept = readNpz((await server.get(`${path}?format=npz`)).bytes);
  const [rows, states] = [kept.get("rows")!.data, kept.get(`layer_${layer}`)!.data];
  const { status, body: read } = await server.get(`${path}/features?dictionary=corner&top=2`);
  assert.is(status, 200);
  assert.is(read.prompt_tokens, body.usage.prompt_tokens);
  assert.equal([read.dictionary, read.layer], ["corner", layer]);
  assert.equal(
    read.rows.map(({ index }: { index: number }) => index),
    [...rows],
  );
  for (const [at, { features: told, active }] of read.rows.entries()) {
    const value = (f: number) => states[at * hidden + f] as number;
    const expected = [value(0), value(1) + 0.5, value(2), -value(0)]
      .map((activation, feature) => ({ feature, activation }))
      .filter(({ activation }) => activation > 0)
      .sort((a, b) => b.activation - a.activation);
    assert.is(active, expected.length);
    assert.equal(
      told.map(({ feature }: { feature: number }) => feature),
      expected.slice(0, 2).map(({ feature }) => feature),
    );
    for (const [place, { activation }] of told.entries()) {
      assert.ok(Math.abs(activation - (expected[place]?.activation as number)) < 1e-4);
    }
  }
  const refused = async (query: string) => {
    const { status, body } = await server.get(`${path}/features${query}`);
    return [status, body.error.message ?? body.error];
  };
  assert.equal(await refused(""), [400, "dictionary: the name of a dictionary that is kept here is needed."]);
  assert.is((await refused("?dictionary=nowhere"))[0], 400);
  assert.equal(await refused("?dictionary=corner&top=101"), [400, "top: a number from 1 to 100."]);
  const elsewhere = await complete(question("Japan"), { watch: { layers: [2], states: true } });
  const other = await server.get(
    `/lab/captures/${elsewhere.choices[0].tapline.capture.id}/features?dictionary=corner`,
  );
  assert.is(other.status, 400);
  assert.match(JSON.stringify(other.body), /corner reads block 5; the capture holds 2\./);
  assert.is((await server.get("/lab/captures/cap-0-0/features?dictionary=corner")).status, 404);
  const { captures } = (await server.get("/lab/captures")).body as { captures: { id: string }[] };
  for (const { id } of captures) await fetch(`${server.url}/lab/captures/${id}`, { method: "DELETE" });
});

test("norms, projections and the lens of every token are those of an isolated pass", async () => {
  const watch = { layers: [2, layer], norms: true, lens: 2, projections: ["unknown"], positions: "all" };
  const body = await complete(question("Japan"), { watch }, { max_tokens: 6 });
  const { prompt, tokens } = body.choices[0].tapline;
  const model = await Model.open(server.service.engine.info.path);
  const context = await model.createContext({ threads: 1, nCtx: 128 });
  try {
    const ids = Int32Array.from([
      ...prompt.map((entry: Told) => entry.token_id),
      ...tokens.map((entry: Told) => entry.token_id),
    ]);
    assert.equal(
      [...ids.subarray(0, prompt.length)],
      [...(await model.tokenize(question("Japan"), { special: true }))],
    );
    const pass = await context.advance({ tokens: ids, layers: [2, layer], lensTopK: 2 });
    const vector = await vectorOf("unknown", layer);
    const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
    const rows = [...prompt, ...tokens].map((entry, place) => ({
      entry,
      // A generated token is read in the row that chose it.
      row: place < prompt.length ? place : place - 1,
    }));
    for (const { entry, row } of rows) {
      for (const { layer: at, norms, lens, states } of pass.layers) {
        const told = entry.norms[at];
        assert.ok(
          Math.abs(told - norms[row]!) <= 1e-4 * norms[row]!,
          `layer ${at} row ${row}: ${told}, ${norms[row]}`,
        );
        const [first] = entry.lens[at];
        assert.is(first.token_id, lens!.tokenIds[row * 2]);
        assert.ok(Math.abs(first.probability - lens!.probabilities[row * 2]!) < 1e-3);
        if (at !== layer) continue;
        let dot = 0;
        for (let i = 0; i < vector.length; i++) dot += vector[i]! * states!.get(row, i);
        assert.ok(Math.abs(entry.projections.unknown - dot / length) < 1e-2);
      }
    }
    const text = tokens.map((entry: Told) => entry.token).join("");
    assert.is(text.replace("<|endoftext|>", ""), textOf(body));
  } finally {
    await context.close();
    await model.close();
  }
});

test("watching changes no token, streams tell every token once, in order", async () => {
  const watch = { layers: [4], norms: true };
  const plain = await complete("I think the film was", undefined, {
    max_tokens: 24,
    temperature: 0.9,
    seed: 7,
  });
  const watched = await complete(
    "I think the film was",
    { watch },
    { max_tokens: 24, temperature: 0.9, seed: 7, stream: false },
  );
  assert.is(textOf(watched), textOf(plain));
  const streamed = await server.post("/v1/completions", {
    prompt: "I think the film was",
    max_tokens: 24,
    temperature: 0.9,
    seed: 7,
    stream: true,
    tapline: { watch },
  });
  const entries = streamEvents(streamed.bytes.toString()).flatMap(
    (event: Told) => event.choices[0]?.tapline?.tokens ?? [],
  );
  assert.equal(
    entries.map(({ index }: Told) => index),
    [...entries.keys()],
  );
  assert.equal(
    entries.map(({ norms }: Told) => norms),
    watched.choices[0].tapline.tokens.map(({ norms }: Told) => norms),
  );
});

test("a probe scores each token as its formula says, stops the answer on its token, and switches an edit on", async () => {
  const width = server.service.engine.info.nEmbd;
  const vector = await vectorOf("unknown", layer);
  const std = new Float32Array(width).fill(2);
  const mean = new Float32Array(width).fill(0.5);
  const weight = vector.map((value) => value / 400);
  const put = await server.put(
    `/lab/probes/odd?layer=${layer}`,
    zipOf({
      weight: npyFile(weight, [width]),
      mean: npyFile(mean, [width]),
      std: npyFile(std, [width]),
      bias: npyFile(Float32Array.of(-0.25), []),
    }),
  );
  assert.is(put.status, 200, JSON.stringify(put.body));
  assert.is(put.body.layer, layer);
  const long = { max_tokens: 20, ignore_eos: true };
  const body = await complete(question("Japan"), { watch: { probes: ["odd"], positions: "all" } }, long);
  const { prompt, tokens } = body.choices[0].tapline;
  const model = await Model.open(server.service.engine.info.path);
  const context = await model.createContext({ threads: 1, nCtx: 128 });
  // As the server computed it: the prompt at once, then token by token.
  const ids = (entries: Told[]) => Int32Array.from(entries.map((entry) => entry.token_id));
  const rows: number[][] = [];
  for (const part of [ids(prompt), ...tokens.slice(0, -1).map((entry: Told) => ids([entry]))]) {
    const { states } = (await context.advance({ tokens: part, layers: [layer] })).layers[0]!;
    rows.push(Array.from({ length: width }, (_, i) => states!.get(part.length - 1, i)));
  }
  await context.close();
  await model.close();
  const scores: number[] = [];
  for (let place = 0; place < tokens.length; place++) {
    let sum = -0.25;
    for (let i = 0; i < width; i++) {
      sum += ((rows[place]![i]! - 0.5) / 2) * weight[i]!;
    }
    scores.push(1 / (1 + Math.exp(-sum)));
    const told = tokens[place].probes.odd;
    assert.ok(Math.abs(told - scores[place]!) < 1e-5, `token ${place}: ${told}, not ${scores[place]}`);
  }
  // The answer ends on the first token whose score, and the one before it, lie above a bound that is met late.
  const pairs = scores.slice(1).map((score, index) => Math.min(score, scores[index]!));
  const bound = [...pairs].sort((a, b) => b - a)[1]!;
  const expected = pairs.findIndex((pair) => pair > bound) + 1;
  assert.ok(expected > 0 && expected < tokens.length - 1, `${expected} of ${tokens.length}`);
  const stopped = await complete(
    question("Japan"),
    { stop_when: { probe: "odd", above: bound + 1e-9, for: 2 }, watch: { probes: ["odd"] } },
    long,
  );
  assert.is(stopped.choices[0].finish_reason, "monitor");
  assert.is(stopped.usage.completion_tokens, expected + 1);
  // An edit that waits for a condition which never comes leaves the answer alone.
  const never = await complete(
    question("Japan"),
    steer("unknown", 4, { when: { probe: "odd", above: 1 } }),
    long,
  );
  assert.is(textOf(never), textOf(body));
  assert.is(never.choices[0].tapline.interventions[0].rows, 0);
  const later = await complete(
    question("Japan"),
    steer("unknown", 4, { when: { probe: "odd", above: bound + 1e-9, for: 2 } }),
    long,
  );
  const [told] = later.choices[0].tapline.interventions;
  assert.ok(told.rows > 0 && told.rows < later.usage.completion_tokens);
});

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

test("kept rows are those of an isolated pass, as safetensors and as npz, and make room when they are many", async () => {
  const { nEmbd: width } = server.service.engine.info;
  const watch = { layers: [2, layer], states: true, positions: "all" };
  const body = await complete(question("Japan"), { watch }, { max_tokens: 5 });
  const { capture } = body.choices[0].tapline;
  const { prompt_tokens: prompt, completion_tokens: answer } = body.usage;
  // The last token that was chosen was read by nobody.
  assert.is(capture.rows, prompt + answer - 1);
  const file = await server.get(`/lab/captures/${capture.id}`);
  const { tensors, metadata } = readSafetensors(file.bytes);
  assert.is(Number(metadata.prompt_tokens), prompt);
  assert.equal(
    [...tensors.get("rows")!.data],
    Array.from({ length: capture.rows }, (_, row) => row),
  );
  const ids = Int32Array.from(tensors.get("token_ids")!.data);
  const model = await Model.open(server.service.engine.info.path);
  const context = await model.createContext({ threads: 1, nCtx: 128 });
  try {
    assert.equal(
      [...ids.subarray(0, prompt)],
      [...(await model.tokenize(question("Japan"), { special: true }))],
    );
    const pass = await context.advance({ tokens: ids, layers: [2, layer] });
    for (const { layer: at, states } of pass.layers) {
      const { shape, data } = tensors.get(`layer_${at}`)!;
      assert.equal(shape, [capture.rows, width]);
      for (const [place, value] of data.entries()) {
        const expected = states!.get(Math.floor(place / width), place % width);
        assert.ok(Math.abs(value - expected) < 2e-2, `layer ${at} value ${place}: ${value}, not ${expected}`);
      }
    }
  } finally {
    await context.close();
    await model.close();
  }
  const npz = readNpz((await server.get(`/lab/captures/${capture.id}?format=npz`)).bytes);
  assert.equal([...npz.get("layer_5")!.data], [...tensors.get("layer_5")!.data]);
  assert.equal([...npz.get("token_ids")!.data], [...ids]);
  assert.is((await server.get("/lab/captures/cap-0-0")).status, 404);
  assert.is((await server.get(`/lab/captures/${capture.id}?format=csv`)).status, 400);
  const { row_captures: told } = (await server.get("/stats")).body;
  assert.equal([told.kept, told.bytes, told.dropped], [1, capture.rows * (2 * width * 4 + 8), 0]);
  // A store of the size of one and a half such captures holds the newest.
  const store = new RowStore(told.bytes * 1.5);
  const rows = server.service.rows.get(capture.id)!;
  for (const id of ["a", "b", "c"]) store.add({ ...rows, id }, "demo");
  assert.equal([store.list().map(({ id }) => id), store.dropped], [["c"], 2]);
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

test("a probe from texts tells two kinds apart, is counted for Prometheus, and leaves as a file that comes back", async () => {
  const body = {
    name: "invented",
    positive: [...invented, ...heldOut.invented].map(question),
    negative: [...real, ...heldOut.real].map(question),
    layer,
  };
  const made = await server.post("/lab/probes", body);
  assert.is(made.status, 201, JSON.stringify(made.body));
  assert.ok(made.body.separation > 0.7, `separation ${made.body.separation}`);
  assert.ok(made.body.shuffled_separation < 0.75, `shuffled ${made.body.shuffled_separation}`);
  const score = async (country: string): Promise<number> => {
    const answer = await complete(question(country), { watch: { probes: ["invented"] } });
    return answer.choices[0].tapline.tokens[0].probes.invented;
  };
  assert.ok((await score("Hungary")) < 0.5);
  assert.ok((await score("Grenovia")) > 0.5);
  const { bytes: metrics } = await server.get("/metrics");
  const line = (start: string) => Number(metrics.toString().split(`${start} `)[1]?.split("\n")[0]);
  const buckets = line('tapline_probe_score_bucket{probe="invented",le="+Inf"}');
  assert.is(buckets, line('tapline_probe_score_count{probe="invented"}'));
  assert.ok(buckets >= 2 && line('tapline_probe_score_bucket{probe="invented",le="0.5"}') >= 1);
  const { bytes } = await server.get("/lab/probes/invented?format=safetensors");
  const again = await server.put("/lab/probes/again", bytes);
  assert.equal([again.status, again.body.sha256], [200, made.body.sha256]);
  const few = await server.post("/lab/probes", { ...body, positive: ["x"] });
  assert.is(few.status, 400);
  assert.match(few.body.error, /positive.*at least 5/);
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

test("only programs on this machine may open the model; the plain request next to it is anybody's", async () => {
  const body = { prompt: "x", max_tokens: 1, tapline: steer("unknown", 1) };
  const { status, body: refused } = await server.post("/v1/completions", body, { Cookie: "a=b" });
  assert.is(status, 403);
  assert.match(refused.error.message, /tapline/);
  assert.is((await server.post("/lab/vectors", {}, { Origin: "http://localhost:3000" })).status, 403);
});

test("bad input is one sentence that names the field", async () => {
  const at = (field: string, tapline: object, pattern: RegExp) => ({ field, tapline, pattern });
  const one = (intervention: object) => ({ interventions: [intervention] });
  const good = { kind: "steer", vector: "unknown", layer };
  for (const { field, tapline, pattern } of [
    at("vector", one({ ...good, vector: "nobody" }), /no vector named nobody; there are random, unknown/),
    at("layer", one({ ...good, layer: 3 }), /no layer 3; it has 4, 5/),
    at(
      "layer",
      one({ kind: "scale", layer: 8, strength: 2 }),
      /layer 8 does not exist: the model has 8, 0 to 7/,
    ),
    at("strength", one({ ...good, strength: "much" }), /strength/),
    at("strength", one({ ...good, strength: 1e7 }), /at most 1000000, got 10000000/),
    at("kind", one({ ...good, kind: "nudge" }), /kind/),
    at("force", one({ ...good, force: 3 }), /unknown field/),
    at("watching", { watching: {} }, /unknown field/),
    at("strength", one({ kind: "scale", layer: 1 }), /strength is required for scale/),
    at("vector", one({ kind: "ablate", layer: 1, vector: "unknown" }), /ablate takes no vector/),
    at("min", one({ ...good, kind: "clamp" }), /a clamp needs min or max/),
    at("watch", { watch: { layers: [1] } }, /one of norms, lens, states, probes and projections/),
    at("probes", { watch: { probes: ["nobody"] } }, /no probe named nobody/),
    at("stop_when", { stop_when: { probe: "odd" } }, /one of above and below/),
  ]) {
    const { status, body } = await server.post("/v1/completions", { prompt: "x", max_tokens: 1, tapline });
    assert.is(status, 400, `${field}: ${JSON.stringify(body)}`);
    assert.match(body.error.message, pattern);
    assert.match(body.error.message, new RegExp(field));
  }
});

test("vectors and probes that cannot be this model's are refused by their numbers, when they come and when they are named", async () => {
  const { nEmbd: width } = server.service.engine.info;
  const { fingerprint, id } = server.service.library.model;
  const kept = server.service.library;
  const numbers = (length: number, value = 1) => ({
    shape: [length],
    data: new Float32Array(length).fill(value),
  });
  const other = { model: "other", model_fingerprint: "0".repeat(64) };
  const hashes = new RegExp(
    `belongs to other \\(0{16}\\), not to ${id} \\(${fingerprint.slice(0, 16)}\\)\\.$`,
  );
  const probe = (length: number, value = 1, std = 1) => ({
    weight: numbers(length, value),
    mean: numbers(length),
    std: numbers(length, std),
    bias: { shape: [], data: Float32Array.of(0) },
  });
  const persona = readFileSync(new URL("../library/fixtures/persona.pt", import.meta.url));
  const cases: [string, Buffer, RegExp][] = [
    [
      "vectors/bad",
      encodeSafetensors({ layer_5: numbers(width - 1) }, {}),
      new RegExp(`${width - 1} values a layer; the model's hidden size is ${width}`),
    ],
    ["vectors/bad", encodeSafetensors({ layer_5: numbers(width) }, other), hashes],
    [
      "vectors/bad",
      encodeSafetensors({ layer_5: numbers(width, Number.NaN) }, {}),
      /layer_5 holds .* not finite/,
    ],
    [
      "vectors/bad",
      encodeSafetensors({ layer_5: numbers(width, Number.POSITIVE_INFINITY) }, {}),
      /layer_5 holds .* not finite/,
    ],
    ["vectors/bad", encodeSafetensors({ layer_8: numbers(width) }, {}), /layer 8; the model has 8, 0 to 7/],
    ["vectors/bad", encodeSafetensors({ direction: numbers(width) }, {}), /says no layer.*\?layer=/],
    ["vectors/bad?layer=9", encodeSafetensors({ direction: numbers(width) }, {}), /layer 9; the model has 8/],
    [
      "vectors/bad",
      encodeSafetensors({ layer_5: numbers(width) }, { point: "attn_out" }),
      /point attn_out; only block_out/,
    ],
    [
      "vectors/bad",
      encodeSafetensors({ layer_5: numbers(width) }, { operation: "probe" }),
      /operation probe, not add/,
    ],
    [
      "vectors/bad?model=another",
      encodeSafetensors({ layer_5: numbers(width) }, {}),
      /is served here, not another/,
    ],
    ["vectors/bad", Buffer.from("no file of any kind"), /safetensors/],
    ["vectors/bad", persona, /does not say what its rows are: say the format, one of persona/],
    ["vectors/bad?format=persona", persona, /has 4 rows; persona vectors of a model with 8 blocks have 9/],
    ["vectors/bad?format=other", persona, /format/],
    [
      "probes/bad?layer=3",
      encodeSafetensors(probe(width + 1), {}),
      /129 values; the model's hidden size is 128/,
    ],
    ["probes/bad?layer=3", encodeSafetensors(probe(width), other), hashes],
    ["probes/bad?layer=3", encodeSafetensors(probe(width, Number.NaN), {}), /weight holds .* not finite/],
    ["probes/bad?layer=3", encodeSafetensors(probe(width, 1, 0), {}), /std must be above 0/],
    ["probes/bad", encodeSafetensors(probe(width), {}), /does not say its layer/],
  ];
  for (const [path, file, sentence] of cases) {
    const { status, body } = await server.put(`/lab/${path}`, file);
    assert.is(status, 400, `${path}: ${JSON.stringify(body)}`);
    assert.match(body.error, sentence);
    assert.match(body.error, /^[^\n]+\.$/, "one sentence");
    assert.is((await server.get(`/lab/${path.split("?")[0]}`)).status, 404, "nothing is kept");
  }
  // Unless the caller says that it is this model's after all: by its own number of blocks, say, in another type.
  const given = encodeSafetensors({ layer_5: numbers(width) }, other);
  assert.is((await server.put("/lab/vectors/taken?restamp=1", given)).status, 200);
  assert.equal((await server.get("/lab/vectors/taken")).body.model, { id, fingerprint });
  assert.is((await complete("x", steer("taken", 0))).choices.length, 1);
  await kept.vectors.remove("taken");
  // Kept by a server of another model, in the same library.
  const model = { id: "other", fingerprint: "0".repeat(64), nEmbd: width, nLayer: 8 };
  await kept.vectors.put("foreign", new Map([[5, numbers(width).data]]), model, { note: "" });
  const flat = { weight: numbers(width).data, mean: numbers(width).data, std: numbers(width).data, bias: 0 };
  await kept.probes.put("foreign", 5, flat, model, { note: "" });
  for (const tapline of [steer("foreign", 1), { watch: { probes: ["foreign"] } }]) {
    const { status, body } = await server.post("/v1/completions", { prompt: "x", max_tokens: 1, tapline });
    assert.is(status, 400);
    assert.match(body.error.message, hashes);
  }
  await Promise.all([kept.vectors.remove("foreign"), kept.probes.remove("foreign")]);
});

/** A .safetensors file of numbers of 32 bits, read by the format's own description. */
function readSafetensors(bytes: Buffer) {
  const length = Number(bytes.readBigUInt64LE(0));
  const { __metadata__: metadata, ...entries } = JSON.parse(bytes.toString("utf8", 8, 8 + length));
  const data = bytes.subarray(8 + length);
  const tensors = new Map(
    Object.entries(entries as Record<string, Told>).map(
      ([
        name,
        {
          dtype,
          shape,
          data_offsets: [from, to],
        },
      ]) => {
        const view = new DataView(data.buffer, data.byteOffset + from, to - from);
        const read = (at: number) => (dtype === "I32" ? view.getInt32(at, true) : view.getFloat32(at, true));
        return [name, { shape, data: Float32Array.from({ length: (to - from) / 4 }, (_, i) => read(4 * i)) }];
      },
    ),
  );
  return { tensors, metadata: metadata as Record<string, string> };
}

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

async function vectorOf(name: string, at: number): Promise<Float32Array> {
  const { vector } = await server.service.library.vectors.layer(name, at, server.service.library.model);
  return vector;
}

test.run();
