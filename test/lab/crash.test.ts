import { readdirSync, readFileSync, statSync } from "node:fs";
import { mkdtemp, rename, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Job } from "../../src/contracts/index.js";
import { demoModelPath } from "../../src/models/resolve.js";
import { writeTinyModel } from "../inference/support/tiny-models.js";
import { demoInspect, gone, type Harness, openHarness, setMeddle } from "./harness.js";

let harness: Harness;
test.before(async () => {
  harness = await openHarness();
});
test.after(() => harness.close());

async function runMeddled(meddle: string | undefined, body: object = demoInspect): Promise<Job> {
  setMeddle(meddle, harness.home);
  return harness.finished((await harness.submit(body)).id);
}

function files(id: string): string[] {
  return readdirSync(join(harness.lab.folder, id)).sort();
}

test("any death of the worker gives one sentence, no partial file, and the next job runs", async () => {
  const deaths: [string, RegExp][] = [
    ["SIGKILL:capture", /was killed, most likely because the machine ran out of memory/],
    ["SIGABRT:model", /aborted/],
    ["SIGSEGV:capture", /crashed \(SIGSEGV\)/],
    ["SIGTERM:addon", /was terminated by SIGTERM/],
    ["exit:artifact", /ended with code 3 before it had a result/],
    ["throw:capture", /ended with code 1 before it had a result/],
  ];
  for (const [meddle, expected] of deaths) {
    const job = await runMeddled(meddle);
    assert.is(job.status, "failed", meddle);
    assert.match(job.error as string, expected);
    assert.not.match(job.error as string, "\n");
    assert.ok(job.error?.endsWith("."), job.error);
    assert.equal(files(job.id), ["job.json", "worker.log"], meddle);
  }
  assert.is((await runMeddled(undefined)).status, "completed");
});

test("a worker that runs out of heap gives one sentence", async () => {
  setMeddle("heap:capture", harness.home);
  process.env.NODE_OPTIONS += " --max-old-space-size=64";
  const job = await harness.finished((await harness.submit(demoInspect)).id);
  assert.is(job.status, "failed");
  assert.match(job.error as string, /aborted, because it ran out of memory/);
  assert.match(readFileSync(join(harness.lab.folder, job.id, "worker.log"), "utf8"), /heap/);
});

