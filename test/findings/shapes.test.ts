import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { bestSpan, leads, shapeOf, spansAbove, threshold } from "../../src/findings/shapes.js";

test("a rise that stays is an onset, at the first large value", () => {
  assert.equal(shapeOf([0, 0.02, 0.1, 0.8, 0.97, 1]), { kind: "onset", at: 3 });
});

test("a fall that stays is named by the last large value", () => {
  assert.equal(shapeOf([1, 1, 0.9, 0.3, 0, 0]), { kind: "until", at: 2 });
});

test("one largest value in the middle is a peak, several alike are a plateau", () => {
  assert.equal(shapeOf([0, 0.1, 0.9, 0.2, 0]), { kind: "peak", from: 2, to: 2 });
  // 0.86 and 0.9 differ by less than a tenth of the range: either may be the larger one in the next run.
  assert.equal(shapeOf([0, 0.1, 0.86, 0.9, 0.88, 0.2, 0]), { kind: "plateau", from: 2, to: 4 });
});

test("values that are alike have no best one", () => {
  assert.equal(shapeOf([0.98, 1, 0.99, 0.97]), { kind: "flat" });
  assert.equal(shapeOf([1]), { kind: "flat" });
});

test("values up to the control's have no effect", () => {
  assert.equal(shapeOf([0.01, 0.05, 0.02], 0.05), { kind: "none" });
  assert.equal(shapeOf([0, 0, 0]), { kind: "none" });
  assert.equal(shapeOf([]), { kind: "none" });
});

test("large values apart from each other are several spans", () => {
  assert.equal(shapeOf([0.9, 0.1, 0.1, 0.8, 1, 0]), {
    kind: "several",
    spans: [
      { from: 0, to: 0 },
      { from: 3, to: 4 },
    ],
  });
});

test("a hand-over is two stretches, each with its own leader", () => {
  const subject = [1, 1, 0.98, 0.9, 0.2, 0.1, 0];
  const last = [0, 0, 0.01, 0.1, 0.7, 0.95, 1];
  assert.equal(leads([subject, last]), [
    { from: 0, to: 3, series: 0 },
    { from: 4, to: 6, series: 1 },
  ]);
});

test("where no series reaches the level, none leads", () => {
  assert.equal(
    leads([
      [0.9, 0.3, 0.1],
      [0.1, 0.4, 0.8],
    ]),
    [
      { from: 0, to: 0, series: 0 },
      { from: 1, to: 1 },
      { from: 2, to: 2, series: 1 },
    ],
  );
  assert.equal(leads([[0.2, 0.2, 0]]), [{ from: 0, to: 2 }]);
  assert.equal(leads([]), []);
});

test("a series keeps its lead while it is as good as the largest", () => {
  // At index 1 the second is larger by less than a tenth; at index 2 it is not.
  assert.equal(
    leads([
      [1, 0.92, 0.8],
      [0, 0.95, 0.95],
    ]),
    [
      { from: 0, to: 1, series: 0 },
      { from: 2, to: 2, series: 1 },
    ],
  );
});

test("a threshold is the smallest dose from which the effect stays", () => {
  assert.is(threshold([0, 0.1, 0.6, 0.9, 1]), 2);
  assert.is(threshold([0, 0.9, 0.1, 0.9, 1]), 3, "it came and went before");
  assert.is(threshold([0, 0.2, 1, 0.1]), undefined, "the largest dose has lost it");
  assert.is(threshold([0.01, 0.02], 0.05), undefined, "nothing exceeds the control");
  assert.is(threshold([1, 1]), 0);
});

test("the best span holds the largest value, and only values close to it", () => {
  const series = fc.array(fc.double({ min: -10, max: 10, noNaN: true }), { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(series, (values) => {
      const { from, to } = bestSpan(values);
      const most = Math.max(...values);
      const range = most - Math.min(...values);
      const inside = values.slice(from, to + 1);
      assert.ok(inside.includes(most));
      for (const value of inside) assert.ok(value >= most - 0.1 * range - 1e-12);
      for (const outside of [values[from - 1], values[to + 1]]) {
        if (outside !== undefined) assert.ok(outside < most - 0.1 * range + 1e-12);
      }
    }),
  );
});

test("spans cover exactly the points above a level", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 30 }), (values) => {
      const covered = new Set(
        spansAbove(values, 2).flatMap(({ from, to }) =>
          Array.from({ length: to - from + 1 }, (_, k) => from + k),
        ),
      );
      values.forEach((value, index) => {
        assert.is(covered.has(index), value > 2);
      });
    }),
  );
});

test.run();
