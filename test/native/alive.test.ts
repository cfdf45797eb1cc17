import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Engine } from "../../src/native/engine.js";
import { Context, Model } from "../../src/native/index.js";
import { trainProbe } from "../../src/native/train.js";
import { alive, nothing, nothingIsLeft, rawAddon } from "../support/alive.js";
import { demo, rejects, scratch, someTokens } from "./demo-model.js";

interface RawModel {
  createContext(options: object): Promise<unknown>;
  close(): Promise<void>;
}

test("live native objects are counted, and closing removes them", async () => {
  const model = await Model.open(demo, { onProgress: () => {} });
  const context = await model.createContext({ threads: 1, nCtx: 64, maxSequences: 4 });
  assert.equal(alive(), { ...nothing, models: 1, contexts: 1 });
  const tokens = someTokens(4, model.info.nVocab);
  const running = context.features({ sequences: [tokens], layers: [0], onProgress: () => {} });
  while (alive().operations === 0) await Promise.resolve();
  assert.equal(alive(), { ...nothing, models: 1, contexts: 1, operations: 1, kept: 1 });
  await running;
  assert.equal(alive(), { ...nothing, models: 1, contexts: 1 });
  await model.close();
  await nothingIsLeft();
});

test("a model remembers no context that was closed", async () => {
  const model = await Model.open(demo);
  const [first, second, open] = await Promise.all(
    Array.from({ length: 3 }, () => model.createContext({ threads: 1, nCtx: 64 })),
  );
  await first?.close();
  await second?.close();
  const closedByModel: unknown[] = [];
  const { close } = Context.prototype;
  Context.prototype.close = function (this: Context) {
    closedByModel.push(this);
    return close.call(this);
  };
  try {
    await model.close();
  } finally {
    Context.prototype.close = close;
  }
  assert.is(closedByModel.length, 1);
  assert.is(closedByModel[0], open);
  await nothingIsLeft();
});

test("what fails, is cancelled or is refused leaves nothing", async () => {
  const missing = join(scratch(), "none.gguf");
  await rejects(Model.open(missing, { onProgress: () => {} }), "MODEL_LOAD");
  const engine = await Engine.open({ path: missing, id: "x", onProgress: () => {} }).catch(
    ({ code }) => code,
  );
  assert.is(engine, "MODEL_LOAD");
  const model = await Model.open(demo);
  const context = await model.createContext({ threads: 1, nCtx: 64, maxSequences: 4 });
  const abort = new AbortController();
  const tokens = someTokens(16, model.info.nVocab);
  const running = context.features({
    sequences: Array.from({ length: 20_000 }, () => tokens),
    layers: [0],
    signal: abort.signal,
    onProgress: () => abort.abort(),
  });
  await rejects(running, "CANCELLED");
  await rejects(context.advance({ tokens, layers: [99] }), "LAYER_OUT_OF_RANGE");
  const unknown = { features: new Float32Array(8).fill(Number.NaN), train: Uint8Array.of(1, 1, 1, 0) };
  const probe = await trainProbe({ ...unknown, labels: Uint8Array.of(0, 1, 0, 1) }).catch(({ code }) => code);
  assert.is(probe, "INVALID_ARGUMENT");
  await model.close();
  // The same without TypeScript's checks in front: the context's constructor throws.
  const raw = rawAddon<{ openModel(options: object): Promise<RawModel> }>();
  const other = await raw.openModel({ path: demo });
  const refused = await other.createContext({ nCtx: 64, threads: 100_000 }).catch((error) => error.code);
  assert.is(refused, "INVALID_ARGUMENT");
  await other.close();
  await nothingIsLeft();
});

test("an engine that streamed, captured and was left in the middle leaves nothing", async () => {
  const engine = await Engine.open({ path: demo, id: "demo", threads: 1, parallel: 2, onProgress: () => {} });
  assert.is(alive().engines, 1);
  const endless = { prompt: "The", max_tokens: 400, ignore_eos: true, stream: true };
  const first = await engine.request("completion", endless);
  await first.parts?.next();
  await engine.capture({ prompt: "The capital", layers: [0], maxTokens: 16, nextTop: 1 });
  await engine.request("completion", endless); // never read, never left
  await engine.close();
  await nothingIsLeft();
});

test("threads that end in the middle leave nothing, and give everything back themselves", async () => {
  const fixture = fileURLToPath(new URL("./fixtures/worker.mjs", import.meta.url));
  const workers = [0, 1].map(() => new Worker(fixture, { workerData: { path: demo, endless: true } }));
  await Promise.all(workers.map((worker) => once(worker, "message")));
  assert.ok(alive().models >= 2, "the other threads' models are not counted");
  await Promise.all(workers.map((worker) => worker.terminate()));
  await nothingIsLeft();
});

test.run();
