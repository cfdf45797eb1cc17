/** Which blocks stand for all of a model: by hand, and what holds of any number of them. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { measuredLayers, spread, spreadLayers } from "../../src/findings/layers.js";
import { fc } from "../support/fc.js";

test("spread layers are distinct, in order, and end with the last", () => {
  assert.equal(spread([0, 1, 2], 8), [0, 1, 2]);
  assert.equal(spread([0, 1, 2, 3, 4, 5, 6, 7], 4), [1, 3, 5, 7]);
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 256 }), fc.integer({ min: 1, max: 8 }), (total, count) => {
      const chosen = spread(
        Array.from({ length: total }, (_, layer) => layer),
        count,
      );
      assert.is(chosen.length, Math.min(total, count));
      assert.is(chosen.at(-1), total - 1);
      for (const [index, layer] of chosen.entries()) assert.ok(index === 0 || layer > chosen[index - 1]!);
    }),
  );
});

test("thirty blocks give the last of each of eight equal parts", () => {
  assert.equal(spreadLayers(30, 8), [3, 7, 10, 14, 18, 22, 25, 29]);
  assert.equal(spreadLayers(30, 1), [29]);
  assert.equal(spreadLayers(0, 8), []);
});

test("a caption names how many layers were measured", () => {
  assert.is(measuredLayers([0, 1, 2], 3), "each layer");
  assert.is(measuredLayers([0, 4, 29], 30), "3 of 30 layers");
  assert.is(measuredLayers([5], 30), "1 of 30 layers");
  assert.is(measuredLayers([0, 4], null), "2 layers");
  assert.is(measuredLayers([4], undefined), "1 layer");
});

test.run();
