import { test } from "uvu";
import * as assert from "uvu/assert";
import { editFor } from "../../src/lab/operations/intervention.js";

const vector = Float32Array.of(3, 4);

test("scale and ablate leave a vector that lies beside them alone", () => {
  const scaled = { layer: 2, positions: "last", scale: 0.5 };
  assert.equal(editFor({ intervention: "scale" }, 2, 0.5, vector), scaled);
  const ablated = { layer: 2, positions: "last", scale: 0.25 };
  assert.equal(editFor({ intervention: "ablate" }, 2, 0.75, vector), ablated);
});

test("patch moves a row towards the vector, steer adds it, each on the last row unless told otherwise", () => {
  const patched = { layer: 1, positions: "last", vector, scale: 0.75, strength: 0.25, unit: "vector" };
  assert.equal(editFor({ intervention: "patch" }, 1, 0.25, vector), patched);
  const steered = { layer: 1, positions: "all", vector, strength: -2, unit: "row_norm" };
  const config = { intervention: "steer", positions: "all", strength_unit: "row_norm" } as const;
  assert.equal(editFor(config, 1, -2, vector), steered);
});

test.run();
