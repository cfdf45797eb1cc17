/** The contrast sets of the package, and their directions on a served model. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { markerCount, wordsOf } from "../../src/findings/contrast.js";
import { HttpError } from "../../src/http/index.js";
import { Contrasts } from "../../src/workbench/contrasts/contrasts.js";
import { furtherStrengths } from "../../src/workbench/contrasts/measure.js";
import { readContrastSets } from "../../src/workbench/contrasts/sets.js";
import type { ContrastStatus } from "../../src/workbench/wire.js";
import { sendJson } from "../client/scripted.js";
import { refusalBy } from "../support/refusal.js";
import { until } from "../support/until.js";
import { closeAll, open } from "./asking.js";
import { type Answering, type Answers, capabilities } from "./parts.js";

test.after.each(closeAll);
const refusal = refusalBy(HttpError);

test("eight sets of sixteen pairs each, whose own texts show the difference", async () => {
  const sets = await readContrastSets();
  assert.equal(
    sets.map(({ name }) => name),
    ["cheerful", "formal", "french", "pirate", "concise", "refuses", "unsure", "code"],
  );
  for (const { name, positive, negative, expected, questions, openings } of sets) {
    assert.equal([positive.length, negative.length], [16, 16], name);
    assert.is(new Set([...positive, ...negative]).size, 32, name);
    assert.ok(questions.length >= 3 && openings.length >= 3, name);
    const found = (texts: readonly string[]) =>
      texts.filter((text) =>
        "shorter" in expected ? wordsOf(text).length < 8 : markerCount(text, expected.markers) > 0,
      ).length;
    assert.ok(found(positive) >= 11, `${name}: ${found(positive)} of 16`);
    assert.ok(found(negative) <= 3, `${name}: ${found(negative)} of 16 on the other side`);
  }
});

/** A server whose answers are as intended from a strength on, and broken from another. */
function scriptedServer(works: number, breaks: number) {
  const stored = new Map<string, unknown>();
  const said: { vector?: string; strength: number; layer?: number; positions?: string }[] = [];
  const completion: Answering = (response, { body }) => {
    const { echo, prompt, tapline } = JSON.parse(body);
    if (echo === true) {
      // Id 9 ends broken answers.
      const score = prompt.at(-1) === 9 ? -5 : -0.5;
      return sendJson(response, 200, {
        choices: [{ text: "", logprobs: { token_logprobs: prompt.map(() => score) } }],
      });
    }
    const [steer] = tapline.interventions ?? [];
    said.push(steer ?? { strength: 0 });
    const isSteered = steer !== undefined && !steer.vector.endsWith("-random");
    const strength = isSteered ? steer.strength : Number.NEGATIVE_INFINITY;
    const text =
      strength >= breaks ? "Sorry, the the." : strength >= works ? "Sorry, I cannot." : "Sure, here it is.";
    const tokens = [{ token_id: strength >= breaks ? 9 : 1 }];
    return sendJson(response, 200, { choices: [{ text, tapline: { tokens } }] });
  };
  const answers: Answers = {
    "GET /lab/capabilities": { ...capabilities(30), fingerprint: "0123456789abcdef".repeat(4) },
    "GET /lab/vectors": (response: never) =>
      sendJson(response, 200, { vectors: [...stored.keys()].map((name) => ({ name })) }),
    "POST /lab/vectors": (response: never, { body }: { body: string }) => {
      const { name, layers } = JSON.parse(body);
      stored.set(name, JSON.parse(body));
      const made = layers.map((layer: number) => ({
        layer,
        length: 3,
        separation: 1,
        shuffled_separation: 0.5,
      }));
      sendJson(response, 201, { name, layers: made });
    },
    "PUT /lab/vectors/contrast-refuses-01234567-random": (response: never) => {
      stored.set("contrast-refuses-01234567-random", {});
      sendJson(response, 200, {});
    },
    "POST /apply-template": { prompt: "p" },
    "POST /tokenize": { tokens: [7, 8] },
    "POST /v1/completions": completion as never,
  };
  return { answers, stored, said };
}

