import { test } from "uvu";
import * as assert from "uvu/assert";
import { anyLayers, layerList } from "../../src/cli/options.js";

test("layers are written as indices and ranges", () => {
  assert.equal(layerList("5"), [5]);
  assert.equal(layerList("0,3, 7"), [0, 3, 7]);
  assert.equal(layerList("0-3,7"), [0, 1, 2, 3, 7]);
  assert.equal(layerList("7,0"), [7, 0]);
  assert.equal(layerList("0-7"), [0, 1, 2, 3, 4, 5, 6, 7], "eight, the most");
  assert.equal(layerList("254-255"), [254, 255]);
});

test("lists that are read in groups may be longer", () => {
  assert.is(anyLayers("0-29").length, 30);
});

test("a malformed list of layers is refused with the reason", () => {
  const cases: Array<[string, RegExp]> = [
    ["", /neither an index nor a range/],
    ["a", /“a” is neither/],
    ["1,", /neither/],
    ["-1", /neither/],
    ["3-1", /is reversed/],
    ["0,0", /occurs twice/],
    ["0-3,2", /occurs twice/],
    ["256", /at most 255, got 256/],
    ["0-8", /At most 8 layers, got 9/],
  ];
  for (const [text, reason] of cases) {
    assert.throws(() => layerList(text), reason, text);
  }
});

test.run();
