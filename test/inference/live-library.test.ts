/** Directions, probes and features that a server makes, takes and keeps, and what it refuses. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { encodeSafetensors } from "../../src/formats/safetensors.js";
import { Dictionaries } from "../../src/library/index.js";
import { Model } from "../../src/native/index.js";
import { temporaryFolder } from "../support/temporary.js";
import {
  aroundServer,
  complete,
  heldOut,
  home,
  invented,
  layer,
  question,
  type Reply,
  real,
  server,
  steer,
  textOf,
  vectorOf,
} from "./support/live.js";

aroundServer();

test("a direction reports how well it separates held-out texts", async () => {
  const { body } = await server.get("/lab/vectors/unknown");
  assert.is(body.operation, "add");
  assert.equal(
    body.layers.map((entry: Reply) => entry.layer),
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
          // A mean is of all tokens but the BOS, the first.
          const rows = position === "last" ? [tokens.length - 1] : [...tokens.keys()].slice(1);
          for (const row of rows) {
            for (let i = 0; i < width; i++) {
              expected[i]! += (sign * states!.get(row, i)) / (side.length * rows.length);
            }
          }
        }
      }
      const made = await server.post("/lab/vectors", { name: "tokens", ...texts, layers: [3], position });
      assert.is(made.status, 201, JSON.stringify(made.body));
      const excluded = position === "mean" ? { bos: 4, outliers: 0 } : undefined;
      assert.equal(made.body.layers[0].excluded, excluded);
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

test("a stored feature steers as its decoder row, at its own block only", async () => {
  const row = await vectorOf("unknown", layer);
  const hidden = row.length;
  const folder = temporaryFolder("live-sae");
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
    /strength_unit is not supported when clamping a feature/,
  );
  assert.match(await refused(along(3)), /has 3 features, 0 to 2; got 3/);
  assert.match(
    await refused({ interventions: [{ kind: "steer", vector: { feature: [2, "toy"] } }] }),
    /in this order/,
  );
});

test("a transcoder's feature is clamped at ffn_out by what it reads at ffn_in", async () => {
  const folder = temporaryFolder("transcoder");
  const { nEmbd: hidden, path } = server.service.engine.info;
  const one = (shape: number[], data: Float32Array) => ({ shape, data });
  const encoder = Float32Array.from({ length: hidden }, (_, i) => Math.sin(i + 1) / 4);
  const decoder = Float32Array.from({ length: hidden }, (_, i) => 2 * Math.cos(3 * i));
  writeFileSync(
    join(folder, "sae_weights.safetensors"),
    encodeSafetensors({
      W_enc: one([hidden, 1], encoder),
      W_dec: one([1, hidden], decoder),
      b_enc: one([1], Float32Array.of(0.5)),
      b_dec: one([hidden], new Float32Array(hidden)),
    }),
  );
  const metadata = {
    hook_name: `blocks.${layer}.mlp.hook_in`,
    hook_name_out: `blocks.${layer}.hook_mlp_out`,
  };
  writeFileSync(join(folder, "cfg.json"), JSON.stringify({ architecture: "transcoder", metadata }));
  await new Dictionaries(home).add("transcoder", folder);
  const prompt = question("Austria");
  const clamp = { kind: "clamp", vector: { feature: ["transcoder", 0] }, point: "ffn_out", layer };
  const bounds = { min: 8, max: 8, positions: "prompt" };
  const options = { logprobs: 1, cache_prompt: false, max_tokens: 1 };
  const found = await complete(prompt, { interventions: [{ ...clamp, ...bounds }] }, options);

  // What each token's activation lacks is added along the decoder row, computed here from the MLP's inputs.
  const model = await Model.open(path);
  const context = await model.createContext({ threads: 1, nCtx: 64 });
  try {
    const tokens = await model.tokenize(prompt, { special: true });
    const asked = { tokens, layers: [layer], points: ["ffn_in" as const] };
    const { states } = (await context.advance(asked)).layers[0]!;
    const edits = Array.from(tokens, (_, token) => {
      const h = encoder.reduce((sum, weight, i) => sum + weight * states!.get(token, i), 0.5);
      const place = { layer, point: "ffn_out" as const, positions: [[token, token]] as const };
      return { ...place, vector: decoder, strength: 8 - Math.max(0, h) };
    });
    assert.ok(new Set(edits.map(({ strength }) => strength.toFixed(2))).size > 3, "activations that differ");
    await context.reset();
    const { logits } = await context.advance({ tokens, layers: [], edits, logits: true });
    const top = Math.max(...logits!);
    const expected = -Math.log(logits!.reduce((sum, logit) => sum + Math.exp(logit - top), 0));
    const [logprob] = found.choices[0].logprobs.token_logprobs;
    assert.ok(Math.abs(logprob - expected) < 0.02, `${logprob}, ${expected}`);
    await context.reset();
    const plain = await context.advance({ tokens, layers: [], logits: true });
    assert.ok(logits!.some((logit, i) => Math.abs(logit - plain.logits![i]!) > 0.5));
  } finally {
    await model.close();
  }
});

test("a probe made from texts separates them and survives a download and upload", async () => {
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

test("only local programs may open the model; plain requests are open to all", async () => {
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
      /layer 8 does not exist; the model has layers 0 to 7/,
    ),
    at("strength", one({ ...good, strength: "much" }), /strength/),
    at("strength", one({ ...good, strength: 1e7 }), /at most 1000000, got 10000000/),
    at("kind", one({ ...good, kind: "nudge" }), /kind/),
    at("force", one({ ...good, force: 3 }), /unknown field/),
    at("watching", { watching: {} }, /unknown field/),
    at("strength", one({ kind: "scale", layer: 1 }), /strength is required for scale/),
    at("vector", one({ kind: "ablate", layer: 1, vector: "unknown" }), /ablate takes no vector/),
    at("min", one({ ...good, kind: "clamp" }), /a clamp needs min or max/),
    at("watch", { watch: { layers: [1] } }, /one of norms, lens, states, probes, projections and features/),
    at("probes", { watch: { probes: ["nobody"] } }, /no probe named nobody/),
    at("stop_when", { stop_when: { probe: "odd" } }, /one of above and below/),
  ]) {
    const { status, body } = await server.post("/v1/completions", { prompt: "x", max_tokens: 1, tapline });
    assert.is(status, 400, `${field}: ${JSON.stringify(body)}`);
    assert.match(body.error.message, pattern);
    assert.match(body.error.message, new RegExp(field));
  }
});

test("vectors and probes of other models are refused with both widths", async () => {
  const { nEmbd: width } = server.service.engine.info;
  const { fingerprint, id } = server.service.library.model;
  const kept = server.service.library;
  const numbers = (length: number, value = 1) => ({
    shape: [length],
    data: new Float32Array(length).fill(value),
  });
  const other = { model: "other", model_fingerprint: "0".repeat(64) };
  const hashes = new RegExp(
    `was made for other \\(0{16}\\), not for ${id} \\(${fingerprint.slice(0, 16)}\\)\\.$`,
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
      new RegExp(`${width - 1} values per layer; the model's hidden size is ${width}`),
    ],
    ["vectors/bad", encodeSafetensors({ layer_5: numbers(width) }, other), hashes],
    [
      "vectors/bad",
      encodeSafetensors({ layer_5: numbers(width, Number.NaN) }, {}),
      /^The vector bad: layer_5 contains numbers that are not finite\.$/,
    ],
    [
      "vectors/bad",
      encodeSafetensors({ layer_5: numbers(width, Number.POSITIVE_INFINITY) }, {}),
      /^The vector bad: layer_5 contains numbers that are not finite\.$/,
    ],
    [
      "vectors/bad",
      encodeSafetensors({ layer_8: numbers(width) }, {}),
      /^The vector has layer 8; the model has layers 0 to 7\.$/,
    ],
    [
      "vectors/bad",
      encodeSafetensors({ direction: numbers(width) }, {}),
      /^The file does not record its layers: .*\?layer=<n>\.$/,
    ],
    [
      "vectors/bad?layer=9",
      encodeSafetensors({ direction: numbers(width) }, {}),
      /^The vector has layer 9; the model has layers 0 to 7\.$/,
    ],
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
    ["vectors/bad", persona, /does not record what its rows are: specify the format, one of persona/],
    ["vectors/bad?format=persona", persona, /has 4 rows; persona vectors of a model with 8 blocks have 9/],
    ["vectors/bad?format=other", persona, /format/],
    [
      "probes/bad?layer=3",
      encodeSafetensors(probe(width + 1), {}),
      /129 values; the model's hidden size is 128/,
    ],
    ["probes/bad?layer=3", encodeSafetensors(probe(width), other), hashes],
    [
      "probes/bad?layer=3",
      encodeSafetensors(probe(width, Number.NaN), {}),
      /^The probe bad: weight contains numbers that are not finite\.$/,
    ],
    ["probes/bad?layer=3", encodeSafetensors(probe(width, 1, 0), {}), /std must be above 0/],
    [
      "probes/bad",
      encodeSafetensors(probe(width), {}),
      /^The file does not record its layer: add \?layer=<n>\.$/,
    ],
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

test.run();
