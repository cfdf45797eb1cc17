/** Numbers by a seed: what mulberry32 and Box and Muller give elsewhere, too, and orders that are all as likely. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { randomVector, shuffle, uniformNumbers } from "../../src/library/index.js";

const near = (found: Iterable<number>, wanted: number[]) => {
  const numbers = [...found];
  assert.is(numbers.length, wanted.length);
  for (const [at, value] of wanted.entries()) {
    assert.ok(Math.abs(numbers[at]! - value) < 1e-6, `${numbers}`);
  }
};

// The numbers were computed in Python.
test("numbers between 0 and 1 by the generator mulberry32", () => {
  const next = uniformNumbers(7);
  near([next(), next(), next()], [0.011704753269441426, 0.06195825769100338, 0.9769076328957453]);
});

test("a random vector of Box and Muller's normal values, of the requested length", () => {
  near(
    randomVector(4, 5, 7),
    [4.726812095252214, -0.11657212543422128, -1.6204126866952173, 0.13386964012170524],
  );
});

test("each order is as likely as any other, that one too in which nothing moves", () => {
  const counts = new Map<string, number>();
  for (let seed = 0; seed < 600; seed++) {
    const order = shuffle(["a", "b", "c"], uniformNumbers(seed)).join("");
    counts.set(order, (counts.get(order) ?? 0) + 1);
  }
  assert.equal([...counts.keys()].sort(), ["abc", "acb", "bac", "bca", "cab", "cba"]);
  for (const [order, count] of counts) assert.ok(count > 60 && count < 140, `${order}: ${count} of 600`);
});

test.run();
