/** Texts of operations: which rows are changed, in words, and marked spans of prompts. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { positionText } from "../../src/operations/compare/contract-position-text.js";
import { readMarks } from "../../src/operations/patch_sweep/contract-marked-text.js";
import { saying } from "../support/saying.js";

test("the changed rows, in words", () => {
  for (const [positions, words] of [
    [undefined, "last token"],
    ["last", "last token"],
    ["all", "all tokens"],
    ["prompt", "the prompt's tokens"],
    ["generated", "generated tokens"],
    [[[3, 3]], "token 3"],
    [[[3, 5]], "tokens 3 to 5"],
    [[[-1, -1]], "token -1"],
    [
      [
        [3, 3],
        [5, 5],
      ],
      "tokens 3, 5",
    ],
    [
      [
        [0, 1],
        [4, 4],
      ],
      "tokens 0 to 1, 4",
    ],
  ] as const)
    assert.is(positionText(positions as never), words);
});

test("marked spans: the text between the marks, and its end without them", () => {
  assert.equal(readMarks("[[The]] capital of [[France ]][[is]]", "x"), {
    text: "The capital of France is",
    spans: [
      { text: "The", end: 3 },
      { text: "France ", end: 22 },
      { text: "is", end: 24 },
    ],
  });
  assert.equal(readMarks("a [b] [[[c]]]", "x"), { text: "a [b] [c]", spans: [{ text: "[c", end: 8 }] });
  for (const [marked, sentence] of [
    ["a", "pairs[0].clean contains no span: with aligned positions, mark each span to patch with [[ and ]]."],
    ["", "pairs[0].clean contains no span: with aligned positions, mark each span to patch with [[ and ]]."],
    ["[[a", "pairs[0].clean opens a span with [[ but does not close it."],
    ["[[a]] [[", "pairs[0].clean opens a span with [[ but does not close it."],
    ["a]]", "pairs[0].clean has ]] without a matching [[."],
    ["[[a]]]]", "pairs[0].clean has ]] without a matching [[."],
    ["[[a [[b]]", "pairs[0].clean opens a span with [[ inside another span."],
    ["[[a]][[]]", "pairs[0].clean contains an empty span: [[]]."],
    ["[[a]]".repeat(65), "pairs[0].clean contains 65 spans; the limit is 64."],
  ] as const) {
    assert.throws(() => readMarks(marked, "pairs[0].clean"), saying(sentence), marked);
  }
  assert.is(readMarks("[[a]]".repeat(64), "x").spans.length, 64);
});

test.run();
