import { test } from "uvu";
import * as assert from "uvu/assert";
import { growingPatchMap } from "../../src/operations/patch_sweep/figures-growth.js";

const growth = {
  ...{ pair: 1, pairs: 3, layers: [4, 2], points: ["block_out" as const], positions: [1, 3] },
  clean: [" of", " France"],
  corrupted: [" of", " Japan"],
  recovery: [0, 0.25, null, null],
};

test("a running patch's map shows finished cells, the rest as missing", () => {
  const { id, title, description, rows, details, chart, table } = growingPatchMap(growth);
  assert.is(id, "patch-map");
  assert.match(title, /so far$/);
  assert.match(description, /^2 of 4 sites of pair 2 of 3\./);
  // layer, position, column, recovery, whether anything changes there
  assert.equal(rows, [
    [4, 1, 0, 0, 0],
    [4, 3, 1, 0.25, 1],
    [2, 1, 0, null, 1],
    [2, 3, 1, null, 1],
  ]);
  assert.is(details[1], "layer 4, token 3\nclean ·France, corrupted ·Japan\nrecovery 25.0 %");
  assert.is(details[2], "layer 2, token 1\nboth prompts: ·of\nnot computed yet");
  assert.equal((chart as { columns: unknown }).columns, [
    { above: "·of", below: "" },
    { above: "·France", below: "·Japan" },
  ]);
  assert.equal(table.rows, [
    ["1", "·of", "·of", "0 %", ""],
    ["3", "·France", "·Japan", "25.0 %", ""],
  ]);
});

test("of several points the last is drawn", () => {
  const points = ["attn_out" as const, "block_out" as const];
  const recovery = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8];
  const { rows } = growingPatchMap({ ...growth, points, recovery });
  assert.equal(
    rows.map((row) => row[3]),
    [0.3, 0.4, 0.7, 0.8],
  );
});

test.run();
