/** How a worker's end becomes an outcome, on programs of a few lines in its place. */
import { openSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { devNull, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Config, Progress } from "../../src/contracts/index.js";
import { type Outcome, runWorker, type WorkerRun } from "../../src/lab/supervisor.js";
import { withTime } from "../support/with-time.js";
import { gone } from "./harness.js";

let folder: string;
const log = openSync(devNull, "w");
test.before(async () => {
  folder = await mkdtemp(join(tmpdir(), "tapline-supervisor-"));
});
test.after(() => rm(folder, { recursive: true, force: true }));

const config = { operation: "inspect" } as unknown as Config;
let count = 0;

/** Runs a program in a worker's role: `task` is its task, `tell` answers. */
async function run(
  body: string,
  more: Partial<WorkerRun> = {},
): Promise<{ outcome: Outcome; progress: Progress[] }> {
  const entry = join(folder, `${count++}.mjs`);
  await writeFile(
    entry,
    `const tell = (message) => new Promise((done) => process.send(message, undefined, undefined, done));
     const hang = () => setInterval(() => {}, 1000);
     process.once("message", async (task) => { ${body} });`,
  );
  const progress: Progress[] = [];
  const outcome = await runWorker({
    config,
    folder,
    log,
    onProgress: (one) => progress.push(one),
    signal: new AbortController().signal,
    library: folder,
    program: { entry, execArgv: [] },
    ...more,
  });
  return { outcome, progress };
}

const failure = (message: string) => ({ kind: "failure", message });

test("a result, a failure, and the progress reports before them", async () => {
  const told = await run(`
    await tell({ type: "progress", progress: { stage: "a", done: 1, total: 2 } });
    await tell({ type: "result", result: { operation: task.config.operation, folder: task.folder, load: task.load } });
    await tell({ type: "progress", progress: { stage: "late", done: 2, total: 2 } });
    hang();`);
  assert.equal(told.progress, [{ stage: "a", done: 1, total: 2 }]);
  assert.equal(told.outcome, {
    kind: "result",
    result: { operation: "inspect", folder, load: {} },
  } as unknown as Outcome);
  const failed = await run(`await tell({ type: "failure", message: "No." }); hang();`);
  assert.equal(failed.outcome, failure("No."));
});

test("only the first result or failure counts, whatever follows immediately", async () => {
  if (process.platform === "win32") return;
  // Written in one piece, so that the rest has arrived before the process can be ended. Its channel is its fourth file.
  const says = (...messages: object[]) => `
    const { writeSync } = await import("node:fs");
    writeSync(3, ${JSON.stringify(messages.map((message) => `${JSON.stringify(message)}\n`).join(""))});
    hang();`;
  const progress = (stage: string) => ({ type: "progress", progress: { stage, done: 0, total: 0 } });
  const result = { type: "result", result: { of: "it" } };
  const both = await run(says(result, { type: "failure", message: "No." }, progress("late")));
  assert.equal(both as object, { outcome: { kind: "result", result: { of: "it" } }, progress: [] });
  // Stopped while its result is on its way.
  const stop = new AbortController();
  const told: string[] = [];
  const { outcome } = await run(says(progress("first"), result, progress("late")), {
    signal: stop.signal,
    onProgress: ({ stage }) => {
      told.push(stage);
      stop.abort();
    },
  });
  assert.equal([outcome, told], [{ kind: "stopped" }, ["first"]]);
});

test("each cause of death has its own sentence", async () => {
  const dies = async (how: string, more: Partial<WorkerRun> = {}) => (await run(how, more)).outcome;
  const killed = (signal: string) => dies(`process.kill(process.pid, "${signal}"); hang();`);
  assert.equal(
    await dies("process.exit(3);"),
    failure("The worker ended with code 3 before it had a result; see its worker.log."),
  );
  assert.equal(
    await dies("process.exit(0);"),
    failure("The worker ended with code 0 before it had a result; see its worker.log."),
  );
  assert.equal(
    await killed("SIGKILL"),
    failure("The worker was killed, most likely because the machine ran out of memory."),
  );
  assert.equal(
    await killed("SIGABRT"),
    failure(
      "The worker aborted, because it ran out of memory or a check in llama.cpp failed; see its worker.log.",
    ),
  );
  for (const signal of ["SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE"]) {
    assert.equal(
      await killed(signal),
      failure(`The worker crashed (${signal}); its worker.log has its last output.`),
    );
  }
  assert.equal(await killed("SIGTERM"), failure("The worker was terminated by SIGTERM."));
});

test("an ended worker is not waited for, even if its child holds the channel", async () => {
  if (process.platform === "win32") return;
  const { outcome } = await run(
    `const { spawn } = await import("node:child_process");
    const stdio = ["ignore", "ignore", "ignore", 3];
    spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio }).once("spawn", () => process.exit(3));`,
    { deadlineMs: 300_000 },
  );
  assert.equal(outcome, failure("The worker ended with code 3 before it had a result; see its worker.log."));
});

test("an abort is attributed to an rpc-server only if one has died", async () => {
  const free = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => free.once("listening", resolve));
  const { port } = free.address() as { port: number };
  await new Promise((resolve) => free.close(resolve));
  const load = { rpc: [{ host: "127.0.0.1", port }] } as unknown as NonNullable<WorkerRun["load"]>;
  const { outcome } = await run(`process.kill(process.pid, "SIGABRT"); hang();`, { load });
  assert.equal(outcome, failure(`The rpc-server 127.0.0.1:${port} was lost while the job was running.`));
  const none = await run(`process.kill(process.pid, "SIGABRT"); hang();`, { load: { rpc: [] } });
  assert.match((none.outcome as { message: string }).message, /^The worker aborted/);
  const other = await run("process.exit(1);", { load });
  assert.match((other.outcome as { message: string }).message, /^The worker ended with code 1/);
});

