/** Which packages are valid and what is detected in their texts: each rule at its boundary, in isolation. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  blockLabels,
  blocksOf,
  labelledBlocks,
  type StudyPackage,
} from "../../src/contracts/studies/index.js";
import type { ApiError } from "../../src/studies/api-error.js";
import { reproductionsIn } from "../../src/studies/text/blocks.js";
import { checkPackage } from "../../src/studies/text/check-package.js";
import { bibtex, cff, ris } from "../../src/studies/text/cite.js";
import { differences } from "../../src/studies/text/differences.js";
import { splitHidden } from "../../src/studies/text/hidden.js";
import { matchesIn, snippetOf } from "../../src/studies/text/matches.js";
import { quotation } from "../../src/studies/text/quote.js";
import { findSecrets } from "../../src/studies/text/secrets.js";
import { parseStrictJson } from "../../src/studies/text/strict-json.js";
import { distinctWords, words } from "../../src/studies/text/words.js";
import { samplePackage } from "./support/packages.js";

/** Code, field and sentence of a refusal. */
function refusal(run: () => unknown): [code: string, field: string | undefined, sentence: string] {
  try {
    run();
  } catch (error) {
    const { name, code, field, message } = error as ApiError;
    assert.is(name, "ApiError", message);
    return [code, field, message];
  }
  return ["accepted", undefined, ""];
}

const uuid = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;

test("ambiguous JSON is refused with its location", () => {
  const parse = (text: string) => parseStrictJson(Buffer.from(text));
  for (const text of [
    '{"a":[1,"x",-0.5e+2,null],"b":{"a":"a,}]{[","c":true}}',
    '{"a":{"b":1},"b":{"b":1},"c":["b","b"]}',
    '[{"x":1},{"x":1}]',
    '{"a":"b","b":"a"}',
    '{"a\\\\":1,"a":2,"a\\"":3}',
    '{"a":"\\\\","b":"\\\\\\""}',
    "[1e308,-1e308,0.1e-999,9]",
    ` ${"[".repeat(32)}${"]".repeat(32)} `,
    `${'{"a":'.repeat(32)}1${"}".repeat(32)}`,
    "5",
  ]) {
    assert.equal(parse(text), JSON.parse(text), text);
  }
  for (const [text, code, field] of [
    ['{"a":1,"a":2}', "duplicate_key", "/a"],
    ['{"a":"x","b":2,"a":2}', "duplicate_key", "/a"],
    ['{"a":[{"x":1},{"x":1,"x":2}]}', "duplicate_key", "/a/1/x"],
    ['{"a/b~":{"c":1,"c":1}}', "duplicate_key", "/a~1b~0/c"],
    ['{"\\u0061":1,"a":2}', "duplicate_key", "/a"],
    ['{"a\\"b":1,"a\\"b":2}', "duplicate_key", '/a"b'],
    ['{"a":{},"b":[],"c":1,"b":2}', "duplicate_key", "/b"],
    ['[[],{"a":[[]],"a":1}]', "duplicate_key", "/1/a"],
    ["[[],[1e400]]", "number_out_of_range", "/1/0"],
    ['{"a":-1e400}', "number_out_of_range", "/a"],
    ["[1,22,9e999]", "number_out_of_range", "/2"],
    ['[{"a":1},"x",2e999]', "number_out_of_range", "/2"],
    ['{"a":{},"b":1E+999}', "number_out_of_range", "/b"],
    ['{"a":"x,y","b":[0,1e999]}', "number_out_of_range", "/b/1"],
    ["1e999", "number_out_of_range", ""],
    [`${"[".repeat(33)}${"]".repeat(33)}`, "too_deep", "/0".repeat(32)],
    [`${'{"a":'.repeat(33)}1${"}".repeat(33)}`, "too_deep", "/a".repeat(32)],
    ["\ufeff{}", "invalid_json", ""],
  ] as const) {
    assert.equal(refusal(() => parse(text)).slice(0, 2), [code, field], text);
  }
  assert.is(
    refusal(() => parse("[".repeat(33) + "]".repeat(33)))[2],
    "The body is nested more than 32 levels deep.",
  );
  assert.equal(
    refusal(() => parseStrictJson(Uint8Array.of(0x22, 0xff, 0x22))),
    ["invalid_utf8", "", "The body is not valid UTF-8."],
  );
  for (const text of ["", " \n"])
    assert.is(refusal(() => parse(text))[2], "The body is empty; send a JSON object.");
  assert.is(refusal(() => parse("{"))[2], "The body is not valid JSON.");
});

