/** Answers that run with a profile: requests to the server, and which profiles fit; no page. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { profileMisfit } from "../../src/workbench/fitting.js";
import { ask, chatPath, closeAll, ended, open, said, token } from "./asking.js";
import { type Answers, stop, streams } from "./parts.js";

test.after.each(closeAll);

type Body = { model?: string; prompt?: number[]; tapline?: Record<string, unknown> };

const profile = (tapline: object) => ({ "GET /lab/profiles/polite": { name: "polite", tapline } });
const edit = { kind: "scale" as const, layer: 1, strength: 0.5 };
const two: Answers = {
  [chatPath]: streams(
    [said("a", [token(1, "a")])],
    [{ ...said("b", [token(2, "b")]), index: 1 }],
    [stop(), stop(1)],
  ),
};
const bodyOf = (all: [string, string, unknown][]) =>
  all.filter(([method, path]) => method === "POST" && path.startsWith("/v1/")).at(-1)?.[2] as Body;

test("a chosen profile is part of the model's name, with a baseline and the sliders", async () => {
  const parts = await open({ ...two, ...profile({ interventions: [edit] }) });
  const { kept } = await ask(parts, { profile: "polite", interventions: [edit], pair: true });
  const { model, tapline } = bodyOf(parts.asked());
  assert.is(model, "m@polite");
  assert.equal([tapline?.interventions, tapline?.pair], [[edit], true]);
  const watch = tapline?.watch as { layers: number[] } | undefined;
  assert.equal(watch?.layers, [0, 1, 2, 3]);
  assert.equal([kept.profile, kept.answers.map(({ edited }) => edited)], ["polite", [true, false]]);
  // Without sliders, the profile alone has a baseline.
  await ask(parts, { profile: "polite", pair: true });
  const alone = bodyOf(parts.asked());
  assert.equal([alone.tapline?.interventions, alone.tapline?.pair], [undefined, true]);
});

test("a question without a profile names no model and has no pair without interventions", async () => {
  const parts = await open({ [chatPath]: streams([said("a", [token(1, "a")])], [stop()]) });
  const { kept } = await ask(parts, { pair: true });
  const { model, tapline } = bodyOf(parts.asked());
  assert.equal(
    [model, tapline?.pair, kept.profile, kept.answers.length],
    [undefined, undefined, undefined, 1],
  );
});

test("a profile with its own readings runs without the page's", async () => {
  const parts = await open({ ...two, ...profile({ interventions: [edit], watch: { layers: [2] } }) });
  const { kept } = await ask(parts, { profile: "polite", pair: true });
  const { model, tapline } = bodyOf(parts.asked());
  assert.equal([model, tapline, kept.layers], ["m@polite", { pair: true }, []]);
});

test("continuing an edited answer keeps the profile, continuing the baseline drops it", async () => {
  const parts = await open({
    ...two,
    ...profile({ interventions: [edit] }),
    "POST /v1/completions": streams(
      [{ index: 0, text: "c", tapline: { tokens: [token(3, "c")] } }],
      [stop()],
    ),
    "POST /apply-template": { prompt: "Hi" },
    "POST /tokenize": { tokens: [7] },
  });
  const { conversation } = await ask(parts, { profile: "polite", pair: true });
  const model = async (answer: number) => {
    const place = await parts.asker.fork(conversation, { turn: 0, answer, token: 1 });
    const kept = await ended(parts, place);
    const body = bodyOf(parts.asked());
    return [body.model, kept.profile, body.prompt];
  };
  assert.equal(await model(0), ["m@polite", "polite", [7, 1]]);
  assert.equal(await model(1), [undefined, undefined, [7, 2]]);
});

test("profiles of other models and changed ones are not offered", () => {
  const saved = (fingerprint: string | null, changed: string[] = []) => ({
    name: "p",
    model: fingerprint === null ? null : { id: "theirs", fingerprint },
    changed,
  });
  const served = { fingerprint: "f" };
  assert.is(profileMisfit(saved("f"), served), undefined);
  assert.is(profileMisfit(saved(null), served), undefined);
  assert.is(profileMisfit(saved("g"), served), "p is for another model: theirs.");
  assert.is(profileMisfit(saved("f", ["The vector v has changed."]), served), "The vector v has changed.");
});

test.run();