async function made(works: number, breaks: number) {
  const server = scriptedServer(works, breaks);
  const parts = await open(server.answers);
  const folder = join(parts.folder, "contrasts");
  const contrasts = new Contrasts(parts.services, parts.events, folder);
  const refuses = async () =>
    (await contrasts.list()).find(({ name }) => name === "refuses") as ContrastStatus;
  assert.is((await refuses()).state, "unused");
  await contrasts.make("refuses");
  await until(async () => (await refuses()).state !== "making");
  return { ...server, parts, folder, contrasts, found: await refuses() };
}

test("a direction is measured at the middle layer, with a random control", async () => {
  const { found, stored, said, parts, folder, contrasts } = await made(0.3, 0.4);
  assert.is(found.state, "ready", found.error);
  const { ready } = found;
  assert.equal(ready?.range, { start: 0.3, from: 0.3, to: 0.3 });
  assert.equal([ready?.layer, ready?.separation, ready?.shuffled], [14, 1, 0.5]);
  assert.equal(
    ready?.measured.map(({ strength, expected, fluent, both }) => [strength, expected, fluent, both]),
    [
      [0.2, 0, 2, 0],
      [0.3, 2, 2, 2],
      [0.42, 2, 0, 0],
    ],
  );
  assert.equal([ready?.control?.strength, ready?.control?.expected, ready?.control?.of], [0.3, 0, 2]);
  assert.equal([...stored.keys()], ["contrast-refuses-01234567", "contrast-refuses-01234567-random"]);
  assert.ok(said.slice(2).every(({ layer, positions }) => layer === 14 && positions === "last"));
  assert.ok(parts.told.some(({ type }) => type === "contrasts"));
  assert.is(contrasts.controlOf("contrast-refuses-01234567"), "contrast-refuses-01234567-random");
  assert.is(contrasts.controlOf("polite"), undefined);
  // Another process finds what was measured, as long as the direction exists.
  const again = new Contrasts(parts.services, parts.events, folder);
  const state = async () => (await again.list()).find(({ name }) => name === "refuses")?.state;
  assert.is(await state(), "ready");
  stored.clear();
  assert.is(await state(), "unused");
});

test("a direction that works nowhere says so, and one that always breaks has no range", async () => {
  const idle = await made(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);
  assert.equal(idle.found.ready?.range, { start: 0.9, from: null, to: 0.9 });
  await closeAll();
  const broken = await made(0, 0);
  assert.equal([broken.found.ready?.range, broken.found.ready?.control], [null, null]);
});

test("a failed measurement is reported and can be repeated", async () => {
  const { answers } = scriptedServer(0.3, 0.4);
  const parts = await open({
    ...answers,
    "POST /lab/vectors": (response: never) => sendJson(response, 400, { error: "layers: no." }),
  });
  const contrasts = new Contrasts(parts.services, parts.events, join(parts.folder, "contrasts"));
  const refuses = async () =>
    (await contrasts.list()).find(({ name }) => name === "refuses") as ContrastStatus;
  await contrasts.make("refuses");
  await until(async () => (await refuses()).state === "failed");
  assert.is((await refuses()).error, "layers: no.");
  await contrasts.make("refuses");
  await until(async () => (await refuses()).state === "failed");
  assert.is(await refusal(() => contrasts.make("none")), "There is no contrast set none.");
  assert.not(existsSync(join(parts.folder, "contrasts")));
});

test("further strengths lie between a broken answer and the one below, or beyond all", () => {
  const at = (strength: number, expected: number, fluent: number) => ({
    ...{ strength, expected, fluent, changed: 2, both: 0, of: 2 },
  });
  assert.equal(furtherStrengths([at(0.2, 0, 2), at(0.3, 2, 0), at(0.42, 2, 0)]), [0.235, 0.27]);
  assert.equal(furtherStrengths([at(0.2, 1, 0), at(0.3, 2, 0)]), [0.07, 0.14]);
  assert.equal(furtherStrengths([at(0.2, 0, 0), at(0.3, 0, 0)]), [0.07, 0.12]);
  assert.equal(furtherStrengths([at(0.2, 0, 2), at(0.3, 0, 1)]), [0.6, 0.9]);
});

test.run();
