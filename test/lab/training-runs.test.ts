/** Trainings of dictionaries from files to files, layer by layer: an extraction by hand, and a trainer that only counts. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Progress, SaeConfig } from "../../src/contracts/index.js";
import type { BlockPoint } from "../../src/contracts/names.js";
import { decodeSafetensors, encodeSafetensors } from "../../src/formats/safetensors.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { extractionFormat } from "../../src/lab/extraction/folder.js";
import { lock } from "../../src/lab/lock.js";
import { Checkpoint } from "../../src/lab/training/checkpoint.js";
import { type TrainedDictionary, writeOwn, writeSaeLens } from "../../src/lab/training/files.js";
import {
  type ExtractionTraining,
  filesOf,
  trainFromExtraction,
} from "../../src/lab/training/from-extraction.js";
import { modelFingerprint } from "../../src/library/index.js";
import { DictionaryTrainer, type DictionaryTraining, type FeatureRequest } from "../../src/native/index.js";
import { sae } from "../../src/operations/sae/run.js";
import { watchDisk } from "../support/disk.js";
import { refusal } from "../support/refusal.js";
import { readNpz } from "./npz-reader.js";
import { inputIn, ownHome, signal, there, toy } from "./toy.js";

const { folder, leave } = ownHome("training-runs");
const { open } = DictionaryTrainer;
test.after(() => {
  DictionaryTrainer.open = open;
  leave();
});

const path = join(folder, "model.gguf");
writeFileSync(path, "no model at all");

/** Two features of rows of three numbers. */
const weights = {
  ...{ encoder: Float32Array.of(1, 2, 3, 4, 5, 6), encoderBias: Float32Array.of(0.5, -0.5) },
  ...{ decoder: Float32Array.of(1, 0, 2, 0, 3, 0), decoderBias: Float32Array.of(1, -1, 2) },
  ...{ threshold: Float32Array.of(0.25, 0.75), mean: Float32Array.of(10, 20, 30), scale: 4 },
};

const opened: DictionaryTraining[] = [];
DictionaryTrainer.open = (async (training: DictionaryTraining) => {
  opened.push(training);
  let done = 0;
  return {
    rows: { train: 2, heldOut: 2 },
    run: async (steps: number, { onProgress }: { onProgress: (done: number) => void }) => {
      onProgress(done);
      done += steps;
      return { stepsDone: done, mse: 1, active: 1, dead: 0 };
    },
    evaluate: async () => ({
      ...{ rows: 2, mse: 1, explainedVariance: 0.5, active: 1, dead: 0 },
      ...{ frequency: Float32Array.of(0, 1), mean: Float32Array.of(0, 1) },
    }),
    trainError: async () => ({ rows: 2, mse: 3 }),
    strongest: async () => [[{ piece: 0, row: 5, activation: 3 }]],
    state: async () => ({ progress: Float32Array.of(0, done) }),
    weights: async () => weights,
    close: async () => {},
  };
}) as unknown as typeof open;

/** An extraction of two texts of three tokens, BOS tokens first, at the blocks 1 and 5. */
async function extraction(name: string, source: object = {}, model: object = { model: "toy" }) {
  const place = join(folder, name);
  mkdirSync(place, { recursive: true });
  const ints = (...numbers: number[]) => ({ shape: [numbers.length], data: Int32Array.from(numbers) });
  const layer = { shape: [6, 3], data: new Float32Array(18) };
  writeFileSync(
    join(place, "shard-00000.safetensors"),
    encodeSafetensors({
      ...{ text_indices: ints(0, 1), text_starts: ints(0, 3, 6), token_ids: ints(0, 1, 2, 0, 3, 4) },
      ...{ layer_1: layer, layer_5: layer },
    }),
  );
  const index = {
    ...{ format: extractionFormat, complete: true, texts: 2, rows: 6, made_with: model },
    source: {
      ...{ model_fingerprint: await modelFingerprint(path), layers: [1, 5], hidden: 3, rows: "all" },
      ...{ dtype: "f32", skipped_in_mean: 1, ...source },
    },
    shards: [{ file: "shard-00000.safetensors", rows: 6 }],
  };
  writeFileSync(join(place, "index.json"), JSON.stringify(index));
  return place;
}

