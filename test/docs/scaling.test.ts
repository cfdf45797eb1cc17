/** The tables of docs/scaling.md that a script computes, and its simulation against clusters whose course is known. */
import { readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { scalingPage, withTables } from "../../scripts/docs/scaling/main.js";
import { type Cluster, simulate } from "../../scripts/docs/scaling/simulate.js";

test("the tables of a thousand workers are up to date", () => {
  const page = readFileSync(scalingPage, "utf8");
  assert.ok(withTables(page) === page, "run npm run docs:scaling");
});

/** Four workers of 10 tokens per second, and no mishaps. */
const calm: Cluster = {
  ...{ workers: 4, parts: 4, tokens: 4000, rate: 10, start: 5, fileTokens: 100, spread: 0 },
  ...{ slow: { share: 0, factor: 1 }, failure: { hours: 1e12, repair: 60 }, secondRuns: false, seed: 1 },
};

test("simulated workers take parts one after another", () => {
  const of = (more: Partial<Cluster>) => simulate({ ...calm, ...more });
  // 1,000 tokens each: 5 s to start and 100 s to compute.
  assert.equal(of({}), { seconds: 105, failures: 0, repeated: 0, secondRuns: 0, efficiency: 100 / 105 });
  // 12 parts of a third: three in a row.
  assert.ok(Math.abs(of({ parts: 12 }).seconds - 3 * (5 + 100 / 3)) < 1e-9);
  // 5 parts of 800 tokens: one worker has two.
  assert.is(of({ parts: 5 }).seconds, 2 * 85);
});

test("a simulated second run resumes after finished files and ends the first run", () => {
  // One of four workers is ten times slower: its part would take 1,005 s.
  const slow = { ...calm, slow: { share: 0.25, factor: 10 } };
  assert.is(simulate(slow).seconds, 1005);
  const found = simulate({ ...slow, secondRuns: true });
  // At 105 s the others are complete and the median is 105 s: the slow part has one file of 100 tokens, in 105 of 1,050 s. The
  // second run starts then, and computes the other 900 tokens in 5 + 90 s. The first has 195 tokens by then: 95 besides the file.
  assert.is(found.seconds, 200);
  assert.is(found.secondRuns, 1);
  assert.ok(Math.abs(found.repeated - 95) < 1e-9, `${found.repeated}`);
});

test("a simulated worker that fails repeats less than a file", () => {
  const found = simulate({ ...calm, workers: 1, parts: 1, failure: { hours: 1 / 60, repair: 60 } });
  assert.ok(found.failures > 0);
  assert.ok(found.repeated <= 100 * found.failures);
  // All tokens and the repeated ones, a start for each attempt, and the repairs.
  const computed = (4000 + found.repeated) / 10;
  const least = computed + 60 * found.failures;
  assert.ok(found.seconds >= least && found.seconds <= least + 5 * (found.failures + 1), `${found.seconds}`);
});

test.run();
