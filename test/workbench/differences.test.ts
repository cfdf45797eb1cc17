import * as fc from "fast-check";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  comparisonOf,
  differenceSentence,
  differencesOf,
  doneSentence,
} from "../../src/workbench/page/differences.js";
import type { TurnAnswer } from "../../src/workbench/wire.js";

function answer(words: readonly string[]): TurnAnswer {
  const tokens = words.map((text) => ({ text, id: text.length }));
  return { state: "done", edited: true, finish: "stop", tokens };
}

function differ(one: string, other: string) {
  const words = (text: string) => (text === "" ? [] : text.split(" "));
  const { first, one: left, other: right } = differencesOf(answer(words(one)), answer(words(other)));
  return [first, [...left], [...right]];
}

test("words in both answers, in the same order, are not marked", () => {
  assert.equal(differ("The answer is Paris .", "The answer is Paris ."), [undefined, [], []]);
  assert.equal(differ("The answer is Rome .", "The answer is Paris ."), [3, [3], [3]]);
  assert.equal(differ("The capital is Rome .", "The answer is Paris ."), [1, [1, 3], [1, 3]]);
  assert.equal(differ("a b c", "a b c d e"), [3, [], [3, 4]]);
  assert.equal(differ("x a b", "a b"), [0, [0], []]);
  assert.equal(differ("", "a"), [0, [], [0]]);
  assert.equal(differ("", ""), [undefined, [], []]);
});

test("the same text with another id is a different token", () => {
  const one = answer(["a"]);
  const other = { ...answer(["a"]), tokens: [{ text: "a", id: 7 }] };
  assert.is(differencesOf(one, other).first, 0);
});

test("the common subsequence is the longest, and equal answers reuse one object", () => {
  const words = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 9 });
  fc.assert(
    fc.property(words, words, (left, right) => {
      const [one, other] = [answer(left), answer(right)];
      const found = differencesOf(one, other);
      assert.is(differencesOf(one, other), found);
      const kept = left.filter((_, at) => !found.one.has(at));
      assert.equal(
        kept,
        right.filter((_, at) => !found.other.has(at)),
      );
      assert.is(kept.length, longest(left, right));
    }),
  );
});

/** By trying: every sequence that can be left of the one, looked for in the other. */
function longest(left: readonly string[], right: readonly string[]): number {
  let best = 0;
  for (let chosen = 0; chosen < 1 << left.length; chosen += 1) {
    const some = left.filter((_, at) => (chosen >> at) & 1);
    let at = 0;
    for (const word of right) if (word === some[at]) at += 1;
    if (at === some.length) best = Math.max(best, some.length);
  }
  return best;
}

test("answers too long to compare differ from their first difference on", () => {
  const [one, other] = [3000, 3000].map((length, at) =>
    answer(Array.from({ length }, (_, index) => (index < 10 ? "a" : `${at} ${index}`))),
  ) as [TurnAnswer, TurnAnswer];
  const { first, one: left } = differencesOf(one, other);
  assert.is(first, 10);
  assert.is(left.size, 2990);
});

test("failed and running answers are not compared", () => {
  const ended = (state: TurnAnswer["state"], words: readonly string[] = []) => ({ ...answer(words), state });
  const failed = ended("failed");
  for (const pair of [
    [failed, ended("failed")],
    [failed, ended("done")],
    [ended("done", ["a"]), failed],
    [ended("running"), ended("running")],
    [ended("done", ["a"]), ended("running", ["a"])],
    [ended("done", ["a"])],
    [],
  ]) {
    assert.is(comparisonOf(pair), undefined, pair.map(({ state }) => state).join(" "));
  }
  assert.is(doneSentence([failed, ended("failed")]), "an answer failed");
  assert.is(doneSentence([ended("done", ["a"]), failed]), "an answer failed");
  assert.is(doneSentence([failed]), "an answer failed");
  assert.is(doneSentence([ended("done", ["a"])]), "done, 1 token");
});

test("complete and stopped answers are compared in a sentence", () => {
  const [one, other] = [answer(["a", "b", "c"]), answer(["a", "d", "c"])];
  const same = comparisonOf([one, { ...answer(["a", "b", "c"]), state: "stopped" }]);
  assert.ok(same);
  assert.is(
    differenceSentence(same, { tokens: new Set(), words: 0, of: 3 }),
    "The answers are identical. Try a stronger intervention.",
  );
  // Words of one length have one number here, and differ by their texts.
  const found = comparisonOf([one, other]);
  assert.ok(found);
  assert.is(
    differenceSentence(found, { tokens: new Set([1]), words: 1, of: 2 }),
    "1 of 2 words differ from the unmodified answer, starting at token 1.",
  );
  assert.is(doneSentence([one, other]), "done, 3 tokens, 1 differ");
});

test.run();