test("a package's first fault is reported with its path, limit and actual value", () => {
  const sample = samplePackage();
  const entry = { ...sample.entries[0]!, id: uuid(1) };
  const settings = { temperature: 0, seed: 0, maxTokens: 1, thinking: "on" };
  const check = (change: object) =>
    refusal(() => checkPackage(JSON.parse(JSON.stringify({ ...sample, ...change }))));
  const one = (change: object) => check({ entries: [{ ...entry, ...change }] });
  const many = (count: number) => Array.from({ length: count }, (_, at) => ({ ...entry, id: uuid(at) }));
  const linked = (...parents: (number | null)[]) =>
    check({
      entries: parents.map((parent, at) => ({
        ...entry,
        id: uuid(at),
        parent: parent === null ? null : uuid(parent),
      })),
    });
  for (const [told, expected] of [
    [check({}), ["accepted", undefined, ""]],
    [check({ title: 5 }), ["invalid_value", "/title", "/title must be of type string, not number."]],
    [check({ title: null }), ["invalid_value", "/title", "/title must be of type string, not null."]],
    [check({ title: [] }), ["invalid_value", "/title", "/title must be of type string, not array."]],
    [check({ title: "" }), ["invalid_value", "/title", "/title must not be empty."]],
    [
      check({ title: "😀".repeat(161) }),
      ["invalid_value", "/title", "/title must have at most 160 characters, got 161."],
    ],
    [check({ schemaVersion: 2 }), ["invalid_value", "/schemaVersion", "/schemaVersion must be 1."]],
    [check({ license: "MIT" }), ["invalid_value", "/license", "/license must be one of CC-BY-4.0, CC0-1.0."]],
    [check({ entries: [] }), ["invalid_value", "/entries", "/entries must have at least 1 item, got 0."]],
    [
      check({ entries: many(201) }),
      ["invalid_value", "/entries", "/entries must have at most 200 items, got 201."],
    ],
    [check({ entries: many(200) }), ["accepted", undefined, ""]],
    [
      check({ omissions: Array(5000).fill("x") }),
      ["invalid_value", "/omissions", "/omissions must have at most 100 items, got 5000."],
    ],
    [
      one({ id: "x" }),
      [
        "invalid_value",
        "/entries/0/id",
        "/entries/0/id must be a UUID of version 1 to 8, all zeros or all f.",
      ],
    ],
    [
      one({ settings: { ...settings, temperature: 10.1 } }),
      [
        "invalid_value",
        "/entries/0/settings/temperature",
        "/entries/0/settings/temperature must be <= 10, got 10.1.",
      ],
    ],
    [
      one({ settings: { ...settings, temperature: -1 } }),
      [
        "invalid_value",
        "/entries/0/settings/temperature",
        "/entries/0/settings/temperature must be >= 0, got -1.",
      ],
    ],
    [
      one({ settings: {} }),
      [
        "missing_property",
        "/entries/0/settings/temperature",
        "/entries/0/settings lacks the property temperature.",
      ],
    ],
    // Missing fields are reported before unknown ones, and both before invalid values.
    [
      check({ title: 5, extra: 1, question: undefined, method: 7 }).slice(0, 2),
      ["missing_property", "/question"],
    ],
    [
      check({ title: 5, extra: 1, other: 2 }),
      ["unknown_property", "/extra", "The body has an unknown property."],
    ],
    [check({ "a/b~c": 1 }).slice(0, 2), ["unknown_property", "/a~1b~0c"]],
    [one({ extra: 1 }), ["unknown_property", "/entries/0/extra", "/entries/0 has an unknown property."]],
    [check({ method: 7, title: 5 }).slice(0, 2), ["invalid_value", "/title"]],
    [check({ title: "\u2800\u00ad" }), ["blank_title", "/title", "The title is blank."]],
    [
      check({ entries: [entry, { ...entry, id: uuid(7) }, { ...entry, id: entry.id.toUpperCase() }] }),
      ["duplicate_entry_id", "/entries/2/id", "Entries 0 and 2 have the same id."],
    ],
    [linked(null, 7), ["unknown_parent", "/entries/1/parent", "The parent of entry 1 does not exist."]],
    [linked(null, 0, 1, 1, 0), ["accepted", undefined, ""]],
    [linked(3, 0, 1, null), ["accepted", undefined, ""]],
    [linked(0), ["parent_cycle", "/entries/0/parent", "Entry 0 is its own ancestor."]],
    [linked(1, 2, 1), ["parent_cycle", "/entries/1/parent", "Entry 1 is its own ancestor."]],
    [linked(null, 0, 3, 4, 2), ["parent_cycle", "/entries/2/parent", "Entry 2 is its own ancestor."]],
  ] as [unknown, unknown][]) {
    assert.equal(told, expected);
  }
  assert.equal(
    refusal(() => checkPackage([])),
    ["invalid_value", "", "The body must be of type object, not array."],
  );
});