test("a row that an edit sets to zero, under a norm with epsilon 0, gives one sentence", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tapline-epsilon-"));
  try {
    const model = join(folder, "epsilon-0.gguf");
    await writeTinyModel(model, { metadata: { "qwen3.attention.layer_norm_rms_epsilon": { f32: 0 } } });
    const job = await runMeddled(undefined, {
      ...{ operation: "compare", model, prompt: "a text", layers: [0], intervention: "scale" },
      ...{ strengths: [1, 0], max_tokens: 2 },
    });
    assert.is(job.status, "failed");
    assert.is(
      job.error,
      "At strength 0 the model's probabilities for prompt are not finite; the change overflows the model's arithmetic, " +
        "or leaves an activation of zeros that a norm with epsilon 0 divides by 0.",
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("a model with non-finite numbers fails every job with one sentence", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tapline-nan-"));
  const make = async (name: string, from: number) => {
    const bytes = readFileSync(demoModelPath);
    bytes.fill(0xff, bytes.length - from, bytes.length - from + 4); // NaN in float32 and float16
    await writeFile(join(folder, name), bytes);
    return join(folder, name);
  };
  // The file ends with the last block's weights and the final norm, 128 numbers in float32.
  const head = await make("head.gguf", 4);
  const block = await make("block.gguf", 4 * 128 + 4);
  const texts = ["a", "b", "c", "d", "e", "f", "g", "h"];
  const examples = texts.map((text, i) => ({ text, label: i % 2, split: i < 4 ? "train" : "test" }));
  const compare = { operation: "compare", prompt: "a", max_tokens: 2 };
  const damaged = "; the model file may be damaged.";
  const faults: [object, string][] = [
    [{ ...demoInspect, model: head }, `The model's probabilities are not finite${damaged}`],
    [
      { ...demoInspect, model: block, layers: [7] },
      `The output of block 7 is not finite at token 0${damaged}`,
    ],
    [{ ...compare, model: head }, `The model's probabilities for prompt are not finite${damaged}`],
    [
      { ...compare, model: block, prompts: ["a", "b"], intervention: "patch", donor_prompt: "c" },
      `The model's probabilities for prompts[0] are not finite${damaged}`,
    ],
    [
      { operation: "probe", model: block, layers: [7], examples },
      `The output of block 7 is not finite at the last token of text 0${damaged}`,
    ],
  ];
  for (const [body, expected] of faults) {
    const job = await runMeddled(undefined, body);
    assert.is(job.status, "failed", expected);
    assert.is(job.error, expected);
  }
  await rm(folder, { recursive: true });
});

test("damaged and missing models fail the job with one sentence", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tapline-broken-"));
  const make = async (name: string, bytes: Buffer) => {
    await writeFile(join(folder, name), bytes);
    return join(folder, name);
  };
  const demo = readFileSync(demoModelPath);
  const cut = await make("cut.gguf", demo);
  await truncate(cut, Math.floor(demo.length / 2));
  const scrambled = Buffer.from(demo);
  scrambled.fill(0xff, 8, 4000);
  const models: [string, RegExp][] = [
    [cut, /could not be loaded/],
    [await make("scrambled.gguf", scrambled), /could not be loaded/],
    [
      await make("garbage.gguf", Buffer.concat([Buffer.from("GGUF"), Buffer.alloc(4096, 0x5a)])),
      /could not be loaded/,
    ],
    [await make("empty.gguf", Buffer.alloc(0)), /is not a GGUF file/],
    [await make("pointer.gguf", Buffer.from("version https://git-lfs")), /is not a GGUF file/],
    [join(folder, "none.gguf"), /No model found at/],
    ["owner/name", /HF_HUB_OFFLINE is set/],
  ];
  process.env.HF_HUB_OFFLINE = "1"; // workers inherit it
  for (const [model, expected] of models) {
    const job = await runMeddled(undefined, { ...demoInspect, model });
    assert.is(job.status, "failed", model);
    assert.match(job.error as string, expected);
    assert.not.match(job.error as string, /\n| at .*\.[jt]s:/);
    assert.ok(job.error?.endsWith("."), job.error);
  }
  delete process.env.HF_HUB_OFFLINE;
  await rm(folder, { recursive: true });
});

test("the deadline kills the worker with its children", async () => {
  // Again with twice the time where the machine did not have both processes running by then.
  for (let seconds = 2, ran = 0; ran < 2; seconds *= 2) {
    const short = await openHarness({ deadlineMs: 1000 * seconds, meddle: "child" });
    const job = await short.finished((await short.submit(demoInspect)).id);
    assert.is(job.status, "failed");
    if (seconds < 60) assert.is(job.error, `The job ran longer than ${seconds} seconds and was stopped.`);
    const pids = short.pids();
    ran = pids.length;
    for (const pid of pids) await gone(pid);
    await short.close();
  }
});

test("cancel and close kill the worker with its children; close interrupts the job", async () => {
  for (const end of ["cancel", "close"]) {
    const own = await openHarness({ queueCapacity: 1, meddle: "child" });
    const { id } = await own.submit(demoInspect);
    await own.until(id, ({ progress }) => progress.stage === "artifact");
    const waiting = await own.submit(demoInspect);
    const pids = own.pids();
    assert.is(pids.length, 2);
    if (end === "cancel") {
      await own.request("POST", `/jobs/${waiting.id}/cancel`, {});
      await own.request("POST", `/jobs/${id}/cancel`, {});
      // Its artifact was complete, but without a result nobody could ask for it.
      assert.equal(readdirSync(join(own.lab.folder, id)).sort(), ["job.json", "worker.log"]);
    } else {
      await own.lab.close();
      for (const [job, state] of [
        [id, "running"],
        [waiting.id, "queued"],
      ]) {
        const stored = JSON.parse(
          readFileSync(join(own.lab.folder, job as string, "job.json"), "utf8"),
        ) as Job;
        assert.is(stored.status, "interrupted");
        assert.is(stored.error, `The service shut down while the job was ${state}.`);
      }
    }
    for (const pid of pids) await gone(pid);
    await own.close();
  }
});

test("only the owner can read files", async () => {
  if (process.platform === "win32") return;
  const job = await runMeddled(undefined);
  const folder = join(harness.lab.folder, job.id);
  assert.is(statSync(harness.lab.folder).mode & 0o777, 0o700);
  assert.is(statSync(folder).mode & 0o777, 0o700);
  for (const name of files(job.id)) assert.is(statSync(join(folder, name)).mode & 0o777, 0o600, name);
});

test("a job that cannot be written is reported as an error, not lost", async () => {
  const own = await openHarness();
  await rename(own.lab.folder, `${own.lab.folder}-away`);
  const refused = await own.request("POST", "/jobs", demoInspect);
  assert.is(refused.status, 500);
  assert.match(refused.body.error, "could not be written");
  assert.equal((await own.request("GET", "/jobs")).body, { jobs: [] });
  await rename(`${own.lab.folder}-away`, own.lab.folder);
  assert.is((await own.request("POST", "/jobs", demoInspect)).status, 202);
  await own.close();
});

test.run();
