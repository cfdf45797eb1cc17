import { test } from "uvu";
import * as assert from "uvu/assert";
import { editOf, lengthOf } from "../../src/library/index.js";
import { editFor, meanDifference } from "../../src/operations/compare/run-intervention.js";
import { compareNote } from "../../src/operations/compare/run-note.js";

const vector = Float32Array.of(3, 4);

test("scale and ablate ignore a vector in the same request", () => {
  const scaled = { layer: 2, positions: "last", scale: 0.5 };
  assert.equal(editFor({ intervention: "scale" }, 2, 0.5, vector), scaled);
  const ablated = { layer: 2, positions: "last", scale: 0.25 };
  assert.equal(editFor({ intervention: "ablate" }, 2, 0.75, vector), ablated);
});

test("patch moves a row towards the vector, steer adds it; the last row by default", () => {
  const patched = { layer: 1, positions: "last", vector, scale: 0.75, strength: 0.25, unit: "vector" };
  assert.equal(editFor({ intervention: "patch" }, 1, 0.25, vector), patched);
  const steered = { layer: 1, positions: "all", vector, strength: -2, unit: "row_norm" };
  const config = { intervention: "steer", positions: "all", strength_unit: "row_norm" } as const;
  assert.equal(editFor(config, 1, -2, vector), steered);
});

test("steer is absolute, project_out and clamp act along the vector; all rows by default", () => {
  const common = { layer: 3, positions: "all", vector };
  assert.equal(editOf({ kind: "steer", strength: 2 }, 3, vector), { ...common, strength: 2, unit: "unit" });
  const without = { ...common, kind: "project_out", strength: 0.5 };
  assert.equal(editOf({ kind: "project_out", strength: 0.5 }, 3, vector), without);
  const clamped = { ...common, kind: "clamp", strength: 1, unit: "vector" };
  const written = { kind: "clamp", strength: 1, strength_unit: "vector" } as const;
  assert.equal(editOf({ ...written, min: -1, max: 0 }, 3, vector), { ...clamped, min: -1, max: 0 });
  assert.equal(editOf({ ...written, max: 2 }, 3, vector), { ...clamped, max: 2 });
  assert.equal(editOf({ ...written, min: 0 }, 3, vector), { ...clamped, min: 0 });
  // Room is planned before the vector is there.
  assert.equal(editFor({ intervention: "patch" }, 0, 0, undefined), {
    layer: 0,
    positions: "last",
    scale: 1,
    strength: 0,
    unit: "vector",
  });
});

test("a direction is the positive mean minus the negative; its length is Euclidean", () => {
  // (1 + 3) / 2 - 5 and (2 + 4) / 2 - 9; two against one row of two values.
  assert.equal([...meanDifference(Float32Array.of(1, 2, 3, 4, 5, 9), 2, 2)], [-3, -6]);
  assert.equal([...meanDifference(Float32Array.of(1, 2, 3, 4, 5, 9), 1, 2)], [-3, -4.5]);
  assert.is(lengthOf(vector), 5);
});

const config = {
  operation: "compare",
  model: "demo",
  prompt: "x",
  layers: [4],
  intervention: "steer",
  strengths: [0, 1, 2],
} as unknown as Parameters<typeof compareNote>[0];
const trial = (strength: number, length: number, rowLength: number) =>
  ({ strength, change: { rows: 1, length, row_length: rowLength } }) as Parameters<
    typeof compareNote
  >[1][number];
const plain =
  "The target token's probabilities are compared at the same input; greedy continuations may diverge. The edit applies " +
  "to the last token of every forward pass. Later tokens read the keys and values of earlier edited tokens as they were " +
  "computed with the edit.";

test("a comparison's note: ignored fields, reach of the edit, and near-neutral strengths", () => {
  // Neutral strengths say nothing; of several prompts the largest share counts; a hundredth is enough.
  const enough = [trial(0, 0, 100), trial(1, 0, 100), trial(1, 1, 100), trial(2, 5, 100)];
  assert.is(compareNote(config, enough, ""), plain);
  assert.is(
    compareNote({ ...config, layers: [4, 5, 6] }, enough, "A side path."),
    `Only the first layer (4) was changed; 5, 6 were ignored. ${plain} A side path.`,
  );
  assert.is(
    compareNote(config, [trial(0, 0, 100), trial(1, 0.5, 100), trial(2, 0.999, 100)], ""),
    `${plain} At strengths 1, 2 the change is less than 1 % of the activation's norm (at most 1.0 %), so little ` +
      "effect can be expected. For a larger change, use strength_unit vector or row_norm.",
  );
  // A row of zeros: any change of it is all of it.
  assert.is(
    compareNote(config, [trial(0, 0, 0), trial(1, 0, 0), trial(2, 1e-9, 0)], ""),
    `${plain} At strength 1 the intervention changed nothing.`,
  );
  // However short a row is, it is its share that counts.
  assert.is(compareNote(config, [trial(0, 0, 0.5), trial(1, 0.1, 0.5), trial(2, 1, 1)], ""), plain);
  assert.match(compareNote(config, [trial(1, 0.004, 0.5), trial(2, 0.004, 0.5)], ""), /\(at most 0\.80 %\)/);
  // For scale, 1 is the neutral one.
  const scaled = { ...config, intervention: "scale" } as typeof config;
  assert.is(
    compareNote(scaled, [trial(0, 100, 100), trial(1, 0, 100), trial(2, 0.25, 100)], ""),
    `${plain} At strength 2 the change is less than 1 % of the activation's norm (at most 0.25 %), so little effect can be expected.`,
  );
  const generated = compareNote({ ...config, positions: "generated" }, enough, "");
  assert.match(
    generated,
    "so the probabilities after the prompt and the first generated token equal the baseline's. Later tokens read keys",
  );
  assert.match(
    compareNote({ ...config, positions: "all" }, enough, ""),
    /The edit applies to all tokens\. Later tokens read keys and values that were computed with the edit\./,
  );
});

test.run();
