/** Which features fire on a word: counted by hand. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { featuresOn, searchSentence } from "../../src/findings/feature-search.js";

const text = (tokens: string[], top: [number, number][][]) => ({
  tokens,
  token_ids: tokens.map((_, at) => at),
  top: top.map((all) => all.map(([feature, activation]) => ({ feature, activation }))),
});
const texts = [
  text(
    ["The", " Eif", "fel", " Tower"],
    [
      [[1, 4]],
      [
        [2, 3],
        [1, 1],
      ],
      [[2, 5]],
      [[3, 2]],
    ],
  ),
  text(["An", " eiffel"], [[[2, 1]], [[3, 6]]]),
];

test("a word's tokens are found across token boundaries, in any case", () => {
  assert.equal([...featuresOn({ texts }, "Eiffel").places], ["0 1", "0 2", "1 1"]);
  assert.equal([...featuresOn({ texts }, " fel t ").places], ["0 2", "0 3"]);
  assert.is(featuresOn({ texts }, "Paris").places.size, 0);
  assert.is(featuresOn({ texts }, "  ").places.size, 0);
});

test("features are ordered by their mean on the word, with counts on it and elsewhere", () => {
  const { features, tokens } = featuresOn({ texts }, "eiffel");
  assert.is(tokens, 6);
  assert.equal(features, [
    { feature: 2, mean: 8 / 3, max: 5, on: 2, elsewhere: 1 },
    { feature: 3, mean: 2, max: 6, on: 1, elsewhere: 1 },
    { feature: 1, mean: 1 / 3, max: 1, on: 1, elsewhere: 1 },
  ]);
});

test("the sentence names the strongest feature and where else it is active", () => {
  const said = (word: string) => searchSentence(word, featuresOn({ texts }, word));
  assert.is(
    said("eiffel"),
    "Feature 2 is the strongest on “eiffel”: active on 2 of its 3 tokens and on 1 of the 3 other tokens.",
  );
  assert.is(said("Rome"), "“Rome” does not occur in these texts.");
  const silent = [text(["a", "b"], [[], []])];
  assert.is(searchSentence("a", featuresOn({ texts: silent }, "a")), "No feature is active on “a”.");
  const only = [text(["a", "b"], [[[7, 1]], []])];
  assert.is(
    searchSentence("a", featuresOn({ texts: only }, "a")),
    "Feature 7 is the strongest on “a”: active on 1 of its 1 token and on no other token.",
  );
});

test.run();
