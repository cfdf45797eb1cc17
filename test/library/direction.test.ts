import { test } from "uvu";
import * as assert from "uvu/assert";
import { makeDirection } from "../../src/library/index.js";

const states = (...rows: number[][]) => ({ data: Float32Array.from(rows.flat()), hidden: rows[0]!.length });
const close = (found: Float32Array, expected: number[]) => {
  assert.is(found.length, expected.length);
  for (const [place, value] of expected.entries()) {
    assert.ok(Math.abs(found[place]! - value) < 1e-6, `${[...found]}, not ${expected}`);
  }
};

test("difference: mean of the positive states less that of the negative ones", () => {
  const made = makeDirection(
    states([1, 0, 0], [3, 0, 0], [2, 0, 3]),
    states([0, 1, 0], [0, 3, 4]),
    "difference",
    0,
  );
  close(made.vector, [2, -2, -1]);
  // 1, 3, sqrt 13, 1 and 5.
  assert.ok(Math.abs(made.typicalRow - (10 + Math.sqrt(13)) / 5) < 1e-6);
  assert.equal([made.separation, made.shuffledSeparation], [null, null], "two texts hold nothing out");
});

test("pca: the main axis of paired differences, signed, with their mean length", () => {
  // The differences: t (0.6, 0.8, 0) for t of 1 to 4, and a tenth across that has nothing to do with t.
  const across = [0.1, -0.1, -0.1, 0.1];
  const base = [
    [5, 1, 2],
    [-3, 2, 2],
    [0, 0, 9],
    [1, -7, 1],
  ];
  const moved = (sign: number) =>
    base.map((row, index) => {
      const t = index + 1;
      const difference = [0.6 * t, 0.8 * t, across[index]!];
      return row.map((value, place) => value + (sign * difference[place]!) / 2);
    });
  const made = makeDirection(states(...moved(1)), states(...moved(-1)), "pca", 0);
  close(made.vector, [1.5, 2, 0]);
  // Texts the other way round: the same line, the other end.
  close(makeDirection(states(...moved(-1)), states(...moved(1)), "pca", 0).vector, [-1.5, -2, 0]);
});

test("out-of-sample projections keep their order, and separation is their AUROC", () => {
  // One number a state: a fold's direction is the difference of the other texts' means, 10 give or take a little.
  const made = makeDirection(states([10], [11], [12]), states([0], [1], [14]), "difference", 0);
  // Of all: 11 less 5. Without the first of each: 11.5 less 7.5; without the second: 11 - 7; without the third: 10.5 - 0.5.
  close(made.vector, [6]);
  const [first, second, third] = [4, 4, 10];
  const along = (...pairs: [number, number][]) => pairs.map(([state, direction]) => (state * direction) / 6);
  const near = (found: number[], wanted: number[]) => {
    assert.is(found.length, wanted.length);
    for (const [at, value] of wanted.entries()) assert.ok(Math.abs(found[at]! - value) < 1e-3, `${found}`);
  };
  near(made.projections!.positive, along([10, first], [11, second], [12, third]));
  near(made.projections!.negative, along([0, first], [1, second], [14, third]));
  // 40, 44 and 120 against 0, 4 and 140: six of nine pairs stand in order.
  assert.ok(Math.abs(made.separation! - 6 / 9) < 1e-9);
  assert.is(makeDirection(states([1], [2]), states([0], [3]), "difference", 0).projections, null);
});

test("separation is out of sample: 1 for separable texts, 0.5 for random labels", () => {
  const side = (sign: number) =>
    states(...Array.from({ length: 8 }, (_, index) => [sign * (3 + Math.sin(index)), Math.cos(7 * index)]));
  const apart = makeDirection(side(1), side(-1), "difference", 1);
  assert.is(apart.separation, 1);
  assert.ok(
    apart.shuffledSeparation! > 0.2 && apart.shuffledSeparation! < 0.8,
    `${apart.shuffledSeparation}`,
  );
  // It is the mean of twenty shuffles, each another one. The AUROC of eight against eight that means nothing has a deviation of
  // sqrt((8 + 8 + 1) / (12 * 8 * 8)) = 0.149, that of twenty the root of twenty less.
  const told = Array.from({ length: 30 }, (_, seed) => makeDirection(side(1), side(-1), "difference", seed));
  const means = told.map(({ shuffledSeparation }) => shuffledSeparation!);
  const middle = means.reduce((sum, value) => sum + value, 0) / 30;
  const deviation = Math.sqrt(means.reduce((sum, value) => sum + (value - middle) ** 2, 0) / 29);
  assert.ok(deviation > 0 && deviation < 0.149 / Math.sqrt(20), `${deviation}`);
  // The same states on both sides: each text's projection has its equal on the other.
  const same = makeDirection(side(1), side(1), "difference", 1);
  assert.ok(Math.abs(same.separation! - 0.5) < 1e-9, `${same.separation}`);
});

test("six pairs are held out in five parts: the sixth with the first", () => {
  const made = makeDirection(
    states([6], [6], [6], [6], [6], [30]),
    states(...Array(6).fill([0])),
    "difference",
    0,
  );
  close(made.vector, [10]);
  // Without the first and the sixth: 6, of four. Without one of the others: 54 / 5. Each in units of 10.
  const wanted = [3.6, 6.48, 6.48, 6.48, 6.48, 18];
  close(Float32Array.from(made.projections!.positive), wanted);
  assert.equal(made.projections!.negative, [0, 0, 0, 0, 0, 0]);
});

test("pca finds the line whichever pair comes first, also one that lies across it", () => {
  // Less their mean, (3, 1, 0), the differences go 5 along the first axis, and an eighth along the second, where the first pair's is.
  const nothing = [0, 0, 0];
  const differences = [
    [3, 1.125, 0],
    [8, 1, 0],
    [-2, 1, 0],
    [3, 0.875, 0],
  ];
  const made = makeDirection(states(...differences), states(...differences.map(() => nothing)), "pca", 0);
  close(made.vector, [3, 0, 0]);
});

test("pca of one pair, or of equal differences, is that difference", () => {
  close(makeDirection(states([4, 0, 1]), states([1, -4, 1]), "pca", 0).vector, [3, 4, 0]);
  const moved = makeDirection(states([4, 6], [0, 8], [3, 5]), states([1, 2], [-3, 4], [0, 1]), "pca", 0);
  close(moved.vector, [3, 4]);
});

test("of two projections the greater one counts, however little it is greater", () => {
  // The states of the test above, a thousandth as large: directions and projections are, too.
  const small = makeDirection(
    states([0.01], [0.011], [0.012]),
    states([0], [0.001], [0.014]),
    "difference",
    0,
  );
  assert.ok(Math.abs(small.separation! - 6 / 9) < 1e-9, `${small.separation}`);
});

test.run();