const jsonOf = (...parts: string[]) => JSON.parse(readFileSync(join(...parts), "utf8"));

test("a training into a folder saves layer after layer, then deletes its checkpoint", async () => {
  const from = await extraction("rows");
  const out = join(folder, "trained");
  const said: ExtractionTraining = {
    ...{
      from,
      architecture: "topk",
      k: 1,
      features: 2,
      steps: 2,
      seed: 6,
      layers: [5, 1],
      point: "block_out",
    },
  };
  const told: Progress[] = [];
  const { remove } = Checkpoint.prototype;
  const finished: number[][] = [];
  Checkpoint.prototype.remove = async function () {
    assert.ok(readdirSync(out).includes(`checkpoint-layer-${finished.length === 0 ? 5 : 1}.safetensors`));
    finished.push(jsonOf(out, "sae.json").reports.map(({ layer }: { layer: number }) => layer));
    await remove.call(this);
  };
  const disk = watchDisk();
  opened.length = 0;
  try {
    await trainFromExtraction(said, out, {
      ...{ threads: 2, checkpointSeconds: 0 },
      progress: (one) => {
        // Leftover files of a killed process do not interfere.
        if (told.length === 0) writeFileSync(join(out, "sae-layer-5.safetensors.partial"), "torn");
        told.push(one);
      },
    });
    for (const file of ["sae.json", ...[5, 1].flatMap((layer) => filesOf(out, layer))]) {
      assert.is(disk.lossOf(file === "sae.json" ? join(out, file) : file), null);
    }
    for (const layer of [5, 1]) assert.ok(disk.isGone(join(out, `checkpoint-layer-${layer}.safetensors`)));
    assert.equal(disk.hasty, []);
  } finally {
    disk.stop();
    Checkpoint.prototype.remove = remove;
  }
  assert.equal(finished, [[5], [5, 1]], "a finished layer is on disk before its checkpoint is deleted");
  assert.equal(told, [
    { stage: "layer 5: train", done: 0, total: 4 },
    { stage: "layer 5: training, 50.0 % explained", done: 1, total: 4 },
    { stage: "layer 1: train", done: 2, total: 4 },
    { stage: "layer 1: training, 50.0 % explained", done: 3, total: 4 },
  ]);
  assert.equal(
    opened.map(({ threads, seed, pieces }) => [
      threads,
      seed,
      [...pieces[0]!.uses].filter((use) => use === 0).length,
    ]),
    [
      [2, 6, 2],
      [2, 6, 2],
    ],
  );
  assert.ok(opened[0]!.pieces[0]!.offset > opened[1]!.pieces[0]!.offset, "layer 5 lies behind layer 1");
  const { training, model, reports } = jsonOf(out, "sae.json");
  const { from: _, point: __, ...settings } = said;
  assert.equal({ ...training, extraction: "" }, { ...settings, extraction: "" });
  assert.equal([model, training.extraction.length], ["toy", 64]);
  assert.equal(
    reports.map(({ layer, features }: { layer: number; features: { examples: object[] }[] }) => [
      layer,
      features[0]!.examples,
    ]),
    [5, 1].map((layer) => [layer, [{ text: "text 1, token 2", activation: 3 }]]),
  );
  assert.equal(readdirSync(out).sort(), [
    ...["sae-layer-1.safetensors", "sae-layer-5.safetensors", "sae-normalization-1.npz"],
    ...["sae-normalization-5.npz", "sae.json", "saelens-layer-1", "saelens-layer-5"],
  ]);
  // A single layer is not named in the stages; finished work is not repeated.
  const one: Progress[] = [];
  await trainFromExtraction({ ...said, layers: [1] }, join(folder, "one"), {
    progress: (each) => void one.push(each),
  });
  assert.equal([one[0]!.stage, one[0]!.total], ["train", 2]);
  opened.length = 0;
  assert.equal((await trainFromExtraction(said, out)).reports, reports);
  assert.equal(opened, []);
  const every = await trainFromExtraction({ ...said, layers: undefined }, join(folder, "every"));
  assert.equal(
    every.reports.map(({ layer }) => layer),
    [1, 5],
  );
});

