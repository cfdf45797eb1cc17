/** What the page makes of conversations: the ways that they go on, and their words as a file. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { branchesAt } from "../../src/workbench/page/branches.js";
import { asMarkdown } from "../../src/workbench/page/conversation-text.js";
import type { Conversation, ConversationSummary } from "../../src/workbench/wire.js";

/** A conversation of so many questions that left another one at one of them. */
const one = (id: string, created: number, turns: number, from?: [string, number]): ConversationSummary => ({
  id,
  title: id,
  created,
  turns,
  running: false,
  ...(from !== undefined && { from: { conversation: from[0], turn: from[1] } }),
});

test("a question's branches are those that differ there, from any branch", () => {
  const all = [
    one("d", 4, 1, ["a", 0]),
    one("c", 3, 3, ["b", 2]),
    one("b", 2, 3, ["a", 1]),
    one("a", 1, 3),
    one("other", 0, 2),
  ];
  for (const id of ["a", "b", "c", "d"]) assert.equal(branchesAt(all, id, 0), ["a", "d"], id);
  for (const id of ["a", "b", "c"]) assert.equal(branchesAt(all, id, 1), ["a", "b"], id);
  for (const id of ["b", "c"]) assert.equal(branchesAt(all, id, 2), ["b", "c"], id);
  // Its third question follows another second one.
  assert.equal(branchesAt(all, "a", 2), ["a"]);
  assert.equal(branchesAt(all, "other", 1), ["other"]);
});

test("a branch of a branch at the same question is listed with both", () => {
  const all = [one("a", 1, 1), one("b", 2, 1, ["a", 0]), one("c", 3, 1, ["b", 0])];
  for (const id of ["a", "b", "c"]) assert.equal(branchesAt(all, id, 0), ["a", "b", "c"], id);
  assert.equal(branchesAt(all.slice(1), "c", 0), ["b", "c"]);
  assert.equal(branchesAt(all.slice(2), "c", 0), ["c"]);
});

const conversation = (question: string, text: string): Conversation => ({
  id: "0123456789abcdef",
  title: question,
  created: 1,
  raw: false,
  turns: [
    {
      question,
      request: { path: "/v1/chat/completions", body: {} },
      interventions: [{ kind: "ablate", layer: 5, strength: 0.5 }],
      layers: [],
      kept: 0,
      answers: [
        {
          state: "done",
          edited: true,
          finish: "stop",
          thoughtSeconds: 4.26,
          tokens: [
            { text: "Hm", thinking: true },
            { text: text.slice(0, 3) },
            { text: text.slice(3) },
            { text: "<|im_end|>", special: true },
          ],
        },
        { state: "done", edited: false, finish: "stop", tokens: [{ text: "No." }] },
      ],
    },
  ],
});

test("a conversation as Markdown has questions, thoughts, both answers and the interventions", () => {
  assert.is(
    asMarkdown(conversation("What?", "**Yes**.")),
    [
      "# What?",
      "## Question",
      "What?",
      "## Answer, with interventions",
      'Interventions:\n\n```json\n[\n  {\n    "kind": "ablate",\n    "layer": 5,\n    "strength": 0.5\n  }\n]\n```',
      "> Thinking, 1 token, 4.3 s:\n>\n> Hm",
      "**Yes**.",
      "## Baseline answer",
      "No.\n",
    ].join("\n\n"),
  );
});

test("no HTML and no picture of a model's lives in it, and no fence swallows the rest", () => {
  const text = "<img src=x>\n![a](http://b)\n```html\n<b>\n```\n<script>\n````\n<i>";
  const [, , answer] = asMarkdown(conversation("<h1>", text)).split("\n## ");
  assert.is(
    answer?.split("> Hm\n\n")[1],
    "&lt;img src=x>\n!\\[a](http://b)\n```html\n<b>\n```\n&lt;script>\n````\n<i>\n````\n",
  );
  assert.match(asMarkdown(conversation("<h1>", text)), /^# &lt;h1>\n\n## Question\n\n&lt;h1>\n/);
});

test.run();
