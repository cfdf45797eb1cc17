/** Studies as the terminal shows them, whole: by hand, and safe whatever their authors wrote. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { discussionText, pageText, studyText } from "../../src/cli/commands/study-text.js";
import type { Discussion, StudyEnvelope, StudyPage } from "../../src/contracts/studies/index.js";

const canvas = { width: 60, colors: "none" } as const;
const [first, second, third] = ["1", "2", "3"].map((digit) => digit.repeat(8));

const item = {
  id: first,
  title: "A title\nof two lines",
  question: "Does it hold where the words are so many that one line of a terminal is not enough?",
  author: { name: "Ada" },
  model: { name: "demo", runtime: "tapline" },
  license: "CC0-1.0",
  published_at: "2026-01-02T03:04:05.000Z",
  ...{ version: 1, entry_count: 1, upvotes: 1, comment_count: 2 },
};

test("a page of studies, what follows it, and a page with none", () => {
  const page = { items: [item], total: 41, limit: 20, offset: 20, next_offset: 40 } as unknown as StudyPage;
  assert.is(
    pageText(page, canvas),
    `A title of two lines
  11111111
  Ada · demo · 2026-01-02 · 1 upvote, 2 comments
  Does it hold where the words are so many that one line of
  a terminal is not enough?

21 to 21 of 41; --offset 40 shows more`,
  );
  const last = pageText({ ...page, items: [item, item], offset: 39, next_offset: null } as StudyPage, canvas);
  assert.is(last.split("\n").at(-1), "40 to 41 of 41");
  assert.is(pageText({ ...page, items: [], total: 0 } as StudyPage, canvas), "No studies.");
  assert.is(pageText({ ...page, items: [], offset: 60 } as StudyPage, canvas), "No studies from offset 60.");
});

const entry = (id: string, more: object = {}) => ({ id, kind: "note", title: "", ...more });
const study = {
  title: "T",
  ...{
    question: "Q\nq",
    hypothesis: "",
    method: "M",
    finding: "F\u202e",
    limitations: "L",
    license: "CC0-1.0",
  },
  model: { name: "demo", revision: null, runtime: "r" },
  omissions: ["one", "two"],
  entries: [
    entry(first!, {
      ...{
        kind: "prompt",
        title: "First",
        model: "m",
        system: "s",
        prompt: "p\np2",
        answer: "a",
        finishReason: "stop",
      },
      context: [{ role: "user", content: "earlier" }],
      thinking: "hm",
      settings: { temperature: 0.5, seed: 3, maxTokens: 9, thinking: "off" },
    }),
    entry(second!, { parent: first!.toUpperCase(), note: "n", title: "Below" }),
    entry(third!, { parent: second, note: "" }),
  ],
};
const envelope = {
  id: first,
  visibility: "published",
  version: 3,
  author: { name: "Ada" },
  created_at: "2026-01-01T00:00:00.000Z",
  published_at: "2026-01-02T00:00:00.000Z",
  url: "https://studies.example/1",
  package: study,
} as unknown as StudyEnvelope;

test("a study shows its head, its text, and entries below their parents", () => {
  assert.is(
    studyText(envelope, canvas),
    `T
Ada · version 3, 2026-01-02 · CC0-1.0 · demo · r
https://studies.example/1

Question
  Q
  q

Method
  M

Finding
  F<U+202E>

Limitations
  L

Left out
  - one
  - two

1. prompt First
  model: m
  system: s
  user: earlier
  prompt: p
          p2
  thinking: hm
  answer: a
  settings: temperature 0.5, seed 3, at most 9 tokens, thinking off
  finished: stop

  2. note Below
    note: n

    3. note`,
  );
  const draft = { ...envelope, published_at: null, version: 0 } as StudyEnvelope;
  assert.is(studyText(draft, canvas).split("\n")[1], "Ada · private draft · CC0-1.0 · demo · r");
  const revised = { ...study, model: { ...study.model, revision: "abc" }, omissions: [] };
  const lines = studyText({ ...envelope, package: revised } as unknown as StudyEnvelope, canvas).split("\n");
  assert.is(lines[1], "Ada · version 3, 2026-01-02 · CC0-1.0 · demo · abc · r");
  assert.not(lines.includes("Left out"));
});

test("circular replies end, and deep threads stay readable", () => {
  const circle = [entry(first!, { parent: second }), entry(second!, { parent: first })];
  const text = studyText(
    { ...envelope, package: { ...study, entries: circle } } as unknown as StudyEnvelope,
    canvas,
  );
  assert.match(text, /\n {4}1\. note\n\n {4}2\. note$/);
  const chain = Array.from({ length: 12 }, (_, index) =>
    entry(`id-${index}`, index === 0 ? {} : { parent: `id-${index - 1}` }),
  );
  const deep = studyText(
    { ...envelope, package: { ...study, entries: chain } } as unknown as StudyEnvelope,
    canvas,
  );
  const depths = deep.split("\n").flatMap((line) => /^( *)\d+\. note$/.exec(line)?.[1]?.length ?? []);
  assert.equal(depths, [0, 2, 4, 6, 8, 10, 12, 14, 16, 16, 16, 16]);
});

test("a discussion in thread order; of what was taken away, what became of it", () => {
  const comment = (id: string, parent_id: string | null, more: object = {}) => ({
    ...{
      id,
      parent_id,
      author: { name: `By ${id}` },
      created_at: "2026-02-03T00:00:00.000Z",
      body: `${id}\n\u001b[2J`,
    },
    ...more,
  });
  const discussion = {
    ...{ total: 1, upvotes: 2, offset: 0, next_offset: null, study_id: first },
    comments: [
      comment("a", null),
      comment("b", "a"),
      comment("c", "b", { state: "hidden" }),
      comment("d", "gone"),
    ],
  } as unknown as Discussion;
  assert.is(
    discussionText(discussion, canvas),
    `1 comment, 2 upvotes

By a 2026-02-03
  a
  <U+001B>[2J

  By b 2026-02-03
    b
    <U+001B>[2J

    By c 2026-02-03
      (hidden)

  By d 2026-02-03
    d
    <U+001B>[2J`,
  );
});

test.run();
