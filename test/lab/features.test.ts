import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  type CompareResult,
  checkSubmission,
  type FeaturesResult,
  type InspectResult,
} from "../../src/contracts/index.js";
import { encodeSafetensors, type Tensor } from "../../src/formats/safetensors.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { Dictionaries } from "../../src/library/index.js";
import { Model } from "../../src/native/index.js";
import { runOperation } from "../../src/operations/runs.js";
import { demo } from "../native/demo-model.js";
import { TestRandom } from "../support/random.js";
import { refusal } from "../support/refusal.js";
import { temporaryFolder } from "../support/temporary.js";
import { type Harness, openHarness } from "./harness.js";
import { readNpz, readNpzWithNumpy } from "./npz-reader.js";

const hidden = 128;
const layer = 5;
const prompt = "The capital of France is Paris";

let lab: Harness;
let model: Model;
const home = process.env.TAPLINE_HOME;

test.before(async () => {
  lab = await openHarness();
  process.env.TAPLINE_HOME = lab.home;
  model = await Model.open(demo);
  const dictionaries = new Dictionaries(lab.home);
  const identity = new Float32Array(2 * hidden * hidden);
  for (let i = 0; i < hidden; i++) {
    identity[i * 2 * hidden + i] = 1;
    identity[i * 2 * hidden + hidden + i] = -1;
  }
  const turned = new Float32Array(2 * hidden * hidden);
  for (let i = 0; i < hidden; i++) {
    turned[i * hidden + i] = 1;
    turned[(hidden + i) * hidden + i] = -1;
  }
  // Two features a dimension, one for each sign: nothing is lost. And one that always writes zeros.
  await dictionaries.add("exact", saeLens(identity, turned));
  await dictionaries.add("nothing", saeLens(identity, new Float32Array(turned.length)));
});
test.after(async () => {
  if (home === undefined) delete process.env.TAPLINE_HOME;
  else process.env.TAPLINE_HOME = home;
  await model.close();
  await lab.close();
});

/** A folder with a ReLU dictionary as SAELens saves it. */
function saeLens(encoder: Float32Array, decoder: Float32Array): string {
  const folder = temporaryFolder("sae");
  const features = encoder.length / hidden;
  const tensors: Record<string, Tensor> = {
    W_enc: { shape: [hidden, features], data: encoder },
    W_dec: { shape: [features, hidden], data: decoder },
    b_enc: { shape: [features], data: new Float32Array(features) },
    b_dec: { shape: [hidden], data: new Float32Array(hidden) },
  };
  writeFileSync(join(folder, "sae_weights.safetensors"), encodeSafetensors(tensors));
  const metadata = { model_name: "toy-instruct", hook_name: `blocks.${layer}.hook_resid_post` };
  writeFileSync(join(folder, "cfg.json"), JSON.stringify({ architecture: "standard", metadata }));
  return folder;
}

/** The operation itself, as a worker runs it, and the folder of its files. */
async function run<R>(body: object): Promise<R & { place: string }> {
  const config = checkSubmission({ model: "demo", ...body });
  const place = mkdtempSync(join(lab.home, "job-"));
  const openOther = () => Promise.reject(new Error("One model is enough."));
  const input = { config, model, artifacts: new Artifacts(place), openOther, clock: new StageClock() };
  return { ...((await runOperation({ ...input, progress: () => {} })) as R), place };
}

/** The arrays that an operation left. */
const arraysOf = ({ place }: { place: string }, name: string) => readNpz(readFileSync(join(place, name)));

test("a lossless dictionary gives the block's own values, and every figure is perfect", async () => {
  const found = await run<FeaturesResult>({ operation: "features", dictionary: "exact", prompt, top: 64 });
  const seen = await run<InspectResult>({ operation: "inspect", prompt, layers: [layer] });
  const states = arraysOf(seen, "activations.npz").get(`layer_${layer}`)?.data as Float64Array;
  const [text] = found.texts;
  assert.equal(text?.token_ids, seen.token_ids);
  for (const [token, top] of (text?.top ?? []).entries()) {
    const row = [...states.subarray(token * hidden, (token + 1) * hidden)];
    const wanted = row
      .map((value, i) => ({ feature: value > 0 ? i : hidden + i, activation: Math.abs(value) }))
      .sort((a, b) => b.activation - a.activation)
      .slice(0, 64);
    assert.equal(top, wanted, `token ${token}`);
  }
  const { fidelity } = found;
  assert.is(fidelity.tokens, seen.tokens.length - 1, "the BOS token does not count");
  assert.is(fidelity.l0, hidden);
  assert.ok(Math.abs((fidelity.explained_variance as number) - 1) < 1e-9);
  assert.ok(Math.abs((fidelity.loss_recovered as number) - 1) < 1e-4);
  assert.ok(
    Math.abs((fidelity.cross_entropy?.clean ?? 0) - (await crossEntropy(text?.token_ids ?? []))) < 1e-4,
  );
  assert.match(found.note, /toy-instruct/);
  assert.not.match(found.note, /trained on texts/);
  const numpy = readNpzWithNumpy(join(found.place, "features.npz"));
  if (numpy !== null) {
    assert.equal(numpy.indices?.shape, [hidden * seen.tokens.length]);
    assert.is(numpy.indices?.dtype, "int32");
    assert.equal(numpy.pointers?.shape, [seen.tokens.length + 1]);
  }
});

