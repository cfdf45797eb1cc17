/** How long an answer thought, and its thoughts' scores as a strip. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { meansOf, thoughtWords } from "../../src/workbench/page/thoughts.js";
import { ThoughtClock } from "../../src/workbench/thought-clock.js";
import type { AnswerToken } from "../../src/workbench/wire.js";

const thought: AnswerToken = { text: "Hm", thinking: true };
const word: AnswerToken = { text: "Yes" };

/** A clock that goes on when it is told to. */
function clockAfter(kept: AnswerToken[] = []) {
  const time = { now: 100 };
  const clock = new ThoughtClock(kept, () => time.now);
  const hear = (at: number, ...tokens: AnswerToken[]) => {
    time.now = at;
    return clock.read(tokens);
  };
  const end = (at: number) => {
    time.now = at;
    return clock.end();
  };
  return { hear, end };
}

test("thinking lasts from the first thought to the first word, reported once", () => {
  const { hear, end } = clockAfter();
  assert.is(hear(101), undefined, "nothing came");
  assert.is(hear(102, thought), undefined);
  assert.is(hear(103, thought, thought), undefined);
  assert.is(hear(106.5, thought, word), 4.5);
  assert.is(hear(108, word), undefined);
  assert.is(end(109), undefined);
});

test("an answer that ends in its thoughts has thought until then", () => {
  const { hear, end } = clockAfter();
  hear(101, thought);
  assert.is(end(103), 2);
  assert.is(end(104), undefined);
});

test("thinking time is not shown for answers without a separate thinking phase", () => {
  const plain = clockAfter();
  assert.is(plain.hear(101, word), undefined);
  assert.is(plain.end(102), undefined);
  const atOnce = clockAfter();
  assert.is(atOnce.hear(101, thought, word), undefined);
  assert.is(atOnce.hear(102, word), undefined);
  assert.is(atOnce.end(103), undefined);
  const kept = clockAfter([thought]);
  kept.hear(101, thought);
  assert.is(kept.hear(102, word), undefined);
  assert.is(kept.end(103), undefined);
});

test("the token count and any known time are shown in one line", () => {
  assert.is(thoughtWords(1, undefined), "Thinking, 1 token");
  assert.is(thoughtWords(17, 0.4), "Thinking, 17 tokens, 400 ms");
  assert.is(thoughtWords(17, 4.26), "Thinking, 17 tokens, 4.3 s");
});

test("each part of a strip is the mean of its tokens, and each token is in one part", () => {
  assert.equal(meansOf([0.5, undefined, 1], 48), [0.5, undefined, 1]);
  assert.equal(meansOf([1, 3, 5, 7], 2), [2, 6]);
  assert.equal(meansOf([1, 2, 3, 4, 5], 2), [1.5, 4]);
  assert.equal(meansOf([1, undefined, undefined, undefined], 2), [1, undefined]);
  assert.equal(meansOf([], 2), []);
  const many = Array.from({ length: 1000 }, (_, at) => at);
  const means = meansOf(many, 48) as number[];
  assert.is(means.length, 48);
  assert.ok(means.every((mean, at) => at === 0 || mean > (means[at - 1] as number)));
});

test.run();
