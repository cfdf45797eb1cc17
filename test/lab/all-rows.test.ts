import { fileURLToPath } from "node:url";
import { Compile } from "typebox/compile";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Job, type ProbeResult } from "../../src/contracts/index.js";
import { bootstrapIntervals } from "../../src/findings/uncertainty.js";
import { allRows, sharedRows } from "../../src/lab/rows/all-rows.js";
import { demoModelPath } from "../../src/models/resolve.js";
import { Model } from "../../src/native/index.js";
import { pythonWith } from "../support/python.js";
import { reference } from "../support/reference.js";
import { isWilson } from "../support/wilson.js";
import { type Harness, openHarness } from "./harness.js";
import { readNpz } from "./npz-reader.js";

const sklearn = fileURLToPath(new URL("../verify/numerics/reference/probe.py", import.meta.url));
const cities = ["Paris", "Rome", "Madrid", "Tokyo", "Berlin", "Lima", "Cairo", "Oslo", "Vienna", "Prague"];
// Some are labelled wrongly, and texts differ in length, so that no figure of rows is the one of texts.
const examples = cities.flatMap((city, index) => [
  { text: `${city} is a capital of the world`, label: index % 4 === 1 ? 0 : 1, split: side(index) },
  { text: `I love ${city}`, label: 0, split: side(index) },
]);
function side(index: number) {
  return index < 6 ? "train" : "test";
}

let harness: Harness;
let model: Model;
test.before(async () => {
  harness = await openHarness();
  model = await Model.open(demoModelPath);
});
test.after(async () => {
  await harness.close();
  await model.close();
});

async function run(body: object): Promise<Job> {
  const { id } = await harness.submit({ operation: "probe", model: "demo", ...body });
  const job = await harness.finished(id);
  if (job.status !== "completed") throw new Error(job.error);
  assert.ok(Compile(Job).Check(job), JSON.stringify(Compile(Job).Errors(job)).slice(0, 500));
  return job;
}

/** The rows of every text after its BOS token, each text in its own pass, and which text each row belongs to. */
async function rowsAlone(layer: number) {
  const context = await model.createContext({ threads: 1, nCtx: 64, nBatch: 64 });
  const found: { text: number; token: number; id: number; row: Float32Array }[] = [];
  const width = model.info.nEmbd;
  for (const [text, example] of examples.entries()) {
    await context.reset();
    const tokens = await model.tokenize(example.text, { special: true, parseSpecial: false });
    const { data } = (await context.advance({ tokens, layers: [layer] })).layers[0]!.states!;
    for (let token = model.info.addBos ? 1 : 0; token < tokens.length; token++)
      found.push({
        text,
        token,
        id: tokens[token]!,
        row: data.slice(token * width, (token + 1) * width) as Float32Array,
      });
  }
  await context.close();
  return found;
}

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const close = (a: number, b: number, tolerance: number, what: string) =>
  assert.ok(Math.abs(a - b) <= tolerance, `${what}: ${a} and ${b}`);

/** What scores and labels give, by hand. */
function figuresOf(scored: { label: number; score: number }[]) {
  const [zeros, ones] = [0, 1].map((label) => scored.filter((one) => one.label === label));
  return {
    accuracy: mean(scored.map(({ label, score }) => Number(score > 0.5 === (label === 1)))),
    auc: mean(ones!.flatMap((one) => zeros!.map((zero) => (Math.sign(one.score - zero.score) + 1) / 2))),
    brier: mean(scored.map(({ label, score }) => (score - label) ** 2)),
  };
}