test("a Lab runs it and records the block", async () => {
  const body = { operation: "features", dictionary: "exact", prompt };
  const job = await lab.finished((await lab.submit({ model: "demo", ...body })).id);
  const { provenance, artifacts, ...found } = job.result as FeaturesResult;
  assert.equal([provenance.layers, artifacts], [[layer], ["features.npz"]]);
  const { place: _, ...own } = await run<FeaturesResult>(body);
  assert.equal(found, own);
});

test("a dictionary trained on texts that started differently gives a warning", async () => {
  const size = { W_enc: [hidden, 2], W_dec: [2, hidden], b_enc: [2], b_dec: [hidden] };
  const tensors = Object.fromEntries(
    Object.entries(size).map(([name, shape]) => {
      const data = new Float32Array(shape.reduce((product, length) => product * length, 1)).fill(0.1);
      return [name, { shape, data }];
    }),
  );
  const folder = temporaryFolder("sae");
  writeFileSync(join(folder, "sae_weights.safetensors"), encodeSafetensors(tensors));
  const metadata = { hook_name: `blocks.${layer}.hook_resid_post`, prepend_bos: false };
  writeFileSync(join(folder, "cfg.json"), JSON.stringify({ architecture: "standard", metadata }));
  await new Dictionaries(lab.home).add("other", folder);
  const { note } = await run<FeaturesResult>({ operation: "features", dictionary: "other", prompt });
  assert.match(note, /trained on texts without a BOS token; this model adds one\./);
});

test("a dictionary that writes zeros recovers nothing", async () => {
  const texts = [prompt, "I did not like the film"];
  const { fidelity, texts: read } = await run<FeaturesResult>({
    operation: "features",
    dictionary: "nothing",
    texts,
  });
  assert.is(read.length, 2);
  const { clean, reconstructed, ablated } = fidelity.cross_entropy as NonNullable<
    typeof fidelity.cross_entropy
  >;
  assert.ok(Math.abs(reconstructed - ablated) < 1e-6);
  assert.ok(ablated > clean + 0.5, "zeros instead of a block's output cost something");
  assert.ok(Math.abs(fidelity.loss_recovered as number) < 1e-6);
  assert.ok((fidelity.explained_variance as number) <= 0);
});

