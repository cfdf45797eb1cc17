/** Parts of an extraction are merged into what one machine writes. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { mergeExtraction } from "../../src/lab/extraction/merge.js";
import { refusal } from "../support/refusal.js";
import { runExtraction, toyModel } from "./toy-extraction.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-extract-merge-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));
const model = join(folder, "model.gguf");
writeFileSync(model, "no model at all");

let made = 0;
const newPath = () => join(folder, `out-${made++}`);

/** One run over all texts, and one per part, of which each writes to the same folder. */
async function extracted(
  lengths: readonly number[],
  parts: number,
  settings: object = {},
  text = (length: number, index: number) =>
    Array.from({ length: length - 1 }, (_, word) => `w${index}-${word}`).join(" "),
) {
  // One instance, because it numbers words as they come.
  const toy = toyModel(model);
  const data = `${newPath()}.txt`;
  writeFileSync(data, lengths.map(text).join("\n"));
  const [whole, divided] = [newPath(), newPath()];
  const body = { data, shard_tokens: 20, layers: [1, 2], ...settings };
  await runExtraction(folder, { ...body, out: whole }, toy);
  for (let part = 0; part < parts; part++) {
    await runExtraction(folder, { ...body, out: divided, shard: [part, parts] }, toy);
  }
  return { whole, divided };
}

const contents = (path: string) =>
  Object.fromEntries(readdirSync(path).map((name) => [name, readFileSync(join(path, name)).toString("hex")]));

test("merged parts have the bytes of one run, for any texts, parts and forms", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 2, max: 30 }), { minLength: 5, maxLength: 30 }),
      fc.integer({ min: 2, max: 5 }),
      fc.constantFrom("all", "last", "mean"),
      fc.constantFrom("f32", "f16"),
      fc.boolean(),
      async (lengths, parts, rows, dtype, both) => {
        const points = both ? { point: "ffn_in", target: "ffn_out" } : {};
        const { whole, divided } = await extracted(lengths, parts, { rows, dtype, ...points });
        const out = newPath();
        const merged = await mergeExtraction(divided, out);
        assert.is(merged.parts, parts);
        assert.equal(contents(out), contents(whole));
        for (const path of [whole, divided, out]) rmSync(path, { recursive: true });
      },
    ),
    { numRuns: 15 },
  );
});

test("more rows than a buffer holds are copied whole", async () => {
  // 640,000 rows of two values of four bytes exceed 4 MiB; one word per text, because the toy's dictionary is slow.
  const { whole, divided } = await extracted(
    new Array(8).fill(80_000),
    3,
    {
      ...{ max_input_tokens: 1_000_000, shard_tokens: 1_000_000, layers: [3] },
    },
    (length, text) => `w${text} `.repeat(length - 1).trim(),
  );
  const out = newPath();
  await mergeExtraction(divided, out);
  assert.equal(contents(out), contents(whole));
});

test("an interrupted merge resumes after its finished files", async () => {
  const { whole, divided } = await extracted([9, 9, 9, 9, 9, 9, 9], 3);
  const out = newPath();
  await mergeExtraction(divided, out);
  rmSync(join(out, "shard-00001.safetensors"));
  writeFileSync(join(out, "shard-00001.safetensors.partial"), "x");
  const again = await mergeExtraction(divided, out);
  assert.equal([again.kept, contents(out)], [3, contents(whole)]);
});

test("missing, unfinished and foreign parts are refused by name", async () => {
  const { divided } = await extracted([5, 6, 7, 8, 9, 10], 3);
  const out = newPath();
  const broken = (change: (path: string) => void): Promise<string> => {
    const path = newPath();
    cpSync(divided, path, { recursive: true });
    change(path);
    return refusal(() => mergeExtraction(path, out)).then((sentence) => sentence.replaceAll(path, "PARTS"));
  };
  const edit = (path: string, name: string, change: (index: Record<string, unknown>) => void) => {
    const index = JSON.parse(readFileSync(join(path, name), "utf8"));
    change(index);
    writeFileSync(join(path, name), JSON.stringify(index));
  };
  assert.is(
    await broken((path) => {
      rmSync(join(path, "index-1-of-3.json"));
      rmSync(join(path, "index-2-of-3.json"));
    }),
    "PARTS lacks 2 of 3 parts: index-1-of-3.json, index-2-of-3.json.",
  );
  assert.is(
    await broken((path) =>
      edit(path, "index-1-of-3.json", (index) => Object.assign(index, { complete: false })),
    ),
    "PARTS/index-1-of-3.json is not finished: run tapline extract --shard 1/3 again.",
  );
  assert.is(
    await broken((path) =>
      edit(path, "index-2-of-3.json", ({ source }) => Object.assign(source as object, { too_long: "cut" })),
    ),
    'index-2-of-3.json belongs to another extraction than index-0-of-3.json: too_long is "refuse" in index-0-of-3.json and "cut" in index-2-of-3.json.',
  );
  assert.is(
    await broken((path) => edit(path, "index-1-of-3.json", (index) => Object.assign(index, { texts: 1 }))),
    "index-1-of-3.json has 1 texts; with 5 texts in all, it should have 2.",
  );
  assert.is(
    await broken((path) => cpSync(join(path, "index-0-of-3.json"), join(path, "index-0-of-4.json"))),
    "PARTS contains parts of several divisions: into 3 and 4 parts.",
  );
  assert.match(
    await broken((path) => writeFileSync(join(path, "shard-1-of-3-00000.safetensors"), "short")),
    /^PARTS\/shard-1-of-3-00000\.safetensors does not match the index: /,
  );
  const empty = newPath();
  mkdirSync(empty);
  assert.match(await refusal(() => mergeExtraction(empty, out)), /does not contain parts of an extraction/);
  assert.match(await refusal(() => mergeExtraction(newPath(), out)), /cannot be read \(ENOENT\)\.$/);
});

test("the merged folder may not hold another extraction", async () => {
  const { divided } = await extracted([5, 6, 7], 2);
  const { whole } = await extracted([5, 6, 8], 2);
  assert.match(await refusal(() => mergeExtraction(divided, whole)), /contains a different extraction: /);
});

test.run();
