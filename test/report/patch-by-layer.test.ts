/** The site with the largest effect in each layer, beside the most that random changes move there. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { PatchSweepResult } from "../../src/contracts/index.js";
import type { Figure } from "../../src/findings/figure.js";
import { findingsOf } from "../../src/report/index.js";
import { patchJob } from "./jobs.js";

const result = patchJob().result as PatchSweepResult;
const byLayer = (of: PatchSweepResult) =>
  findingsOf({ ...patchJob(), result: of }).parts.find(
    (part): part is Figure => part.id === "patch-by-layer",
  );

test("a patch sweep's layers: the furthest site of each, and random changes beside it", () => {
  const figure = byLayer(result);
  assert.ok(figure);
  // layer, what is put in, recovery, its interval, where
  assert.equal(figure.rows, [
    [0, "block_out", 0.75, null, null, "token 1"],
    [3, "block_out", 0.75, null, null, "token 2"],
    [0, "norm-matched random change", 0.0125, null, null, "token 0"],
    [3, "norm-matched random change", 0.0125, null, null, "token 0"],
  ]);
  assert.is(figure.details[1], "block_out, layer 3\n75.0 % at token 2");
  assert.equal(figure.table.head, ["layer", "block_out", "where", "norm-matched random change", "where"]);
  assert.equal(figure.table.rows[0], ["0", "75.0 %", "token 1", "1.3 %", "token 0"]);
  assert.not.ok(figure.chart.kind === "lines" && figure.chart.interval);
});

test("random changes are told of the layer that they were tried in", () => {
  const sites = result.sites.map((site) => ({
    ...site,
    control: { logit_difference: 0, change: 0, recovery: site.layer === 3 ? -0.5 : site.position / 16 },
  }));
  assert.equal(byLayer({ ...result, sites })?.rows.slice(2), [
    [0, "norm-matched random change", 0.125, null, null, "token 2"],
    [3, "norm-matched random change", -0.5, null, null, "token 0"],
  ]);
  // The most that anything is moved, whichever way.
  const back = sites.map((site) =>
    site.layer === 0 && site.position === 1
      ? { ...site, control: { logit_difference: 0, change: 0, recovery: -0.75 } }
      : site,
  );
  assert.equal(byLayer({ ...result, sites: back })?.rows[2], [
    ...[0, "norm-matched random change", -0.75, null, null],
    "token 1",
  ]);
  // Tried at one site alone.
  const [first, ...others] = sites as [(typeof sites)[number], ...typeof sites];
  const alone = [first, ...others.map(({ control: _, ...site }) => site)];
  assert.equal(byLayer({ ...result, sites: alone })?.rows.slice(2), [
    [0, "norm-matched random change", 0, null, null, "token 0"],
  ]);
});

test("opposite effects count by size; heads are named; pairs have intervals", () => {
  const sites = result.sites.map((site) => ({
    ...site,
    ...{ point: "head_out" as const, head: 2 },
    recovery: site.recovery === 0.75 ? -0.9 : site.recovery,
    recovery_interval: { low: -0.95, high: 0.5 },
  }));
  const figure = byLayer({ ...result, points: ["head_out"], heads: [2], sites });
  assert.ok(figure);
  assert.equal(figure.rows[0], [0, "head_out", -0.9, -0.95, 0.5, "head 2, token 1"]);
  assert.is(figure.details[0], "head_out, layer 0\n-90.0 % at head 2, token 1\n95 %: -95.0 % to 50.0 %");
  assert.ok(figure.chart.kind === "lines" && figure.chart.interval);
});

test("a single layer, or no control and interval, draws nothing", () => {
  assert.is(byLayer({ ...result, layers: [0], sites: result.sites.slice(0, 3) }), undefined);
  const sites = result.sites.map(({ control: _, ...site }) => site);
  assert.is(byLayer({ ...result, sites }), undefined);
});

test.run();
