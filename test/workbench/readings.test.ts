/** One question with two settings: the requests, and which reading belongs to which token; a scripted server, no page. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { ReadingRequest } from "../../src/contracts/workbench.js";
import { workbenchLimits } from "../../src/contracts/workbench-limits.js";
import { Readings } from "../../src/workbench/readings.js";
import { chatPath, closeAll, open, rawPath, refusal, token } from "./asking.js";
import { type Answering, type Answers, stop, streams } from "./parts.js";

const folders: string[] = [];
test.after.each(async () => {
  await closeAll();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

async function start(answers: Answers) {
  const home = mkdtempSync(join(tmpdir(), "tapline-readings-"));
  folders.push(home);
  const folder = join(home, "readings");
  const parts = await open(answers);
  await parts.services.look();
  return { parts, folder, readings: new Readings(folder, parts.services) };
}

const settings = (
  text = "Hi",
  sides: ReadingRequest["sides"] = [{}, { temperature: 1 }],
): ReadingRequest => ({
  text,
  sides,
});
const lens = (text: string) => [{ token_id: 1, token: text, probability: 0.5 }];
/** Two prompt tokens and three generated ones, the last of which ends the text. */
const answer: Answering = streams(
  [
    {
      index: 0,
      delta: { content: "a" },
      tapline: {
        tokens: [token(11, "a", { index: 0, norms: { 0: 2, 3: 3 }, lens: { 0: lens("x"), 3: lens("a") } })],
      },
    },
  ],
  [
    {
      index: 0,
      delta: { content: "b" },
      tapline: {
        tokens: [token(12, "b", { index: 1, norms: { 0: 4, 3: 5 }, lens: { 0: lens("y"), 3: lens("b") } })],
      },
    },
  ],
  [
    {
      ...stop(),
      tapline: {
        tokens: [token(13, "<end>", { index: 2, norms: { 0: 6, 3: 7 }, lens: { 3: lens("<end>") } })],
        prompt: [
          token(8, "P", { index: 0, norms: { 0: 1, 3: null }, lens: { 0: lens("q") } }),
          token(9, "Q", { index: 1, norms: { 0: 2, 3: 3 }, lens: { 0: lens("x"), 3: lens("a") } }),
        ],
        interventions: [{ kind: "steer", layer: 3, rows: 5, mean_change_length: 2 }],
      },
    },
  ],
);

test("each side asks with its own settings, and every token is read at its own position", async () => {
  const { parts, readings } = await start({ [chatPath]: answer });
  const edit = { kind: "scale" as const, layer: 1, strength: 0.5 };
  const { ids } = await readings.start(settings("Hi", [{}, { temperature: 0.75, interventions: [edit] }]));
  const [one, other] = await Promise.all(ids.map((id) => readings.get(id)));
  const bodies = parts.asked().filter(([, path]) => path === "/v1/chat/completions");
  const watch = { layers: [0, 1, 2, 3], norms: true, lens: 5, positions: "all" };
  const common = { messages: [{ role: "user", content: "Hi" }], max_tokens: 48, seed: 0, stream: true };
  const by = (temperature: number) =>
    bodies
      .map(([, , body]) => body as { temperature: number })
      .find((body) => body.temperature === temperature);
  assert.equal(by(0), { ...common, temperature: 0, tapline: { watch } });
  assert.equal(by(0.75), { ...common, temperature: 0.75, tapline: { interventions: [edit], watch } });
  assert.equal([one?.temperature, other?.temperature, other?.interventions], [0, 0.75, [edit]]);
  // The reading reported with a generated token is of the token before it; after the last one nothing was read.
  assert.equal([one?.tokens, one?.prompt, one?.answer], [["P", "Q", "a", "b"], 2, "ab"]);
  assert.equal(
    one?.layers.map(({ norms }) => norms),
    [
      [1, 2, 4, 6],
      [null, null, null, null],
      [null, null, null, null],
      [null, 3, 5, 7],
    ],
  );
  assert.equal(
    one?.layers[3]?.top.map((found) => found.map((candidate) => candidate.token)),
    [[], ["a"], ["b"], ["<end>"]],
  );
  assert.equal(one?.edits, [{ kind: "steer", layer: 3, rows: 5, mean_change_length: 2 }]);
});

