import { existsSync, readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { UserError } from "../../src/contracts/user-error.js";
import { FormatError } from "../../src/formats/format-error.js";
import { type Reading, readVector } from "../../src/library/files.js";
import { fc } from "../support/fc.js";
import { torchFile } from "../support/torch-file.js";

const model = { id: "toy", fingerprint: "f".repeat(64), nEmbd: 4, nLayer: 3 };
const fixture = (name: string) => readFileSync(new URL(`./fixtures/${name}.pt`, import.meta.url));
const read = (name: string, reading: Partial<Reading> = {}) =>
  readVector(fixture(name), { model, restamp: false, layer: undefined, ...reading });
/** Layers and vectors as plain data. */
const plain = async (name: string, reading: Partial<Reading>) => {
  const { layers } = await read(name, reading);
  return Object.fromEntries([...layers].map(([layer, vector]) => [layer, [...vector]]));
};
const refused = async (reason: RegExp, name: string, reading: Partial<Reading>) => {
  const error = await read(name, reading).then(
    () => new Error(`${name} was read`),
    (thrown: Error) => thrown,
  );
  assert.ok(error instanceof FormatError || error instanceof UserError, String(error.stack));
  assert.match(error.message, reason);
  assert.match(error.message, /^[^\n]{10,400}[.)]$/, "one sentence");
};

test("persona vectors: row l is block l - 1's output; other rows are dropped", async () => {
  assert.equal(await plain("persona", { format: "persona" }), { 0: [10, 11, 12, 13], 1: [20, 21, 22, 23] });
  assert.equal(await plain("persona", { format: "persona", layer: 2 }), { 1: [20, 21, 22, 23] });
  assert.match(
    (await read("persona", { format: "persona", layer: 2 })).note,
    /imported is row 2, for block 1/,
  );
  for (const layer of [0, 3]) await refused(/Rows 1 to 2 .*got \d/, "persona", { format: "persona", layer });
  await refused(/has 3 rows.*3 blocks have 4/, "axis", { format: "persona" });
});

test("an assistant axis: row i is the output of block i, by itself or in a dict", async () => {
  const rows = { 0: [0, 1, 2, 3], 1: [10, 11, 12, 13], 2: [20, 21, 22, 23] };
  assert.equal(await plain("axis", { format: "assistant-axis" }), rows);
  assert.equal(await plain("axis-dict", { format: "assistant-axis" }), rows);
  assert.equal(await plain("axis-dict", { format: "assistant-axis", layer: 2 }), { 2: rows[2] });
  await refused(/has 4 rows.*one per block, 3/, "persona", { format: "assistant-axis" });
  await refused(/got 3/, "axis", { format: "assistant-axis", layer: 3 });
});

test("a capping file: the entry that is named, at the layer that the file says", async () => {
  assert.equal(await plain("capping", { format: "capping", entry: "layer_1/contrast" }), {
    1: [20, 21, 22, 23],
  });
  assert.equal(await plain("capping", { format: "capping", entry: "late" }), { 2: [10, 11, 12, 13] });
  await refused(/2 vectors; specify the entry: layer_1\/contrast, late/, "capping", { format: "capping" });
  await refused(/no entry none/, "capping", { format: "capping", entry: "none" });
  await refused(/is for layer 2, not 1/, "capping", { format: "capping", entry: "late", layer: 1 });
  await refused(/entry is for capping files/, "axis", { format: "assistant-axis", entry: "late" });
});

test("a refusal direction at a block's input belongs to the block before", async () => {
  // means[2, 1] of rows(12): row 7.
  assert.equal(await plain("direction", { format: "refusal", layer: 2 }), { 1: [70, 71, 72, 73] });
  await refused(/does not record its layer/, "direction", { format: "refusal" });
  await refused(/layer 0 applies to the embedding/, "direction", { format: "refusal", layer: 0 });
  await refused(/shape \[4, 3, 4\]; expected one vector/, "mean_diffs", { format: "refusal", layer: 2 });
});

test("what a file does not say has to be said: its form, its model", async () => {
  await refused(/does not record what its rows are: specify the format, one of persona/, "persona", {});
  await refused(/The file does not record its model/, "persona", { format: "persona", model: undefined });
  await refused(/does not contain a single tensor; it contains metadata\.n, axis/, "axis-dict", {
    format: "persona",
  });
});

test("hostile and old files are refused by name, and nothing of them runs", async () => {
  await refused(/names "posix\.system"/, "trap", { format: "assistant-axis" });
  assert.not.ok(existsSync("/tmp/tapline-was-here"));
  await refused(/PyTorch 1\.6/, "old", { format: "persona" });
  await refused(/specify the format/, "old", {});
});

test("cut and changed files are refused or read, never anything else", async () => {
  const whole = fixture("axis-dict");
  await fc.assert(
    fc.asyncProperty(fc.nat(whole.length - 1), fc.nat(255), fc.boolean(), async (at, value, cut) => {
      const bytes = Buffer.from(cut ? whole.subarray(0, at) : whole);
      if (!cut) bytes[at] = value;
      for (const format of ["assistant-axis", undefined] as const) {
        try {
          await readVector(bytes, { model, restamp: false, layer: undefined, format });
        } catch (error) {
          assert.ok(error instanceof FormatError || error instanceof UserError, String(error));
        }
      }
    }),
    { numRuns: 400 },
  );
});

test("the first block: named, recorded in the file, or the second's input", async () => {
  const first = await read("axis-dict", { format: "assistant-axis", layer: 0 });
  assert.equal([...first.layers], [[0, Float32Array.of(0, 1, 2, 3)]]);
  assert.match(first.note, /; imported is row 0, for block 0\.$/);
  assert.equal(await plain("persona", { format: "persona", layer: 1 }), { 0: [10, 11, 12, 13] });
  assert.equal(await plain("direction", { format: "refusal", layer: 1 }), { 0: [70, 71, 72, 73] });
  await refused(/is for layer 2, not 0/, "capping", { format: "capping", entry: "late", layer: 0 });
  const vector = { shape: [4], data: Float32Array.of(1, 2, 3, 4) };
  const capping = (layer: number, claimed?: number) =>
    readVector(torchFile({ vectors: { early: { layer, vector } } }), {
      ...{ model, restamp: false, layer: claimed, format: "capping", entry: "early" },
    });
  for (const claimed of [undefined, 0]) {
    assert.equal([...(await capping(0, claimed)).layers], [[0, vector.data]]);
  }
  const unsaid = await capping(-1).catch((error: Error) => error.message);
  assert.is(unsaid, "The file does not record the layer of early.");
});

test.run();
