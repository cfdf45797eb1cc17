import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  atLeastAsGood,
  aurocOf,
  bootstrap,
  bootstrapIntervals,
  drawnInterval,
  pairDraws,
  spreadOf,
} from "../../src/findings/uncertainty.js";
import { TestRandom } from "../support/random.js";

const settings = { resamples: 2000, seed: 0 };
const close = (a: number, b: number, tolerance: number, what: string) =>
  assert.ok(Math.abs(a - b) <= tolerance, `${what}: ${a} and ${b} differ by more than ${tolerance}`);

/** Held-out examples of which a given number is right, by scores of 0.9 and 0.1. */
function examples(right: number, wrong: number) {
  return Array.from({ length: right + wrong }, (_, index) => {
    const label = (index % 2) as 0 | 1;
    const truth = index < right ? label : 1 - label;
    return { label, score: truth === 1 ? 0.9 : 0.1 };
  });
}

test("the accuracy's interval is binomial for many examples", () => {
  // 400 examples, 320 right: 0.8 with a standard error of sqrt(0.8 * 0.2 / 400) = 0.02.
  const { accuracy } = bootstrapIntervals(examples(320, 80), settings);
  close(accuracy.low, 0.8 - 1.96 * 0.02, 0.004, "low");
  close(accuracy.high, 0.8 + 1.96 * 0.02, 0.004, "high");
});

test("the AUROC's interval is that of normal scores with a known separation", () => {
  // Two normal classes 1.2 apart: AUROC = Phi(1.2 / sqrt 2) = 0.802; Hanley and McNeil (1982) give its standard
  // error for 150 of each class: Q1 = A / (2 - A) = 0.6695, Q2 = 2 A^2 / (1 + A) = 0.7138, so 0.0255.
  const random = new TestRandom(4);
  const scored = Array.from({ length: 300 }, (_, index) => {
    const label = (index % 2) as 0 | 1;
    return { label, score: 1 / (1 + Math.exp(-(random.normal() + 1.2 * label - 0.6))) };
  });
  const { auc } = bootstrapIntervals(scored, settings);
  close(auc.high - auc.low, 2 * 1.96 * 0.0255, 0.02, "width");
  assert.ok(auc.low < 0.802 && auc.high > 0.802, `${auc.low} to ${auc.high} holds 0.802`);
});

test("equal scores are uninformative, and perfect ones leave no room", () => {
  const same = examples(20, 0).map(({ label }) => ({ label, score: 0.5 }));
  assert.equal(bootstrapIntervals(same, settings).auc, { low: 0.5, high: 0.5 });
  const { accuracy, auc } = bootstrapIntervals(examples(20, 0), settings);
  assert.equal(
    [accuracy, auc],
    [
      { low: 1, high: 1 },
      { low: 1, high: 1 },
    ],
  );
});

test("a single example of a class is always among those drawn", () => {
  const rare = [
    { label: 1 as const, score: 0.8 },
    ...examples(12, 0).map((one) => ({ ...one, label: 0 as const })),
  ];
  const { auc } = bootstrapIntervals(rare, { ...settings, resamples: 200 });
  assert.ok(auc.low >= 0 && auc.high <= 1, `${auc.low} to ${auc.high}`);
});

test("a seed fixes the intervals, and another seed changes them", () => {
  const held = examples(31, 14);
  const first = bootstrapIntervals(held, { resamples: 150, seed: 7 });
  assert.equal(bootstrapIntervals(held, { resamples: 150, seed: 7 }), first);
  assert.not.equal(bootstrapIntervals(held, { resamples: 150, seed: 8 }), first);
});

test("examples of a cluster are drawn together: copies add no information", () => {
  // Sorted by score, as clusters are numbered: then both draw the same things.
  const alone = examples(22, 9).toSorted((a, b) => a.score - b.score);
  const copies = alone.flatMap((one, cluster) => Array.from({ length: 6 }, () => ({ ...one, cluster })));
  const of = copies.map(({ cluster }) => cluster);
  const once = bootstrapIntervals(alone, settings);
  assert.equal(bootstrapIntervals(copies, { ...settings, of }), once);
  // As if they were six times as many: an interval narrower by the root of six.
  const { accuracy } = bootstrapIntervals(copies, settings);
  const width = ({ low, high }: { low: number; high: number }) => high - low;
  close(width(accuracy) / width(once.accuracy), 1 / Math.sqrt(6), 0.08, "width");
});