test("limits: 200 fenced blocks per text, 100 characters per label, ten repeated studies", () => {
  const blocks = blocksOf("```\n```\n".repeat(201));
  assert.equal([blocks.length, blocks.filter(({ code }) => code).length], [201, 200]);
  assert.is(blocks.at(-1)?.text, "```\n```\n");
  const fence = (label: string, text: string) => `\`\`\`${label}\n${text}\n\`\`\`\n`;
  const result = (count: number, from = 0) =>
    Array.from({ length: count }, (_, at) => fence(blockLabels.result, `${from + at}`)).join("");
  const entries = [
    {
      id: uuid(1),
      kind: "result",
      title: "",
      answer: `${fence("other", "x")}${result(2, 50)}`,
      note: result(60, 52),
    },
  ];
  const study = samplePackage({
    question: result(20),
    finding: result(30, 20),
    entries,
  } as Partial<StudyPackage>);
  assert.equal(
    labelledBlocks(study, blockLabels.result),
    Array.from({ length: 100 }, (_, at) => String(at)),
  );
  assert.equal(labelledBlocks(study, blockLabels.request), []);
  assert.equal(labelledBlocks(samplePackage({ question: blockLabels.result }), blockLabels.result), []);
  const said = (number: number, outcome: string, change: object = {}) =>
    fence(
      blockLabels.reproduction,
      JSON.stringify({
        schemaVersion: 1,
        study: uuid(number),
        version: 1,
        package_sha256: "a".repeat(64),
        outcome,
        ...change,
      }),
    );
  const all = Array.from({ length: 12 }, (_, at) => said(at, "held")).join("");
  const found = reproductionsIn(
    samplePackage({
      method: `${fence(blockLabels.reproduction, "{")}${said(3, "failed", { study: uuid(0xa).replace("8000", "A000") })}${said(3, "won")}`,
      finding: `${said(3, "partly")}${all}`,
    }),
  );
  assert.equal(
    found.map(({ study: id, outcome }) => [id, outcome]),
    [
      ["00000000-0000-4000-a000-000000000010", "failed"],
      [uuid(3), "partly"],
      ...[0, 1, 2, 4, 5, 6, 7, 8].map((at) => [uuid(at), "held"]),
    ],
  );
});

