/** Probes, autoencoders and extractions of another point than the block's output, and who refuses them. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  type CompareResult,
  type Config,
  checkSubmission,
  type DriftResult,
  type FeaturesResult,
  type Operation,
} from "../../src/contracts/index.js";
import { encodeNpz } from "../../src/formats/npz-writer.js";
import { decodeSafetensors, encodeSafetensors } from "../../src/formats/safetensors.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { trainFromExtraction } from "../../src/lab/training/from-extraction.js";
import { readProbe, writeProbe } from "../../src/library/files.js";
import { Dictionaries, modelFingerprint, Probes } from "../../src/library/index.js";
import { demoModelPath } from "../../src/models/resolve.js";
import { type Context, type Edit, Model, type Point } from "../../src/native/index.js";
import { runOperation } from "../../src/operations/runs.js";
import { npyFile, zipOf } from "../support/npz-bytes.js";
import { pythonWith } from "../support/python.js";

const width = 128;
const texts = ["Paris is big", "Rome is old", "Tokyo is far", "Lima is warm"].flatMap((text) => [
  text,
  `I love ${text}`,
]);
const examples = texts.map((text, index) => ({
  text,
  label: index % 2,
  split: index < 4 ? "train" : "test",
}));

const folder = mkdtempSync(join(tmpdir(), "tapline-points-"));
const home = join(folder, "home");
const homeBefore = process.env.TAPLINE_HOME;
let model: Model;
let context: Context;
test.before(async () => {
  process.env.TAPLINE_HOME = home;
  model = await Model.open(demoModelPath);
  context = await model.createContext({ nCtx: 64, threads: 1 });
});
test.after(async () => {
  if (homeBefore === undefined) delete process.env.TAPLINE_HOME;
  else process.env.TAPLINE_HOME = homeBefore;
  await model.close();
  rmSync(folder, { recursive: true, force: true });
});

/** An operation in this process; where its files are comes with what it found. */
async function run(operation: Operation, body: object) {
  const config = checkSubmission({ operation, model: "demo", ...body }) as Config;
  const place = mkdtempSync(join(folder, "job-"));
  const openOther = () => Model.open(demoModelPath);
  const input = {
    config,
    model,
    artifacts: new Artifacts(place),
    progress: () => {},
    clock: new StageClock(),
    openOther,
  };
  const result = await runOperation(input);
  return { result: result as unknown as Record<string, never>, file: (name: string) => join(place, name) };
}

const sentence = (work: Promise<unknown>) =>
  work.then(
    () => "accepted",
    (error: Error) => error.message,
  );

/** The last row of a text at a point, in a separate pass. */
async function lastRow(text: string, layer: number, point: Point): Promise<Float32Array> {
  await context.reset();
  const { layers } = await context.advance({
    tokens: await model.tokenize(text),
    layers: [layer],
    points: [point],
    rows: "last",
  });
  return layers[0]?.states?.data as Float32Array;
}

const identity = async () => ({
  ...{ id: "demo", fingerprint: await modelFingerprint(demoModelPath), nEmbd: width, nLayer: 8 },
});

test("a probe reads and records its point; block outputs do not fit it", async () => {
  const { result, file } = await run("probe", { examples, layers: [4], point: "attn_out" });
  assert.is(result.point, "attn_out");
  const bytes = readFileSync(file("probe-layer-4.npz"));
  const read = readProbe(bytes, { model: await identity(), restamp: false, layer: 4 });
  assert.is(read.point, "attn_out");
  const { weight, mean, std, bias } = read.probe;
  const [report] = result.reports as unknown as { scores: { text: string; score: number }[] }[];
  for (const { text, score } of report?.scores ?? []) {
    const row = await lastRow(text, 4, "attn_out");
    let sum = bias;
    for (const [i, value] of row.entries()) {
      sum += ((value - (mean[i] as number)) / (std[i] as number)) * (weight[i] as number);
    }
    assert.ok(Math.abs(score - 1 / (1 + Math.exp(-sum))) < 1e-4, `${text}: ${score}`);
  }

  const probes = new Probes(home);
  const stored = await probes.put("inner", read.layer, read.probe, read.model, read);
  assert.equal([stored.point, stored.layer], ["attn_out", 4]);
  assert.is((await probes.list())[0]?.point, "attn_out");
  // What leaves as a file comes back as what it was.
  const again = readProbe(writeProbe(await probes.file("inner"), "safetensors"), {
    model: undefined,
    restamp: false,
    layer: undefined,
  });
  assert.is(again.point, "attn_out");
  const refusal = "The probe inner reads attn_out of block 4; only block outputs are supported here.";
  assert.is(await sentence(probes.ofBlockOutput("inner", await identity())), refusal);
  const drift = { other: "demo", examples, probe: "inner" };
  assert.is(await sentence(run("drift", drift)), refusal);
});

