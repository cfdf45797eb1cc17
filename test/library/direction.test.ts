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

test("pca: the line along which paired differences vary most, towards the positive texts, as long as their mean there", () => {
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

test("separation is of texts that the direction was not made from: 1 where they lie apart, a half where labels mean nothing", () => {
  const side = (sign: number) =>
    states(...Array.from({ length: 8 }, (_, index) => [sign * (3 + Math.sin(index)), Math.cos(7 * index)]));
  const apart = makeDirection(side(1), side(-1), "difference", 1);
  assert.is(apart.separation, 1);
  assert.ok(
    apart.shuffledSeparation! > 0.2 && apart.shuffledSeparation! < 0.8,
    `${apart.shuffledSeparation}`,
  );
  // The same states on both sides: each text's projection has its equal on the other.
  const same = makeDirection(side(1), side(1), "difference", 1);
  assert.ok(Math.abs(same.separation! - 0.5) < 1e-9, `${same.separation}`);
});

test.run();