test("a dictionary's files record its origin: BOS token, model and hook point", async () => {
  const said = { architecture: "batchtopk", k: 1, features: 2, steps: 1, seed: 1, layers: [5] } as const;
  for (const [name, source, model, metadata] of [
    [
      "with-bos",
      {},
      { model: "toy" },
      { hook_name: "blocks.5.hook_resid_post", model_name: "toy", prepend_bos: true },
    ],
    [
      ...(["without-bos", { skipped_in_mean: 0, point: "attn_out" }, {}] as const),
      { hook_name: "blocks.5.hook_attn_out", model_name: "", prepend_bos: false },
    ],
  ] as const) {
    const out = join(folder, `out-${name}`);
    await trainFromExtraction({ ...said, from: await extraction(name, source, model) }, out);
    const { sae_lens_version, sae_lens_training_version, ...rest } = jsonOf(
      out,
      "saelens-layer-5",
      "cfg.json",
    ).metadata;
    assert.equal([rest, sae_lens_version, sae_lens_training_version], [metadata, "6.0.0", null]);
  }
});

/** x in, reconstruction out, by the arithmetic that each layout is published with. */
function rebuilt(
  x: number[],
  tensors: ReadonlyMap<string, { data: ArrayLike<number> }>,
  fire: (h: number) => number,
) {
  const of = (name: string) => tensors.get(name)!.data;
  // SAELens: f = act(x W_enc + b_enc), f W_dec + b_dec; W_enc [hidden, features], W_dec [features, hidden].
  const f = [0, 1].map((feature) =>
    fire(x.reduce((sum, value, i) => sum + value * of("W_enc")[i * 2 + feature]!, of("b_enc")[feature]!)),
  );
  return {
    f,
    y: x.map((_, i) => f.reduce((sum, value, j) => sum + value * of("W_dec")[j * 3 + i]!, of("b_dec")[i]!)),
  };
}