test("search excerpts surround the first word that title and question lack", () => {
  const marked = (text: string, wanted: string[]) =>
    matchesIn(text, wanted).map(({ text: part, match }) => (match ? `[${part}]` : part));
  assert.equal(marked("a crane, cranes", ["crane"]), ["a ", "[crane]", ", ", "[cranes]"]);
  assert.equal(marked("crane", ["crane"]), ["[crane]"]);
  assert.equal(marked("Äb x", ["ab", "x"]), ["[Äb]", " ", "[x]"]);
  // Longer words than 64 characters are looked for by those.
  assert.equal(marked("b".repeat(65), ["b".repeat(64), "x"]), [`[${"b".repeat(65)}]`]);
  assert.equal(marked("b".repeat(64), ["b".repeat(64), "x"]), [`[${"b".repeat(64)}]`]);
  const of = (finding: string, wanted: string[], change: Partial<StudyPackage> = {}) =>
    snippetOf(samplePackage({ title: "Heron", question: "Where?", method: "-", finding, ...change }), wanted);
  // From 80 characters before to 160 after, up to the next space.
  assert.is(
    of(`${"w ".repeat(50)}crane ${"v ".repeat(200)}`, ["crane"]),
    `… ${"w ".repeat(40)}crane ${"v ".repeat(80)}…`,
  );
  assert.is(of(`${"w ".repeat(40)}crane\n\n  flies`, ["crane"]), `${"w ".repeat(40)}crane flies`);
  assert.is(of(`${"w ".repeat(39)}ww crane`, ["crane"]), `… ${"w ".repeat(38)}ww crane`);
  assert.is(of(`${"x-".repeat(100)}crane end`, ["crane"]), "… crane end");
  assert.is(of(`crane${"-y".repeat(1000)}`, ["crane"])?.length, 720);
  assert.is(of(`crane ${"y".repeat(159)} z`, ["crane"]), `crane ${"y".repeat(159)} …`);
  assert.is(of(`crane ${"y".repeat(158)} z`, ["crane"]), `crane ${"y".repeat(158)} z`);
  // Only the last word typed may be a prefix, although the last one is in the title.
  const behind = `cranes ${"z ".repeat(200)}crane end`;
  assert.match(of(behind, ["crane", "her"]) ?? "", /^… .*z crane end$/);
  assert.match(of(behind, ["her", "crane"]) ?? "", /^… .*z crane end$|^cranes/);
  assert.match(of(behind, ["heron", "crane"]) ?? "", /^cranes z/);
  assert.is(of("nothing", ["where", "heron"]), null);
  assert.is(of("nothing", ["crane"]), null);
  // 20,000 characters of a field are looked through.
  assert.is(of(`${"-".repeat(19_994)} crane`, ["crane"])?.endsWith("crane"), true);
  assert.is(of(`${"-".repeat(19_995)} crane`, ["crane"]), null);
  // In what was found before how, before why, before what it does not show.
  const fields = { method: "crane how", hypothesis: "crane why", limitations: "crane not" };
  assert.is(of("crane what", ["crane"], fields), "crane what");
  assert.is(of("", ["crane"], fields), "crane how");
  assert.is(of("", ["crane"], { ...fields, method: "" }), "crane why");
  assert.is(of("", ["crane"], { ...fields, method: "", hypothesis: "" }), "crane not");
});

test("hidden characters are reported with code point, name and run length", () => {
  const run = (code: string, name: string, count = 1) => ({ code, name, count });
  for (const [text, ...parts] of [
    ["", []],
    ["ab", "ab"],
    ["a\u202e\u202eb", "a", run("U+202E", "right-to-left override", 2), "b"],
    ["\u200b\u200c", run("U+200B", "zero width space"), run("U+200C", "zero width non-joiner")],
    ["\0", run("U+0000", "null")],
    ["\u00ad\u00ad\u00adx", run("U+00AD", "soft hyphen", 3), "x"],
    ["\u{e0041}\u{e0041}", run("U+E0041", "invisible", 2)],
    ["\ud800", run("U+D800", "unpaired surrogate")],
    ["\udfff", run("U+DFFF", "unpaired surrogate")],
    ["x\ufeff", "x", run("U+FEFF", "byte order mark")],
    // One emoji of several characters is seen as that.
    ["👩\u200d💻 ❤\ufe0f 1\ufe0f\u20e3", "👩\u200d💻 ❤\ufe0f 1\ufe0f\u20e3"],
    ["a\u200db", "a", run("U+200D", "zero width joiner"), "b"],
  ] as [string, ...unknown[]][]) {
    assert.equal([...splitHidden(text)], parts.flat(), JSON.stringify(text));
  }
});

