/** The Lab's limit on the duration of a job, made tiny: parts do not have it, other jobs do. */
// Runs alone: it changes a limit and the environment.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { computePart } from "../../src/cli/compute-part.js";
import { runExperiment } from "../../src/cli/run-experiment.js";
import { limits } from "../../src/contracts/limits.js";
import { startLab } from "../../src/lab/index.js";
import { capturing } from "./in-process.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-deadline-"));
process.env.TAPLINE_HOME = join(folder, "home");
const data = join(folder, "texts.txt");
writeFileSync(data, Array.from({ length: 6 }, (_, n) => `The capital of number ${n} is`).join("\n"));

// No worker starts within a millisecond.
const seconds = 0.001;
const { worker_deadline_seconds } = limits;
const setDeadline = (value: number) => Object.assign(limits, { worker_deadline_seconds: value });
test.before.each(() => void setDeadline(seconds));
test.after.each(() => void setDeadline(worker_deadline_seconds));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const extract = (lab: string, settings: object) =>
  runExperiment({
    ...{ operation: "extract", model: "demo", lab, out: false, signal: new AbortController().signal },
    settings: { data, layers: [2], ...settings },
    ...{ onStage: () => {}, onProgress: () => {} },
  });
const failure = (work: Promise<unknown>) =>
  work.then(
    () => assert.unreachable("it completed") as never,
    (error: Error) => error.message,
  );
const late =
  /^(The job ran longer than 0\.001 seconds|Job [0-9a-f]{32} is still (queued|running) after 0\.001 s)/;

test("a part in a temporary Lab has no deadline, a whole extraction does", async () => {
  const out = join(folder, "rows");
  await extract("new", { out, shard: [0, 2] });
  assert.is(JSON.parse(readFileSync(join(out, "index-0-of-2.json"), "utf8")).complete, true);
  assert.match(await failure(extract("new", { out: join(folder, "whole") })), late);
});

test("a part of another experiment has no deadline, nor has its worker", async () => {
  const out = join(folder, "patched");
  const pairs = [
    { clean: "The capital of France is", corrupted: "The capital of Japan is" },
    { clean: "The capital of Italy is", corrupted: "The capital of Spain is" },
  ];
  const settings = { model: "demo", pairs, layers: [2], positions: [-1] };
  const { stdout } = await capturing(() =>
    computePart("patch_sweep", settings, [1, 2], { out, json: true, quiet: true }),
  );
  assert.is(JSON.parse(stdout).file, "part-1-of-2.json");
  assert.ok(existsSync(join(out, "part-1-of-2.json")));
});

test("a part in a Lab that others use has that Lab's deadline", async () => {
  const service = await startLab({ port: 0, home: join(folder, "lab"), backend: "cpu" });
  try {
    assert.match(await failure(extract(service.url, { out: join(folder, "shared"), shard: [0, 2] })), late);
  } finally {
    await service.close();
  }
});

test.run();
