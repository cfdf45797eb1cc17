/** Labels of a line chart's steps do not run into each other. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { spaced } from "../../src/report/page/ticks.js";

test("labels of many steps are left out evenly, and of few steps never", () => {
  const layers = (count: number) => Array.from({ length: count }, (_, layer) => layer);
  assert.equal(spaced(layers(12), 400), layers(12));
  // Thirty labels of two digits need 600 pixels.
  assert.equal(spaced(layers(30), 600), layers(30));
  assert.equal(spaced(layers(30), 599), [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28]);
  assert.equal(spaced([1000, 1200, 1400, 1600], 70), [1000, 1400]);
});

test.run();
