/** One job from its task to its response, in this process: its progress reports, and the result of each fault. */
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Config, checkSubmission, type Progress, type Result } from "../../src/contracts/index.js";
import type { WorkerTask } from "../../src/lab/worker/messages.js";
import { runJob, throttled } from "../../src/lab/worker/run-job.js";
import { judgeMemory } from "../../src/models/memory.js";
import { estimateMemory } from "../../src/native/index.js";
import { demo } from "../native/demo-model.js";
import { withTime } from "../support/with-time.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-run-job-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const submission = {
  operation: "inspect",
  model: "demo",
  prompt: "The capital of France is",
  layers: [5, 2],
};

const comparison = {
  ...{
    operation: "compare",
    model: "demo",
    prompt: "a",
    layers: [1],
    intervention: "ablate",
    strengths: [1],
  },
};

/** Runs a job; its output on standard error comes with its response. */
async function run(config: object, more: Partial<WorkerTask> = {}) {
  const told: Progress[] = [];
  let said = "";
  const { write } = process.stderr;
  process.stderr.write = ((text: string) => {
    said += text;
    return true;
  }) as typeof write;
  try {
    const answer = await runJob(
      {
        ...{ config: config as Config, folder: mkdtempSync(join(folder, "job-")) },
        ...{ spawnedAt: Date.now(), load: {}, ...more },
      },
      (progress) => told.push(progress),
    );
    return { answer, told, said };
  } finally {
    process.stderr.write = write;
  }
}

const resultOf = ({ answer }: Awaited<ReturnType<typeof run>>): Result => {
  assert.is(answer.type, "result", JSON.stringify(answer));
  return (answer as { result: Result }).result;
};

const failureOf = async (config: object, more: Partial<WorkerTask> = {}) => {
  const { answer, said } = await run(config, more);
  assert.is(answer.type, "failure");
  return { message: (answer as { message: string }).message, said };
};

test("a result names its blocks, the seconds per stage and the files written", async () => {
  const at = (ms: number, spawnedAt: number) =>
    withTime({ "Date.now": () => ms }, () => run(checkSubmission(submission), { spawnedAt }));
  const done = await at(1_700_000_005_000, 1_700_000_000_000);
  const { provenance, artifacts } = resultOf(done);
  assert.equal([provenance.layers, artifacts], [[5, 2], ["activations.npz"]]);
  const { seconds } = provenance;
  assert.is(seconds.process, 5);
  assert.ok(seconds.model! > 0 && seconds.compute! > 0);
  assert.not("download" in seconds);
  assert.is(done.told[0]!.stage, "addon");
  assert.equal(
    done.told.filter(({ stage }, i) => stage !== done.told[i - 1]?.stage).map(({ stage }) => stage),
    ["addon", "model", "capture", "artifact"],
  );
  // The clock may have been set back since the process began.
  const early = await at(1_700_000_000_000, 1_700_000_000_001);
  assert.is(resultOf(early).provenance.seconds.process, 0);
  // Of a sweep that names no blocks, all that it found.
  const sweep = { operation: "patch_sweep", model: "demo", clean: "a b", corrupted: "a c", positions: [-1] };
  assert.equal(resultOf(await run(checkSubmission(sweep))).provenance.layers, [0, 1, 2, 3, 4, 5, 6, 7]);
});

test("a refusal gives its own sentence; other faults give their first line and are logged", async () => {
  const config = checkSubmission(submission);
  const absent = await failureOf({ ...config, model: join(folder, "absent.gguf") });
  assert.match(absent.message, /^No model found at .*absent\.gguf/);
  const damaged = join(folder, "damaged.gguf");
  writeFileSync(damaged, "GGUF and nothing more");
  const unread = await failureOf({ ...config, model: damaged });
  assert.not.match(unread.message, /^The worker failed/);
  assert.match(unread.message, /damaged\.gguf/);
  for (const { said } of [absent, unread]) assert.is(said, "");
  const fails = (fault: unknown) =>
    failureOf({
      get model() {
        throw fault;
      },
    });
  const broken = await fails(new TypeError("It broke.\nbadly"));
  assert.is(broken.message, "The worker failed: It broke; its worker.log has the details.");
  assert.match(broken.said, /^TypeError: It broke\.\nbadly\n {4}at /);
  assert.ok(broken.said.endsWith("\n"));
  const thrown = await fails("a text");
  assert.equal(thrown, {
    message: "The worker failed: a text; its worker.log has the details.",
    said: "a text\n",
  });
  assert.is((await fails(null)).message, "The worker failed: null; its worker.log has the details.");
});