test("a probe of every row: rows get their text's label; figures count texts and rows", async () => {
  const layers = [5, 2];
  const job = await run({ examples, rows: "all", layers });
  const { rows, reports, artifacts } = job.result as ProbeResult;
  assert.is(rows, "all");
  assert.equal(
    artifacts,
    layers.flatMap((layer) => [`probe-layer-${layer}.npz`, `probe-rows-${layer}.npz`]),
  );
  const artifact = async (name: string) =>
    readNpz((await harness.request("GET", `/jobs/${job.id}/artifacts/${name}`)).bytes);
  for (const report of reports) {
    const alone = await rowsAlone(report.layer);
    const weights = await artifact(`probe-layer-${report.layer}.npz`);
    const kept = await artifact(`probe-rows-${report.layer}.npz`);
    const of = (name: string) => [...kept.get(name)!.data];
    assert.equal([of("text"), of("token")], [alone.map(({ text }) => text), alone.map(({ token }) => token)]);
    const [weight, bias, mu, std] = ["weight", "bias", "mean", "std"].map((name) => weights.get(name)!.data);
    const scores = of("score");
    for (const [index, { row }] of alone.entries()) {
      const z = row.reduce((sum, x, k) => sum + ((x - mu![k]!) / std![k]!) * weight![k]!, bias![0]!);
      // Computed here in a separate pass, with K and V in F16.
      close(scores[index]!, 1 / (1 + Math.exp(-z)), 0.02, `row ${index}`);
    }
    const texts = examples.map(({ text, label, split }, index) => ({
      ...{ text, label, split },
      score: mean(scores.filter((_, row) => alone[row]!.text === index)),
    }));
    for (const [index, text] of texts.entries()) {
      close(report.scores[index]!.score, text.score, 1e-12, text.text);
      assert.equal({ ...report.scores[index], score: 0 }, { ...text, score: 0 });
    }
    const heldTexts = texts.filter(({ split }) => split === "test");
    const everyRow = alone.map(({ text }, row) => ({ ...examples[text]!, of: text, score: scores[row]! }));
    const heldRows = everyRow.filter(({ split }) => split === "test");
    const byRow = report.by_row!;
    for (const [found, all, held] of [
      [report, texts, heldTexts],
      [byRow, everyRow, heldRows],
    ] as const) {
      const wanted = figuresOf([...held]);
      close(found.accuracy, wanted.accuracy, 1e-12, "accuracy");
      close(found.auc, wanted.auc, 1e-12, "AUROC");
      close(found.brier, wanted.brier, 1e-9, "Brier score");
      assert.is(found.test_size, held.length);
      assert.is(found.train_size + found.test_size, all.length);
      const ones = all.filter(({ split, label }) => split === "train" && label === 1).length;
      const majority = Number(2 * ones > found.train_size);
      assert.is(found.majority_accuracy, mean(held.map(({ label }) => Number(label === majority))));
      assert.is(found.shuffled_labels!.permutations, 100);
    }
    assert.not.equal(byRow.accuracy, report.accuracy);
    const settings = { resamples: 2000, seed: 0 };
    const ofTexts = bootstrapIntervals(heldTexts as never, settings);
    isWilson(report.accuracy_interval!, report.accuracy, heldTexts.length);
    assert.ok(report.auc > 0 && report.auc < 1, `${report.auc}`);
    assert.equal(report.auc_interval, ofTexts.auc);
    const clustered = bootstrapIntervals(heldRows as never, {
      ...settings,
      of: heldRows.map((row) => row.of),
    });
    assert.equal([byRow.accuracy_interval, byRow.auc_interval], [clustered.accuracy, clustered.auc]);
    const beginning = ({ text, token }: { text: number; token: number }) =>
      alone
        .filter((one) => one.text === text && one.token <= token)
        .map(({ id }) => id)
        .join();
    const trained = new Set(alone.filter(({ text }) => examples[text]!.split === "train").map(beginning));
    const shared = alone.filter((row) => examples[row.text]!.split === "test" && trained.has(beginning(row)));
    assert.is(byRow.shared_rows, shared.length);
    // "I love" of eight training texts, and the four held-out ones.
    assert.ok(shared.length >= 8, `${shared.length} shared`);
  }
});

