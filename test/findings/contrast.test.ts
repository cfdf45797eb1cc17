/** What an answer along a contrast set's direction is: as intended, fluent, and at which strengths. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  isAsExpected,
  isFluent,
  isLoop,
  type MeasuredStrength,
  markerCount,
  measureStrength,
  strengthRange,
} from "../../src/findings/contrast.js";

test("markers count as whole words in any case, punctuation anywhere", () => {
  const markers = ["ye", "arr", "don't know", "!", "```"];
  assert.is(markerCount("Arr, ye yeast! I DON'T KNOW!", markers), 5);
  assert.is(markerCount("yes, carry on, eye, l'arr", markers), 0);
  assert.is(markerCount("été, le thé", ["le", "thé", "t"]), 2);
  assert.is(markerCount("a.b", ["."]), 1, "no pattern");
});

test("an answer is as intended with clearly more markers than the baseline", () => {
  const expected = { markers: ["sorry", "cannot"] };
  assert.ok(isAsExpected("I'm sorry.", "Sure.", expected));
  assert.not(isAsExpected("Sure.", "Sure.", expected));
  assert.not(isAsExpected("Sorry, I cannot.", "Sorry, it cannot.", expected));
  assert.not(
    isAsExpected("Sorry, sorry, sorry.", "Sorry, cannot.", expected),
    "three of two are not twice as many",
  );
  assert.ok(isAsExpected("Sorry, I cannot, sorry, sorry.", "Sorry, cannot.", expected));
});

test("a concise answer has at most three fifths of the baseline's words, and some", () => {
  const expected = { shorter: true } as const;
  assert.ok(isAsExpected("one two three", "one two three four five", expected));
  assert.not(isAsExpected("one two three four", "one two three four five", expected));
  assert.not(isAsExpected(" ", "one two", expected));
});

test("loops of words, syllables and characters are found", () => {
  for (const text of [
    "a rainbow, a rainbow, a rainbow, a rainbow, a rainbow",
    "!!!!!!!!!!!!",
    "qurequrequrequrequrequre",
    "Pourre!\n\nPourre!\n\nPourre!\n\nPourre!\n\nPourre!\n\nPourre!\n\nPourre!\n\nPourre!",
  ])
    assert.ok(isLoop(text), text);
  for (const text of [
    "",
    "Yes.",
    "To make a cup of tea, you need a kettle, a pot, and a cup.",
    "I don't know. I really don't know what the capital is.",
    "1. Boil water.\n2. Add tea.\n3. Wait.",
    "def add(a, b):\n    return a + b",
  ])
    assert.not(isLoop(text), text);
});

test("fluency is relative to the model's own perplexity, with a floor", () => {
  const own = { text: "", perplexity: 3 };
  const said = (perplexity: number, text = "A fine answer.") => isFluent({ text, perplexity }, own);
  assert.equal([said(11.9), said(12.1)], [true, false]);
  assert.equal(
    [7.9, 8.1].map((perplexity) => isFluent({ text: "x", perplexity }, { text: "", perplexity: 1 })),
    [true, false],
  );
  assert.not(said(1, "na na na na na na na na na na"));
  assert.not(said(Number.POSITIVE_INFINITY));
});

test("a strength's answers are counted against the model's own", () => {
  const own = [
    { text: "Sure, here it is.", perplexity: 2 },
    { text: "Rome.", perplexity: 2 },
  ];
  const answers = [
    { text: "I'm sorry, I can't.", perplexity: 5 },
    { text: "Rome.", perplexity: 2 },
  ];
  assert.equal(measureStrength(0.3, answers, own, { markers: ["sorry"] }), {
    ...{ strength: 0.3, changed: 1, expected: 1, fluent: 2, both: 1, of: 2 },
  });
});

test("a slider begins at the middle of the best strengths and ends where the text breaks", () => {
  const at = (strength: number, expected: number, fluent: number, both: number): MeasuredStrength => ({
    ...{ strength, changed: 2, expected, fluent, both, of: 2 },
  });
  const rising = [at(0.1, 0, 2, 0), at(0.2, 1, 2, 1), at(0.3, 2, 2, 2), at(0.4, 2, 2, 2), at(0.5, 2, 1, 1)];
  assert.equal(strengthRange(rising.toReversed()), { start: 0.3, from: 0.2, to: 0.4 });
  assert.equal(strengthRange([at(0.1, 0, 2, 0), at(0.2, 2, 0, 0)]), { start: 0.1, from: null, to: 0.1 });
  assert.equal(strengthRange([at(0.1, 2, 1, 1)]), undefined, "most answers are not fluent");
  assert.equal(strengthRange([at(0.1, 0, 2, 0), at(0.2, 2, 1, 1)]), { start: 0.2, from: 0.2, to: 0.2 });
  assert.is(strengthRange([]), undefined);
});

test.run();
