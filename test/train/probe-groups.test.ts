import { test } from "uvu";
import * as assert from "uvu/assert";
import { NativeError, type ProbeFigures, trainProbe } from "../../src/native/index.js";
import { rowsOfTexts, twoClasses } from "../support/activations.js";

const close = (a: number, b: number, tolerance: number, what = "") =>
  assert.ok(Math.abs(a - b) <= tolerance, `${what} ${a} and ${b} differ by more than ${tolerance}`);
const mean = (values: ArrayLike<number>) =>
  Array.from(values).reduce((sum, value) => sum + value, 0) / values.length;

test("a group an example is no group at all, bit for bit", async () => {
  for (const hidden of [20, 200]) {
    const set = twoClasses({ train: 70, test: 40, hidden, separation: 0.4 });
    const groups = Int32Array.from({ length: set.count }, (_, row) => (row * 37) % set.count);
    const alone = await trainProbe({ ...set, seed: 3, permutations: 10 });
    const { groups: found, ...own } = await trainProbe({ ...set, groups, seed: 3, permutations: 10 });
    assert.equal(own, alone);
    for (const [name, value] of Object.entries(found as ProbeFigures)) {
      const other = alone[name as keyof ProbeFigures];
      if (typeof value === "number") close(value, other as number, 1e-15, name);
      else assert.equal(value, other, name);
    }
  }
});

test("a group's score is the mean of its examples', and its figures follow from that", async () => {
  const shape = { train: 30, test: 24, rows: 5, hidden: 12, alike: 1, separation: 0.6 };
  const set = rowsOfTexts(shape);
  const probe = await trainProbe({ ...set, permutations: 20 });
  const texts = Array.from({ length: 24 }, (_, i) => {
    const rows = [...set.groups.keys()].filter((row) => set.groups[row] === 30 + i);
    return { label: i % 2, score: mean(rows.map((row) => probe.scores[row]!)) };
  });
  const { groups } = probe;
  assert.equal([groups!.trainSize, groups!.testSize], [30, 24]);
  assert.is(probe.trainSize + probe.testSize, set.count);
  close(
    groups!.accuracy,
    mean(texts.map(({ label, score }) => Number(score > 0.5 === (label === 1)))),
    1e-12,
  );
  close(groups!.brier, mean(texts.map(({ label, score }) => (score - label) ** 2)), 1e-12);
  const [zeros, ones] = [0, 1].map((side) => texts.filter(({ label }) => label === side));
  const pairs = ones!.flatMap((one) => zeros!.map((zero) => (Math.sign(one.score - zero.score) + 1) / 2));
  close(groups!.auc, mean(pairs), 1e-12);
  assert.is(groups!.majorityAccuracy, 0.5);
  assert.not.equal(groups!.accuracy, probe.accuracy);
  assert.equal([groups!.permutedAucs.length, probe.permutedAucs.length], [20, 20]);
});

test("labels are permuted among groups, whose examples keep one label", async () => {
  // Two training texts: their labels stand as they are or are exchanged, and then the probe is turned around.
  const set = rowsOfTexts({ train: 2, test: 20, rows: 30, hidden: 8, alike: 0.3, separation: 1 });
  const probe = await trainProbe({ ...set, permutations: 40 });
  const near = (value: number, wanted: number) => Math.abs(value - wanted) < 1e-3;
  const areas = [...probe.permutedAucs];
  assert.ok(
    areas.every((auc) => near(auc, probe.auc) || near(auc, 1 - probe.auc)),
    areas.join(" "),
  );
  assert.ok(areas.some((auc) => near(auc, probe.auc)) && areas.some((auc) => near(auc, 1 - probe.auc)));
  const { groups: _, ...loose } = set;
  const mixed = (await trainProbe({ ...loose, permutations: 40 })).permutedAucs;
  assert.ok(new Set(mixed.map((auc) => Math.round(auc * 1000))).size > 10, mixed.join(" "));
});

test("with random labels, permuting texts gives chance; permuting rows does not", async () => {
  // Texts differ in one dimension, their rows in all. Of 60 sets without any signal, 5 % may have a p of at most 0.05: 3, and 9
  // or more in one case of 250.
  const sets = 60;
  const permutations = 19;
  const shape = { train: 12, test: 10, rows: 120, hidden: 30, alike: 3, own: 1, separation: 0 };
  const p = (auc: number, chance: Float64Array) =>
    (1 + chance.filter((value) => value >= auc).length) / (permutations + 1);
  let [byRow, byText] = [0, 0];
  for (let seed = 1; seed <= sets; seed++) {
    const { groups, ...set } = rowsOfTexts(shape, seed);
    const rows = await trainProbe({ ...set, seed, permutations });
    const texts = await trainProbe({ ...set, groups, seed, permutations });
    assert.is(texts.auc, rows.auc);
    if (p(rows.auc, rows.permutedAucs) <= 0.05) byRow++;
    if (p(texts.auc, texts.permutedAucs) <= 0.05) byText++;
  }
  assert.ok(byText < 9, `by text ${byText} of ${sets}`);
  console.error(byRow, byText);
  assert.ok(byRow > 15, `by row ${byRow} of ${sets}`);
});

test("fits of many examples reach a zero gradient, with any number of threads", async () => {
  const set = rowsOfTexts({ train: 150, test: 50, rows: 20, hidden: 70, alike: 0.5, separation: 0.2 });
  const [one, three] = await Promise.all(
    [1, 3].map((threads) => trainProbe({ ...set, threads, permutations: 4 })),
  );
  assert.equal(three, one);
  assert.ok(one!.converged && one!.gradientNorm <= 1e-8, `gradient ${one!.gradientNorm}`);
});

test("groups that cannot be are refused with a sentence", async () => {
  const set = rowsOfTexts({ train: 8, test: 8, rows: 3, hidden: 4, alike: 1, separation: 1 });
  const first = set.groups.lastIndexOf(0) + 1; // the first row of text 1
  const change = (row: number, group: number) =>
    set.groups.map((own, index) => (index === row ? group : own));
  const cases: Array<[object, RegExp]> = [
    [
      { groups: set.groups.slice(1) },
      /groups must be an Int32Array with a number for each of \d+ examples\./,
    ],
    [{ groups: [...set.groups] }, /groups must be an Int32Array/],
    [{ groups: change(first, 0) }, /Group 0 has examples of both labels\./],
    [{ groups: change(set.count - 1, 1) }, /Group 1 has examples on both sides of the split\./],
  ];
  for (const [changed, sentence] of cases) {
    const error = await trainProbe({ ...set, ...changed } as never).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof NativeError, String(error));
    assert.is((error as NativeError).code, "INVALID_ARGUMENT");
    assert.match((error as NativeError).message, sentence);
  }
});

test.run();
