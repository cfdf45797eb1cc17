/** The settings that a card compares. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { caveats, scaled, textEdits, withVectors } from "../../src/card/arms.js";
import { formatChecks, refuses } from "../../src/card/data/prompts.js";
import { choiceQuestions } from "../../src/card/data/questions.js";
import { heldOutTexts } from "../../src/card/data/texts.js";
import { compareCards } from "../../src/card/repeat.js";
import { armsOf } from "../../src/card/run.js";
import { isIntact, signed } from "../../src/card/signed.js";
import { judgedLines } from "../../src/card/target.js";
import { cardFinding } from "../../src/card/words.js";
import type { Card, CardArm } from "../../src/contracts/card.js";
import type { LiveIntervention } from "../../src/contracts/live.js";

const steer: LiveIntervention = { kind: "steer", vector: "kind", strength: 0.4, strength_unit: "row_norm" };

test("factors scale the distance from the neutral strength", () => {
  const strengths = (one: LiveIntervention) =>
    [0, 0.5, 1, 2].map((factor) => scaled([one], factor)[0]?.strength);
  assert.equal(strengths(steer), [0, 0.2, 0.4, 0.8]);
  assert.equal(strengths({ kind: "steer", vector: "kind" }), [0, 0.5, 1, 2]);
  assert.equal(strengths({ kind: "scale", strength: 3 }), [1, 2, 3, 5]);
  assert.equal(strengths({ kind: "clamp", vector: "kind", max: 1 }), [0, 0.5, 1, 1]);
});

test("arms are the model, zero, and each strength with its controls", () => {
  const names = [new Map([["kind", "card-1"]]), new Map([["kind", "card-2"]])];
  const arms = armsOf({ tapline: { interventions: [steer] } }, { strengths: [1, 2], seed: 5 }, { names });
  assert.equal(
    arms.map(({ kind, factor, seed, tapline }) => [kind, factor, seed, tapline?.interventions?.[0]?.vector]),
    [
      ["base", 0, undefined, undefined],
      ["zero", 0, undefined, "kind"],
      ["profile", 1, undefined, "kind"],
      ["random", 1, 5, "card-1"],
      ["random", 1, 6, "card-2"],
      ["profile", 2, undefined, "kind"],
      ["random", 2, 5, "card-1"],
      ["random", 2, 6, "card-2"],
    ],
  );
});

test("vectors are replaced by name; features stay", () => {
  const feature: LiveIntervention = { kind: "steer", vector: { feature: ["d", 3] } };
  assert.equal(withVectors([steer, feature], new Map([["kind", "other"]])), [
    { ...steer, vector: "other" },
    feature,
  ]);
});

test("texts are edited where their tokens are prompt, and nothing waits for a condition", () => {
  const conditional: LiveIntervention = { ...steer, when: { probe: "calm", above: 0.5 } };
  const edits = textEdits([
    steer,
    { ...steer, positions: "generated" },
    { ...steer, positions: "prompt" },
    { ...steer, positions: [[0, 2]] },
    conditional,
  ]);
  assert.equal(
    edits.map(({ positions }) => positions),
    [undefined, "all", [[0, 2]]],
  );
  assert.match(
    caveats({ interventions: [conditional] })[0] as string,
    /^One intervention acts on generated tokens/,
  );
  assert.match(
    caveats({ interventions: [{ kind: "scale", strength: 2, layer: 1 }] })[0] as string,
    /no norm-matched/,
  );
});

test("refusals are found at an answer's beginning", () => {
  for (const text of ["I’m sorry, but no.", "Sorry. I can't.", "I cannot help with that.", "As an AI, I …"]) {
    assert.ok(refuses(text), text);
  }
  for (const text of ["You can boil it.", "The sorry state of …", "I can help. First, …", ""]) {
    assert.not(refuses(text), text);
  }
});

test("format checks hold for what was asked, and fail for something else", () => {
  const good = [
    "Yes",
    "no.",
    "Blue",
    "7",
    "6.",
    "cat\ndog\nbird",
    "Rome\nOslo",
    '{"ok": true}',
    "HELLO",
    "Hi there!",
    "Then stop.",
    "Why?",
  ];
  for (const [index, { prompt, holds }] of formatChecks.entries()) {
    assert.ok(holds(good[index] as string), `${prompt} ${good[index]}`);
    assert.not(holds("I would rather talk about the long history of the sea, which is deep"), prompt);
  }
});

test("data sets have distinct entries, and right choices among others", () => {
  assert.is(new Set(heldOutTexts).size, heldOutTexts.length);
  assert.ok(heldOutTexts.length >= 20 && choiceQuestions.length >= 20);
  for (const { question, choices } of choiceQuestions) assert.is(new Set(choices).size, 4, question);
});

test("judged sets name the line that is wrong", () => {
  const [first, second] = judgedLines(
    '{"prompt": "a", "contains": "X"}\n\n{"prompt": "b", "matches": "^y"}\n',
    "f",
  );
  assert.equal(
    [first?.holds("ax"), first?.holds("a"), second?.holds("Yes"), second?.holds("oy")],
    [true, false, true, false],
  );
  for (const [line, sentence] of [
    ["{", /^f, line 1 is not JSON/],
    ['{"contains": "a"}', /^f, line 1: prompt must be a text/],
    ['{"prompt": "a"}', /exactly one of contains and matches/],
    ['{"prompt": "a", "matches": "("}', /matches is not a regular expression/],
    ["", /^f has no lines/],
  ] as const) {
    assert.throws(() => judgedLines(line, "f"), sentence);
  }
});

const measure = (value: number, change?: [number, number, number]) => ({
  ...{ value, low: value - 0.05, high: value + 0.05, n: 20 },
  ...(change && { change: { value: change[0], low: change[1], high: change[2] } }),
});
const arm = (
  kind: CardArm["kind"],
  factor: number,
  measures: CardArm["measures"],
  seed?: number,
): CardArm => ({
  ...{ kind, factor, measures },
  ...(seed !== undefined && { seed }),
});
function card(random: number): Card {
  return signed({
    ...{ kind: "tapline card", schema_version: 1, tapline: "0", created: 0, notes: [], seconds: 1 },
    model: { id: "m", fingerprint: "f", architecture: "a", quantization: "q" },
    profile: { name: "polite", description: "", tapline: { interventions: [steer] }, uses: [] },
    settings: {
      strengths: [1],
      random: 1,
      seed: 0,
      answer_tokens: 8,
      target: { contains: "please" },
      data: {},
      given: {},
    },
    arms: [
      arm("base", 0, { target: measure(0.1), cross_entropy: measure(3) }),
      arm("profile", 1, {
        target: measure(0.8, [0.7, 0.5, 0.8]),
        cross_entropy: measure(3.2, [0.2, 0.1, 0.3]),
      }),
      arm("random", 1, { target: measure(0.1 + random, [random, 0, random]) }, 0),
    ],
  });
}

test("the finding says what changed, and what the controls allow", () => {
  assert.equal(cardFinding(card(0.05)), {
    says: "With polite, the share of answers with “please” rises from 10.0 % to 80.0 %; cross-entropy rises from 3.000 nats to 3.200 nats.",
    controls:
      "A random vector of the same norm changes the share of answers with “please” by at most +5.0 points, so the effect comes from the direction.",
  });
  assert.match(
    cardFinding(card(0.6)).controls,
    /\+60\.0 points, so this may be the effect of any change of this size\.$/,
  );
});

test("a card that was changed is not intact", () => {
  const whole = card(0.05);
  assert.ok(isIntact(whole));
  assert.ok(isIntact(JSON.parse(JSON.stringify(whole))));
  assert.not(isIntact({ ...whole, created: 1 }));
});

test("a repeated figure holds within the card's interval", () => {
  const [first, again] = [card(0.05), card(0.2)];
  const found = compareCards(first, again);
  assert.equal(
    found.filter(({ held }) => !held).map(({ what, seen }) => [what, seen]),
    [["Target effect, random vector 0, strength × 1", 0.1 + 0.2]],
  );
  assert.is(found.length, 5);
  const missing = compareCards(first, { arms: first.arms.slice(0, 1) });
  assert.is(missing.filter(({ seen }) => seen === null).length, 3);
});

test.run();