test("a model too large for free memory is refused, warned about or loaded on request", async () => {
  const config = checkSubmission(submission);
  const { availableMemory, constrainedMemory } = process;
  const { size } = statSync(demo);
  const withMemory = async (free: number, total: number, load: WorkerTask["load"] = {}, asked = config) => {
    process.availableMemory = () => free;
    process.constrainedMemory = () => total;
    try {
      return await run(asked, { load });
    } finally {
      Object.assign(process, { availableMemory, constrainedMemory });
    }
  };
  // Weights of a quarter of what is free are looked at, smaller ones are not.
  const refused = await withMemory(4 * size, 1000);
  assert.match(
    (refused.answer as { message: string }).message,
    /^The model needs about \d+ MB \(weights .*\), but there is only 1 MB in total; /,
  );
  assert.is(refused.said, "");
  // Laid out is a context of the prompt's tokens and those that are generated.
  const tried = { ...comparison, max_input_tokens: 372, max_tokens: 128 };
  const laid = await withMemory(4 * size, 1000, {}, checkSubmission(tried));
  const layout = await estimateMemory({ path: demo, ctxSize: 500, parallel: 1, embeddings: false });
  const { sentence } = judgeMemory(layout, { free: 4 * size, total: 1000 });
  assert.is((laid.answer as { message: string }).message, sentence);
  resultOf(await withMemory(4 * size + 1, 1000));
  resultOf(await withMemory(1000, 1000, { force: true }));
  const tight = await withMemory(1000, 1e9);
  resultOf(tight);
  assert.match(tight.said, /^The model needs about .* 1 MB of 1\.0 GB is free: .*\n$/);
});

test("a second model that an operation opens is checked against the memory left by then", async () => {
  const { availableMemory, constrainedMemory } = process;
  const { size } = statSync(demo);
  const body = {
    operation: "explain",
    model: "demo",
    verbaliser: "demo",
    prompt: "a b",
    layer: 1,
    controls: false,
  };
  const asked = checkSubmission({
    ...body,
    template: "The capital of Japan",
    marker: " Japan",
    description_tokens: 1,
  });
  const after = async (free: number, load: WorkerTask["load"] = {}) => {
    let times = 0;
    process.availableMemory = () => (times++ === 0 ? 1e15 : free);
    process.constrainedMemory = () => 1000;
    try {
      return await run(asked, { load });
    } finally {
      Object.assign(process, { availableMemory, constrainedMemory });
    }
  };
  const { answer } = await after(size);
  assert.match(
    (answer as { message: string }).message,
    /^The model needs about \d+ MB \(weights .*\), but there is only 1 MB in total; /,
  );
  resultOf(await after(size, { force: true }));
});

test("progress reports new stages immediately, steps of a stage after a tenth of a second", () => {
  let ms = 1000;
  withTime({ "performance.now": () => ms }, () => {
    const told: string[] = [];
    const tell = throttled(({ stage, done }) => told.push(`${stage} ${done}`));
    const at = (time: number, stage: string, done: number) => {
      ms = time;
      tell({ stage, done, total: 9 });
    };
    at(0, "a", 0);
    at(99.9, "a", 1);
    at(100, "a", 2);
    at(199, "a", 3);
    at(199, "b", 0);
    at(200, "b", 1);
    at(298, "b", 2);
    at(299, "b", 3);
    at(299, "a", 4);
    assert.equal(told, ["a 0", "a 2", "b 0", "b 3", "a 4"]);
  });
});

test.run();
