/** Whole words of tokens that differ. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { wholeWords } from "../../src/workbench/page/words.js";

const tokens = (...texts: string[]) => texts.map((text) => ({ text }));

test("a differing token marks its whole word", () => {
  const answer = tokens("The", " cap", "ital", " is", " Par", "is", ".");
  const found = wholeWords(answer, new Set([5]));
  assert.equal([[...found.tokens].sort(), found.words, found.of], [[4, 5, 6], 1, 4]);
});

test("whitespace at a token's end also ends a word", () => {
  const found = wholeWords(tokens("a", "b\n", "c", "", "d"), new Set([4]));
  assert.equal([[...found.tokens].sort(), found.words, found.of], [[2, 4], 1, 2]);
});

test("identical answers have no differing words", () => {
  const found = wholeWords(tokens("a", " b"), new Set());
  assert.equal([found.tokens.size, found.words, found.of], [0, 0, 2]);
  assert.equal(wholeWords([], new Set()).of, 0);
});

test.run();