test("a feature's page: tokens by quantile, promoted tokens, neighbours, labels", async () => {
  const texts = [
    prompt,
    "I did not like the film at all, and the trip was worse.",
    "Anna gave the book to Tom.",
  ];
  const seen = await run<InspectResult>({ operation: "inspect", prompt, layers: [7] });
  const states = arraysOf(seen, "activations.npz").get("layer_7");
  const last = Float32Array.from(states?.data.slice(-hidden) ?? []);
  // Row 3 is what the model's head reads at the end of the prompt; 9 and 20 are near 4, one on the other side.
  const random = new TestRandom(4);
  const decoder = random.normals(hidden * hidden);
  decoder.set(last, 3 * hidden);
  for (let i = 0; i < hidden; i++) {
    decoder[9 * hidden + i] = 3 * (decoder[4 * hidden + i] as number) + 0.5 * random.normal();
    decoder[20 * hidden + i] = -(decoder[4 * hidden + i] as number);
  }
  const encoder = new Float32Array(hidden * hidden);
  for (let i = 0; i < hidden; i++) encoder[i * hidden + i] = 1;
  await new Dictionaries(lab.home).add("pages", saeLens(encoder, decoder));
  const labels = join(temporaryFolder("labels"), "batch-0.jsonl.gz");
  const rows = [
    { modelId: "toy", layer: "5-x", index: "4", description: "capital cities" },
    { modelId: "toy", layer: "5-x", index: "4", description: "a second one" },
    { modelId: "toy", layer: "5-x", index: "9", description: "places" },
  ];
  writeFileSync(labels, gzipSync(rows.map((row) => JSON.stringify(row)).join("\n")));
  const found = await run<FeaturesResult>({
    ...{ operation: "features", dictionary: "pages", texts, pages: [4, 3], labels },
  });
  const arrays = arraysOf(found, "features.npz");
  const numbers = (name: string) => [...(arrays.get(name)?.data ?? [])];
  const [pointers, indices, values, starts] = ["pointers", "indices", "values", "text_starts"].map(
    numbers,
  ) as number[][];
  const activation = (token: number, feature: number) => {
    for (let i = pointers![token]!; i < pointers![token + 1]!; i++)
      if (indices![i] === feature) return values![i]!;
    return 0;
  };
  const [four, three] = found.pages ?? [];
  assert.equal(
    [four?.feature, four?.label, three?.feature, three?.label],
    [4, "capital cities", 3, undefined],
  );
  const active = texts
    .flatMap((_, text) =>
      Array.from({ length: starts![text + 1]! - starts![text]! - 1 }, (_, i) => ({
        text,
        token: i + 1, // a BOS token is no text
        activation: activation(starts![text]! + i + 1, 4),
      })),
    )
    .filter((place) => place.activation > 0)
    .sort((a, b) => b.activation - a.activation);
  assert.ok(active.length >= 8);
  assert.is(four?.active_tokens, active.length);
  const [top, ...quarters] = four?.groups ?? [];
  const bare = ({ text, token, activation }: { text: number; token: number; activation: number }) => ({
    text,
    token,
    activation,
  });
  assert.equal(top?.examples.map(bare), active.slice(0, 5));
  for (const { name, examples } of quarters) {
    const quarter = ["75-100 %", "50-75 %", "25-50 %", "0-25 %"].indexOf(name);
    for (const example of examples) {
      const rank = active.findIndex((place) => place.text === example.text && place.token === example.token);
      assert.ok(rank >= 5 && rank >= Math.floor((active.length * quarter) / 4));
      assert.ok(rank < Math.floor((active.length * (quarter + 1)) / 4));
      example.activations.forEach((value, i) => {
        assert.is(value, activation(starts![example.text]! + example.from + i, 4));
      });
      assert.is(example.activations[example.token - example.from], example.activation);
    }
  }
  assert.is(
    four?.histogram.reduce((sum, { tokens }) => sum + tokens, 0),
    active.length,
  );
  const upper = active.filter((place) => place.activation >= (active[0]!.activation * 19) / 20).length;
  assert.is(four?.histogram.at(-1)?.tokens, upper);
  // The head as the model itself applies it.
  assert.equal(
    three?.raised?.slice(0, 5).map(({ token_id }) => token_id),
    seen.next_tokens.map(({ token_id }) => token_id),
  );
  const effects = three?.raised?.map(({ effect }) => effect) ?? [];
  assert.ok(effects.every((effect, i) => effect > 0 && (i === 0 || effect <= effects[i - 1]!)));
  assert.ok((three?.lowered?.[0]?.effect ?? 0) < 0);
  const cosine = (a: number, b: number) => {
    const [x, y] = [a, b].map((row) => decoder.subarray(row * hidden, (row + 1) * hidden)) as [
      Float32Array,
      Float32Array,
    ];
    return x.reduce((sum, value, i) => sum + value * y[i]!, 0) / Math.hypot(...x) / Math.hypot(...y);
  };
  const others = Array.from({ length: hidden }, (_, i) => i).filter((i) => i !== 4);
  const nearest = others.sort((a, b) => cosine(4, b) - cosine(4, a)).slice(0, 8);
  assert.equal(
    four?.neighbours.map(({ feature }) => feature),
    nearest,
  );
  assert.equal([nearest[0], four?.neighbours[0]?.label], [9, "places"]);
  assert.ok(Math.abs((four?.neighbours[0]?.cosine ?? 0) - cosine(4, 9)) < 1e-6);
});

test("labels come from a host only when it is named, and from nowhere else", async () => {
  const asked: string[] = [];
  const host = createServer((request, response) => {
    asked.push(request.url ?? "");
    if (request.url === "/api/feature/toy/5-x/2") {
      response.end(JSON.stringify({ index: "2", explanations: [{ description: "numbers" }] }));
    } else {
      response.writeHead(request.url === "/api/feature/toy/5-x/3" ? 404 : 500).end();
    }
  });
  await new Promise<void>((resolve) => host.listen(0, "127.0.0.1", resolve));
  const labels = `http://127.0.0.1:${(host.address() as AddressInfo).port}/api/feature/toy/5-x`;
  try {
    const { pages } = await run<FeaturesResult>({
      ...{ operation: "features", dictionary: "exact", prompt, pages: [2, 3], labels },
    });
    assert.equal(
      pages?.map(({ label }) => label),
      ["numbers", undefined],
    );
    assert.equal(asked, ["/api/feature/toy/5-x/2", "/api/feature/toy/5-x/3"]);
    const body = { operation: "features", dictionary: "exact", prompt };
    await assertFails({ ...body, pages: [1], labels }, /feature\/toy\/5-x\/1 returned HTTP 500\.$/);
    await assertFails({ ...body, pages: [256] }, /has 256 features, 0 to 255; got 256/);
    await assertFails(
      { ...body, pages: [1], labels: join(lab.home, "none") },
      /^Cannot read .* \(ENOENT\)\.$/,
    );
  } finally {
    host.close();
  }
});

