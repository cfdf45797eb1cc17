/** Experiments whose texts or layers are divided between machines: merged, they have every bit of one machine's. */
// Runs alone: it changes the environment.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { checkSubmission, type FeaturesResult, type ProbeResult } from "../../src/contracts/index.js";
import { encodeSafetensors, type Tensor } from "../../src/formats/safetensors.js";
import { readPart } from "../../src/lab/parts/part-file.js";
import { Dictionaries } from "../../src/library/index.js";
import { Model, trainProbe } from "../../src/native/index.js";
import { demo } from "../native/demo-model.js";
import { TestRandom } from "../support/random.js";
import { refusal } from "../support/refusal.js";
import { saying } from "../support/saying.js";
import { inParts, mergedRun, onePart, wholeRun } from "./in-parts.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-split-"));
const home = process.env.TAPLINE_HOME;
process.env.TAPLINE_HOME = folder;
test.after(() => {
  if (home === undefined) delete process.env.TAPLINE_HOME;
  else process.env.TAPLINE_HOME = home;
  rmSync(folder, { recursive: true, force: true });
});

const hidden = 128;
const random = new TestRandom(8);

/** Saves a dictionary of 64 random features at block 4. */
async function keep(name: string): Promise<void> {
  const [place, features] = [mkdtempSync(join(folder, "sae-")), 64];
  const zeros = (length: number) => ({ shape: [length], data: new Float32Array(length) });
  const tensors: Record<string, Tensor> = {
    W_enc: { shape: [hidden, features], data: random.normals(hidden * features) },
    W_dec: {
      shape: [features, hidden],
      data: random.normals(features * hidden).map((value) => value / 16),
    },
    ...{ b_enc: zeros(features), b_dec: zeros(hidden) },
  };
  writeFileSync(join(place, "sae_weights.safetensors"), encodeSafetensors(tensors));
  const metadata = { hook_name: "blocks.4.hook_resid_post" };
  writeFileSync(join(place, "cfg.json"), JSON.stringify({ architecture: "standard", metadata }));
  await new Dictionaries(folder).add(name, place);
}
test.before(() => keep("some"));

const read = {
  ...{ operation: "features", model: demo, dictionary: "some", top: 3, pages: [5, 0] },
  texts: [
    "The capital of France is Paris.",
    "a",
    "The capital of Japan is",
    "One two three four five six seven",
    "no",
  ],
};

test("features in parts, merged, are those of one machine to the bit", async () => {
  const expected = await wholeRun(folder, read);
  const found = JSON.parse(expected.result) as FeaturesResult;
  assert.is(found.pages?.length, 2);
  assert.ok((found.pages?.[0]?.active_tokens ?? 0) > 3, "the dashboards have tokens of several texts");
  for (const order of [
    [1, 0],
    [3, 2, 0, 4, 1],
  ]) {
    const { result, files } = await mergedRun(folder, await inParts(folder, read, order));
    assert.ok(result === expected.result, `${order.length} parts`);
    assert.equal(files, expected.files, `${order.length} parts`);
  }
});

test("a text's values are its own, and one part has the dashboards", async () => {
  const place = await inParts(folder, read, [0, 1]);
  const bytes = () => [0, 1].map((part) => readFileSync(join(place, `part-${part}-of-2.json`), "utf8"));
  const before = bytes();
  await onePart(folder, read, [1, 2], place);
  assert.equal(bytes(), before, "a part that is computed twice is the same file");
  const [first, second] = await Promise.all(
    [0, 1].map(async (part) => (await readPart(join(place, `part-${part}-of-2.json`))).items as object[]),
  );
  assert.equal([first?.length, second?.length], [3, 2]);
  assert.equal(
    [...(first ?? []), ...(second ?? [])].map((item) => "pages" in item),
    [true, false, false, false, false],
  );
  // A different dictionary under the same name makes a different experiment.
  await keep("some");
  await onePart(folder, read, [1, 2], place);
  assert.match(
    await refusal(() => mergedRun(folder, place)),
    /^part-1-of-2\.json \([0-9a-f]{8}\) belongs to another experiment than part-0-of-2\.json /,
  );
});

const texts = (word: string, label: 0 | 1) =>
  ["train", "train", "train", "test", "test", "test"].map((split, n) => ({
    text: `${word} number ${n}${" very".repeat(n % 3)}`,
    ...{ label, split },
  }));
const trained = {
  ...{ operation: "probe", model: demo, layers: [5, 1, 3], seed: 4 },
  examples: [...texts("The capital of France", 0), ...texts("One two three", 1)],
};