test("a spread is mean, deviation and middle 95 %", () => {
  // 0, 0.01, … 1: mean 0.5; the variance of 101 equal steps of 0.01 is 0.01^2 * 101 * 102 / 12 = 0.085850.
  const { mean, std, low, high } = spreadOf(Float64Array.from({ length: 101 }, (_, index) => index / 100));
  close(mean, 0.5, 1e-12, "mean");
  close(std, Math.sqrt(0.08585), 1e-6, "std");
  close(low, 0.025, 1e-12, "low");
  close(high, 0.975, 1e-12, "high");
});

test("the share at least as good includes the observed value", () => {
  const values = Float64Array.of(0.4, 0.5, 0.6, 0.7);
  assert.is(atLeastAsGood(values, 0.6), 3 / 5);
  assert.is(atLeastAsGood(values, 0.9), 1 / 5);
  assert.is(atLeastAsGood(values, 0), 1);
});

test("resampling draws as many items as there are, evenly, and the same for a seed", () => {
  const draws = pairDraws(5, { resamples: 400, seed: 1 });
  assert.is(draws.length, 400);
  for (const times of draws)
    assert.is(
      times.reduce((sum, one) => sum + one, 0),
      5,
    );
  for (let i = 0; i < 5; i++) {
    const often = draws.reduce((sum, times) => sum + (times[i] as number), 0);
    assert.ok(often > 320 && often < 480, `thing ${i} is drawn ${often} times of 2000`);
  }
  assert.equal(pairDraws(5, { resamples: 400, seed: 1 }), draws);
  assert.not.equal(pairDraws(5, { resamples: 400, seed: 2 }), draws);
  const all = [Uint16Array.of(2, 0), Uint16Array.of(0, 2), Uint16Array.of(1, 1)];
  const close = (found: { low: number; high: number } | undefined, low: number, high: number) =>
    assert.ok(
      Math.abs(found!.low - low) < 1e-9 && Math.abs(found!.high - high) < 1e-9,
      JSON.stringify(found),
    );
  // Means 1, 3 and 2: of three values 2.5 % of the way from the lowest to the next is a twentieth of the step.
  close(drawnInterval(all, [1, 3]), 1.05, 2.95);
  // Shares of 1 / 2, 3 / 0 (none) and 4 / 2: from 0.5 to 2.
  close(drawnInterval(all, [1, 3], { values: [2, 0], least: 1e-6 }), 0.5 + 0.025 * 1.5, 2 - 0.025 * 1.5);
  close(
    drawnInterval(all, [1, 3], { values: [2, 1], least: 1.5 }),
    0.5 + 0.025 * (4 / 3 - 0.5),
    4 / 3 - 0.025 * (4 / 3 - 0.5),
  );
  assert.is(drawnInterval(all, [1, 3], { values: [0, 0], least: 1e-6 }), undefined);
  // A whole below 0 is one as well: shares of 1 / -2, 3 / 0 (none) and 4 / -2.
  close(drawnInterval(all, [1, 3], { values: [-2, 0], least: 1e-6 }), -2 + 0.025 * 1.5, -0.5 - 0.025 * 1.5);
});

test("a seed draws the published generator's numbers on every platform, in integers", () => {
  // A Weyl sequence in steps of 0x9e3779b9, each number mixed as z ^= z >> 16, z *= 0x21f0aaad, z ^= z >> 15, z *= 0x735a2d97,
  // z ^= z >> 15: two draws of ten things, by Python's integers.
  for (const [seed, first, second] of [
    [0, [0, 0, 0, 1, 1, 2, 2, 1, 1, 2], [0, 1, 0, 1, 1, 2, 3, 1, 0, 1]],
    [1, [1, 1, 0, 1, 0, 2, 1, 1, 3, 0], [0, 2, 0, 1, 1, 1, 3, 1, 1, 0]],
    [3, [1, 1, 0, 2, 1, 2, 0, 2, 0, 1], [1, 3, 1, 1, 1, 0, 1, 2, 0, 0]],
    [2 ** 32 - 1, [0, 0, 2, 2, 0, 0, 2, 2, 0, 2], [1, 0, 2, 1, 1, 1, 2, 0, 1, 1]],
  ] as const) {
    const wanted = [Uint16Array.from(first), Uint16Array.from(second)];
    assert.equal(pairDraws(10, { resamples: 2, seed }), wanted, `seed ${seed}`);
    const seen: number[][] = [];
    bootstrap(10, { resamples: 2, seed }, (times) => {
      seen.push([...times]);
      return [1];
    });
    assert.equal(seen, [new Array(10).fill(1), [...first], [...second]], `seed ${seed}`);
  }
});