test("programs that cannot be started, and a signal that came before", async () => {
  const started = await run("", { library: "a\0b" }).catch((error: Error) => error);
  assert.instance(started, Error); // Node refuses it before there is a process
  const { execPath } = process;
  process.execPath = "/nowhere/node";
  try {
    const nowhere = await run("hang();");
    assert.equal(nowhere, {
      outcome: failure("The worker could not be started: spawn /nowhere/node ENOENT."),
      progress: [],
    });
  } finally {
    process.execPath = execPath;
  }
  const { outcome } = await run("hang();", { signal: AbortSignal.abort() });
  assert.equal(outcome, { kind: "stopped" });
});

test("a signal and a deadline end the worker with everything it started", async () => {
  const { spawned } = {
    spawned: `
    const { spawn } = await import("node:child_process");
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
    await tell({ type: "progress", progress: { stage: "started", done: child.pid, total: process.pid } });
    hang();`,
  };
  const stop = new AbortController();
  let pids: number[] = [];
  const onProgress = ({ done, total }: Progress) => {
    pids = [done, total];
    stop.abort();
  };
  assert.equal((await run(spawned, { signal: stop.signal, onProgress })).outcome, { kind: "stopped" });
  assert.is(pids.length, 2);
  for (const pid of pids) await gone(pid);

  const { setTimeout: real } = globalThis;
  for (const [deadlineMs, wanted, told] of [
    [undefined, 1_800_000, "30 minutes"],
    [60_000, 60_000, "1 minutes"],
    [59_500, 59_500, "59.5 seconds"],
  ] as const) {
    const fires: [number, () => void][] = [];
    const caught = (callback: () => void, ms: number) => {
      if (ms === wanted) fires.push([ms, callback]);
      return real(callback, ms);
    };
    let ended: number[] = [];
    await withTime({ setTimeout: caught }, async () => {
      const { outcome } = await run(spawned, {
        ...(deadlineMs !== undefined && { deadlineMs }),
        onProgress: ({ done, total }) => {
          ended = [done, total];
          for (const [, fire] of fires) fire();
        },
      });
      assert.equal(outcome, failure(`The job ran longer than ${told} and was stopped.`));
      assert.is(fires.length, 1);
      for (const pid of ended) await gone(pid);
    });
  }
});

test.run();
