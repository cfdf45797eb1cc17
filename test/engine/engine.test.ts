import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { demoModelPath } from "../../src/models/resolve.js";
import { Engine } from "../../src/native/engine.js";
import { patient, randomMatrix, tensor, writeTinyModel } from "../inference/support/tiny-models.js";
import { module, moduleAt } from "../support/program.js";

const fixture = fileURLToPath(new URL("./fixtures/exit.mjs", import.meta.url));
const engineModule = pathToFileURL(moduleAt("native/engine")).href;
const folder = mkdtempSync(join(tmpdir(), "tapline-engine-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const open = () => Engine.open({ path: demoModelPath, id: "demo", threads: 1, parallel: 2 });
const answer = { prompt: "The", max_tokens: 400, ignore_eos: true, stream: true };

/** More tokens than are made while this process waits for a processor. */
const endless = { ...answer, max_tokens: 16_000 };
const patientPath = join(folder, "patient.gguf");
test.before(() => writeTinyModel(patientPath, patient));
const openPatient = () => Engine.open({ path: patientPath, id: "patient", threads: 1, parallel: 2 });

async function fails(code: string, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    assert.is((error as { code?: string }).code, code);
    return;
  }
  assert.unreachable(`it should have failed with ${code}`);
}

test("refuses a file that isn't a model, and leaves nothing open", async () => {
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
  const engine = await openPatient();
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

test("a stream that is abandoned before its first part frees the slot", async () => {
  const engine = await openPatient();
  const { parts } = await engine.request("completion", endless);
  await parts?.return?.();
  assert.equal(await parts?.next(), { done: true, value: undefined });
  while ((await engine.metrics()).busy_slots > 0);
  await engine.close();
});

test("abandoned streams and refused prompts cost no computation", async () => {
  const engine = await openPatient();
  const idle = async () => {
    for (;;) {
      const { busy_slots, deferred, decodes } = await engine.metrics();
      if (busy_slots === 0 && deferred === 0) return decodes;
    }
  };
  const { parts } = await engine.request("completion", endless);
  await parts?.return?.();
  const left = await idle();
  assert.ok(left < endless.max_tokens, `${left} decodes`);
  const long = "word ".repeat(engine.info.slotContext);
  const prompts = { ...endless, prompt: ["The", long], stream: false };
  const { status, body } = await engine.request("completion", prompts);
  assert.is(status, 400, body);
  const refused = (await idle()) - left;
  assert.ok(refused < endless.max_tokens, `${refused} decodes`);
  await engine.close();
});

test("numbers that the engine would read as others are refused", async () => {
  await fails("INVALID_ARGUMENT", () => Engine.open({ path: demoModelPath, id: "x", ctxSize: 1e12 }));
  await fails("INVALID_ARGUMENT", () => Engine.open({ path: demoModelPath, id: "x", parallel: 1.5 }));
});

test("a generation advances between any two captures, however frequent", async () => {
  const engine = await open();
  const { parts } = await engine.request("completion", answer);
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

test("close ends running work, is idempotent, and refuses later requests", async () => {
  const engine = await openPatient();
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

test("closing ends running prompt scores; invalid requests are refused", async () => {
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

test("an unanswerable body is refused; stream parts count each token once", async () => {
  const engine = await open();
  for (const body of [{ max_tokens: 2 }, { prompt: {} }, { prompt: "a", grammar: "root ::= (" }]) {
    const { status, body: told } = await engine.request("completion", body);
    assert.is(status, 400, told);
    assert.is(JSON.parse(told).error.type, "invalid_request_error");
  }
  const { parts } = await engine.request("completion", { ...answer, max_tokens: 30 });
  let tokens = 0;
  for await (const part of parts ?? []) tokens += part.tokens.reduce((sum, count) => sum + count, 0);
  assert.is(tokens, 30);
  await engine.close();
});

test("an embedding is normalised to 1, or as requested", async () => {
  const engine = await Engine.open({ path: demoModelPath, id: "demo", threads: 1, pooling: "mean" });
  const embed = async (asked: object) => {
    const { status, body } = await engine.request("embeddings", { input: "The capital of France", ...asked });
    assert.is(status, 200, body);
    return JSON.parse(body).data[0].embedding as number[];
  };
  const own = await embed({ embd_normalize: -1 });
  const largest = Math.max(...own.map(Math.abs));
  const sum = own.reduce((all, value) => all + Math.abs(value), 0);
  assert.ok(Math.abs(Math.hypot(...own) - 1) > 0.1, "its own length differs");
  for (const [asked, length] of [
    [{}, Math.hypot(...own)],
    [{ embd_normalize: 2 }, Math.hypot(...own)],
    [{ embd_normalize: 1 }, sum],
    [{ embd_normalize: 0 }, largest / 32_760],
  ] as const) {
    const found = await embed(asked);
    assert.is(found.length, own.length);
    for (const [i, value] of found.entries()) {
      const expected = own[i]! / length;
      const gap = Math.abs(value - expected);
      assert.ok(gap <= 1e-4 * (largest / length), `${JSON.stringify(asked)} ${i}: ${value}, not ${expected}`);
    }
  }
  await engine.close();
});

test("a capture takes as many tokens as it may, and not one more", async () => {
  const engine = await open();
  const capture = (maxTokens: number) =>
    engine.capture({ prompt: "The capital of France is", layers: [1], maxTokens, nextTop: 1 });
  const { length } = (await capture(100)).tokenIds;
  assert.is((await capture(length)).tokenIds.length, length);
  await fails("TOKEN_LIMIT", () => capture(length - 1));
  await engine.close();
});

test("non-finite prompt scores are refused, and the next prompt's are right", async () => {
  const [hidden, vocabulary, damaged] = [32, 320, 7];
  const embeddings = randomMatrix("token_embd.weight", hidden * vocabulary);
  embeddings.fill(Number.POSITIVE_INFINITY, damaged * hidden, (damaged + 1) * hidden);
  const path = join(folder, "damaged.gguf");
  await writeTinyModel(path, {
    tensors: [
      tensor("token_embd.weight", [hidden, vocabulary], embeddings),
      tensor("output.weight", [hidden, vocabulary], randomMatrix("output", hidden * vocabulary)),
    ],
  });
  const engine = await Engine.open({ path, id: "x", threads: 1, parallel: 1, ctxSize: 64 });
  const score = (...tokens: number[]) => engine.score({ tokens: Int32Array.from(tokens), top: 1 });
  const sound = await score(40, 41);
  assert.ok(sound.logProbabilities.every((value) => value < 0 && Number.isFinite(value)));
  await fails("COMPUTE", () => score(40, 41, 42, damaged, 43));
  assert.equal(await score(40, 41), sound);
  // Nor are there candidates of a row that has none.
  const { body } = await engine.request("completion", { prompt: [40, damaged], max_tokens: 1 }, undefined, {
    watch: { layers: [0], positions: "all", norms: true, lensTop: 1 },
  });
  const { prompt, tokens } = JSON.parse(body).choices[0].tapline;
  for (const entry of [...prompt, ...tokens]) assert.equal(Object.keys(entry.lens ?? {}), []);
  await engine.close();
});

test("where captures would read another model, the engine says why there are none", async () => {
  for (const options of [
    { ropeScaling: "linear" as const },
    { ropeScale: 2 },
    { ropeFreqBase: 20_000 },
    { yarnOriginalCtx: 64 },
  ]) {
    const engine = await Engine.open({ path: demoModelPath, id: "x", threads: 1, ctxSize: 64, ...options });
    const { captures, noCaptureReason } = engine.info;
    await engine.close();
    const reason =
      "Captures are not possible with changed RoPE settings; serve without --rope-scaling, --rope-scale, --rope-freq-base and --yarn-orig-ctx.";
    assert.equal([captures, noCaptureReason], [false, reason], JSON.stringify(options));
  }
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
    workerData: { path: patientPath, body: endless },
  });
  const [code] = await once(worker, "exit");
  assert.is(code, 3);
});

test.run();
