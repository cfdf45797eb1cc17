import { test } from "uvu";
import * as assert from "uvu/assert";
import { aurocAtEdge, wilson } from "../../src/findings/proportions.js";

const near = (got: { low: number; high: number }, low: number, high: number) => {
  assert.ok(Math.abs(got.low - low) < 1e-9 && Math.abs(got.high - high) < 1e-9, JSON.stringify(got));
};

test("Wilson's interval has the endpoints that solve its equation", () => {
  // Roots of |p - share| = z * sqrt(p (1 - p) / n), found by bisection in Python.
  near(wilson(4 / 4, 4), 0.5101091635454027, 1);
  near(wilson(0, 4), 0, 0.4898908364545972);
  near(wilson(15 / 20, 20), 0.531299122381256, 0.8881382985923343);
  near(wilson(1 / 10, 10), 0.01787621309507291, 0.40415002679523837);
  near(wilson(97 / 100, 100), 0.9154806357094725, 0.989745475975961);
});

test("an AUROC of 1 is bounded by the pairs that share no example", () => {
  // 0.025 ** (1 / m) by Python, m the smaller class.
  near(aurocAtEdge(1, 2, 2), 0.15811388300841897, 1);
  near(aurocAtEdge(1, 4, 9), 0.3976353643835253, 1);
  near(aurocAtEdge(0, 30, 20), 0, 1 - 0.8315665290169146);
});

test.run();
