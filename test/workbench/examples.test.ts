import { test } from "uvu";
import * as assert from "uvu/assert";
import { readExamples, withSplits } from "../../src/workbench/page/examples.js";

const { csvParseRows } = await import("d3" as string);
const read = (name: string, content: string) => readExamples(name, content, csvParseRows);
const fault = (name: string, content: string) => {
  try {
    read(name, content);
  } catch (error) {
    return (error as Error).message;
  }
  return assert.unreachable("it was read") as never;
};

test("CSV: quoted texts with commas, line breaks and quotes; columns in any order, splits where there are any", () => {
  const csv =
    '\uFEFFlabel,Text,split\r\n1,"good, ""very""\ngood",train\r\n0,bad,test\r\n\r\ntrue,fine,\r\nFALSE,poor,\r\n' +
    [..."vwxy"].map((text) => `1,${text},\r\n`).join("");
  assert.equal(read("a.csv", csv), [
    { text: 'good, "very"\ngood', label: 1, split: "train" },
    { text: "bad", label: 0, split: "test" },
    { text: "fine", label: 1 },
    { text: "poor", label: 0 },
    ...[..."vwxy"].map((text) => ({ text, label: 1 })),
  ]);
});

test("JSON Lines: numbers, booleans and texts as labels; other fields do not matter", () => {
  const lines =
    '{"text":"a\\nb","label":1}\n\n{"text":"c","label":false,"more":5}\r\n{"label":"0","text":"d"}\n{"text":"e","label":1}' +
    [..."wxyz"].map((text) => `\n{"text":"${text}","label":0}`).join("");
  const wanted = [
    { text: "a\nb", label: 1 },
    { text: "c", label: 0 },
    { text: "d", label: 0 },
    { text: "e", label: 1 },
    ...[..."wxyz"].map((text) => ({ text, label: 0 })),
  ];
  assert.equal(read("a.jsonl", lines), wanted);
  assert.equal(read("a.txt", lines), wanted, "by what is in it");
});

test("faults are reported with their place", () => {
  assert.is(
    fault("a.csv", "words,class\nx,1\n"),
    "The first row must name the columns text and label; got words, class.",
  );
  assert.is(fault("a.csv", "text,label\nx,1\ny,2\n"), 'Row 3: label must be 0 or 1, got "2".');
  assert.is(fault("a.csv", "text,label\n,1\n"), "Row 2: text is missing.");
  assert.is(fault("a.csv", "text,label,split\nx,1,dev\n"), "Row 2: split must be train or test, got dev.");
  assert.is(fault("a.jsonl", '{"text":"x","label":1}\n{"text"'), "Line 2: invalid JSON.");
  assert.is(fault("a.jsonl", "5\n"), "Line 1: expected an object with text and label.");
  assert.match(fault("a.csv", "text,label\nx,1\n"), /^a\.csv: a probe needs \d+ to \d+ examples, got 1\.$/);
  assert.match(fault("a.csv", `text,label\n${"x,1\n".repeat(513)}`), /^a\.csv: a probe needs .* got 513\.$/);
  assert.is(read("a.csv", `text,label\n${"x,1\n".repeat(512)}`).length, 512);
});

test("examples take nine tenths of what the Lab takes, in bytes", () => {
  // Eight objects of 21 bytes around their texts, seven commas, two brackets: 177. A euro has three bytes.
  const lines = (first: string) =>
    [first, ..."bcdefgh"].map((text) => `{"text":"${text}","label":1}`).join("\n");
  const most = 450_000 - 177 - 7;
  const euros = `xx${"€".repeat((most - 2) / 3)}`;
  assert.is(Buffer.byteLength(euros), most);
  assert.is(read("a.jsonl", lines(euros)).length, 8);
  assert.is(
    fault("a.jsonl", lines(`${euros}x`)),
    "a.jsonl: the examples may have at most 450000 bytes, got 450001.",
  );
});

test("every third of each class is held out where nothing is said", () => {
  const texts = ["a", "b", "c", "d", "e", "f"].map((text, at) => ({ text, label: (at % 2) as 0 | 1 }));
  assert.equal(
    withSplits([...texts, { text: "g", label: 1, split: "train" }]).map(({ split }) => split),
    ["train", "train", "train", "train", "test", "test", "train"],
  );
});

test.run();
