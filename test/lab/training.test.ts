import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { Compile } from "typebox/compile";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Job, type ProbeResult, type SaeResult } from "../../src/contracts/index.js";
import { bootstrapIntervals } from "../../src/findings/uncertainty.js";
import { demoModelPath } from "../../src/models/resolve.js";
import { Model, trainProbe } from "../../src/native/index.js";
import { pythonWith } from "../support/python.js";
import { isWilson } from "../support/wilson.js";
import { type Harness, openHarness } from "./harness.js";
import { readNpz } from "./npz-reader.js";

const cities = ["Paris", "Rome", "Madrid", "Tokyo", "Berlin", "Lima", "Cairo", "Oslo", "Vienna", "Prague"];
const probeExamples = cities.flatMap((city, index) => [
  { text: `${city} is a capital`, label: 1, split: index < 6 ? "train" : "test" },
  { text: `I love ${city}`, label: 0, split: index < 6 ? "train" : "test" },
]);
const saeExamples = probeExamples.map(({ text, split }) => ({ text, split }));

let harness: Harness;
/** float32 [examples, hidden] of layers 2 and 5, captured by the same means as the jobs do. */
const features = new Map<number, Float32Array>();
let hidden = 0;

test.before(async () => {
  harness = await openHarness();
  const model = await Model.open(demoModelPath);
  hidden = model.info.nEmbd;
  const sequences = await Promise.all(probeExamples.map(({ text }) => model.tokenize(text)));
  const context = await model.createContext({ nCtx: 512, nBatch: 512, maxSequences: 32, threads: 1 });
  const captured = await context.features({ sequences, layers: [2, 5] });
  for (const [layer, { data }] of captured) features.set(layer, data);
  await model.close();
});
test.after(() => harness.close());

async function run(body: object): Promise<Job> {
  const { id } = await harness.submit({ model: "demo", layers: [5, 2], ...body });
  const job = await harness.finished(id);
  if (job.status !== "completed") throw new Error(job.error);
  assert.ok(Compile(Job).Check(job), JSON.stringify(Compile(Job).Errors(job)).slice(0, 500));
  return job;
}

async function artifact(job: Job, name: string): Promise<Buffer> {
  const { status, bytes } = await harness.request("GET", `/jobs/${job.id}/artifacts/${name}`);
  assert.is(status, 200, name);
  return bytes;
}

test("probe: the file's weights reproduce every score and the report", async () => {
  const job = await run({ operation: "probe", examples: probeExamples });
  const { reports, artifacts } = job.result as ProbeResult;
  assert.equal(artifacts, ["probe-layer-5.npz", "probe-layer-2.npz"]);
  assert.equal(
    reports.map(({ layer }) => layer),
    [5, 2],
  );
  for (const report of reports) {
    const file = readNpz(await artifact(job, `probe-layer-${report.layer}.npz`));
    const [weight, bias, mean, std] = ["weight", "bias", "mean", "std"].map((name) => file.get(name)!);
    assert.equal(weight!.shape, [hidden]);
    assert.equal(bias!.shape, []);
    report.scores.forEach(({ score, text, split, label }, row) => {
      let sum = bias!.data[0]!;
      for (let k = 0; k < hidden; k++) {
        const x = features.get(report.layer)![row * hidden + k]!;
        sum += ((x - mean!.data[k]!) / std!.data[k]!) * weight!.data[k]!;
      }
      const expected = 1 / (1 + Math.exp(-sum));
      assert.ok(Math.abs(score - expected) < 1e-6, `${text}: ${score} and ${expected}`);
      assert.equal({ text, split, label }, probeExamples[row]);
    });
    const test = report.scores.filter(({ split }) => split === "test");
    const right = test.filter(({ score, label }) => score > 0.5 === (label === 1)).length;
    assert.is(report.accuracy, right / test.length);
    assert.is(report.test_size, test.length);
    assert.is(report.train_size, probeExamples.length - test.length);
    const brier = test.reduce((total, { score, label }) => total + (score - label) ** 2, 0) / test.length;
    assert.ok(Math.abs(report.brier - brier) < 1e-9);
    assert.is(report.majority_accuracy, 0.5);
    assert.ok(report.converged);
    const { accuracy_interval: accuracy, auc_interval: auc, shuffled_labels: shuffled } = report;
    assert.ok(accuracy!.low <= report.accuracy && report.accuracy <= accuracy!.high);
    assert.ok(auc!.low <= report.auc && report.auc <= auc!.high);
    assert.is(shuffled!.permutations, 100);
    for (const { low, high, mean, std } of [shuffled!.accuracy, shuffled!.auc]) {
      assert.ok(0 <= low && low <= mean && mean <= high && high <= 1 && std > 0, JSON.stringify(shuffled));
    }
    assert.ok(shuffled!.p_accuracy >= 1 / 101 && shuffled!.p_auc >= 1 / 101);
  }
});