test("a probe file without a point means block_out; unknown points are refused", async () => {
  const numbers = Object.fromEntries(
    ["weight", "mean", "std"].map((name) => [
      name,
      { shape: [width], data: new Float64Array(width).fill(1) },
    ]),
  );
  const bias = { shape: [], data: Float64Array.of(0) };
  const reading = { model: await identity(), restamp: false, layer: 2 };
  const old = readProbe(await encodeNpz({ ...numbers, bias }), reading);
  assert.is(old.point, "block_out");
  const { result, file } = await run("probe", { examples, layers: [4] });
  assert.is(result.point, undefined);
  assert.not.match(readFileSync(file("probe-layer-4.npz"), "latin1"), /point\.npy/);
  const odd = await encodeNpz({ ...numbers, bias, point: "résidu" });
  assert.throws(() => readProbe(odd, reading), /^The file reads the unknown point "résidu"\.$/);
  const python = pythonWith("numpy");
  if (python === undefined) return;
  const path = join(folder, "odd.npz");
  writeFileSync(path, odd);
  const said = spawnSync(python, [
    "-c",
    "import sys, numpy; print(str(numpy.load(sys.argv[1])['point']).encode())",
    path,
  ]);
  assert.is(said.stdout.toString().trim(), "b'r\\xc3\\xa9sidu'");
});

test("words in a hostile .npz are not arrays and break nothing", () => {
  const word = (descr: string, shape: string, bytes: Buffer) => {
    const array = npyFile(new Float32Array(1), []);
    const header = array
      .toString("latin1")
      .replace("'<f4'", descr)
      .replace(/'shape': \(\)/, `'shape': ${shape}`);
    return Buffer.concat([Buffer.from(header.slice(0, -4), "latin1"), bytes]);
  };
  const reading = { model: undefined, restamp: false, layer: 2 };
  for (const hostile of [
    word("'<U9'", "()", Buffer.alloc(36, 0xff)),
    word("'<U999'", "()", Buffer.alloc(4)),
    word("'<U1'", "(3,)", Buffer.alloc(12)),
  ]) {
    assert.throws(() => readProbe(zipOf({ point: hostile }), reading), /in the \.npz file is of type /);
  }
});

test("an autoencoder of another point works there, and is refused elsewhere", async () => {
  const { result, file } = await run("sae", {
    ...{ examples, layers: [3], features: 8, steps: 3, point: "ffn_out" },
  });
  assert.is(result.point, "ffn_out");
  const path = file("sae-layer-3.safetensors");
  assert.is(decodeSafetensors(readFileSync(path)).metadata.point, "ffn_out");
  const dictionaries = new Dictionaries(home);
  const stored = await dictionaries.add("inner", path);
  assert.equal([stored.point, stored.layer], ["ffn_out", 3]);
  assert.equal(
    (await dictionaries.list()).map(({ point }) => point),
    ["ffn_out"],
  );
  assert.is(
    await sentence(dictionaries.add("other", path, { point: "mid" })),
    "According to its publisher it reads ffn_out, not mid.",
  );
  // Live requests and plain comparisons change block outputs.
  const refusal = (point: string) =>
    `The dictionary inner reads ffn_out of block 3, not ${point}; its features are directions at that point only.`;
  assert.is(await sentence(dictionaries.direction("inner", 0, 3, shape)), refusal("block_out"));
  const prompt = "Paris is";
  const steer = {
    ...{ prompt, layers: [3], intervention: "steer", feature: ["inner", 0], strengths: [3], max_tokens: 1 },
    strength_unit: "vector",
  };
  assert.is(await sentence(run("compare", steer)), refusal("block_out"));
  assert.is(await sentence(run("compare", { ...steer, point: "mid" })), refusal("mid"));
  // The same training on block outputs adds no note, as before.
  const plain = await run("sae", { examples, layers: [3], features: 8, steps: 3 });
  assert.is(decodeSafetensors(readFileSync(plain.file("sae-layer-3.safetensors"))).metadata.point, undefined);
  assert.is((await dictionaries.add("plain", plain.file("sae-layer-3.safetensors"))).point, "block_out");
});

