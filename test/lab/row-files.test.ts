/** Data sets in, shards and their index out: files by hand, without a model. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { decodeSafetensors } from "../../src/formats/safetensors.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { ExtractionFolder, extractionFormat, type IndexHead } from "../../src/lab/extraction/folder.js";
import { indexName, isIndexName, Planner, type RowForm, shardLayout } from "../../src/lab/extraction/plan.js";
import { RowWriter } from "../../src/lab/extraction/row-writer.js";
import { givenTexts, textsOfData } from "../../src/lab/extraction/texts.js";
import { watchDisk } from "../support/disk.js";
import { refusal } from "../support/refusal.js";
import { withFiles } from "../support/with-files.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-row-files-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, content: string | Buffer): string {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
}

async function all<T>(source: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of source) found.push(one);
  return found;
}

test("a file's texts are lines or JSON entries; empty lines and a BOM are ignored", async () => {
  const texts = (...all: string[]) => all.map((text) => ({ text }));
  const read = (name: string, content: string) => all(textsOfData(file(name, content)).read());
  assert.equal(
    await read("a.txt", "\ufeffone\r\n\n  \ntwo \n\ufeffthree"),
    texts("one", "two ", "\ufeffthree"),
  );
  assert.equal(await read("b.TXT", "one\n"), texts("one"));
  const entries = ['"one"', '{"text":"two","prompt":"no"}', '{"prompt":"three"}', ""];
  for (const name of ["c.jsonl", "d.ndjson"])
    assert.equal(await read(name, entries.join("\n")), [
      ...texts("one"),
      // The prompt that a text follows, if its rows are those of a response.
      { text: "two", prompt: "no" },
      ...texts("three"),
    ]);
  // Lines that begin in one piece of the file and end in another.
  const long = ["x".repeat(1024 ** 2 - 3), "y".repeat(5), "z".repeat(2 * 1024 ** 2), "end"];
  const seen: Buffer[] = [];
  const source = textsOfData(file("long.txt", long.join("\n")));
  assert.equal(await all(source.read((bytes) => seen.push(Buffer.from(bytes)))), texts(...long));
  assert.is(Buffer.concat(seen).toString(), long.join("\n"));
  assert.is(source.name, "long.txt");
  const examples = [{ text: "a" }, { text: "b\n" }, { text: "c", prompt: "d" }];
  const given = givenTexts(examples);
  seen.length = 0;
  assert.equal(await all(given.read((bytes) => seen.push(Buffer.from(bytes)))), examples);
  assert.equal([Buffer.concat(seen).toString(), given.name], ['"a"\n"b\\n"\n["d","c"]\n', "examples"]);
  const says = (name: string, content: string | Buffer) =>
    refusal(() => all(textsOfData(file(name, content)).read()));
  for (const line of ['{"text":7}', '{"text":""}', '""', "null", "[]", "7"]) {
    assert.is(await says("e.jsonl", `"ok"\n${line}`), "Line 2 of e.jsonl has neither text nor prompt.");
  }
  assert.match(await says("e.jsonl", '"ok"\n{'), /^Line 2 of e\.jsonl is not JSON: .+\.$/);
  for (const line of ['"\\ud800"', '{"text":"a","prompt":"\\udc00"}']) {
    assert.is(await says("e.jsonl", `${line}\n"ok"`), "Line 1 of e.jsonl contains an unpaired surrogate.");
  }
  assert.is(await says("e.txt", Buffer.of(0x61, 10, 0xff)), "Line 2 of e.txt is not UTF-8.");
  const absent = join(folder, "absent.txt");
  assert.is(await refusal(() => all(textsOfData(absent).read())), `${absent} cannot be read (ENOENT).`);
  const most = 16 * 1024 ** 2;
  assert.is(
    await says("f.txt", Buffer.alloc(most + 1, "x")),
    "f.txt has a line of more than 16777216 bytes.",
  );
  assert.is((await all(textsOfData(file("f.txt", Buffer.alloc(most, "x"))).read()))[0]!.text.length, most);
  assert.match(await refusal(() => textsOfData("a.json")), /^a\.json has an unknown format/);
});

const form: RowForm = { layers: [1, 5], hidden: 2, rows: "all", dtype: "f32" };

test("texts are collected into shards that close before they exceed their tokens", () => {
  const plan = (
    most: number,
    texts: number[],
    own: Partial<RowForm> = {},
    part: [number, number] = [0, 1],
  ) => {
    const planner = new Planner({ ...form, ...own }, part, most);
    for (const [i, tokens] of texts.entries()) {
      planner.add(tokens, i === 0);
      assert.is(
        planner.tokens,
        texts.slice(0, i + 1).reduce((a, b) => a + b),
      );
    }
    return planner.finish();
  };
  const found = plan(10, [4, 6, 1, 30, 2]);
  assert.equal(
    found.shards.map(({ file, texts, tokens, rows }) => [file, texts, tokens, rows]),
    [
      ["shard-00000.safetensors", 2, 10, 10],
      ["shard-00001.safetensors", 1, 1, 1],
      ["shard-00002.safetensors", 1, 30, 30],
      ["shard-00003.safetensors", 1, 2, 2],
    ],
  );
  assert.equal([found.texts, found.tokens, found.rows, found.cut_texts], [5, 43, 43, 1]);
  assert.is(
    found.bytes,
    found.shards.reduce((sum, { bytes }) => sum + bytes, 0),
  );
  assert.equal(
    plan(10, [4, 6, 1], { rows: "last" }).shards.map(({ rows }) => rows),
    [2, 1],
  );
  assert.equal(plan(9, [4], {}, [2, 8]).shards[0]!.file, "shard-2-of-8-00000.safetensors");
  assert.equal(plan(9, []), { texts: 0, tokens: 0, rows: 0, bytes: 0, cut_texts: 0, shards: [] });
  assert.equal([indexName([0, 1]), indexName([2, 8])], ["index.json", "index-2-of-8.json"]);
  for (const name of ["index.json", "index-12-of-80.json"]) assert.ok(isIndexName(name));
  for (const name of ["index-1.json", "index.json.lock", "xindex.json"]) assert.not(isIndexName(name));
});

test("a shard holds texts, starts, tokens, and each layer's rows in their type", async () => {
  for (const [dtype, type, width] of [
    ["f32", "F32", 4],
    ["f16", "F16", 2],
    ["bf16", "BF16", 2],
  ] as const) {
    const own = { ...form, dtype };
    const layout = shardLayout({ texts: 3, tokens: 4, rows: 4 }, own);
    const place = mkdtempSync(join(folder, "shard-"));
    const planner = new Planner(own, [0, 1], 100);
    for (const tokens of [1, 2, 1]) planner.add(tokens, false);
    const [shard] = planner.finish().shards;
    assert.is(shard!.bytes, layout.bytes);
    await new Artifacts(place).create("shard", async (target) => {
      const writer = new RowWriter(target, shard!, own);
      const rows = (...values: number[]) => ({ data: Float32Array.from(values) });
      const text = (index: number, ...tokens: number[]) => ({ index, tokens: Int32Array.from(tokens) });
      await writer.add(
        [text(0, 7), text(2, 8, 9)],
        new Map([
          [1, rows(1, 2, 3, 4, 5, 6)],
          [5, rows(-1, -2, -3, -4, -5, -6)],
        ]),
      );
      await writer.add(
        [text(5, 10)],
        new Map([
          [1, rows(0.5, 8)],
          [5, rows(-0.5, -8)],
        ]),
      );
      await writer.finish();
    });
    const bytes = readFileSync(join(place, "shard"));
    assert.is(bytes.length, shard!.bytes);
    const head = JSON.parse(bytes.toString("utf8", 8, 8 + Number(bytes.readBigUInt64LE())));
    assert.equal(
      [head.__metadata__, head.layer_1.dtype, head.layer_5.shape],
      [{ format: "pt", rows: "all" }, type, [4, 2]],
    );
    assert.is(head.layer_1.data_offsets[1] - head.layer_1.data_offsets[0], 8 * width);
    const { tensors } = decodeSafetensors(bytes);
    assert.equal(Object.fromEntries([...tensors].map(([name, { data }]) => [name, [...data]])), {
      ...{ text_indices: [0, 2, 5], text_starts: [0, 1, 3, 4], token_ids: [7, 8, 9, 10] },
      ...{ layer_1: [1, 2, 3, 4, 5, 6, 0.5, 8], layer_5: [-1, -2, -3, -4, -5, -6, -0.5, -8] },
    });
    assert.equal(Object.keys(shard!.offsets), [
      "text_indices",
      "text_starts",
      "token_ids",
      "layer_1",
      "layer_5",
    ]);
  }
});

const head: IndexHead = {
  format: extractionFormat,
  source: {
    ...{ model_fingerprint: "f", layers: [1, 5], hidden: 2, rows: "all", dtype: "f32", skipped_in_mean: 1 },
  },
  made_with: { model: "toy" },
};

test("rows are freed once they are written", async () => {
  const planner = new Planner(form, [0, 1], 4);
  planner.add(1, false);
  const [shard] = planner.finish().shards;
  const [one, five] = [Float32Array.of(1, 2), Float32Array.of(3, 4)];
  await new Artifacts(mkdtempSync(join(folder, "given-back-"))).create("shard", async (target) => {
    const writer = new RowWriter(target, shard!, form);
    const rows = new Map([
      [1, { data: one }],
      [5, { data: five }],
    ]);
    await writer.add([{ index: 0, tokens: Int32Array.of(7) }], rows);
  });
  assert.equal([one.length, five.length], [0, 0]);
});

test("a folder is created for its owner, on disk, with room for missing shards", async () => {
  const planner = new Planner(form, [0, 1], 4);
  for (const tokens of [3, 3]) planner.add(tokens, false);
  const plan = planner.finish();
  const path = join(folder, "roomy");
  const disk = watchDisk();
  try {
    const opened = await ExtractionFolder.open(path, [0, 1]);
    assert.equal(await opened.begin(head, plan), new Set());
    assert.is(disk.lossOf(join(path, "index.json")), null);
    await opened.close();
  } finally {
    disk.stop();
  }
  if (process.platform !== "win32") assert.is(statSync(path).mode & 0o777, 0o700);
  assert.not(readdirSync(path).some((name) => name.endsWith(".lock")));
  writeFileSync(join(path, plan.shards[0]!.file), Buffer.alloc(plan.shards[0]!.bytes));
  // Finished shards need no more room.
  const needed = plan.shards[1]!.bytes;
  const begin = (blocks: number, size: number) => {
    const statfs = async () => ({ bavail: blocks, bfree: 1e9, blocks: 1e9, bsize: size });
    return withFiles({ statfs: statfs as never }, async () => {
      const opened = await ExtractionFolder.open(path, [0, 1]);
      try {
        return (await opened.begin(head, plan)).size;
      } finally {
        await opened.close();
      }
    });
  };
  assert.is(needed % 4, 0);
  assert.is(await begin(needed / 4, 4), 1);
  assert.is(
    await refusal(() => begin(needed - 1, 1)),
    `The extraction needs ${needed} bytes, but only ${needed - 1} bytes are free on the disk of ${path}.`,
  );
});

test("a folder of shards keeps finished and foreign files, removes partial ones", async () => {
  const planner = new Planner(form, [0, 1], 4);
  for (const tokens of [3, 3, 2]) planner.add(tokens, false);
  const plan = planner.finish();
  const [first, second] = plan.shards as [(typeof plan.shards)[0], (typeof plan.shards)[0]];
  const path = join(folder, "extraction");
  const begin = async (own = head, other = plan) => {
    const opened = await ExtractionFolder.open(path, [0, 1]);
    try {
      return [...(await opened.begin(own, other))];
    } finally {
      await opened.close();
    }
  };
  assert.equal(await begin(), []);
  assert.equal(readdirSync(path), ["index.json"]);
  const index = JSON.parse(readFileSync(join(path, "index.json"), "utf8"));
  assert.equal([index.complete, index.shards.length, index.source.hidden], [false, 3, 2]);
  writeFileSync(join(path, first.file), Buffer.alloc(first.bytes));
  const torn = [`${second.file}.partial`, `${second.file}.0123456789ab.partial`, "index.parquet.partial"];
  for (const name of [...torn, "mine.partial"]) writeFileSync(join(path, name), "");
  assert.equal(await begin(), [first.file]);
  assert.equal(readdirSync(path).sort(), ["index.json", "mine.partial", first.file]);
  const says = (own = head, other = plan) => refusal(() => begin(own, other));
  const another = (more: object) => ({ ...head, source: { ...head.source, ...more } });
  assert.is(
    await says(another({ rows: "last" })),
    `${path} contains a different extraction: rows is "all" there and "last" here. Choose another folder.`,
  );
  assert.match(await says(another({ extra: 1 })), /: the two differ in extra\. Choose/);
  // The text that both share is quoted if it is at most 200 characters, of which "all" has five.
  assert.match(
    await says(another({ rows: "x".repeat(193) })),
    /: rows is "all" there and "x{193}" here\. Choose/,
  );
  assert.match(await says(another({ rows: "x".repeat(194) })), /: the two differ in rows\. Choose/);
  assert.match(await says(another({ data: "x".repeat(300) })), /: the two differ in data\. Choose/);
  assert.match(
    await says(head, { ...plan, shards: plan.shards.slice(1) }),
    /: the two differ in shards\. Choose/,
  );
  writeFileSync(join(path, second.file), "short");
  assert.is(await says(), `${join(path, second.file)} exists and does not belong to this extraction.`);
  rmSync(join(path, second.file));
  for (const text of ["{", '{"format":"other","shards":[]}', JSON.stringify({ format: extractionFormat })]) {
    writeFileSync(join(path, "index.json"), text);
    assert.is(await says(), `${join(path, "index.json")} is not an extraction index.`);
  }
  rmSync(join(path, "index.json"));
  assert.is(await says(), `${join(path, first.file)} exists and does not belong to this extraction.`);
  assert.match(
    await refusal(() => ExtractionFolder.open(join(folder, "no", "where"), [0, 1])),
    /^Cannot write to .* \(ENOENT\)\.$/,
  );
});

test("two machines that write the same file at the same time both complete it", async () => {
  const path = join(folder, "twice");
  const planner = new Planner(form, [0, 1], 4);
  planner.add(3, false);
  const plan = planner.finish();
  const [{ file }] = plan.shards as [(typeof plan.shards)[0]];
  const bytes = Buffer.from("the same bytes");
  const lost = await ExtractionFolder.open(path, [0, 1]);
  await lost.begin(head, plan);
  // A lock of another machine counts for nothing here.
  rmSync(join(path, "index.json.lock"));
  const again = await ExtractionFolder.open(path, [0, 1]);
  await again.begin(head, plan);
  let half = () => {};
  let whole = () => {};
  const [written, completed] = [
    new Promise<void>((resolve) => (half = resolve)),
    new Promise<void>((resolve) => (whole = resolve)),
  ];
  const first = lost.artifacts.create(file, async (shard) => {
    await shard.write(bytes.subarray(0, 4), 0);
    half();
    await completed;
    assert.is(
      readFileSync(join(path, file), "utf8"),
      "the same bytes",
      "complete as soon as it has its name",
    );
    await shard.write(bytes.subarray(4), 4);
  });
  await written;
  await again.artifacts.create(file, (shard) => shard.write(bytes, 0));
  whole();
  await first;
  assert.is(readFileSync(join(path, file), "utf8"), "the same bytes");
  assert.equal(readdirSync(path).sort(), ["index.json", "index.json.lock", file]);
  await Promise.all([lost.close(), again.close()]);
});

test.run();