test("sae: identical block outputs have no variance to explain, as a note says", async () => {
  // The same token follows the beginning of each text: block 0 of a text of one token sees nothing else.
  const examples = Array.from({ length: 8 }, (_, index) => ({
    text: index < 4 ? "Paris" : "London",
    split: index < 4 ? "train" : "test",
  }));
  const job = await run({ operation: "sae", examples, features: 8, steps: 5 });
  for (const report of (job.result as SaeResult).reports) {
    assert.is(report.explained_variance, null);
    assert.match(
      report.note!,
      "The held-out block outputs are identical, so there is no variance to explain.",
    );
  }
});

/** Tensors of a .safetensors file, read by its specification. */
function readSafetensors(bytes: Buffer): Map<string, { shape: number[]; data: Float32Array }> {
  const length = Number(bytes.readBigUInt64LE(0));
  const { __metadata__: _metadata, ...header } = JSON.parse(bytes.toString("utf8", 8, 8 + length));
  const start = 8 + length;
  assert.is(start % 8, 0);
  return new Map(
    Object.entries(header as Record<string, { dtype: string; shape: number[]; data_offsets: number[] }>).map(
      ([
        name,
        {
          dtype,
          shape,
          data_offsets: [from, to],
        },
      ]) => {
        assert.is(dtype, "F32");
        return [
          name,
          {
            shape,
            data: new Float32Array(new Uint8Array(bytes.subarray(start + from!, start + to!)).buffer),
          },
        ];
      },
    ),
  );
}

test("sae: the files are the autoencoder that the report describes", async () => {
  const job = await run({ operation: "sae", examples: saeExamples, features: 24, steps: 45 });
  const { reports, artifacts } = job.result as SaeResult;
  assert.equal(
    artifacts,
    [5, 2].flatMap((layer) => [`sae-layer-${layer}.safetensors`, `sae-normalization-${layer}.npz`]),
  );
  for (const report of reports) {
    const tensors = readSafetensors(await artifact(job, `sae-layer-${report.layer}.safetensors`));
    const file = readNpz(await artifact(job, `sae-normalization-${report.layer}.npz`));
    const [encoder, encoderBias, decoder, decoderBias] = [
      "encoder.weight",
      "encoder.bias",
      "decoder.weight",
      "decoder.bias",
    ].map((name) => tensors.get(name)!);
    assert.equal(encoder!.shape, [24, hidden]);
    assert.equal(decoder!.shape, [hidden, 24]);
    const mean = file.get("mean")!.data;
    const scale = file.get("scale")!.data[0]!;
    const tests = saeExamples.flatMap(({ split }, row) => (split === "test" ? [row] : []));
    let squares = 0;
    let active = 0;
    const alive = new Set<number>();
    for (const row of tests) {
      const x = Array.from(mean, (m, k) => (features.get(report.layer)![row * hidden + k]! - m) / scale);
      const f = Array.from(encoderBias!.data, (b, i) =>
        Math.max(
          0,
          x.reduce((sum, value, k) => sum + value * encoder!.data[i * hidden + k]!, b),
        ),
      );
      f.forEach((value, i) => {
        if (value > 0) alive.add(i);
      });
      active += f.filter((value) => value > 0).length;
      x.forEach((value, k) => {
        const back = f.reduce((sum, fi, i) => sum + fi * decoder!.data[k * 24 + i]!, decoderBias!.data[k]!);
        squares += (back - value) ** 2;
      });
    }
    const mse = squares / tests.length / hidden;
    assert.ok(Math.abs(report.held_out_mse - mse) < 1e-4 * mse, `${report.held_out_mse} and ${mse}`);
    assert.ok(Math.abs(report.mean_active - active / tests.length) < 0.2);
    assert.ok(Math.abs(report.dead_features - (24 - alive.size)) <= 1);
    assert.is(report.dead_fraction, report.dead_features / 24);
    assert.equal(
      report.losses.map(({ step }) => step),
      [0, 10, 20, 30, 40, 45],
    );
    assert.ok(report.losses.at(-1)!.loss < report.losses[0]!.loss);
    assert.ok(report.features.length <= 16 && report.features.length > 0);
    const held = new Set(saeExamples.filter(({ split }) => split === "test").map(({ text }) => text));
    for (const { examples } of report.features)
      for (const { text } of examples) assert.ok(held.has(text), text);
  }
});

/** The reports of a job, and the bytes of its files. */
async function outcome(body: object): Promise<{ reports: unknown; files: Buffer[] }> {
  const job = await run(body);
  const { reports, artifacts } = job.result as ProbeResult;
  const files: Buffer[] = [];
  for (const name of artifacts) files.push(await artifact(job, name));
  return { reports, files };
}

