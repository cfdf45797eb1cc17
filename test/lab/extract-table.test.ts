/** The table of an extraction: where each text's rows are, and what the data says about it. */
import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from "hyparquet";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { mergeExtraction } from "../../src/lab/extraction/merge.js";
import { refusal } from "../support/refusal.js";
import { runExtraction, toyModel } from "./toy-extraction.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-extract-table-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));
const model = join(folder, "model.gguf");
writeFileSync(model, "no model at all");

let made = 0;
const newPath = (ending = "") => join(folder, `out-${made++}${ending}`);
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const readTable = async (path: string) => parquetReadObjects({ file: await asyncBufferFromFile(path) });

/** Three words are three tokens, and a token that begins each text. */
const entries = [
  { id: "first", text: "a b c", label: 1, split: "train" },
  { text: "d e f g h", label: "city", id: 7 },
  "i j",
  { prompt: "k l", text: " m", split: "test", label: true, id: { no: "text" } },
];

async function extracted(settings: object = {}): Promise<string> {
  const data = newPath(".jsonl");
  writeFileSync(data, entries.map((entry) => JSON.stringify(entry)).join("\n"));
  const out = newPath();
  await runExtraction(folder, { data, out, shard_tokens: 9, ...settings }, toyModel(model));
  return out;
}

const none = { id: null, label: null, split: null };
const [first, second] = ["shard-00000.safetensors", "shard-00001.safetensors"];
const said = [
  { ...none, id: "first", label: "1", split: "train", sha256: sha256("a b c") },
  { ...none, id: "7", label: "city", sha256: sha256("d e f g h") },
  { ...none, sha256: sha256("i j") },
  { ...none, label: "true", split: "test", sha256: sha256(" m") },
];

test("each text has its place, its tokens and what the data says about it", async () => {
  const places = [
    { text: 0, shard: first, row: 0, rows: 4, tokens: 4 },
    { text: 1, shard: second, row: 0, rows: 6, tokens: 6 },
    { text: 2, shard: second, row: 6, rows: 3, tokens: 3 },
    { text: 3, shard: "shard-00002.safetensors", row: 0, rows: 2, tokens: 2 },
  ];
  const found = await readTable(join(await extracted(), "index.parquet"));
  assert.equal(
    found,
    places.map((place, text) => ({ ...place, ...said[text] })),
  );
});

test("extractions with one row per text count texts", async () => {
  const found = await readTable(join(await extracted({ rows: "last" }), "index.parquet"));
  assert.equal(
    found.map(({ shard, row, rows, tokens }) => [shard, row, rows, tokens]),
    [
      [first, 0, 1, 4],
      [second, 0, 1, 6],
      [second, 1, 1, 3],
      ["shard-00002.safetensors", 0, 1, 2],
    ],
  );
});

test("a response's hash is that of its prompt and text together", async () => {
  const data = newPath(".jsonl");
  writeFileSync(data, JSON.stringify(entries[3]));
  const out = newPath();
  await runExtraction(folder, { data, out, rows: "response" }, toyModel(model));
  const [found] = await readTable(join(out, "index.parquet"));
  assert.equal([found?.tokens, found?.rows, found?.sha256], [4, 1, sha256("k l m")]);
});

test("a part's table has the part's texts; a plan has none", async () => {
  const out = await extracted({ shard: [1, 2], shard_tokens: 1000 });
  const found = await readTable(join(out, "index-1-of-2.parquet"));
  assert.equal(
    found.map(({ text, shard, row }) => [text, shard, row]),
    [
      [1, "shard-1-of-2-00000.safetensors", 0],
      [3, "shard-1-of-2-00000.safetensors", 6],
    ],
  );
});

test("examples of a submission have their labels and splits", async () => {
  const examples = [{ text: "a b", label: 0, split: "test" }, { text: "c" }];
  const { place } = await runExtraction(folder, { examples }, toyModel(model));
  const found = await readTable(join(place, "index.parquet"));
  assert.equal(
    found.map(({ text, id, label, split }) => [text, id, label, split]),
    [
      [0, null, "0", "test"],
      [1, null, null, null],
    ],
  );
});

test("many texts are in groups, and merged groups are those of one run", async () => {
  const data = newPath(".txt");
  writeFileSync(data, Array.from({ length: 5000 }, (_, n) => `w${n % 7}`).join("\n"));
  const [whole, parts, out] = [newPath(), newPath(), newPath()];
  const body = { data, shard_tokens: 700, rows: "last" };
  const toy = toyModel(model);
  await runExtraction(folder, { ...body, out: whole }, toy);
  for (let part = 0; part < 2; part++) {
    await runExtraction(folder, { ...body, out: parts, shard: [part, 2] }, toy);
  }
  await mergeExtraction(parts, out);
  const file = await asyncBufferFromFile(join(out, "index.parquet"));
  const { row_groups } = await parquetMetadataAsync(file);
  assert.equal(
    row_groups.map(({ num_rows }) => Number(num_rows)),
    [2048, 2048, 904],
  );
  const found = await parquetReadObjects({ file });
  assert.equal(found, await readTable(join(whole, "index.parquet")));
  assert.equal(
    found.map(({ text }) => text),
    Array.from({ length: 5000 }, (_, n) => n),
  );
});

test("a merge refuses missing and foreign tables, and goes without any of old parts", async () => {
  const data = newPath(".txt");
  writeFileSync(data, "a\nb\nc\nd\n");
  const parts = newPath();
  const toy = toyModel(model);
  for (let part = 0; part < 2; part++) {
    await runExtraction(folder, { data, out: parts, shard: [part, 2] }, toy);
  }
  const one = join(parts, "index-1-of-2.parquet");
  const zero = join(parts, "index-0-of-2.parquet");
  cpSync(zero, one);
  assert.is(
    await refusal(() => mergeExtraction(parts, newPath())),
    "index-1-of-2.parquet has text 0 where text 1 should be.",
  );
  writeFileSync(one, "no table");
  assert.match(
    await refusal(() => mergeExtraction(parts, newPath())),
    /index-1-of-2\.parquet is not the table of an extraction: /,
  );
  rmSync(one);
  assert.is(await refusal(() => mergeExtraction(parts, newPath())), `${parts} lacks index-1-of-2.parquet.`);
  rmSync(zero);
  assert.is((await mergeExtraction(parts, newPath())).plan.texts, 4);
});

test.run();
