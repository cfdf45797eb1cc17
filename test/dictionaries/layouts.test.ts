import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Dictionaries } from "../../src/library/index.js";
import { decodeRows, encodeRows } from "../../src/native/index.js";
import { pythonWith } from "../support/python.js";
import { type Case, layoutScripts, writeLayouts } from "./cases.js";
import { tryMutants } from "./mutants.js";

const home = mkdtempSync(join(tmpdir(), "tapline-dictionaries-"));
test.after(() => rmSync(home, { recursive: true, force: true }));

for (const [kind, { script, modules }] of Object.entries(layoutScripts)) {
  const python = pythonWith(...modules);
  for (const seed of [1, 2, 3]) {
    const run = async () => {
      const folder = mkdtempSync(join(home, "layouts-"));
      const dictionaries = new Dictionaries(home);
      const layouts = writeLayouts(python as string, script, folder, seed);
      for (const each of layouts) await check(dictionaries, each);
      if (seed > 1) return;
      // Some of the 2,000 of test/stress.
      const { read, refused } = await tryMutants(folder, layouts, { from: 0, count: 20 });
      assert.is(read + refused, 20);
    };
    const title = `${kind}: every layout encodes and decodes as its own equations say, shapes of seed ${seed}`;
    if (python === undefined) test.skip(title, run);
    else test(title, run);
  }
}

async function check(dictionaries: Dictionaries, each: Case): Promise<void> {
  const { name, hidden } = each;
  const stored = await dictionaries.add("one", each.path, { layer: each.claim, k: each.k });
  assert.is(stored.layer, each.layer, name);
  assert.is(stored.point, each.point ?? "block_out", name);
  assert.is(stored.writes, each.writes, name);
  assert.is(stored.n_embd, hidden, name);
  const { places } = await dictionaries.open("one");
  const rows = Float32Array.from(each.rows);
  const sparse = await encodeRows(places, rows, { threads: 2 });
  const count = rows.length / hidden;
  const found = new Float64Array(count * stored.features);
  for (let row = 0; row < count; row++) {
    for (let i = sparse.pointers[row] as number; i < (sparse.pointers[row + 1] as number); i++) {
      found[row * stored.features + (sparse.indices[i] as number)] = sparse.values[i] as number;
    }
  }
  const active = (values: ArrayLike<number>) =>
    Array.from(values, (value) => (value === 0 ? "." : "x")).join("");
  assert.is(active(found), active(each.features), `${name}: the active set`);
  assert.ok(distance(found, each.features) <= 1e-6, `${name}: features ${distance(found, each.features)}`);
  const decoded = await decodeRows(places, sparse, rows, { threads: 2 });
  assert.ok(distance(decoded, each.decoded) <= 1e-6, `${name}: decoded ${distance(decoded, each.decoded)}`);
  if (process.platform !== "win32") {
    assert.is(statSync(places.path).mode & 0o777, 0o600, "kept private");
  }
}

/** Relative L2. */
function distance(found: ArrayLike<number>, wanted: readonly number[]): number {
  let difference = 0;
  let length = 0;
  for (const [i, value] of wanted.entries()) {
    difference += ((found[i] as number) - value) ** 2;
    length += value ** 2;
  }
  return Math.sqrt(difference / length);
}

test.run();