test("both layouts do the same arithmetic, on normalized and on plain rows", async () => {
  const place = mkdtempSync(join(folder, "layouts-"));
  const artifacts = new Artifacts(place);
  const trained: TrainedDictionary = {
    ...{ layer: 7, point: "mid", architecture: "jumprelu", k: 0, weights, model: "toy", prependBos: true },
  };
  await writeOwn(artifacts, trained);
  await writeSaeLens(artifacts, trained);
  const own = decodeSafetensors(readFileSync(join(place, "sae-layer-7.safetensors")));
  assert.equal(
    Object.fromEntries([...own.tensors].map(([name, { shape, data }]) => [name, [shape, [...data]]])),
    {
      "encoder.weight": [
        [2, 3],
        [1, 2, 3, 4, 5, 6],
      ],
      "encoder.bias": [[2], [0.5, -0.5]],
      "decoder.weight": [
        [3, 2],
        [1, 0, 0, 3, 2, 0],
      ],
      "decoder.bias": [[3], [1, -1, 2]],
      threshold: [[2], [0.25, 0.75]],
    },
  );
  assert.equal(own.metadata, { layer: "7", architecture: "jumprelu", point: "mid", model: "toy" });
  const normalization = readNpz(readFileSync(join(place, "sae-normalization-7.npz")));
  assert.equal(
    [
      [...normalization.get("mean")!.data],
      [...normalization.get("scale")!.data],
      normalization.get("scale")!.shape,
    ],
    [[10, 20, 30], [4], []],
  );
  const theirs = decodeSafetensors(readFileSync(join(place, "sae_weights.safetensors"))).tensors;
  const x = [11, 19, 34];
  // (x - mean) / scale = (0.25, -0.25, 1): h = (3.25, 5.25); both exceed their thresholds.
  const z = [0.25, -0.25, 1];
  const h = [0.25 - 0.5 + 3 + 0.5, 1 - 1.25 + 6 - 0.5];
  const y = [h[0]! + 1, 3 * h[1]! - 1, 2 * h[0]! + 2].map((value, i) => 4 * value + [10, 20, 30][i]!);
  assert.equal(z.length, 3);
  const found = rebuilt(x, theirs, (value) => value);
  for (let i = 0; i < 2; i++) assert.ok(Math.abs(found.f[i]! - h[i]!) < 1e-5, `feature ${i}: ${found.f[i]}`);
  for (let i = 0; i < 3; i++) assert.ok(Math.abs(found.y[i]! - y[i]!) < 1e-4, `value ${i}: ${found.y[i]}`);
  assert.equal([...theirs.get("threshold")!.data], [0.25, 0.75]);

  const said = async (more: Partial<TrainedDictionary>) => {
    const folderOf = mkdtempSync(join(folder, "layouts-"));
    await writeSaeLens(new Artifacts(folderOf), { ...trained, ...more });
    await writeOwn(new Artifacts(folderOf), { ...trained, ...more });
    const { metadata, ...config } = jsonOf(folderOf, "cfg.json");
    const files = ["sae_weights.safetensors", "sae-layer-7.safetensors"].map((name) =>
      decodeSafetensors(readFileSync(join(folderOf, name))),
    );
    return { config, hook: metadata.hook_name, slice: metadata.seqpos_slice, files };
  };
  const fixed = {
    ...{ d_in: 3, d_sae: 2, dtype: "float32", device: "cpu", apply_b_dec_to_input: false },
    ...{ normalize_activations: "none", reshape_activations: "none" },
  };
  const { threshold: _, ...without } = weights;
  for (const [architecture, config, jumps, k] of [
    ["relu", { architecture: "standard" }, false, undefined],
    ["jumprelu", { architecture: "jumprelu" }, true, undefined],
    ["topk", { architecture: "topk", k: 9, rescale_acts_by_decoder_norm: false }, false, "9"],
    ["batchtopk", { architecture: "jumprelu" }, true, "9"],
  ] as const) {
    const found = await said({ architecture, k: 9, weights: jumps ? weights : without });
    assert.equal(found.config, { ...fixed, ...config });
    assert.is(found.files[0]!.tensors.has("threshold"), jumps, architecture);
    assert.equal([found.files[1]!.metadata.k, found.files[1]!.metadata.architecture], [k, architecture]);
  }
  const hooks: [BlockPoint, string][] = [
    ["block_in", "hook_resid_pre"],
    ["attn_out", "hook_attn_out"],
    ["mid", "hook_resid_mid"],
    ["ffn_in", "mlp.hook_in"],
    ["ffn_out", "hook_mlp_out"],
    ["block_out", "hook_resid_post"],
  ];
  for (const [point, hook] of hooks) assert.is((await said({ point })).hook, `blocks.7.${hook}`);
  for (const [firstPosition, slice, first] of [
    [undefined, undefined, undefined],
    [0, undefined, undefined],
    [3, [3, null], "3"],
  ] as const) {
    const found = await said({ firstPosition });
    assert.equal([found.slice, found.files[1]!.metadata.first_position], [slice, first]);
  }
  const nameless = (await said({ point: "block_out", model: "" })).files[1]!.metadata;
  assert.equal([nameless.model, nameless.point], [undefined, undefined]);
});

