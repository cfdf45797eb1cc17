/** What fits into a package's fields, what is cut or left out where something does not, and what it is refused for. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Entry } from "../../src/contracts/studies/index.js";
import { Gatherer } from "../../src/study/evidence.js";
import {
  assemble,
  emptyWords,
  faultsOf,
  isBlank,
  jobEvidence,
  methodText,
  readWords,
  writeWords,
} from "../../src/study/index.js";
import { inspectJob } from "../report/jobs.js";
import { labJob, words } from "./evidence.js";
import { evidence, note, uuid } from "./parts.js";

test("fields keep to their limits, and what is cut is said; long texts go on in parts", () => {
  const gatherer = new Gatherer();
  const full = "é".repeat(100_000);
  const id = gatherer.add(
    { kind: "note", title: "t".repeat(301), note: full, prompt: `${full}x` },
    "What it is",
  );
  const [entry] = gatherer.entries as [Entry];
  assert.equal([entry.id, entry.title, entry.note], [id, `${"t".repeat(299)}…`, full]);
  assert.equal([[...(entry.prompt ?? "")].length, entry.prompt?.at(-1)], [100_000, "…"]);
  assert.equal(gatherer.omissions, [
    "The prompt of “What it is” is truncated to 100000 of its 100001 characters.",
  ]);
  gatherer.addText(id, "Whole", full, "one");
  gatherer.addText(id, "Parts", `${full}${full}z`, "three");
  gatherer.addText(id, "Nothing", "", "none");
  const rest = gatherer.entries.slice(1);
  assert.equal(
    rest.map(({ title, parent, note }) => [title, parent, [...(note ?? "")].length]),
    [
      ["Whole", id, 100_000],
      ["Parts, part 1 of 3", id, 100_000],
      ["Parts, part 2 of 3", id, 100_000],
      ["Parts, part 3 of 3", id, 1],
      ["Nothing", id, 0],
    ],
  );
  assert.equal(
    gatherer.spare.map(({ what, ids }) => [what, ids.length]),
    [
      ["one", 1],
      ["three", 3],
      ["none", 1],
    ],
  );
  assert.equal(
    gatherer.spare[1]?.ids,
    rest.slice(1, 4).map((each) => each.id),
  );
});

test("the largest parts are cut first, and the list of omissions is bounded", () => {
  // 12 texts of 90,000: 1,080,000 characters. Two pieces that may go: the larger one is enough.
  const entries = Array.from({ length: 12 }, (_, at) => note(at, 90_000));
  const ids = (from: number, to: number) => entries.slice(from, to).map(({ id }) => id);
  const spare = [
    { what: "The small", ids: ids(0, 1) },
    { what: "The large", ids: ids(1, 4) },
    { what: "The middle", ids: ids(4, 6) },
  ];
  const { study, bytes } = assemble(words, [evidence({ entries, spare })]);
  assert.ok(bytes.length <= 1_000_000 && bytes.length > 9 * 90_000);
  assert.equal(
    study.entries.map(({ id }) => id),
    [...ids(0, 1), ...ids(4, 12)],
  );
  const size = entries.slice(1, 4).reduce((sum, entry) => sum + JSON.stringify(entry).length, 0);
  assert.equal(study.omissions, [
    "Earlier tries.",
    `The large (${size} bytes): the limit of a package is 1000000 bytes.`,
  ]);
  // Exactly a million bytes fit; with one more something goes.
  const filled = (length: number) =>
    assemble(words, [
      evidence({ entries: [...entries.slice(0, 11), note(11, length)], spare: spare.slice(0, 1) }),
    ]);
  const room =
    1_000_000 - assemble(words, [evidence({ entries: [...entries.slice(0, 11), note(11, 0)] })]).bytes.length;
  assert.equal([filled(room).bytes.length, filled(room).study.entries.length], [1_000_000, 12]);
  assert.is(filled(room + 1).study.entries.length, 11);
  // So many entries that the count is what is too much: then the group of most of them.
  const many = Array.from({ length: 205 }, (_, at) => note(at, at === 0 ? 500 : 1));
  const groups = [
    { what: "One long", ids: [uuid(0)] },
    { what: "Five short", ids: many.slice(1, 6).map(({ id }) => id) },
  ];
  const counted = assemble(words, [evidence({ entries: many, spare: groups })]).study;
  assert.equal(
    [counted.entries.length, counted.omissions[1]],
    [200, "Five short (5 entries): the limit of a package is 200 entries."],
  );
  assert.is(assemble(words, [evidence({ entries: many.slice(0, 200) })]).study.entries.length, 200);
  // Of two that are as large as each other the first one goes.
  const alike = [
    { what: "First", ids: many.slice(6, 11).map(({ id }) => id) },
    { what: "Second", ids: many.slice(11, 16).map(({ id }) => id) },
  ];
  assert.equal(assemble(words, [evidence({ entries: many, spare: alike })]).study.omissions.slice(1), [
    "First (5 entries): the limit of a package is 200 entries.",
  ]);
  let sentence = "";
  try {
    assemble(words, [evidence({ entries: many })]);
  } catch (error) {
    sentence = (error as Error).message;
  }
  assert.match(
    sentence,
    /^The study does not fit into a package: \d+ bytes of at most 1000000, 205 entries of at most 200\. Package fewer jobs\.$/,
  );
  const omissions = (count: number) =>
    assemble({ ...words, omissions: [] }, [
      evidence({ entries: [note(1, 1)], omissions: Array.from({ length: count }, (_, at) => `o${at}`) }),
    ]).study.omissions;
  assert.is(omissions(100).at(-1), "o99");
  assert.equal([omissions(101).length, omissions(101).at(-1)], [100, "2 more omissions not listed here."]);
  const long = assemble({ ...words, omissions: ["x".repeat(1001)] }, [evidence({ entries: [note(1, 1)] })])
    .study.omissions[0];
  assert.equal([long?.length, long?.at(-1)], [1000, "…"]);
  // Entries of another model than the first say whose they are.
  const other = evidence({ model: { name: "other", revision: "v", runtime: "s" }, entries: [note(2, 1)] });
  const both = assemble(words, [evidence({ entries: [note(1, 1)] }), other]).study;
  assert.equal(
    [both.model, both.entries.map(({ model }) => model)],
    [{ name: "m", revision: null, runtime: "r" }, [undefined, "other"]],
  );
});

test("faults are reported together: blanks, then lengths, then the schema", () => {
  const of = (change: Partial<typeof words>) =>
    faultsOf(assemble({ ...words, ...change }, [evidence({ entries: [note(1, 1)] })]));
  assert.equal(of({}), []);
  assert.equal(of({ title: " ", license: "MIT", question: "q".repeat(5000) }), [
    "title must not be blank.",
    "license must be CC-BY-4.0 or CC0-1.0.",
  ]);
  const most = {
    title: 160,
    question: 4000,
    hypothesis: 100_000,
    method: 8000,
    finding: 100_000,
    limitations: 8000,
  };
  for (const [name, length] of Object.entries(most)) {
    assert.equal(of({ [name]: "😀".repeat(length) }), [], name);
    assert.equal(of({ [name]: "x".repeat(length + 1) }), [
      `${name}: at most ${length} characters, got ${length + 1}.`,
    ]);
  }
  const wrong = assemble(words, [evidence({ entries: [{ ...note(1, 1), id: "no id" }] })]);
  assert.match(faultsOf(wrong).join(), /^entries\[0\]\.id/);
  assert.is(methodText([]), "");
  assert.is(
    methodText([evidence(), evidence({ method: "other." }), evidence()]),
    "Model: m. Runtime: r.\n- 2 times made.\n- other.",
  );
});

test("words are what stands below their headings", () => {
  assert.ok(isBlank(emptyWords));
  assert.not(isBlank({ ...emptyWords, omissions: ["x"] }));
  assert.not(isBlank({ ...emptyWords, license: "x" }));
  const file = writeWords({ ...emptyWords, title: "T", omissions: ["one", "two"] }, ["a\n fault --> x"]);
  assert.is(file.split("\n")[0], "<!-- ! a fault - -> x -->");
  assert.match(file, "# Title\n<!-- One line, at most 160 characters. -->\nT\n");
  assert.match(file, "# License\n<!-- CC-BY-4.0 or CC0-1.0 -->\n");
  const read = readWords(
    "before all\n  # TITLE \n\n A title \n<!-- out -->\n# Question\none <!-- stays -->\n\n# Nothing\ntwo\n# Omissions\n a \n\n b\n# title\nmore\n",
  );
  assert.equal(read, {
    ...emptyWords,
    title: "A title \nmore",
    question: "one <!-- stays -->\n\n# Nothing\ntwo",
    omissions: ["a", "b"],
  });
});

test("a request stands in one piece as long as it fits into a field, to the character", () => {
  const question = (length: number) => {
    const { entries, omissions } = jobEvidence(labJob(inspectJob(), { prompt: "x".repeat(length) }));
    return { note: entries[0]?.note ?? "", omissions };
  };
  const most = 100_000 - question(1).note.length + 1;
  const [whole, longer] = [question(most), question(most + 1)];
  assert.is(whole.note.length, 100_000);
  assert.match(whole.note, /^Job [^\n]*\. Raw text, no chat template\.\n\n```tapline-request\n/);
  assert.not.ok(whole.omissions.some((line) => line.includes("in one piece")));
  assert.match(longer.note, /no chat template\. Configuration:\n```json\n\{\n {2}"operation": "inspect"/);
  const block = whole.note.length + 1 - whole.note.indexOf("```");
  assert.ok(
    longer.omissions.includes(
      `The request of inspect 01234567 in one block, which tapline reproduce needs: ${block} characters exceed the limit of 100000.`,
    ),
  );
});

test.run();