const shape = { nEmbd: width, nLayer: 8 };

/** A ReLU dictionary with a feature for each sign of each value, in SAELens's layout: it loses nothing. */
function lossless(hook: string, decoderScale = 1): string {
  const place = mkdtempSync(join(folder, "lossless-"));
  const encoder = new Float32Array(2 * width * width);
  const decoder = new Float32Array(2 * width * width);
  for (let i = 0; i < width; i++) {
    encoder[i * 2 * width + i] = 1;
    encoder[i * 2 * width + width + i] = -1;
    decoder[i * width + i] = decoderScale;
    decoder[(width + i) * width + i] = -decoderScale;
  }
  const zeros = (length: number) => ({ shape: [length], data: new Float32Array(length) });
  writeFileSync(
    join(place, "sae_weights.safetensors"),
    encodeSafetensors({
      W_enc: { shape: [width, 2 * width], data: encoder },
      W_dec: { shape: [2 * width, width], data: decoder },
      ...{ b_enc: zeros(2 * width), b_dec: zeros(width) },
    }),
  );
  writeFileSync(
    join(place, "cfg.json"),
    JSON.stringify({ architecture: "standard", metadata: { hook_name: hook } }),
  );
  return place;
}

test("features reads a dictionary at its point, and replaces the activations there", async () => {
  const dictionaries = new Dictionaries(home);
  const prompt = "The capital of France is";
  for (const [hook, point, layer] of [
    ["blocks.3.hook_attn_out", "attn_out", 3],
    ["blocks.3.hook_mlp_out", "ffn_out", 3],
    ["blocks.3.hook_resid_mid", "mid", 3],
    ["blocks.3.mlp.hook_in", "ffn_in", 3],
    ["blocks.0.hook_resid_pre", "block_in", 0],
  ] as const) {
    const stored = await dictionaries.add("exact", lossless(hook));
    assert.equal([stored.point, stored.layer, stored.hook], [point, layer, hook]);
    const { result } = await run("features", { dictionary: "exact", prompt, top: 3 });
    const { texts: read, fidelity, point: said } = result as unknown as FeaturesResult;
    assert.is(said, point);
    const row = await lastRow(prompt, layer, point);
    const wanted = Array.from(row, (value, i) => ({
      ...{ feature: value > 0 ? i : width + i, activation: Math.abs(value) },
    })).sort((a, b) => b.activation - a.activation);
    const top = read[0]?.top.at(-1) ?? [];
    assert.equal(
      top.map(({ feature }) => feature),
      wanted.slice(0, 3).map(({ feature }) => feature),
      point,
    );
    for (const [i, { activation }] of top.entries()) {
      const off = Math.abs(activation - (wanted[i]?.activation as number));
      assert.ok(off < 1e-3 * activation, `${point}: ${off}`);
    }
    // Nothing is lost where it is put back, and something where it is not.
    assert.ok((fidelity.explained_variance as number) > 1 - 1e-6, point);
    const { clean, reconstructed, ablated } = fidelity.cross_entropy as NonNullable<
      typeof fidelity.cross_entropy
    >;
    assert.ok(Math.abs(reconstructed - clean) < 1e-4, `${point}: ${reconstructed} and ${clean}`);
    assert.ok(Math.abs(ablated - clean) > 1e-3, `${point}: zeros cost ${ablated - clean}`);
    // Zeros at the point give the same as a comparison's ablation there.
    const none = await dictionaries.add("none", lossless(hook, 0));
    assert.is(none.point, point);
    const empty = (await run("features", { dictionary: "none", prompt })).result as unknown as FeaturesResult;
    const zeros = empty.fidelity.cross_entropy;
    assert.ok(Math.abs((zeros?.reconstructed as number) - ablated) < 1e-6, point);
    assert.ok(Math.abs((zeros?.ablated as number) - ablated) < 1e-6, point);
  }
  const { result } = await run("drift", {
    ...{ other: "demo", examples, layers: [3], dictionary: "exact" },
  });
  const { dictionary } = result as unknown as DriftResult;
  assert.equal([dictionary?.point, dictionary?.layer], ["block_in", 0]);
  assert.equal(dictionary?.jaccard, { value: 1, low: 1, high: 1 });
});