async function assertFails(body: object, sentence: RegExp): Promise<void> {
  assert.match(await refusal(() => run(body)), sentence);
}

test("steering with a feature equals steering with its decoder row, to the bit", async () => {
  const steer = { operation: "compare", prompt, intervention: "steer", max_tokens: 1 };
  const found = await run<CompareResult>({
    ...steer,
    layers: [layer],
    strengths: [90],
    strength_unit: "vector",
    feature: ["exact", hidden + 3],
  });
  assert.is(found.vector_length, 1);
  const row = new Float32Array(hidden);
  row[3] = -1;
  const context = await model.createContext({ maxSequences: 2, threads: 1 });
  const [trial] = await context.sweep({
    prompts: [await model.tokenize(prompt)],
    plans: [[{ layer, vector: row, strength: 90 }]],
    maxTokens: 1,
  });
  await context.close();
  assert.is(found.trials[0]?.probability, trial?.rows[0]?.probability);
  assert.is.not(found.trials[0]?.probability, found.trials[0]?.baseline_probability);
});

test("a clamp of a feature holds its activation at a value", async () => {
  const feature = hidden + 3; // the negative of value 3, where that is below 0
  const seen = await run<InspectResult>({ operation: "inspect", prompt, layers: [layer] });
  const states = arraysOf(seen, "activations.npz").get(`layer_${layer}`)?.data as Float64Array;
  const row = Float32Array.from(states.subarray(-hidden));
  const own = Math.max(0, -(row[3] as number));
  const found = await run<CompareResult>({
    ...{ operation: "compare", prompt, intervention: "clamp", max_tokens: 1, layers: [layer] },
    ...{ strengths: [0, 1], feature: ["exact", feature], min: own + 40, max: own + 40 },
  });
  const held = row.slice();
  held[3] = (held[3] as number) - 40;
  const context = await model.createContext({ maxSequences: 2, threads: 1 });
  const [trial] = await context.sweep({
    prompts: [await model.tokenize(prompt)],
    plans: [[{ layer, scale: 0, vector: held, strength: 1 }]],
    maxTokens: 1,
  });
  await context.close();
  const [neutral, clamped] = found.trials;
  assert.is(neutral?.probability, neutral?.baseline_probability);
  assert.ok(Math.abs((clamped?.change?.length as number) - 40) < 1e-3);
  assert.ok(Math.abs((clamped?.probability as number) - (trial?.rows[0]?.probability as number)) < 1e-6);
  assert.is.not(clamped?.probability, clamped?.baseline_probability);
  const unit = await lab.request("POST", "/jobs", {
    ...{ operation: "compare", model: "demo", prompt, intervention: "clamp", strengths: [1], min: 1 },
    ...{ feature: ["exact", 0], strength_unit: "row_norm" },
  });
  assert.is(unit.status, 400);
  assert.match(unit.body.error, /^strength_unit: does not apply to clamping a feature/);
});

test("invalid requests are refused in one sentence", async () => {
  await assertFails(
    { operation: "features", dictionary: "gone", prompt },
    /no dictionary named gone; there are exact, nothing/,
  );
  const steer = { operation: "compare", prompt, intervention: "steer", strengths: [1] };
  await assertFails({ ...steer, layers: [2], feature: ["exact", 0] }, /reads block 5, not 2/);
  await assertFails(
    { ...steer, layers: [layer], feature: ["exact", 256] },
    /has 256 features, 0 to 255; got 256/,
  );
  const both = await lab.request("POST", "/jobs", {
    ...{ operation: "features", model: "demo", dictionary: "exact", prompt },
    texts: [prompt],
  });
  assert.is(both.status, 400);
  const beside = await lab.request("POST", "/jobs", {
    ...{ ...steer, model: "demo", feature: ["exact", 0] },
    positive: "a",
    negative: "b",
  });
  assert.is(beside.status, 400);
});

/** Nats a token of a text's own next tokens, by a plain pass over every prefix. */
async function crossEntropy(tokens: readonly number[]): Promise<number> {
  const context = await model.createContext({ threads: 1 });
  let sum = 0;
  for (let length = 1; length < tokens.length; length++) {
    await context.reset();
    const { logits } = await context.advance({
      tokens: Int32Array.from(tokens.slice(0, length)),
      layers: [],
      logits: true,
    });
    const values = Array.from(logits ?? []);
    const highest = Math.max(...values);
    const total = values.reduce((all, value) => all + Math.exp(value - highest), 0);
    sum -= (values[tokens[length] as number] as number) - highest - Math.log(total);
  }
  await context.close();
  return sum / (tokens.length - 1);
}

test.run();