test("foreign folders, invalid results and concurrent use give one sentence each", async () => {
  const from = await extraction("refused");
  const train = (out: string, more: object = {}) =>
    trainFromExtraction(
      { ...{ from, architecture: "relu", features: 2, steps: 1, seed: 1, layers: [5] }, ...more },
      out,
    );
  const place = () => mkdtempSync(join(folder, "out-"));
  const out = place();
  for (const text of ["{", "[]", "null", '{"reports":[],"training":"x"}', '{"reports":{},"training":{}}']) {
    writeFileSync(join(out, "sae.json"), text);
    assert.is(
      await refusal(() => train(out)),
      `${join(out, "sae.json")} is not a training record; choose another folder.`,
      text,
    );
  }
  const odd = place();
  mkdirSync(join(odd, "sae.json"));
  assert.is(await refusal(() => train(odd)), `${join(odd, "sae.json")} cannot be read (EISDIR).`);
  const held = place();
  const own = await lock(join(held, "training.lock"), () => "held");
  assert.match(
    await refusal(() => train(held)),
    new RegExp(`^Process ${process.pid} has been training in ${held} since \\d{4}-.*\\.$`),
  );
  await own.release();
  await train(held);
  assert.not.ok(existsSync(join(held, "training.lock")));
  assert.is(
    await refusal(() => train(join(folder, "no", "where"))),
    `Cannot write to ${join(folder, "no", "where")} (ENOENT).`,
  );
  for (const there of filesOf("", 5)) {
    const taken = place();
    mkdirSync(join(taken, "saelens-layer-5"));
    writeFileSync(join(taken, there), "mine");
    assert.is(
      await refusal(() => train(taken)),
      `${join(taken, there)} already exists; choose another folder.`,
    );
  }
  assert.is(
    await refusal(() => train(place(), { point: "mid" })),
    `${from} contains block_out of blocks 1, 5, not mid.`,
  );
});

/** A job that trains, on a model of words whose rows are made of its tokens. */
async function job(body: object, info: object = {}) {
  const requests: FeatureRequest[] = [];
  const { model } = toy(
    {
      ...{ nBatch: 256, points: { block_out: there, mid: there } },
      features: async (request: FeatureRequest) => {
        requests.push(request);
        const rows = request.sequences.flatMap((tokens) =>
          request.rows === "all" ? [...tokens] : [tokens.at(-1)!],
        );
        const data = () => Float32Array.from(rows.flatMap((token) => [token, 1, 2]));
        return new Map(
          request.layers.map((layer) => [layer, { data: data(), excluded: { bos: 0, outliers: 0 } }]),
        );
      },
    },
    { path, nEmbd: 3, nLayer: 8, nVocab: 100, ...info },
  );
  const config = {
    ...{ operation: "sae", model: "asked", layers: [5], features: 2, steps: 2, seed: 4 },
    ...{ max_input_tokens: 9, max_tokens: 1, ...body },
  };
  const input = inputIn<SaeConfig>(folder, config, model);
  opened.length = 0;
  const found = await sae(input);
  return { found, requests, told: input.told, names: input.artifacts.names, place: input.place };
}

