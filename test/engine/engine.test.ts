import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { demoModelPath } from "../../src/models/resolve.js";
import { Engine } from "../../src/native/engine.js";
import { module, moduleAt } from "../support/program.js";

const fixture = fileURLToPath(new URL("./fixtures/exit.mjs", import.meta.url));
const engineModule = pathToFileURL(moduleAt("native/engine")).href;
const open = () => Engine.open({ path: demoModelPath, id: "demo", threads: 1, parallel: 2 });
const endless = { prompt: "The", max_tokens: 400, ignore_eos: true, stream: true };

async function fails(code: string, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    assert.is((error as { code?: string }).code, code);
    return;
  }
  assert.unreachable(`it should have failed with ${code}`);
}

test("a file that is no model is refused, and nothing stays behind", async () => {
  await fails("MODEL_LOAD", () => Engine.open({ path: "/nowhere.gguf", id: "x" }));
  await fails("MODEL_LOAD", () => Engine.open({ path: fixture, id: "x" }));
});

test("load progress reaches 1", async () => {
  const seen: number[] = [];
  const engine = await Engine.open({
    path: demoModelPath,
    id: "demo",
    threads: 1,
    onProgress: (_stage, fraction) => seen.push(fraction),
  });
  await engine.close();
  assert.is(seen.at(-1), 1);
});

test("cancelling while a part is awaited rejects, and frees the slot", async () => {
  const engine = await open();
  const abort = new AbortController();
  const { parts } = await engine.request("completion", endless, abort.signal);
  await parts?.next();
  setTimeout(() => abort.abort(), 5);
  await fails("CANCELLED", async () => {
    for await (const _ of parts ?? []);
  });
  while ((await engine.metrics()).busy_slots > 0);
  await fails("CANCELLED", () => engine.request("completion", endless, abort.signal));
  await engine.close();
});

test("a stream that is left before its first part frees the slot", async () => {
  const engine = await open();
  const { parts } = await engine.request("completion", endless);
  await parts?.return?.();
  assert.equal(await parts?.next(), { done: true, value: undefined });
  while ((await engine.metrics()).busy_slots > 0);
  await engine.close();
});

test("numbers that the engine would read as others are refused", async () => {
  await fails("INVALID_ARGUMENT", () => Engine.open({ path: demoModelPath, id: "x", ctxSize: 1e12 }));
  await fails("INVALID_ARGUMENT", () => Engine.open({ path: demoModelPath, id: "x", parallel: 1.5 }));
});

test("a generation advances between any two captures, however fast they come", async () => {
  const engine = await open();
  const { parts } = await engine.request("completion", endless);
  await parts?.next();
  const before = await engine.metrics();
  let captures = 0;
  let generating = true;
  const loops = Array.from({ length: 4 }, async () => {
    for (; generating; captures++) {
      await engine.capture({ prompt: "The capital of France is", layers: [0], maxTokens: 16, nextTop: 1 });
    }
  });
  for await (const _ of parts ?? []);
  const during = captures;
  generating = false;
  const { decodes } = await engine.metrics();
  await Promise.all(loops);
  await engine.close();
  const steps = decodes - before.decodes;
  assert.ok(during > 0);
  // One before each step; not twice as many, whatever was under way or not yet counted on either side.
  assert.ok(during < 1.5 * steps, `${during} captures, ${steps} steps`);
});

test("close ends what runs, is idempotent, and refuses what comes later", async () => {
  const engine = await open();
  const { parts } = await engine.request("completion", endless);
  await parts?.next();
  const reading = fails("CLOSED", async () => {
    for await (const _ of parts ?? []);
  });
  const waiting = fails("CLOSED", () => engine.request("completion", { ...endless, stream: false }));
  await Promise.all([engine.close(), engine.close(), reading, waiting]);
  await fails("CLOSED", () => engine.request("metrics", {}));
  await fails("CLOSED", () => engine.capture({ prompt: "a", layers: [0], maxTokens: 8, nextTop: 1 }));
});

test("closing in the middle of a prompt's scores refuses or ends them, and what is asked wrongly is refused", async () => {
  const engine = await open();
  const tokens = Int32Array.from({ length: 400 }, () => 300);
  const { logProbabilities, topIds, pieces } = await engine.score({ tokens: tokens.subarray(0, 3), top: 2 });
  assert.equal([logProbabilities.length, topIds.length, pieces.has(300)], [2, 4, true]);
  assert.is((await engine.score({ tokens: tokens.subarray(0, 1), top: 2 })).logProbabilities.length, 0);
  await fails("INVALID_ARGUMENT", () => engine.score({ tokens, top: -1 }));
  await fails("INVALID_ARGUMENT", () => engine.score({ tokens: Int32Array.of(1_000_000), top: 1 }));
  await fails("TOKEN_LIMIT", () =>
    engine.score({ tokens: new Int32Array(engine.info.slotContext + 1), top: 1 }),
  );
  const scores = Promise.allSettled(Array.from({ length: 4 }, () => engine.score({ tokens, top: 2 })));
  await engine.close();
  for (const score of await scores) {
    if (score.status === "rejected") assert.is((score.reason as { code?: string }).code, "CLOSED");
    else assert.is(score.value.logProbabilities.length, 399);
  }
  await fails("CLOSED", () => engine.score({ tokens, top: 2 }));
});

for (const step of ["loading", "loaded", "streaming", "capturing", "closed"]) {
  test(`a process that ends while ${step} ends cleanly`, async () => {
    const child = spawn(process.execPath, [...module, fixture, engineModule, step, demoModelPath], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let errors = "";
    child.stderr.on("data", (text) => {
      errors += text;
    });
    child.stdout.resume();
    const [code, signal] = await once(child, "exit");
    assert.equal([code, signal], [0, null], errors);
  });
}

test("a worker thread may end in the middle of a stream", async () => {
  const worker = new Worker(new URL("./fixtures/worker.mjs", import.meta.url), {
    workerData: { path: demoModelPath, body: endless },
  });
  const [code] = await once(worker, "exit");
  assert.is(code, 3);
});

test.run();
