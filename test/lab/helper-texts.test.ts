/** Data sets that a Python process reads, and what is said without it. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { checkSubmission } from "../../src/contracts/index.js";
import { InvalidInput } from "../../src/contracts/invalid-input.js";
import { textsOfData } from "../../src/lab/extraction/texts.js";
import { pythonWith } from "../support/python.js";
import { refusal, refusalBy } from "../support/refusal.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-helper-"));
const python = pythonWith();
test.before.each(() => {
  if (python !== undefined) process.env.TAPLINE_PYTHON = python;
});
test.after(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, content: string | Buffer): string {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
}

async function read(place: string) {
  const found = [];
  for await (const text of textsOfData(place).read()) found.push(text);
  return found;
}

if (python === undefined) test.skip("data sets that Python reads: needs Python 3", () => {});
else {
  test("a CSV file's columns describe its texts; empty cells are missing", async () => {
    const rows = 'id,text,prompt,label,split\r\n1,"a, ""b""\nc",,1,train\r\n,d,Who?,,\r\n';
    assert.equal(await read(file("a.csv", `\ufeff${rows}`)), [
      { text: 'a, "b"\nc', id: "1", label: "1", split: "train" },
      { text: "d", prompt: "Who?" },
    ]);
  });

  test("compressed lines and columns have the texts of the plain files", async () => {
    assert.equal(await read(file("a.jsonl.gz", gzipSync('"one"\n{"text":"two","label":1}\n'))), [
      { text: "one" },
      { text: "two", label: "1" },
    ]);
    assert.equal(await read(file("a.txt.gz", gzipSync("one\n\ntwo"))), [{ text: "one" }, { text: "two" }]);
    assert.equal(await read(file("a.csv.gz", gzipSync("text\none\n"))), [{ text: "one" }]);
  });

  test("a file that Python cannot read is refused in one sentence", async () => {
    assert.is(
      await refusal(() => read(file("b.csv", "content,label\nx,1\n"))),
      `${join(folder, "b.csv")} has the columns content, label; text or prompt is required.`,
    );
    assert.match(await refusal(() => read(file("c.csv", 'text\n"a\n'))), /^Line \d of .*c\.csv is not CSV: /);
    assert.is(
      await refusal(() => read(file("d.csv", Buffer.from("text\n\xff\n", "latin1")))),
      `${join(folder, "d.csv")} is not UTF-8.`,
    );
    assert.is(
      await refusal(() => read(join(folder, "absent.csv"))),
      `${join(folder, "absent.csv")} does not exist.`,
    );
    assert.match(await refusal(() => read(folder)), /has an unknown format: .* save_to_disk/);
  });

  test("a reader that stops early ends the process", async () => {
    const path = file("long.csv", `text\n${"a b c d e f g\n".repeat(500_000)}`);
    let count = 0;
    for await (const _ of textsOfData(path).read()) if (++count === 10) break;
    assert.is(count, 10);
  });
}

test("without Python, or without its package, a sentence says what to install", async () => {
  process.env.TAPLINE_PYTHON = join(folder, "no-python");
  assert.is(
    await refusal(() => read(file("e.csv", "text\nx\n"))),
    `${join(folder, "e.csv")} requires Python, but ${join(folder, "no-python")} was not found. Install Python 3.10 or newer, ` +
      "pip install 'tapline-lab[remote]', and set TAPLINE_PYTHON to that Python.",
  );
  // A Python that finds no packages at all.
  process.env.TAPLINE_PYTHON = file("isolated", `#!/bin/sh\nexec ${python ?? "python3"} -I "$@"\n`);
  chmodSync(process.env.TAPLINE_PYTHON, 0o755);
  if (python === undefined) return;
  assert.is(
    await refusal(() => read("s3://bucket/x.jsonl")),
    `s3://bucket/x.jsonl requires tapline_lab in ${process.env.TAPLINE_PYTHON}: pip install 'tapline-lab[remote]', and set ` +
      "TAPLINE_PYTHON to that Python.",
  );
});

test("data and out accept URLs, and other schemes are refused", async () => {
  const check = (body: object) => checkSubmission({ operation: "extract", model: "demo", ...body });
  const invalid = refusalBy(InvalidInput);
  check({ data: "s3://bucket/texts.parquet", out: "gs://bucket/rows" });
  check({ data: "https://example.com/texts.jsonl", out: "/rows" });
  assert.match(
    await invalid(() => check({ data: "ftp://example.com/a.txt" })),
    /must be an absolute path or a URL \(s3, gs, https or http\), got "ftp:/,
  );
  assert.match(
    await invalid(() => check({ data: "/a.txt", out: "https://example.com/rows" })),
    /must be an absolute path or a URL \(s3 or gs\), got "https:/,
  );
});

test.run();
