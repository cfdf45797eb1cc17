import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Job } from "../../src/contracts/index.js";
import { demoInspect, openHarness } from "../lab/harness.js";
import { pretendGpu } from "../support/pretend-gpu/index.js";

/** Runs one inspection in a Lab whose workers have pretend GPUs. */
async function inspect(spec: string, load: object): Promise<Job> {
  const environment = await pretendGpu(spec);
  Object.assign(process.env, environment);
  const harness = await openHarness({ load });
  try {
    return await harness.finished((await harness.submit(demoInspect)).id);
  } finally {
    await harness.close();
    for (const name of Object.keys(environment)) delete process.env[name];
  }
}

const test = suite("lab on devices");

const device = ({ result }: Job) => result?.provenance.device ?? "";

test("a device with room takes all blocks", async () => {
  assert.is(device(await inspect("1x2048", {})), "Pretend GPU");
});

test("a server's memory is respected: blocks are offloaded into the free part", async () => {
  const job = await inspect("1x2048-1520", {});
  assert.is(job.status, "completed", job.error);
  const text = device(job);
  const [, onDevice = "", onHost = ""] =
    /\((\d) of 8 blocks\), Pretend GPU \((\d) of 8 blocks\)$/.exec(text) ?? [];
  assert.ok(Number(onDevice) > 0 && Number(onDevice) + Number(onHost) === 8, text);
});

test("a full device takes no block, and the job is computed all the same", async () => {
  const job = await inspect("1x2048-2048", {});
  assert.is(job.status, "completed", job.error);
  assert.not.match(device(job), /Pretend/);
});

test("--gpu-layers and --device choose", async () => {
  // The output head counts as one and goes first.
  assert.match(device(await inspect("2x2048", { gpuLayers: 4 })), /\(5 of 8 blocks\), Pretend GPU \(\d of 8/);
  assert.is(device(await inspect("2x2048", { devices: ["Pretend1"] })), "Pretend GPU");
  assert.not.match(device(await inspect("2x2048", { devices: ["none"] })), /Pretend/);
});

test("a failure names the device's memory, or the devices there are", async () => {
  const full = await inspect("1x1", { gpuLayers: 9 });
  assert.is(full.status, "failed");
  assert.match(full.error ?? "", /Free on the GPUs: Pretend0 \d of 1 MB; .*--gpu-layers/);
  const unknown = await inspect("1x64", { devices: ["CUDA7"] });
  assert.match(unknown.error ?? "", /^Unknown device "CUDA7"; available: Pretend0\.$/);
});

test.run();
