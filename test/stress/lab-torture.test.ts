import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Compile } from "typebox/compile";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Job, type JobSummary } from "../../src/contracts/index.js";
import { demoInspect, gone } from "../lab/harness.js";
import { readNpz } from "../lab/npz-reader.js";
import { type ServiceProcess, startService } from "../lab/service-process.js";

const kills = Number(process.env.TAPLINE_TEST_RUNS ?? 100);
const schema = Compile(Job);

/** Process ids whose parent is the given one. */
function childrenOf(pid: number): number[] {
  const table = execFileSync("ps", ["-axo", "pid=,ppid="], { encoding: "utf8" });
  return table
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number))
    .filter(([, parent]) => parent === pid)
    .map(([child]) => child as number);
}

function kill9(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    // Its job may just have ended by itself.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Checks one job that nobody works on any more: complete and readable, or honestly marked. */
async function check(service: ServiceProcess, id: string): Promise<string> {
  const { status, body } = await service.request("GET", `/jobs/${id}`);
  assert.is(status, 200, `job ${id} was acknowledged and is gone`);
  assert.ok(schema.Check(body as unknown), JSON.stringify(schema.Errors(body)).slice(0, 300));
  if (body.status === "completed") {
    for (const name of body.result.artifacts) {
      const { bytes } = await service.request("GET", `/jobs/${id}/artifacts/${name}`);
      const arrays = readNpz(bytes);
      assert.equal(
        [...arrays.keys()],
        body.config.layers.map((layer: number) => `layer_${layer}`),
      );
    }
  } else {
    assert.ok(["failed", "interrupted"].includes(body.status), body.status);
    assert.match(body.error, /^[^\n]+\.$/);
    assert.not("result" in body);
  }
  return JSON.stringify(body);
}

test(`${kills} kills of service and worker at random moments`, async () => {
  const home = await mkdtemp(join(tmpdir(), "tapline-torture-"));
  const start = () => startService(home, { words: ["--queue", "4"] });
  /** What each finished job looked like when it was first seen finished: it must stay so for ever. */
  const finished = new Map<string, string>();
  const acknowledged = new Set<string>();
  const outcomes: Record<string, number> = {};
  let service = await start();
  // A failed test leaves nothing running that would keep it from ending.
  test.after(() => void service.child.kill("SIGKILL"));
  for (let kill = 0; kill < kills; kill++) {
    for (let index = 0; index < 1 + (kill % 3); index++) {
      const layers = [index, 5 - index];
      const { status, body } = await service.request("POST", "/jobs", { ...demoInspect, layers });
      if (status === 202) acknowledged.add(body.id);
      else assert.is(status, 409);
    }
    await sleep(Math.random() * 1500);
    const workers = childrenOf(service.child.pid as number);
    if (kill % 2 === 0) {
      for (const worker of workers) kill9(worker);
    } else {
      await service.end("SIGKILL");
      for (const worker of workers) await gone(worker);
      service = await start();
    }
    const { jobs } = (await service.request("GET", "/jobs")).body as { jobs: JobSummary[] };
    for (const { id, status, ended } of jobs) {
      if (ended === null) continue;
      const seen = await check(service, id);
      if (finished.has(id)) assert.is(seen, finished.get(id));
      else outcomes[status] = (outcomes[status] ?? 0) + 1;
      finished.set(id, seen);
    }
  }
  for (const id of acknowledged) {
    while ((await service.request("GET", `/jobs/${id}`)).body.ended === null) await sleep(50);
    const seen = await check(service, id);
    assert.is(seen, finished.get(id) ?? seen);
  }
  console.log(`${acknowledged.size} jobs: ${JSON.stringify(outcomes)}`);
  assert.equal(await service.end("SIGTERM"), { code: 0, signal: null });
  await rm(home, { recursive: true });
});

test.run();