test("probe: a seed fixes numbers and files; the report equals the trainer's results", async () => {
  // More of one class than of the other, and some labelled wrongly: no figure is 0.5 or 1 by chance.
  const examples = probeExamples
    .filter((_, row) => row !== 18 && row !== 0)
    .map((one, row) => (row % 5 === 1 ? { ...one, label: 1 - one.label } : one));
  const rows = probeExamples.flatMap((_, row) => (row === 18 || row === 0 ? [] : [row]));
  const labels = Uint8Array.from(examples, ({ label }) => label);
  const train = Uint8Array.from(examples, ({ split }) => Number(split === "train"));
  const ask = (seed: number) => outcome({ operation: "probe", examples, seed });
  const first = await ask(0);
  assert.equal(await ask(0), first);
  const scored = (first.reports as ProbeResult["reports"])[0]!.scores.filter(({ split }) => split === "test");
  const interval = (seed: number) => bootstrapIntervals(scored, { resamples: 2000, seed });
  // Few examples have few intervals: one of the first seeds has another than seed 0.
  const seed = Array.from({ length: 200 }, (_, one) => one + 1).find(
    (one) => JSON.stringify(interval(one)) !== JSON.stringify(interval(0)),
  )!;
  for (const [asked, { reports }] of [
    [0, first],
    [seed, await ask(seed)],
  ] as const) {
    for (const report of reports as ProbeResult["reports"]) {
      const all = features.get(report.layer)!;
      const data = Float32Array.from(
        rows.flatMap((row) => [...all.subarray(row * hidden, (row + 1) * hidden)]),
      );
      const told = await trainProbe({ features: data, train, labels, seed: asked, permutations: 100 });
      assert.not.equal(told.shuffledLabelAccuracy, told.majorityAccuracy);
      const close = (a: number, b: number, what: string) =>
        assert.ok(Math.abs(a - b) < 1e-4, `${what}: ${a} and ${b}`);
      close(report.accuracy, told.accuracy, "accuracy");
      close(report.auc, told.auc, "auc");
      close(report.brier, told.brier, "brier");
      close(report.majority_accuracy, told.majorityAccuracy, "majority");
      close(report.shuffled_label_accuracy, told.shuffledLabelAccuracy, "shuffled");
      const mean = (values: Float64Array) => values.reduce((sum, value) => sum + value, 0) / values.length;
      close(report.shuffled_labels!.accuracy.mean, mean(told.permutedAccuracies), "permuted accuracies");
      close(report.shuffled_labels!.auc.mean, mean(told.permutedAucs), "permuted areas");
      const good = (values: Float64Array, least: number) =>
        (1 + values.filter((value) => value >= least).length) / 101;
      close(
        report.shuffled_labels!.p_accuracy,
        good(told.permutedAccuracies, told.accuracy),
        "p of accuracy",
      );
      close(report.shuffled_labels!.p_auc, good(told.permutedAucs, told.auc), "p of the area");
      const held = report.scores.filter(({ split }) => split === "test");
      const intervals = bootstrapIntervals(held, { resamples: 2000, seed: asked });
      isWilson(report.accuracy_interval!, report.accuracy, held.length);
      assert.ok(report.auc > 0 && report.auc < 1);
      assert.equal(report.auc_interval, intervals.auc);
    }
  }
});

test("sae: a seed fixes numbers and files, and another seed changes them", async () => {
  const ask = (seed: number) =>
    outcome({ operation: "sae", examples: saeExamples, features: 16, steps: 20, seed });
  const five = await ask(5);
  assert.equal(await ask(5), five);
  const other = await ask(6);
  assert.not.equal(other.reports, five.reports);
  assert.not(other.files[0]!.equals(five.files[0]!));
});

test("numpy and the safetensors reader open the files", async () => {
  const python = pythonWith("numpy", "safetensors");
  if (python === undefined) return;
  const job = await run({ operation: "sae", examples: saeExamples, features: 16, steps: 5 });
  const folder = join(harness.lab.folder, job.id);
  const program =
    "import sys, numpy as np\nfrom safetensors.numpy import load_file\n" +
    "t = load_file(sys.argv[1]); n = np.load(sys.argv[2])\n" +
    "print(t['encoder.weight'].shape, t['decoder.bias'].dtype, n['mean'].dtype, n['scale'].shape)";
  const { stdout, stderr } = spawnSync(
    python,
    ["-c", program, join(folder, "sae-layer-2.safetensors"), join(folder, "sae-normalization-2.npz")],
    { encoding: "utf8" },
  );
  assert.is(stdout.trim(), `(16, ${hidden}) float32 float32 ()`, stderr);
});

test("an example over the limit fails the job with its number", async () => {
  const examples = saeExamples.map((example, index) =>
    index === 3 ? { ...example, text: "Paris ".repeat(40) } : example,
  );
  const { id } = await harness.submit({ operation: "sae", model: "demo", examples, max_input_tokens: 20 });
  const job = await harness.finished(id);
  assert.is(job.status, "failed");
  assert.match(job.error as string, /^examples\[3\]\.text has \d+ tokens; max_input_tokens allows 20\.$/);
});

test.run();
