/** Thresholds and deviations of budgets, by hand and by simulation. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { readingAlarms, tokenAlarms } from "../../src/check/alarms.js";
import { blockValues, deviations, greatest, sketchDirections, unitsOf } from "../../src/check/readings.js";
import { repeatsFor, thresholdsOf } from "../../src/check/thresholds.js";
import type { BudgetReading } from "../../src/contracts/budget.js";
import { TestRandom } from "../support/random.js";

const block = (layer: number) => ({ kind: "block", name: "", layer }) as const;
const next = { kind: "next", name: "", layer: null } as const;

test("a sketch estimates how far two activations are apart", () => {
  const random = new TestRandom(5);
  const hidden = 512;
  const directions = sketchDirections(hidden, 11);
  let sum = 0;
  const rounds = 400;
  for (let round = 0; round < rounds; round++) {
    const difference = random.normals(hidden);
    const length = difference.reduce((squares, value) => squares + value * value, 0);
    const projected = directions.reduce((squares, direction) => {
      const one = direction.reduce((product, value, at) => product + value * (difference[at] as number), 0);
      return squares + one * one;
    }, 0);
    sum += projected / length;
  }
  // The mean of 400 chi-squared figures of 8 directions each: its standard error is 0.5 / 20.
  assert.ok(Math.abs(sum / rounds - 1) < 0.1, `${sum / rounds}`);
});

test("deviations of blocks are relative to the norm, others in their units", () => {
  const readings = [block(0), next];
  const reference = Float32Array.of(10, ...new Array(blockValues - 1).fill(1), -2);
  const values = Float32Array.of(99, 1 + 3, 1 - 4, ...new Array(blockValues - 3).fill(1), -2.5);
  const found = deviations(readings, [1, 2], reference, values);
  // sqrt(3² + 4²) / 10, and |-2.5 + 2| / 2; the other norm does not count.
  assert.equal([...found], [0.5, 0.25]);
  values[1] = Number.NaN;
  assert.equal([...deviations(readings, [1, 2], reference, values)], [Number.POSITIVE_INFINITY, 0.25]);
});

test("the greatest deviation is taken per reading over all tokens", () => {
  assert.equal(greatest(Float64Array.of(1, 5, 4, 2, 3, 3), 2), [4, 5]);
});

test("a feature's unit is its greatest activation, a vector's its length", () => {
  const readings = [
    { kind: "vector", name: "v", layer: 1 },
    { kind: "feature", name: "d:1", layer: 1 },
    next,
  ] as const;
  const values = Buffer.from(new Float32Array([3, 4]).buffer).toString("base64");
  const vectors = [{ name: "v", layer: 1, sha256: "", values }];
  const references = [Float32Array.of(7, 2, 9, 7, 6, 9), Float32Array.of(7, 1, 9)];
  assert.equal(unitsOf(readings, { vectors }, references), [5, 6, 1]);
  assert.equal(unitsOf(readings, { vectors }, [Float32Array.of(7, 0, 9)]), [5, 1, 1]);
});

test("without noise thresholds are the floors; forms and noise raise them", () => {
  const clean = [[0, 0]];
  const given = { scale: clean, accepted: [], repeats: clean, falseAlarms: 0.05 };
  assert.equal(thresholdsOf([block(0), next], given), [
    { noise: 2e-5, threshold: 1e-3 },
    { noise: 2e-5, threshold: 5e-3 },
  ]);
  const [first, second] = thresholdsOf([block(0), next], { ...given, accepted: [[0.02, 0]] });
  // One and a half times the form's deviation.
  assert.ok(Math.abs((first?.threshold as number) - 0.03) < 1e-12);
  assert.equal(second, { noise: 2e-5, threshold: 5e-3 });
  // One of the repeats deviates twice as far as those that set the scale: everything is allowed twice as far.
  const repeats = [...new Array(18).fill([0.01, 0]), [0.02, 0]];
  const [raised, other] = thresholdsOf([block(0), next], { ...given, scale: [[0.01, 0]], repeats });
  assert.equal([raised?.threshold, other?.threshold], [0.02, 0.01]);
  // At a rate of 0.1, the eighteenth of nineteen counts.
  const [lower] = thresholdsOf([block(0), next], { ...given, scale: [[0.01, 0]], repeats, falseAlarms: 0.1 });
  assert.is(lower?.threshold, 0.01);
});

test("a rate needs enough repeats", () => {
  assert.equal([0.5, 0.05, 0.01, 0.001].map(repeatsFor), [19, 19, 99, 999]);
});

test("clean checks of noisy models alarm no more often than stated", () => {
  const random = new TestRandom(9);
  const readings = [...Array(6).keys()].map(block);
  // Heavy tails, and readings that move together.
  const repeat = () => {
    const shared = Math.exp(random.normal());
    return readings.map((_, index) => 0.01 * (index + 1) * shared * Math.exp(random.normal()));
  };
  const many = (count: number) => Array.from({ length: count }, repeat);
  for (const falseAlarms of [0.05, 0.2]) {
    let alarms = 0;
    const budgets = 2000;
    for (let round = 0; round < budgets; round++) {
      const count = repeatsFor(falseAlarms);
      const thresholds = thresholdsOf(readings, {
        ...{ scale: many(5), repeats: many(count), accepted: [], falseAlarms },
      });
      const judged = repeat();
      if (judged.some((value, index) => value > (thresholds[index]?.threshold as number))) alarms++;
    }
    // Three standard errors; and not so lenient that nothing would be found.
    const error = 3 * Math.sqrt((falseAlarms * (1 - falseAlarms)) / budgets);
    assert.ok(alarms / budgets <= falseAlarms + error, `${alarms}`);
    assert.ok(alarms / budgets >= falseAlarms / 3, `${alarms}`);
  }
});

const textOf = async (token: number) => `t${token}`;

test("the first token that differs is named, also after the end of one", async () => {
  const reference = [
    [1, 2, 3],
    [1, 2],
    [4, 5, 6],
  ];
  const tokens = [
    [1, 9, 3],
    [1, 2],
    [4, 5],
  ];
  const shared = { what: "tokens", profile: null } as const;
  assert.equal(await tokenAlarms(reference, tokens, textOf), [
    { ...shared, prompt: 0, token: 1, text: "t2", got: "t9", tokens: 2 },
    { ...shared, prompt: 2, token: 2, text: "t6", got: "", tokens: 1 },
  ]);
});

test("an alarm names token, block, reading, and where differences start", async () => {
  const reading = (kind: BudgetReading["kind"], layer: number | null, name = ""): BudgetReading => ({
    ...{ kind, name, layer, unit: 1, noise: 0.1, threshold: 1 },
  });
  const readings = [
    reading("block", 0),
    reading("block", 1),
    reading("probe", 1, "p"),
    reading("vector", 1, "v"),
  ];
  const prompts = [
    [1, 2],
    [3, 4, 5],
  ];
  // biome-ignore format: one token per line
  const values = Float64Array.of(
    0.05, 1, 1, 1,
    0, 0, 0, 0,
    0.2, 0.3, 0, 0,
    0.2, 3, 0, 0,
    0, Number.POSITIVE_INFINITY, 2, 5,
  );
  const clean = new Float64Array(values.length);
  const compared = [
    { profile: null, deviations: clean },
    { profile: "polite", deviations: values },
  ];
  assert.equal(await readingAlarms(readings, prompts, compared, textOf), [
    {
      ...{ what: "readings", profile: "polite", prompt: 1, token: 1, text: "t4" },
      block: { layer: 1, deviation: 3, threshold: 1 },
      reading: { kind: "vector", name: "v", layer: 1, deviation: 5, threshold: 1, token: 2 },
      starts: { token: 0, block: 0 },
      tokens: 2,
    },
  ]);
});

test.run();
