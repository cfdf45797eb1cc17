/** The pictures of a direction: how it separates its texts, and what it does at which layer and strength. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { CompareResult } from "../../src/contracts/index.js";
import { doseGrid } from "../../src/operations/compare/figures-dose-grid.js";
import { separation } from "../../src/report/separation.js";
import { compareJob } from "./jobs.js";

test("separation: both groups along the direction, with the service's AUROC", () => {
  const figure = separation("polite", [
    {
      ...{ layer: 3, length: 2, separation: 0.75, shuffled_separation: 0.512 },
      projections: { positive: [1, 7, 13], negative: [1, 1, 4] },
    },
    { layer: 5, length: 2 },
  ]);
  assert.ok(figure);
  const { title, rows, details, table, chart } = figure;
  assert.is(title, "Separation by polite");
  // Twelve intervals of 1 from 1 to 13; those that hold a text.
  const name = "layer 3: AUROC 0.750, shuffled 0.51";
  assert.equal(rows, [
    [3, name, 1, 2, 1, 2],
    [3, name, 4, 5, 0, 1],
    [3, name, 7, 8, 1, 0],
    [3, name, 12, 13, 1, 0],
  ]);
  assert.is(details[0], `${name}\n1 to 2\ntowards: 1, away from: 2`);
  assert.equal(table.rows[3], ["3", "away from", "0", "1"]);
  assert.ok(chart.kind === "mirror" && chart.fitted);
  assert.is(separation("file", [{ layer: 5, length: 2 }]), undefined, "a file says nothing of its texts");
  // Texts whose states are equal are one interval.
  const same = { positive: [2, 2, 2], negative: [2, 2, 2] };
  assert.equal(separation("x", [{ layer: 0, length: 0, separation: 0.5, projections: same }])?.rows, [
    [0, "layer 0: AUROC 0.500", 2, 3, 3, 3],
  ]);
});

const compared = (layer: number, by: number, control?: number): CompareResult => {
  const result = compareJob(["alpha", "beta"]).result as CompareResult;
  return {
    ...result,
    intervention: "steer",
    trials: result.trials.map((trial) => ({
      ...trial,
      layer,
      target_token: " x",
      probability: 0.5 + by * trial.strength,
      baseline_probability: 0.5,
      delta: by * trial.strength,
      ...(control !== undefined && {
        control: {
          ...{ probability: 0.5 + control * trial.strength, delta: control * trial.strength },
          output: trial.baseline,
        },
      }),
    })),
  } as CompareResult;
};

test("dose: layers by strengths, mean of prompts, random vectors on one scale", () => {
  const strengths = [1, 0, 0.5];
  const [effect, control, ...none] = doseGrid([
    { layer: 2, strengths, result: compared(2, 0.4, -0.1) },
    { layer: 6, strengths },
  ]);
  assert.equal(none, []);
  assert.ok(effect && control);
  assert.equal([effect.id, control.id], ["dose-grid", "dose-grid-control"]);
  // layer, strength, column (ascending), change, probability, baseline, answers that differ, prompts, compared
  assert.equal(effect.rows[0], [2, 1, 2, 0.4, 0.9, 0.5, 2, 2, 1]);
  assert.equal(effect.rows[1], [2, 0, 0, 0, 0.5, 0.5, 0, 2, 1]);
  assert.equal(effect.rows[3], [6, 1, 2, null, null, null, 0, 0, 1]);
  assert.is(
    effect.details[0],
    "layer 2, strength 1\n“·x”  90.0 %, baseline 50.0 % (+0.400)\n2 of 2 answers differ",
  );
  assert.is(effect.details[3], "layer 6, strength 1\nnot computed yet");
  assert.match(effect.description, /3 of 6 cells computed; the rest are dashed\.$/);
  assert.equal(control.rows[0], [2, 1, 2, -0.1, 0.4, 0.5, 0, 2, 1]);
  for (const { chart } of [effect, control]) {
    assert.ok(chart.kind === "sites" && chart.least === 0.4, "one scale for both");
    assert.equal(
      chart.columns.map(({ above }) => above),
      ["0", "0.5", "1"],
    );
  }
  // What goes down counts by its size.
  for (const { chart } of doseGrid([{ layer: 2, strengths, result: compared(2, -0.3, 0.1) }])) {
    assert.ok(chart.kind === "sites" && chart.least === 0.3);
  }
  assert.equal(effect.table.rows, [
    ["2", "0.000", "+0.200", "+0.400"],
    ["6", "", "", ""],
  ]);
});

test("dose: one map without random vectors, and none without results", () => {
  const [only, ...others] = doseGrid([{ layer: 2, strengths: [0, 0.5, 1], result: compared(2, -0.3) }]);
  assert.equal([only?.id, others.length], ["dose-grid", 0]);
  const [waiting] = doseGrid([{ layer: 2, strengths: [1] }]);
  assert.equal(waiting?.rows, [[2, 1, 0, null, null, null, 0, 0, 1]]);
});

test.run();