for (const rows of ["last", "mean", "all"]) {
  test(`probes in parts, merged, are those of one machine to the bit: rows ${rows}`, async () => {
    const body = { ...trained, rows };
    const expected = await wholeRun(folder, body);
    const { reports } = JSON.parse(expected.result) as ProbeResult;
    assert.equal(
      reports.map(({ layer }) => layer),
      [5, 1, 3],
    );
    assert.is(Object.keys(expected.files).length, rows === "all" ? 6 : 3);
    for (const order of [
      [0, 1],
      [2, 0, 1],
    ]) {
      const { result, files, merged } = await mergedRun(folder, await inParts(folder, body, order));
      assert.ok(result === expected.result, `${order.length} parts`);
      assert.equal(files, expected.files, `${order.length} parts`);
      assert.equal(merged.job.result.provenance.layers, [5, 1, 3]);
    }
  });
}

const grid = { points: ["mid", "block_out"], positions: [-2, -1], c: [1, 0.01] };

test("a probe grid in parts, merged, is that of one machine to the bit", async () => {
  const body = { ...trained, grid };
  const expected = await wholeRun(folder, body);
  // 3 layers, and 3 times 2 times 2 times 2 cells: 27 items.
  for (const order of [[1, 0], [4, 0, 3, 1, 2], [...Array(27).keys()]]) {
    const { result, files } = await mergedRun(folder, await inParts(folder, body, order));
    assert.ok(result === expected.result, `${order.length} parts`);
    assert.equal(files, expected.files, `${order.length} parts`);
  }
  const { reports, grid: cells = [] } = JSON.parse(expected.result) as ProbeResult;
  assert.is(cells.length, 24);
  for (const { layer, accuracy, auc, brier, accuracy_interval, auc_interval } of reports) {
    const same = cells.find(
      (cell) => cell.layer === layer && cell.point === "block_out" && cell.position === -1 && cell.c === 1,
    );
    assert.equal(
      [same?.accuracy, same?.auc, same?.brier, same?.accuracy_interval, same?.auc_interval],
      [accuracy, auc, brier, accuracy_interval, auc_interval],
    );
  }
});

test("a cell's probe reads its point, its token and its C", async () => {
  const found = JSON.parse((await wholeRun(folder, { ...trained, grid })).result) as ProbeResult;
  const model = await Model.open(demo);
  const context = await model.createContext({ nCtx: 64 });
  const rows = new Float32Array(trained.examples.length * hidden);
  for (const [n, { text }] of trained.examples.entries()) {
    await context.reset();
    const tokens = await model.tokenize(text, { special: true, parseSpecial: false });
    const { layers } = await context.advance({ tokens, layers: [3], points: ["mid"], rows: "all" });
    const states = layers[0]?.states?.data as Float32Array;
    rows.set(states.slice(-2 * hidden, -hidden), n * hidden);
  }
  await context.close();
  await model.close();
  const train = Uint8Array.from(trained.examples, ({ split }) => Number(split === "train"));
  const labels = Uint8Array.from(trained.examples, ({ label }) => label);
  for (const c of grid.c) {
    const probe = await trainProbe({ features: rows, train, labels, c, seed: trained.seed });
    const cell = found.grid?.find(
      (one) => one.layer === 3 && one.point === "mid" && one.position === -2 && one.c === c,
    );
    assert.ok(Math.abs((cell?.brier ?? 1) - probe.brier) < 1e-4, `${cell?.brier}, not ${probe.brier}`);
    assert.is(cell?.auc, probe.auc);
  }
  const [one, other] = grid.c.map(
    (c) =>
      found.grid?.find(
        (cell) => cell.layer === 3 && cell.point === "mid" && cell.position === -2 && cell.c === c,
      )?.brier,
  );
  assert.ok(Math.abs((one ?? 0) - (other ?? 0)) > 1e-3, "C makes a difference");
});

test("a grid of other rows, of missing tokens, or of too many probes is refused", async () => {
  const checked = (more: object) => () => checkSubmission({ ...trained, ...more });
  assert.throws(
    checked({ grid, rows: "mean" }),
    saying("grid: requires the last tokens' activations, not rows mean."),
  );
  const numbers = (count: number) => Array.from({ length: count }, (_, n) => n + 1);
  const positions = numbers(11).map((n) => -n);
  assert.throws(
    checked({ grid: { c: numbers(32), positions } }),
    saying("grid: has 1056 probes; the limit is 1024."),
  );
  checked({ layers: [1, 2], grid: { c: numbers(32), positions: positions.slice(1) } })();
  assert.match(
    await refusal(() => wholeRun(folder, { ...trained, grid: { positions: [-40] } })),
    /^examples\[0\]\.text has \d+ tokens; it has no token -40\.$/,
  );
});

test("more parts than layers are refused", async () => {
  assert.is(
    await refusal(() => onePart(folder, trained, [0, 4], folder)),
    "The experiment has 3 items, which cannot be divided into 4 parts.",
  );
});

test.run();