test("differences are listed entry by entry, in the newer version's terms", () => {
  const entry = (number: number, change = {}) => ({
    id: uuid(number),
    kind: "note",
    title: `${number}`,
    ...change,
  });
  const study = (entries: object[], change = {}) =>
    samplePackage({ entries, ...change } as unknown as Partial<StudyPackage>);
  const changed = (before: StudyPackage, after: StudyPackage) =>
    differences(before, after).map(({ place, before: old, after: now }) => [place, old, now]);
  const two = study([entry(1), entry(2)]);
  assert.equal(changed(two, study([entry(2), entry(1)])), [
    ["/entries", "the order of the entries changed", null],
  ]);
  assert.equal(changed(two, study([entry(1)])), [
    [`/entries/${uuid(2)}`, JSON.stringify(entry(2), null, 2), null],
  ]);
  assert.equal(changed(study([entry(2)]), study([entry(1), entry(2)])), [
    [`/entries/${uuid(1)}`, null, JSON.stringify(entry(1), null, 2)],
  ]);
  const upper = { ...entry(0xa), id: uuid(1).replace("8000", "A000") };
  const lower = { ...upper, id: upper.id.toLowerCase() };
  assert.equal(changed(study([upper]), study([lower])), [[`/entries/${lower.id}/id`, upper.id, lower.id]]);
  assert.equal(
    changed(study([entry(1)], { omissions: ["x"] }), study([entry(1)], { omissions: ["x", "y"] })),
    [["/omissions/1", null, "y"]],
  );
  assert.equal(
    changed(study([entry(1, { settings: { seed: 1 } })]), study([entry(1, { settings: { seed: 2 } })])),
    [[`/entries/${uuid(1)}/settings/seed`, "1", "2"]],
  );
  assert.equal(changed(study([entry(1, { parent: null })]), study([entry(1, { parent: uuid(2) })])), [
    [`/entries/${uuid(1)}/parent`, "null", uuid(2)],
  ]);
});

test("references, quotations, secrets and search words at their limits", () => {
  const study = {
    address: "https://s.example/studies/1/v/2",
    id: "12345678-1234-4234-8234-123456789abc",
    version: 2,
    title: "A  ~\n title^",
    author: "Ada",
    license: "CC0-1.0" as const,
    publishedAt: Date.UTC(2026, 10, 3),
    sha256: "ab".repeat(32),
  };
  assert.is(
    bibtex(study),
    `@misc{tapline-12345678-v2,\n  title = {{A \\textasciitilde{} title\\textasciicircum{}}},\n  author = {{Ada}},\n  year = {2026},\n  month = {11},\n  howpublished = {tapline studies},\n  version = {2},\n  url = {https://s.example/studies/1/v/2},\n  note = {CC0-1.0, SHA-256 ${"ab".repeat(32)}},\n}\n`,
  );
  assert.match(bibtex({ ...study, publishedAt: Date.UTC(2025, 1, 9) }), "  year = {2025},\n  month = {2},\n");
  assert.match(cff(study), 'title: "A ~ title^"\n');
  assert.match(cff(study), "date-released: 2026-11-03\n");
  assert.match(ris(study), "\r\nDA  - 2026/11/03\r\nET  - 2\r\n");
  const source = { name: "a_b\nc", address: "https://x.example/" };
  const head = "> [a&#95;b c](https://x.example/)\n>\n";
  // Whatever Markdown, its formulas and its tables begin with; a "!" does nothing where no bracket follows it.
  const signs = { ...source, name: "\\`*_[]()<>&$|~!" };
  const codes = [92, 96, 42, 95, 91, 93, 40, 41, 60, 62, 38, 36, 124, 126];
  const spelled = codes.map((code) => `&#${code};`).join("");
  assert.is(quotation("one", signs), `> [${spelled}!](https://x.example/)\n>\n> one\n\n`);
  assert.is(quotation(" one\n\ntwo \n", source), `${head}> one\n>\n> two\n\n`);
  assert.is(quotation("x".repeat(800), source), `${head}> ${"x".repeat(800)}\n\n`);
  assert.is(quotation("x".repeat(801), source), `${head}> ${"x".repeat(800)}\n> …\n\n`);
  const lines = (count: number) => Array.from({ length: count }, () => "l").join("\n");
  assert.is(quotation(lines(12), source), `${head}${"> l\n".repeat(12)}\n`);
  assert.is(quotation(lines(13), source), `${head}${"> l\n".repeat(12)}> …\n\n`);
  assert.is(findSecrets(Array(150).fill("ada@example.org")).length, 100);
  assert.equal(findSecrets({ a: ["x", { b: "me@x.org" }] }, "/top"), [
    { kind: "e-mail address", pointer: "/top/a/1/b", start: "me@x.org" },
  ]);
  assert.is(words("ä".repeat(65))[0], "a".repeat(64));
  // 400,000 bytes: of eight letters and eight more each.
  const numbers = Array.from({ length: 25_001 }, (_, at) => String(10_000_000 + at));
  assert.is(distinctWords([numbers.join(" ")]).length, 25_000);
  assert.equal(distinctWords(["b a", "a c B"]), ["b", "a", "c"]);
});

test.run();
