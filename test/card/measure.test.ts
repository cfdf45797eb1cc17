/** Figures of cards, against arithmetic by hand. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { continuationScore, crossEntropy, meanDivergence } from "../../src/card/forward.js";
import { divergence, logSoftmax, measured } from "../../src/card/measure.js";

const near = (value: number, expected: number, room = 1e-12) =>
  assert.ok(Math.abs(value - expected) <= room, `${value}, not ${expected}`);
const logs = (...shares: number[]) => Float64Array.from(shares, Math.log);

test("log-probabilities of large logits do not overflow", () => {
  const found = logSoftmax(Float32Array.of(1000, 1000, Number.NEGATIVE_INFINITY));
  near(found[0] as number, -Math.LN2);
  near(found[1] as number, -Math.LN2);
  assert.is(found[2], Number.NEGATIVE_INFINITY);
});

test("divergence is from the first to the second distribution", () => {
  // 0.5 ln(0.5 / 0.25) + 0.5 ln(0.5 / 0.75)
  near(divergence(logs(0.5, 0.5), logs(0.25, 0.75)), 0.5 * Math.log(2) + 0.5 * Math.log(2 / 3));
  near(divergence(logs(1, 0), logs(0.5, 0.5)), Math.LN2);
  assert.is(divergence(logs(0.3, 0.7), logs(0.3, 0.7)), 0);
});

const text = {
  tokens: Float32Array.of(2, 0, 1),
  rows: [logs(0.5, 0.25, 0.25), logs(0.25, 0.5, 0.25), logs(1, 0, 0)],
};

test("cross-entropy is of each token after the first, in the row before it", () => {
  const { value, weight } = crossEntropy(text);
  near(value, (Math.log(2) + Math.log(2)) / 2);
  assert.is(weight, 2);
});

test("the last row, which predicts no token of the text, does not count", () => {
  const other = { ...text, rows: [...text.rows.slice(0, 2), logs(0.2, 0.3, 0.5)] };
  assert.is(meanDivergence(text, other), 0);
});

test("a continuation is scored from the first token that differs from the context", () => {
  near(continuationScore(text, Float32Array.of(2)), (Math.log(0.5) + Math.log(0.5)) / 2);
  near(continuationScore(text, Float32Array.of(2, 0)), Math.log(0.5));
  // The context's last token merged with the continuation's first.
  near(continuationScore(text, Float32Array.of(2, 1)), (Math.log(0.5) + Math.log(0.5)) / 2);
});

test("means weigh items by their tokens; changes are paired", () => {
  const own = { values: [1, 3], weights: [3, 1] };
  const base = { values: [0, 2], weights: [3, 1] };
  const { value, n, change } = measured(own, base, 0);
  near(value, 1.5);
  assert.is(n, 2);
  // Every item changes by 1, so every resample does, too.
  assert.equal([change?.value, change?.low, change?.high], [1, 1, 1]);
});

test("an interval of a share covers what resampling gives", () => {
  const values = Array.from({ length: 100 }, (_, index) => Number(index < 30));
  const { value, low, high } = measured({ values }, undefined, 1);
  near(value, 0.3);
  // The normal approximation: 0.3 ± 1.96 √(0.3 · 0.7 / 100).
  near(low, 0.3 - 1.96 * Math.sqrt(0.0021), 0.03);
  near(high, 0.3 + 1.96 * Math.sqrt(0.0021), 0.03);
});

test("refuses to pair different numbers of items", () => {
  assert.throws(
    () => measured({ values: [1] }, { values: [1, 2] }, 0),
    /1 items, and 2 on the unedited model/,
  );
});

test.run();