test("a raw text is completed, and a profile is part of the model's name", async () => {
  const profile = { name: "polite", tapline: { interventions: [] } };
  const { parts, readings } = await start({ [rawPath]: answer, "GET /lab/profiles/polite": profile });
  const asked = { ...settings("Once", [{ profile: "polite" }, {}]), raw: true, max_tokens: 3, seed: 9 };
  await Promise.all((await readings.start(asked)).ids.map((id) => readings.get(id)));
  const bodies = parts.asked().flatMap(([, path, body]) => (path === "/v1/completions" ? [body] : []));
  const models = bodies.map((body) => (body as { model?: string }).model);
  assert.equal(models.sort(), ["m@polite", undefined]);
  for (const body of bodies) {
    const { prompt, max_tokens, seed } = body as Record<string, unknown>;
    assert.equal([prompt, max_tokens, seed], ["Once", 3, 9]);
  }
});

test("a profile with its own readings is refused before anything is asked", async () => {
  const profile = { name: "own", tapline: { watch: { layers: [0] } } };
  const { parts, readings } = await start({ [chatPath]: answer, "GET /lab/profiles/own": profile });
  const [status, sentence] = await refusal(readings.start(settings("Hi", [{}, { profile: "own" }])));
  assert.is(status, 409);
  assert.match(sentence, /^The profile own has its own readings/);
  assert.equal(
    parts.asked().filter(([method]) => method === "POST"),
    [],
  );
});

test("readings are private files that outlive the workbench; a failed answer keeps its reason", async () => {
  const { parts, folder, readings } = await start({ [chatPath]: answer });
  const { ids } = await readings.start(settings());
  await readings.settled();
  const later = new Readings(folder, parts.services);
  assert.is((await later.get(ids[0] as string)).answer, "ab");
  assert.is(statSync(join(folder, `${ids[0]}.json`)).mode & 0o777, 0o600);
  const refusing: Answering = (response) => {
    response.writeHead(400, { "Content-Type": "application/json" });
    response.end(JSON.stringify({ error: "too long" }));
  };
  const broken = await start({ [chatPath]: refusing });
  const failed = await broken.readings.start(settings());
  assert.match((await broken.readings.get(failed.ids[1] as string)).error as string, /too long/);
});

test("unknown and malformed ids are 404, and nothing outside the folder is read", async () => {
  const { folder, readings } = await start({});
  writeFileSync(join(folder, "..", "secret.json"), JSON.stringify({ answer: "secret" }));
  mkdirSync(folder);
  for (const id of ["../secret", "0123456789abcdef", "../../package", "x", "0123456789ABCDEF"]) {
    assert.is((await refusal(readings.get(id)))[0], 404, id);
  }
});

test("the oldest readings are deleted", async () => {
  const { folder, readings } = await start({ [chatPath]: answer });
  const before = workbenchLimits.readings;
  (workbenchLimits as { readings: number }).readings = 3;
  try {
    let last: string[] = [];
    for (let run = 0; run < 3; run += 1) {
      last = (await readings.start(settings())).ids;
      await readings.settled();
    }
    const left = readdirSync(folder);
    assert.is(left.length, 3);
    for (const id of last) assert.ok(left.includes(`${id}.json`));
  } finally {
    (workbenchLimits as { readings: number }).readings = before;
  }
});

test("without a served model nothing is asked", async () => {
  const { readings } = await start({ "GET /lab/capabilities": undefined });
  assert.is((await refusal(readings.start(settings())))[0], 503);
});

test.run();
