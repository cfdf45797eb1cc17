import { readdirSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Job } from "../../src/contracts/index.js";
import { demoInspect, gone, meddleEnvironment, openHarness, readPids } from "./harness.js";
import { runTapline, type ServiceProcess, startService } from "./service-process.js";

let home: string;
test.before.each(async () => {
  home = await mkdtemp(join(tmpdir(), "tapline-restart-"));
});
test.after.each(() => rm(home, { recursive: true, force: true }));

const hanging = () => ({ environment: meddleEnvironment("child", home), words: ["--queue", "1"] });

async function untilHanging(service: ServiceProcess): Promise<string> {
  const { body } = await service.request("POST", "/jobs", demoInspect);
  for (;;) {
    const job = (await service.request("GET", `/jobs/${body.id}`)).body as Job;
    if (job.progress.stage === "artifact") return job.id;
    if (job.ended !== null) throw new Error(job.error);
    await sleep(20);
  }
}

test("after kill -9 of the service the worker ends, and a restart marks the job interrupted", async () => {
  const service = await startService(home, hanging());
  const running = await untilHanging(service);
  const waiting = (await service.request("POST", "/jobs", demoInspect)).body.id;
  const pids = readPids(home);
  assert.is(pids.length, 2);
  assert.equal(await service.end("SIGKILL"), { code: null, signal: "SIGKILL" });
  for (const pid of pids) await gone(pid);

  const again = await openHarness({ home });
  for (const [id, state, files] of [
    [running, "running", ["job.json", "worker.log"]],
    [waiting, "queued", ["job.json"]],
  ] as const) {
    const { body } = await again.request("GET", `/jobs/${id}`);
    assert.is(body.status, "interrupted");
    assert.is(body.error, `The service shut down while the job was ${state}.`);
    assert.type(body.ended, "number");
    assert.equal(readdirSync(join(again.lab.folder, id)).sort(), files, "what nobody can ask for is gone");
    assert.is((await again.request("POST", `/jobs/${id}/cancel`, {})).body.status, "interrupted");
  }
  assert.is((await again.request("DELETE", `/jobs/${running}`)).status, 200);
  await again.close();
});

test("a finished job is byte for byte the same after a restart", async () => {
  const first = await openHarness({ home });
  const { id } = await first.submit({ ...demoInspect, layers: [0, 1] });
  const before = await first.finished(id);
  const bytes = (await first.request("GET", `/jobs/${id}/artifacts/activations.npz`)).bytes;
  await first.lab.close();
  const second = await openHarness({ home });
  assert.equal((await second.request("GET", `/jobs/${id}`)).body, before);
  assert.ok((await second.request("GET", `/jobs/${id}/artifacts/activations.npz`)).bytes.equals(bytes));
  const { config: _config, result: _result, ...summary } = before;
  assert.equal((await second.request("GET", "/jobs")).body.jobs, [summary]);
  await second.close();
});

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  test(`${signal}: exit code 0, no process, no lock; the running job is interrupted`, async () => {
    const service = await startService(home, hanging());
    const id = await untilHanging(service);
    const pids = readPids(home);
    assert.equal(await service.end(signal), { code: 0, signal: null });
    for (const pid of pids) await gone(pid);
    assert.equal(readdirSync(join(home, "lab")), [id]);
    const again = await openHarness({ home });
    assert.is((await again.request("GET", `/jobs/${id}`)).body.status, "interrupted");
    await again.close();
  });
}

test("a taken port, a held folder and bad options give one sentence each", async () => {
  const service = await startService(home);
  const held = await runTapline(["lab", "--port", "0", "--home", home]);
  assert.is(held.code, 1);
  assert.match(held.stderr, new RegExp(`^tapline: .* in use by process ${service.child.pid}, .*\n$`));
  const other = await mkdtemp(join(tmpdir(), "tapline-other-"));
  const taken = await runTapline(["lab", "--port", new URL(service.url).port, "--home", other]);
  assert.is(taken.code, 1);
  assert.match(taken.stderr, /^tapline: Port \d+ on 127\.0\.0\.1 is already in use; .*\n$/);
  assert.equal(readdirSync(join(other, "lab")), [], "the lock is given back");
  await rm(other, { recursive: true });
  for (const words of [
    ["--port", "65536"],
    ["--queue", "65"],
  ]) {
    const { code, stderr } = await runTapline(["lab", "--home", home, ...words]);
    assert.is(code, 2);
    assert.match(stderr, "must be a whole number between");
  }
  assert.equal(await service.end("SIGTERM"), { code: 0, signal: null });
});

test("foreign files and partial jobs in the folder do no harm", async () => {
  const folder = join(home, "lab");
  const id = (digit: string) => digit.repeat(32);
  await mkdir(join(folder, id("a")), { recursive: true });
  await mkdir(join(folder, id("b")));
  await writeFile(join(folder, id("b"), "job.json"), '{"id":');
  await mkdir(join(folder, `.removed-${id("c")}`));
  await mkdir(join(folder, "notes"));
  await writeFile(join(folder, id("d")), "a file");
  writeFileSync(join(folder, "lock"), JSON.stringify({ pid: 2 ** 22 - 1, started: "1", since: "long ago" }));
  const lines: string[] = [];
  const harness = await openHarness({ home, log: (line) => lines.push(line) });
  assert.equal((await harness.request("GET", "/jobs")).body, { jobs: [] });
  assert.equal(readdirSync(folder).sort(), [id("b"), id("d"), "lock", "notes"]);
  assert.match(lines.join("\n"), `job ${id("b")} is skipped`);
  await harness.close();
});

test("a home that cannot be a folder gives one sentence", async () => {
  const file = join(home, "file");
  await writeFile(file, "");
  const { code, stderr } = await runTapline(["lab", "--port", "0", "--home", file]);
  assert.is(code, 1);
  assert.match(stderr, /^tapline: .* cannot be written \(E\w+\); choose another folder with --home\.\n$/);
});

test("a dead process's lock whose number was reused is taken over", async () => {
  if (process.platform !== "linux") return;
  const folder = join(home, "lab");
  await mkdir(folder);
  writeFileSync(join(folder, "lock"), JSON.stringify({ pid: process.pid, started: "1", since: "long ago" }));
  const harness = await openHarness({ home });
  await harness.close();
});

test("exactly one of many services started at once over a dead lock gets the folder", async () => {
  await mkdir(join(home, "lab"));
  writeFileSync(
    join(home, "lab", "lock"),
    JSON.stringify({ pid: 2 ** 22 - 1, started: "1", since: "long ago" }),
  );
  const outcomes = await Promise.allSettled(Array.from({ length: 6 }, () => openHarness({ home })));
  const winners = outcomes.filter((outcome) => outcome.status === "fulfilled");
  assert.is(winners.length, 1);
  for (const { value } of winners) await value.close();
});

test.run();