test("a feature of another point steers that point by its decoder row, to the bit", async () => {
  const dictionaries = new Dictionaries(home);
  await dictionaries.add("exact", lossless("blocks.3.hook_mlp_out"));
  const prompt = "The capital of France is";
  const asked = { prompt, layers: [3], point: "ffn_out", max_tokens: 1 };
  const found = await run("compare", {
    ...{ ...asked, intervention: "steer", feature: ["exact", width + 5], strengths: [40] },
    strength_unit: "vector",
  });
  const vector = new Float32Array(width);
  vector[5] = -1;
  const probability = async (edit: Edit) => {
    const sweeping = await model.createContext({ maxSequences: 2, threads: 1 });
    const [trial] = await sweeping.sweep({
      ...{ prompts: [await model.tokenize(prompt)], plans: [[edit]], maxTokens: 1 },
    });
    await sweeping.close();
    return trial?.rows[0]?.probability as number;
  };
  const trial = ({ result }: typeof found) => (result as unknown as CompareResult).trials[0];
  const steered = trial(found);
  assert.is(steered?.probability, await probability({ layer: 3, point: "ffn_out", vector, strength: 40 }));
  assert.is.not(steered?.probability, steered?.baseline_probability);
  const row = await lastRow(prompt, 3, "ffn_out");
  const own = Math.max(0, row[5] as number);
  const clamp = { ...asked, intervention: "clamp", feature: ["exact", 5], strengths: [1] };
  const held = trial(await run("compare", { ...clamp, min: own + 30, max: own + 30 }));
  assert.ok(Math.abs((held?.change?.length as number) - 30) < 1e-3);
});

test("an extraction holds the rows of its point, and trainings on it record the point", async () => {
  const out = join(folder, "rows");
  const asked = { examples: texts.map((text) => ({ text })), layers: [2, 7], rows: "all", out };
  const { result } = await run("extract", { ...asked, point: "mid" });
  assert.is(result.point, "mid");
  const index = JSON.parse(readFileSync(join(out, "index.json"), "utf8"));
  assert.is(index.source.point, "mid");
  const { tensors } = decodeSafetensors(readFileSync(join(out, index.shards[0].file)));
  const starts = tensors.get("text_starts")?.data as Float32Array;
  for (const layer of [2, 7]) {
    const rows = tensors.get(`layer_${layer}`)?.data as Float32Array;
    for (const [text, expected] of texts.entries()) {
      const last = (starts[text + 1] as number) - 1;
      const found = rows.subarray(last * width, (last + 1) * width);
      const alone = await lastRow(expected, layer, "mid");
      const gap = Math.hypot(...found.map((value, i) => value - (alone[i] as number))) / Math.hypot(...alone);
      assert.ok(gap < 1e-3, `block ${layer}, text ${text}: ${gap}`);
    }
  }
  assert.match(
    await sentence(run("extract", asked)),
    /contains a different extraction: the two differ in point\. Choose another folder\.$/,
  );
  const training = { from: out, layers: [2], features: 8, steps: 2 };
  const trained = await run("sae", training);
  assert.is(trained.result.point, "mid");
  const head = decodeSafetensors(readFileSync(trained.file("sae-layer-2.safetensors"))).metadata;
  assert.is(head.point, "mid");
  assert.match(readFileSync(trained.file("cfg.json"), "utf8"), /"hook_name": "blocks\.2\.hook_resid_mid"/);
  const wrong = `${out} contains mid of blocks 2, 7, not attn_out.`;
  assert.is(await sentence(run("sae", { ...training, point: "attn_out" })), wrong);
  const here = { ...training, architecture: "relu" as const, seed: 0, point: "attn_out" as const };
  assert.is(await sentence(trainFromExtraction(here, join(folder, "trained"))), wrong);
});

test.run();
