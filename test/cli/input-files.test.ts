import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { readConfig, readExamples, readPrompts } from "../../src/cli/input-files.js";
import { fc } from "../support/fc.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-inputs-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, text: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

async function refused(work: Promise<unknown>, reason: RegExp): Promise<void> {
  const error = await work.then(
    () => undefined,
    (thrown: Error) => thrown,
  );
  assert.is(error?.name, "UsageError");
  assert.match(error!.message, reason);
}

const expected = [
  { text: 'He said "no", twice', label: 1, split: "train" },
  { text: "two\nlines", label: 0, split: "test" },
];

test("examples are read from CSV, JSON and JSON Lines, with or without a BOM", async () => {
  const csv = '\uFEFFlabel,Text,split\r\n1,"He said ""no"", twice",train\r\n0,"two\nlines",test\r\n';
  assert.equal(await readExamples(file("a.csv", csv)), expected);
  assert.equal(await readExamples(file("a.json", JSON.stringify(expected))), expected);
  const lines = expected.map((example) => JSON.stringify(example)).join("\n");
  assert.equal(await readExamples(file("a.jsonl", `${lines}\n\n`)), expected);
  // Without an ending the text itself tells.
  assert.equal(await readExamples(file("csv", csv.replace("label,Text", "label,text"))), expected);
  assert.equal(await readExamples(file("json", JSON.stringify(expected))), expected);
  assert.equal(await readExamples(file("jsonl", lines)), expected);
  assert.equal(await readExamples(file("b.csv", "text,split\na,train\nb,")), [
    { text: "a", split: "train" },
    { text: "b", split: "" },
  ]);
  // A label that is not there, a number, and what the Lab shall judge.
  assert.equal(await readExamples(file("labels.csv", "text,label\na,\nb,1\nc,yes\nd,10")), [
    { text: "a" },
    { text: "b", label: 1 },
    { text: "c", label: "yes" },
    { text: "d", label: "10" },
  ]);
});

test("any table survives its CSV form", async () => {
  const cell = fc.string({ unit: "grapheme", maxLength: 12 });
  const quote = (text: string) => `"${text.replaceAll('"', '""')}"`;
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(cell, cell), { minLength: 1, maxLength: 6 }), async (rows) => {
      const text = ["text,split", ...rows.map((row) => row.map(quote).join(","))].join("\n");
      const read = await readExamples(file("property.csv", text));
      assert.equal(
        read,
        rows.map(([words, split]) => ({ text: words, split })),
      );
    }),
    { numRuns: 60 },
  );
});

test("prompts: lines, JSON, CSV", async () => {
  assert.equal(await readPrompts(file("p.txt", "one\r\n\n  two\n")), ["one", "  two"]);
  assert.equal(await readPrompts(file("p.json", '["one", {"prompt": "two"}, {"text": "three"}]')), [
    "one",
    "two",
    "three",
  ]);
  assert.equal(await readPrompts(file("both.jsonl", '{"text": "no", "prompt": "yes"}')), ["yes"]);
  assert.equal(await readPrompts(file("p.csv", 'prompt,more\n"a, b",x\n')), ["a, b"]);
  assert.equal(await readPrompts(file("p", "Is this, too?\nYes\n")), ["Is this, too?", "Yes"]);
});

test("what cannot be read is one sentence that names the place", async () => {
  await refused(readExamples(join(folder, "nowhere.csv")), /Cannot read .*nowhere\.csv \(ENOENT\)/);
  await refused(
    readExamples(file("c.csv", "text,label\na,b,c\n")),
    /Row 2 of .* has 3 fields, but its header has 2/,
  );
  await refused(readExamples(file("d.csv", 'text,label\na "b" c,1\n')), /line 2 has a quote/);
  await refused(readExamples(file("e.jsonl", '{"text": "a"}\n{"text": \n')), /line 2 of .* is not JSON/);
  await refused(readExamples(file("blank.jsonl", '\n{"text": "a"}\n \n{')), /line 4 of .* is not JSON/);
  await refused(readExamples(file("f.json", "{}")), /is not a JSON array/);
  await refused(readExamples(file("g", "just words")), /neither JSON, JSON Lines nor CSV/);
  await refused(readExamples(file("h.json", "[1]")), /Entry 1 of .* is not an object/);
  await refused(
    readPrompts(file("i.json", '[{"words": "x"}]')),
    /Entry 1 of .* has neither a prompt nor a text/,
  );
  await refused(readConfig(file("j.json", "[]")), /is not a JSON object/);
});

test.run();
