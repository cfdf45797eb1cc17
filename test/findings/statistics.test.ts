import { test } from "uvu";
import * as assert from "uvu/assert";
import type { CompareResult, SaeResult } from "../../src/contracts/index.js";
import { difference } from "../../src/findings/difference.js";
import type { Figure } from "../../src/findings/figure.js";
import { percent, signed } from "../../src/findings/numbers.js";
import { binOf, calibration, roc } from "../../src/findings/probe.js";
import { findingsOf, type ReportedJob } from "../../src/report/index.js";
import { compareJob, saeJob } from "../report/jobs.js";
import { fc } from "../support/fc.js";

const scored = fc
  .array(
    fc.record({ label: fc.constantFrom(0, 1), score: fc.integer({ min: 0, max: 20 }).map((n) => n / 20) }),
    {
      minLength: 2,
      maxLength: 60,
    },
  )
  .filter((examples) => new Set(examples.map(({ label }) => label)).size === 2);

test("roc runs from (0, 0) to (1, 1); its area is the share of ordered pairs", () => {
  fc.assert(
    fc.property(scored, (examples) => {
      const points = roc(examples);
      assert.equal([points[0]!.falsePositiveRate, points[0]!.truePositiveRate], [0, 0]);
      assert.equal([points.at(-1)!.falsePositiveRate, points.at(-1)!.truePositiveRate], [1, 1]);
      let area = 0;
      points.slice(1).forEach((point, index) => {
        const before = points[index]!;
        assert.ok(point.threshold < before.threshold);
        area +=
          ((point.falsePositiveRate - before.falsePositiveRate) *
            (point.truePositiveRate + before.truePositiveRate)) /
          2;
      });
      const [ones, zeros] = [1, 0].map((label) => examples.filter((example) => example.label === label));
      const pairs = ones!.flatMap((one) => zeros!.map((zero) => Math.sign(one.score - zero.score) / 2 + 0.5));
      const expected = pairs.reduce((sum, pair) => sum + pair, 0) / pairs.length;
      assert.ok(Math.abs(area - expected) < 1e-9, `${area} ${expected}`);
    }),
  );
});

test("calibration: every example is in one bin, with the bin's own means", () => {
  fc.assert(
    fc.property(scored, (examples) => {
      const bins = calibration(examples, 10);
      assert.is(
        bins.reduce((sum, { size }) => sum + size, 0),
        examples.length,
      );
      const ones = bins.reduce((sum, { size, positiveShare }) => sum + size * positiveShare, 0);
      assert.ok(Math.abs(ones - examples.filter(({ label }) => label === 1).length) < 1e-9);
      for (const { from, to, meanScore } of bins) {
        assert.ok(meanScore >= from - 1e-9 && meanScore <= to + 1e-9);
      }
    }),
  );
  assert.equal(
    [0, 0.0999, 0.1, 0.95, 1].map((score) => binOf(score, 10)),
    [0, 0, 1, 9, 9],
  );
});

test("difference: either side gives its text back, and equal texts have one stretch", () => {
  const text = fc
    .array(fc.constantFrom("a", "b", "c ", " d", "\n", "é"), { maxLength: 30 })
    .map((parts) => parts.join(" "));
  fc.assert(
    fc.property(text, text, (before, after) => {
      const stretches = difference(before, after);
      const side = (dropped: string) =>
        stretches
          .filter(({ kind }) => kind !== dropped)
          .map(({ text }) => text)
          .join("");
      assert.is(side("added"), before);
      assert.is(side("removed"), after);
      stretches.slice(1).forEach(({ kind }, index) => {
        assert.is.not(kind, stretches[index]!.kind);
      });
    }),
  );
  assert.equal(difference("the cat sat", "the dog sat"), [
    { kind: "same", text: "the" },
    { kind: "removed", text: " cat" },
    { kind: "added", text: " dog" },
    { kind: "same", text: " sat" },
  ]);
  // What both end with is in both, whatever stands before it in one of them.
  assert.equal(difference("x q", "x p q"), [
    { kind: "same", text: "x" },
    { kind: "added", text: " p" },
    { kind: "same", text: " q" },
  ]);
  assert.equal(difference("x p q", "x q"), [
    { kind: "same", text: "x" },
    { kind: "removed", text: " p" },
    { kind: "same", text: " q" },
  ]);
});

test("figures as people read them", () => {
  assert.equal([0, 0.00004, 0.0012, 0.0123, 0.5, 0.9957, 1].map(percent), [
    "0 %",
    "< 0.01 %",
    "0.12 %",
    "1.2 %",
    "50.0 %",
    "99.6 %",
    "100 %",
  ]);
  assert.equal(
    [0.25, -0.25, -0.00001, 0].map((value) => signed(value)),
    ["+0.250", "-0.250", "0.000", "0.000"],
  );
});

const figure = (job: ReportedJob, id: string) =>
  findingsOf(job).parts.find((part): part is Figure => part.id === id) as Figure;

test("compare: changes at the neutral strength are ignored, repeats count once", () => {
  const job = compareJob(["One"]);
  const { trials, ...rest } = job.result as CompareResult;
  // Strengths 0, 0.5 and 1, of which 0 changes nothing.
  const noisy = trials.map((trial) => (trial.strength === 0 ? { ...trial, output: "by chance" } : trial));
  const told = (of: CompareResult["trials"]) => ({ ...job, result: { ...rest, trials: of } });
  assert.match(
    findingsOf(told(noisy)).summary.join(" "),
    /2 of 2 continuations at non-neutral strengths differ from the baseline\./,
  );
  assert.is(figure(told([...trials, ...trials.slice(1, 2)]), "dose-response").rows.length, 3);
});

test("sae: losses at or below 0 use a linear axis; negative variance is drawn", () => {
  const job = saeJob();
  const { reports, ...rest } = job.result as SaeResult;
  const drawn = (id: string, more: object) =>
    figure({ ...job, result: { ...rest, reports: reports.map((report) => ({ ...report, ...more })) } }, id)
      .chart;
  const losses = (...values: number[]) => ({ losses: values.map((loss, at) => ({ step: 10 * at, loss })) });
  const logarithmic = (more: object) => (drawn("loss", more) as { logarithmic?: boolean }).logarithmic;
  assert.equal(
    [logarithmic(losses(2, 1)), logarithmic(losses(2, 0)), logarithmic(losses(0, 0))],
    [true, false, false],
  );
  const domain = (explained_variance: number) =>
    (drawn("quality", { explained_variance }) as { domain?: number[] }).domain;
  assert.equal(
    [domain(0.7), domain(-0.25)],
    [
      [0, 1],
      [-0.25, 1],
    ],
  );
});

test.run();
