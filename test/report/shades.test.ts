/** What colours a lens's map, and a head's own map: numbers by hand. */
import * as fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { InspectResult } from "../../src/contracts/index.js";
import type { Figure } from "../../src/findings/figure.js";
import { leastEntropy } from "../../src/findings/numbers.js";
import { inspectFindings } from "../../src/operations/inspect/figures.js";
import { attentionHead } from "../../src/operations/inspect/figures-attention-head.js";
import { inspectJob } from "./jobs.js";

test("the least entropy is exact where all is known, and never more than the truth", () => {
  assert.is(leastEntropy([0.5, 0.25, 0.25]), 1.5);
  assert.is(leastEntropy([1]), 0);
  assert.is(leastEntropy([]), 0);
  // The rest, 0.5, is at least four tokens of 0.125: 0.5 * 1 + 0.125 * 3 * 4.
  assert.is(leastEntropy([0.5, 0.125]), 0.5 + 0.375 + 0.375 * 3);
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 40 }), (weights) => {
      const sum = weights.reduce((a, b) => a + b, 0);
      const all = weights.map((weight) => weight / sum).sort((a, b) => b - a);
      const true_ = all.reduce((bits, part) => bits - part * Math.log2(part), 0);
      const least = leastEntropy(all.slice(0, 3));
      assert.ok(least <= true_ + 1e-9, `${least} of ${true_}`);
    }),
  );
});

const lensOf = (result: InspectResult) =>
  inspectFindings(result).parts.find(({ id }) => id === "logit-lens") as Figure;
const shadesOf = ({ chart }: Figure) => (chart.kind === "tokens" ? (chart.shades ?? []) : []);

test("a lens can be coloured by what its result has, each from a column of its own", () => {
  const result = inspectJob().result as InspectResult;
  const { target_token: _, target_token_id: __, ...plain } = result;
  const without = lensOf({ ...plain, layers: plain.layers.map(({ target: ___, ...layer }) => layer) });
  assert.equal(
    shadesOf(without).map(({ id }) => id),
    ["probability", "entropy", "norm"],
  );
  const target = result.tokens.map((_, rank) => ({ probability: 0.25, rank: rank + 1 }));
  const followed = lensOf({
    ...result,
    target_token: " Paris",
    layers: result.layers.map((layer) => ({ ...layer, target })),
  });
  const names = followed.columns.map(({ name }) => name);
  for (const { value, label } of shadesOf(followed)) {
    assert.ok(names.includes(value) && names.includes(label), `${value}, ${label}`);
  }
  const column = (name: string) => followed.rows.map((row) => row[names.indexOf(name)]);
  // Five tokens at two layers.
  assert.equal(column("rank"), [1, 2, 3, 4, 5, 1, 2, 3, 4, 5]);
  assert.equal(column("rank_shown").slice(0, 2), ["#1", "#2"]);
  assert.equal(column("target"), Array(10).fill(0.25));
  // Candidates of 0.5, 0.1 and 0.05; the rest, 0.35, is at least seven tokens of 0.05.
  const bits = 0.5 + 0.1 * Math.log2(10) + 0.4 * Math.log2(20);
  assert.ok(Math.abs((column("entropy")[0] as number) - bits) < 1e-12);
  assert.match(followed.details[1] ?? "", /·Paris {2}25\.0 %\n·Paris {2}rank 2\nnorm {2}2$/);
});

test("an answer followed after the last token has no ranks elsewhere", () => {
  const result = inspectJob().result as InspectResult;
  const last = lensOf({
    ...result,
    target_token: " Paris",
    layers: result.layers.map((layer) => ({ ...layer, target: [{ probability: 0.25, rank: 2 }] })),
  });
  assert.not(shadesOf(last).some(({ id }) => id === "rank"));
});

test("a head's map shows the tokens it reads, without later ones", () => {
  const tokens = ["a", "b", "c"];
  const weights = [
    [1, 0, 0],
    [0.75, 0.25, 0],
    [0.5, 0, 0.5],
  ];
  const { rows, details, chart, table } = attentionHead({ layer: 3, head: 1, tokens, weights });
  assert.equal(
    rows.map(([reader, position, weight]) => [reader, position, weight]),
    [
      [0, 0, 1],
      [1, 0, 0.75],
      [1, 1, 0.25],
      [2, 0, 0.5],
      [2, 1, 0],
      [2, 2, 0.5],
    ],
  );
  assert.is(details[1], "b (token 1) attends 75.0 % to a (token 0)");
  assert.equal(chart.kind === "tokens" && chart.down, tokens);
  assert.equal(table.rows[2], ["c (token 2)", "50.0 %", "0 %", "50.0 %"]);
  // A model that reads in both directions keeps all.
  assert.is(
    attentionHead({ layer: 0, head: 0, tokens, weights: weights.map(() => [0.5, 0.25, 0.25]) }).rows.length,
    9,
  );
});

test.run();
