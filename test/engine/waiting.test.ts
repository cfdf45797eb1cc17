/** Requests that wait while the only slot is busy: what they wear, and what is left of those that go away. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Engine } from "../../src/native/engine.js";
import type { LivePlan } from "../../src/native/live.js";
import { patient, writeTinyModel } from "../inference/support/tiny-models.js";
import { until } from "../support/until.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-waiting-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

let engine: Engine;
test.before(async () => {
  const path = join(folder, "patient.gguf");
  await writeTinyModel(path, patient);
  engine = await Engine.open({ path, id: "patient", threads: 1, parallel: 1 });
});
test.after(() => engine.close());

const endless = { prompt: "The", max_tokens: 16_000, ignore_eos: true };

/** Takes the slot until it is left. */
async function occupy(): Promise<() => Promise<void>> {
  const { parts } = await engine.request("completion", { ...endless, stream: true });
  await parts!.next();
  return async () => void (await parts!.return?.());
}

const waiting = (count: number) => until(async () => (await engine.metrics()).deferred === count);

/** Further steps of the request in the slot: others are looked for in every 64th. */
async function steps(count: number): Promise<void> {
  const { decodes } = await engine.metrics();
  await until(async () => (await engine.metrics()).decodes > decodes + count);
}

const idle = () =>
  until(async () => {
    const { busy_slots, deferred, decodes } = await engine.metrics();
    return busy_slots === 0 && deferred === 0 && decodes;
  });

const edit = { layer: 0, scale: 1, positions: "generated" } as const;

test("a request that waits for a slot still has its plan when it gets one", async () => {
  const leave = await occupy();
  const answer = engine.request("completion", { ...endless, max_tokens: 6 }, undefined, { edits: [edit] });
  await waiting(1);
  await steps(130);
  await leave();
  const [choice] = JSON.parse((await answer).body).choices;
  // The last of six tokens is read by nobody.
  assert.is(choice.tapline?.interventions[0].rows, 5);
});

test("a request cancelled before it has a slot is not computed", async () => {
  const leave = await occupy();
  for (let i = 0; i < 300; i++) {
    const stop = new AbortController();
    const answer = engine.request("completion", endless, stop.signal).catch(({ code }) => code);
    for (let turn = 0; turn < i % 8; turn++) await new Promise((resolve) => setImmediate(resolve));
    stop.abort();
    assert.is(await answer, "CANCELLED");
  }
  await leave();
  const before = (await engine.metrics()).decodes;
  assert.ok((await idle()) - before < endless.max_tokens / 2);
});

/** A sanitizer keeps freed blocks for a while, to see later uses: it has separate memory. */
const testMemory = process.env.TAPLINE_SANITIZED === undefined ? test : test.skip;

/** Forty plans of a MiB: were they kept, each round would add as much; one of five that adds less is enough. */
const count = 40;
const plan: LivePlan = { edits: [edit], labels: [JSON.stringify({ long: "x".repeat(2 ** 20) })] };

async function settles(round: () => Promise<void>): Promise<void> {
  await round();
  const grown: number[] = [];
  do {
    const before = process.memoryUsage().rss;
    await round();
    grown.push((process.memoryUsage().rss - before) / 2 ** 20);
    assert.ok(grown.length <= 5, `the process grew by ${grown.map((each) => each.toFixed(1))} MiB`);
  } while (grown.at(-1)! >= count / 2);
}

testMemory("of who went away before it had a slot nothing is kept", () =>
  settles(async () => {
    const leave = await occupy();
    const stops = Array.from({ length: count }, () => new AbortController());
    const answers = stops.map(({ signal }) =>
      engine.request("completion", endless, signal, plan).catch(({ code }) => code),
    );
    await waiting(count);
    for (const stop of stops) stop.abort();
    assert.equal(await Promise.all(answers), Array(count).fill("CANCELLED"));
    await waiting(0);
    await steps(70);
    await leave();
    await idle();
  }),
);

testMemory("of who went away in the middle of its answer, or had all of it, nothing is kept", () =>
  settles(async () => {
    for (let i = 0; i < count; i++) {
      const { parts } = await engine.request("completion", { ...endless, stream: true }, undefined, plan);
      await parts!.next();
      await parts!.return?.();
      const ended = await engine.request("completion", { ...endless, max_tokens: 1 }, undefined, plan);
      assert.is(ended.status, 200);
    }
    await idle();
  }),
);

test.run();
