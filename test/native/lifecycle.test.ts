import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Model, release } from "../../src/native/index.js";
import { module, moduleAt } from "../support/program.js";
import { demo, logitsOf, someTokens } from "./demo-model.js";

const native = pathToFileURL(moduleAt("native/index")).href;
const fixture = (name: string) => fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url));

test("close waits for what runs, and may be called again and again", async () => {
  const model = await Model.open(demo);
  const context = await model.createContext({ threads: 1, nCtx: 256 });
  const tokens = someTokens(200, model.info.nVocab);
  const done: string[] = [];
  const work = [
    model.tokenize("some text").then(() => done.push("tokenize")),
    context.advance({ tokens, layers: [0, 7] }).then(() => done.push("advance")),
    context.features({ sequences: [tokens], layers: [3] }).then(() => done.push("features")),
    context.reset().then(() => done.push("reset")),
  ];
  const closing = [model.close(), model.close(), context.close()];
  await Promise.all(closing).then(() => done.push("close"));
  await Promise.all(work);
  assert.equal(done.slice(0, 4).sort(), ["advance", "features", "reset", "tokenize"]);
  assert.is(done[4], "close");
  await model.close();
  await context.close();
});

test("rows outlive their context, and are gone when they are released", async () => {
  const model = await Model.open(demo);
  const context = await model.createContext({ threads: 1, nCtx: 64 });
  const { layers } = await context.advance({
    tokens: someTokens(5, model.info.nVocab),
    layers: [2],
    lensTopK: 1,
  });
  const { states, norms } = layers[0]!;
  await context.close();
  await model.close();
  const rows = states!.data;
  assert.is(rows.length, 5 * model.info.nEmbd);
  const first = rows.subarray(0, model.info.nEmbd);
  assert.ok(Math.abs(Math.hypot(...first) / norms[0]! - 1) < 1e-5);
  release(rows);
  assert.is(rows.byteLength, 0);
  assert.is(first.byteLength, 0);
  release(rows);
});

test("a model that is closed while it creates a context waits for it", async () => {
  const model = await Model.open(demo);
  const creating = model.createContext({ threads: 1, nCtx: 64 });
  await model.close();
  const context = await creating;
  await context.close();
});

test("one file opened twice is two models", async () => {
  const [first, second] = await Promise.all([Model.open(demo), Model.open(demo)]);
  await first.close();
  const context = await second.createContext({ threads: 1, nCtx: 64 });
  assert.is(
    (await logitsOf(context, { tokens: Int32Array.of(1, 2), layers: [] })).length,
    second.info.nVocab,
  );
  await second.close();
});

test("progress while loading ends at 1", async () => {
  const seen: number[] = [];
  const model = await Model.open(demo, { onProgress: (fraction) => seen.push(fraction) });
  assert.is(seen.at(-1), 1);
  assert.equal(
    seen,
    [...seen].sort((a, b) => a - b),
  );
  await model.close();
});

test("a load that is cancelled in its middle ends there, as what was cancelled", async () => {
  // It is cancelled when it first tells how far it is, which may be too late: most are not.
  for (let attempt = 0; attempt < 200; attempt++) {
    const stop = new AbortController();
    const code = await Model.open(demo, { signal: stop.signal, onProgress: () => stop.abort() }).then(
      (model) => model.close(),
      (error) => error.code,
    );
    if (code === undefined) continue;
    assert.is(code, "CANCELLED");
    return;
  }
  assert.unreachable("no load was cancelled");
});

/**
 * So many cycles in a row leave the process at most so many MiB larger. What is kept for good grows it every time; what
 * the allocator holds back for a while, only now and then: one of five rows without growth is enough.
 */
async function settles(cycles: number, cycle: () => Promise<void>, mib: number): Promise<void> {
  const grown: number[] = [];
  do {
    const before = process.memoryUsage().rss;
    for (let i = 0; i < cycles; ++i) await cycle();
    grown.push((process.memoryUsage().rss - before) / 2 ** 20);
    assert.ok(grown.length <= 5, `the process grew by ${grown.map((each) => each.toFixed(1))} MiB`);
  } while (grown.at(-1)! >= mib);
}

/** A sanitizer keeps freed blocks for a while, to see who still uses them: it has a memory of its own. */
const testMemory = process.env.TAPLINE_SANITIZED === undefined ? test : test.skip;

testMemory("opening and closing many times leaks nothing", async () => {
  const cycle = async () => {
    const model = await Model.open(demo);
    const context = await model.createContext({ threads: 1, nCtx: 256, maxSequences: 4 });
    const tokens = someTokens(64, model.info.nVocab);
    await context.advance({ tokens, layers: [0, 5], lensTopK: 5, nextTopK: 5, logits: true });
    await context.features({ sequences: [tokens, tokens], layers: [1] });
    await context.advance({ tokens: Int32Array.of(-1), layers: [0] }).catch(() => undefined);
    await model.close();
  };
  for (let i = 0; i < 8; ++i) await cycle();
  // One cycle holds some 15 MiB; were a twentieth of it kept, 40 would keep 30.
  await settles(40, cycle, 30);
});

testMemory("results are given back to the garbage collector", async () => {
  const model = await Model.open(demo);
  const context = await model.createContext({ threads: 1, nCtx: 256 });
  const tokens = someTokens(250, model.info.nVocab);
  const layers = Array.from({ length: model.info.nLayer }, (_, i) => i);
  const capture = async () => {
    await context.reset();
    await context.advance({ tokens, layers });
  };
  for (let i = 0; i < 20; ++i) await capture();
  // 120 captures return 120 MiB.
  await settles(120, capture, 48);
  await model.close();
});

const stages = [
  "load",
  "load-progress",
  "open",
  "context",
  "features",
  "advance",
  "close",
  "throw",
  "by itself",
];
for (const stage of stages) {
  test(`a process that ends in the middle (${stage}) ends without finishing, with its own code`, async () => {
    const child = spawn(process.execPath, [...module, fixture("exit-during.mjs"), native, stage, demo], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    let errors = "";
    // What it has begun would take far longer: one that waits for it is ended from outside.
    let timer: NodeJS.Timeout | undefined;
    child.stdout.on("data", (chunk) => {
      output += chunk;
      timer ??= setTimeout(() => child.kill("SIGKILL"), 300_000);
    });
    child.stderr.on("data", (chunk) => {
      errors += chunk;
    });
    const [code, signal] = await once(child, "close");
    clearTimeout(timer);
    assert.is(output, "leaving\n");
    assert.is(signal, null);
    assert.is(code, 7, errors);
    assert.is(errors, "");
  });
}

function startWorker(endless: boolean): Worker {
  return new Worker(fixture("worker.mjs"), { workerData: { path: demo, endless } });
}

test("several worker threads use the addon at once", async () => {
  const workers = [startWorker(false), startWorker(false), startWorker(false)];
  const results = await Promise.all(
    workers.map(async (worker) => {
      const [[values], [code]] = await Promise.all([once(worker, "message"), once(worker, "exit")]);
      assert.is(code, 0);
      return values as number[];
    }),
  );
  assert.is(results[0]?.length, 8);
  assert.equal(results[1], results[0]);
  assert.equal(results[2], results[0]);
});

test("the addon survives worker threads that are terminated during a call", async () => {
  const workers = [startWorker(true), startWorker(true)];
  await Promise.all(workers.map((worker) => once(worker, "message")));
  await Promise.all(workers.map((worker) => worker.terminate()));
  const model = await Model.open(demo);
  assert.ok((await model.tokenize("still here")).length > 0);
  await model.close();
});

test.run();