test("an interval of one draw is that draw: a full sample, sorted by score", () => {
  // Of ten examples by score the draws of seed 0 take 0, 0, 0, 1, 1, 2, 2, 1, 1 and 2: those of class 1 are the fifth (1) and the
  // last four (2, 1, 1, 2), and above 0.5 are the last five.
  const scored = Array.from({ length: 10 }, (_, i) => ({
    label: (i === 4 || i > 5 ? 1 : 0) as 0 | 1,
    score: (i + 0.5) / 10,
  }));
  const { accuracy, auc } = bootstrapIntervals(scored, { resamples: 1, seed: 0 });
  // The fifth (once) and the sixth (twice) are wrong. Of 7 ones and 3 zeros (one fourth, two sixths) the fifth comes
  // after two.
  assert.equal(accuracy, { low: 0.7, high: 0.7 });
  assert.equal(auc, { low: 19 / 21, high: 19 / 21 });
});

test("a centred bootstrap subtracts the bias of resamples, which lack some things", () => {
  // The share of ten things that are not drawn: 0 of all of them, and (9 / 10)^10 = 0.349 of an average resample.
  const absent = (times: Uint32Array) => [times.filter((count) => count === 0).length / 10];
  const [plain] = bootstrap(10, { resamples: 2000, seed: 5 }, absent);
  const [centred] = bootstrap(10, { resamples: 2000, seed: 5, centred: true }, absent);
  assert.ok(plain!.low >= 0.1, `${plain!.low}: the value is outside`);
  assert.is(centred!.value, 0);
  close(centred!.low, plain!.low - 0.349, 0.01, "low");
  close(centred!.high, plain!.high - 0.349, 0.01, "high");
  assert.ok(centred!.low < 0 && centred!.high > 0);
});

test("a bootstrap reports value and percentiles, redrawing undefined samples", () => {
  const values = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
  const mean = (times: Uint32Array) =>
    values.reduce((sum, value, i) => sum + value * (times[i] as number), 0) / 10;
  const settings = { resamples: 2000, seed: 4 };
  const [found, twice] = bootstrap(10, settings, (times) => [mean(times), 2 * mean(times)]);
  assert.is(found!.value, 5.5);
  // The mean's standard error: sqrt(8.25 / 10) = 0.908.
  assert.ok(Math.abs(found!.low - (5.5 - 1.96 * 0.908)) < 0.12, `${found!.low}`);
  assert.ok(Math.abs(found!.high - (5.5 + 1.96 * 0.908)) < 0.12, `${found!.high}`);
  assert.equal(
    [twice!.value, twice!.low, twice!.high],
    [11, 2 * found!.low, 2 * found!.high],
    "the same draws",
  );
  // The observed value, then 50 draws: undefined ones are redrawn at most that many times.
  for (const [figure, calls, isNumber] of [
    [() => 1, 51, true],
    [(call: number) => (call % 2 === 0 ? Number.NaN : 1), 101, true],
    [() => Number.NaN, 101, false],
  ] as const) {
    let call = 0;
    const [one] = bootstrap(3, { resamples: 50, seed: 1 }, () => [figure(++call)]);
    assert.equal([call, !Number.isNaN(one!.low)], [calls, isNumber]);
  }
  // A draw in which one of two figures is undefined is redrawn for both: they stay paired.
  let draw = 0;
  const pair = bootstrap(3, { resamples: 3, seed: 1 }, () => {
    draw++;
    return [draw, draw === 3 ? Number.NaN : 10 * draw];
  });
  // The observed value is the first; then 2, 4 and 5: of three values 2.5 % of the way is a twentieth of the step.
  assert.is(draw, 5);
  close(pair[0]!.low, 2.1, 1e-9, "low");
  close(pair[0]!.high, 4.95, 1e-9, "high");
  close(pair[1]!.low, 21, 1e-9, "low of the other");
  close(pair[1]!.high, 49.5, 1e-9, "high of the other");
});

test("the share of pairs ranked correctly counts each example as often as drawn", () => {
  const auroc = aurocOf([1, 0, 1, 0], [0.9, 0.1, 0.3, 0.3]);
  // Of 4 pairs three right and one tied.
  assert.is(auroc(Uint32Array.of(1, 1, 1, 1)), 3.5 / 4);
  assert.is(auroc(Uint32Array.of(0, 0, 2, 3)), 0.5);
  assert.is(auroc(Uint32Array.of(2, 1, 1, 3)), (2 + 1 + 6 + 1.5) / 12);
  assert.ok(Number.isNaN(auroc(Uint32Array.of(1, 0, 1, 0))), "without both classes");
  assert.is(aurocOf([0, 1], [0.8, 0.2])(Uint32Array.of(1, 1)), 0);
});

test.run();