test("scikit-learn fits the same probe to the same rows", async () => {
  const python = pythonWith("numpy", "sklearn");
  if (python === undefined) return;
  const layer = 5;
  const job = await run({ examples, rows: "all", layers: [layer] });
  const report = (job.result as ProbeResult).reports[0]!;
  const alone = await rowsAlone(layer);
  const theirs = reference<{
    weight: number[];
    accuracy: number;
    auc: number;
    by_group: { accuracy: number; auc: number };
  }>(python, sklearn, {
    features: Float32Array.from(alone.flatMap(({ row }) => [...row])),
    labels: Uint8Array.from(alone, ({ text }) => examples[text]!.label),
    train: Uint8Array.from(alone, ({ text }) => Number(examples[text]!.split === "train")),
    groups: Int32Array.from(alone, ({ text }) => text),
    ...{ c: 1, tolerance: 1e-10 },
  });
  const file = readNpz((await harness.request("GET", `/jobs/${job.id}/artifacts/probe-layer-5.npz`)).bytes);
  const ours = file.get("weight")!.data;
  let [both, mine, its] = [0, 0, 0];
  for (const [k, value] of theirs.weight.entries()) {
    both += value * ours[k]!;
    mine += ours[k]! ** 2;
    its += value ** 2;
  }
  // Its rows come from separate passes, with K and V in F16.
  const cosine = both / Math.sqrt(mine * its);
  assert.ok(cosine > 0.999, `cosine of the weights ${cosine}`);
  close(report.by_row!.accuracy, theirs.accuracy, 1e-9, "accuracy of rows");
  close(report.by_row!.auc, theirs.auc, 5e-3, "AUROC of rows");
  close(report.accuracy, theirs.by_group.accuracy, 1e-9, "accuracy of texts");
  close(report.auc, theirs.by_group.auc, 1e-9, "AUROC of texts");
});

test("more rows than a probe can train on are refused before computing", async () => {
  const texts = (count: number, length: number) =>
    Array.from({ length: count }, () => ({ tokens: new Int32Array(length), start: 1 }));
  const sentence = (count: number, length: number, sizes: { layers: number; hidden: number }) => {
    try {
      return allRows(texts(count, length), sizes).bytes;
    } catch (error) {
      return (error as Error).message;
    }
  };
  // 512 texts of 32 rows are 16,384.
  assert.is(sentence(512, 33, { layers: 1, hidden: 4096 }), 2 ** 28);
  assert.is(
    sentence(512, 34, { layers: 1, hidden: 1 }),
    "rows all: the examples have 16896 activations; a probe is trained on at most 16384.",
  );
  assert.is(
    sentence(512, 33, { layers: 8, hidden: 896 }),
    "rows all: 16384 rows of 896 numbers at 8 layers take 470 MB; at most 268 MB are allowed: choose fewer layers or texts.",
  );
  assert.is(
    sentence(512, 33, { layers: 1, hidden: 4097 }),
    "rows all: 16384 rows of 4097 numbers at 1 layer take 269 MB; at most 268 MB are allowed: choose fewer layers or texts.",
  );
  const long = Array.from({ length: 90 }, (_, index) => ({
    text: `${index} ${"word ".repeat(200)}`,
    label: index % 2,
    split: index % 3 === 0 ? "test" : "train",
  }));
  const asked = { operation: "probe", model: "demo", max_input_tokens: 1024, rows: "all" };
  const { id } = await harness.submit({ ...asked, examples: long });
  const job = await harness.finished(id);
  assert.match(
    job.error as string,
    /^rows all: the examples have \d{5} activations; a probe is trained on at most 16384\.$/,
  );
});

test("texts share only the rows of a common beginning, and never a BOS token's", () => {
  const text = (...tokens: number[]) => ({ tokens: Int32Array.from(tokens), start: 1 });
  const given = [text(1, 7, 8, 9), text(1, 7, 5), text(1, 7, 8, 4), text(1, 8, 8, 9), text(1, 7, 8, 9, 2)];
  const train = [true, true, false, false, false];
  // 7 8 of the third, nothing of the fourth, 7 8 9 of the fifth.
  assert.is(sharedRows(given, train), 5);
});

test.run();