test("training on an extraction has layer stages and writes SAELens files", async () => {
  const from = await extraction("job");
  const two = await job({ from, layers: [5, 1], architecture: "topk", k: 1 });
  assert.equal(
    two.told.map(({ stage, done, total }) => [stage, done, total]),
    [
      ["layer 5: train", 0, 4],
      ["layer 5: training, 50.0 % explained", 1, 4],
      ["layer 1: train", 2, 4],
      ["layer 1: training, 50.0 % explained", 3, 4],
    ],
  );
  assert.equal(
    two.names,
    [5, 1].flatMap((layer) => [`sae-layer-${layer}.safetensors`, `sae-normalization-${layer}.npz`]),
  );
  assert.equal(
    [two.found.rows, two.found.point, two.found.reports.map(({ layer }) => layer), opened[0]!.seed],
    ["all", undefined, [5, 1], 4],
  );
  assert.is(two.found.reports[0]!.features[0]!.examples[0]!.text, "text 1, token 2");
  assert.is(two.found.reports[0]!.train_mse, 3, "measured after training");
  const one = await job({ from, rows: "last" });
  assert.equal([one.told[0]!.stage, one.told[0]!.total, one.found.rows], ["train", 2, undefined]);
  assert.equal(one.names.slice(2), ["sae_weights.safetensors", "cfg.json"]);
  assert.equal(jsonOf(one.place, "cfg.json").metadata.prepend_bos, true);
  assert.equal(
    jsonOf((await job({ from }, { addBos: false })).place, "cfg.json").metadata.prepend_bos,
    false,
  );
  const middle = await job({ from: await extraction("job-mid", { point: "mid" }) });
  assert.equal(
    [middle.found.point, jsonOf(middle.place, "cfg.json").metadata.hook_name],
    ["mid", "blocks.5.hook_resid_mid"],
  );
  for (const [model, name] of [
    [{ model: "toy" }, "toy"],
    [{}, "another model"],
  ] as const) {
    const other = await extraction("job-other", { model_fingerprint: "f" }, model);
    assert.is(
      await refusal(() => job({ from: other })),
      `${other} was extracted from ${name}, not from asked.`,
    );
  }
});

test("a job on examples extracts them first, and trains on the chosen ones", async () => {
  const examples = [
    { text: "a b", split: "train" },
    { text: "c d", split: "test" },
  ];
  const { requests, found, place, names } = await job({ examples, rows: "all", point: "mid", batch: 7 });
  assert.equal(
    requests.map(({ sequences, layers, rows, point }) => [
      sequences.map((tokens) => [...tokens]),
      layers,
      rows,
      point,
    ]),
    [
      [
        [
          [0, 1, 2],
          [0, 3, 4],
        ],
        [5],
        "all",
        "mid",
      ],
    ],
  );
  assert.equal(
    opened.map(({ pieces }) => [...pieces[0]!.uses]),
    [[0, 1, 1, 0, 2, 2]],
  );
  assert.equal([found.point, found.rows], ["mid", "all"]);
  assert.is(requests[0]!.signal, signal);
  assert.is(found.reports[0]!.features[0]!.examples[0]!.text, "c d", "the text itself is reported");
  assert.equal(readdirSync(place).sort(), [...names].sort(), "the rows are gone");
  const last = await job({ examples, architecture: "topk" });
  assert.equal([last.requests[0]!.rows, last.found.rows], ["last", undefined]);
  assert.equal(
    opened.map(({ pieces }) => [...pieces[0]!.uses]),
    [[1, 2]],
  );
  const responses = [
    { text: " b", prompt: "a", split: "train" },
    { text: " d", prompt: "c", split: "test" },
  ];
  const mean = await job({ examples: responses, rows: "response", batch: 1 });
  assert.equal([mean.requests[0]!.rows, [...mean.requests[0]!.starts!]], ["mean", [2, 2]]);
});

test("the small autoencoder of one batch is the default for rows of texts", async () => {
  // A text that is too long is named as either route knows it.
  const examples = [{ text: "a b", split: "train" }];
  const small = async (body: object) =>
    (await refusal(() => job({ examples, max_input_tokens: 2, ...body }))).startsWith(
      "examples[0].text has 3 tokens",
    );
  for (const body of [{}, { architecture: "relu" }, { rows: "mean" }, { rows: "last" }, { point: "mid" }]) {
    assert.ok(await small(body), JSON.stringify(body));
  }
  for (const body of [
    ...[{ architecture: "topk" }, { rows: "all" }, { batch: 4 }, { learning_rate: 1 }],
    ...[{ warmup: 0 }, { decay: 0 }, { sparsity: 0 }],
  ]) {
    assert.not(await small(body), JSON.stringify(body));
  }
});

test.run();
