/** Measurements of one form next to each other: differences, overlaps, and what is not comparable. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { compareMeasurements, nats } from "../../src/studies/text/compare-measurements.js";
import { type Measurement, measurementsIn } from "../../src/studies/text/measurements.js";
import { formOf, quantsBlock, quantsResult } from "./support/measurements.js";
import { samplePackage } from "./support/packages.js";

function measured(...given: Parameters<typeof formOf>[1][]): Measurement[] {
  const forms = given.map((form) => formOf("Q4_0", form));
  const study = samplePackage({ finding: quantsBlock(quantsResult("m", "r", forms)) });
  return measurementsIn(Buffer.from(JSON.stringify(study)))?.forms ?? [];
}

/** Name, values, difference and the two that are apart, of each figure; and what is left out. */
function found(...given: Parameters<typeof formOf>[1][]) {
  const { compared, left } = compareMeasurements(measured(...given));
  const figures = compared.map(({ name, figures, difference, apart }) => [
    name,
    figures.map(({ value }) => value),
    difference,
    apart,
  ]);
  return { figures, left };
}

test("differences have units, and intervals that touch overlap", () => {
  const { figures, left } = found(
    { kl: [0.02, 0.01, 0.03], same: [0.9, 0.88, 0.92], drift: [0.08, 0.07, 0.09], survival: [0.5, 0.4, 0.6] },
    {
      kl: [0.0412, 0.03, 0.05],
      same: [0.95, 0.93, 0.97],
      drift: [0.08, 0.07, 0.09],
      survival: [0.51, 0.4, 0.6],
    },
  );
  assert.equal(figures, [
    ["KL", [0.02, 0.0412], "0.0212 nats", null],
    ["Same top token", [0.9, 0.95], "5 percentage points", [0, 1]],
    ["Drift at layer 29", [0.08, 0.08], null, null],
    ["Features surviving", [0.5, 0.51], "1 percentage point", null],
  ]);
  assert.equal(left, []);
});

test("of many measurements, the two that are farthest apart are named, the lower first", () => {
  const kl = (value: number): [number, number, number] => [value, value - 0.01, value + 0.01];
  const apart = (...values: number[]) =>
    found(...values.map((value) => ({ kl: kl(value) }))).figures[0]?.slice(2);
  assert.equal(apart(0.1, 0.115, 0.105), ["0.015 nats", null]);
  assert.equal(apart(0.115, 0.2, 0.1), ["0.1 nats", [2, 1]]);
  assert.equal(apart(0.2, 0.115, 0.3, 0.115), ["0.185 nats", [1, 2]]);
});

test("figures measured in different ways, or not by everyone, are left out with a reason", () => {
  const survival: [number, number, number] = [0.5, 0.4, 0.6];
  const names = (...given: Parameters<typeof formOf>[1][]) => {
    const { figures, left } = found(...given);
    return [
      figures.map(([name]) => name).slice(2),
      left.map((sentence) => sentence.split(" is ")[0]?.split(" are ")[0]),
    ];
  };
  assert.equal(names({}, {}), [["Drift at layer 29"], []]);
  assert.equal(names({ layer: 29 }, { layer: 28 }), [[], ["Drift"]]);
  assert.equal(names({ drift: null }, {}), [[], ["Drift"]]);
  assert.equal(names({ drift: null }, { drift: null }), [[], []]);
  assert.equal(names({ survival }, { survival }), [["Drift at layer 29", "Features surviving"], []]);
  assert.equal(names({ survival }, { survival, dictionary: "res-13" }), [
    ["Drift at layer 29"],
    ["Surviving features"],
  ]);
  assert.equal(names({ survival }, {}), [["Drift at layer 29"], ["Surviving features"]]);
});

test("nats have three significant digits", () => {
  assert.equal([0, 0.0011344, 0.02, 12.3456, 1e-9].map(nats), ["0", "0.00113", "0.02", "12.3", "1e-9"]);
});

test.run();
