import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import promises, { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Job } from "../../src/contracts/index.js";
import { ArtifactFile, Artifacts } from "../../src/lab/artifacts.js";
import { Lab } from "../../src/lab/lab.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { JobStore } from "../../src/lab/store.js";
import { until } from "../support/until.js";
import { withFiles } from "../support/with-files.js";
import { withTime } from "../support/with-time.js";

let home: string;
let store: JobStore;
test.before.each(async () => {
  home = await mkdtemp(join(tmpdir(), "tapline-store-"));
  store = await JobStore.open(home);
});
test.after.each(async () => {
  await store.close();
  await rm(home, { recursive: true, force: true });
});

const quiet = () => {};

function jobOf(id: string, created: number, status: Job["status"]): Job {
  return {
    id,
    created,
    started: null,
    ended: null,
    status,
    operation: "inspect",
    model: "demo",
    progress: { stage: "queued", done: 0, total: 1 },
    config: { operation: "inspect", model: "demo", prompt: "x" },
  } as unknown as Job;
}

test("a folder held by another lab is refused by holder; a file is refused as a file", async () => {
  const { since } = JSON.parse(await promises.readFile(join(store.folder, "lock"), "utf8")) as {
    since: string;
  };
  const refusal = (folder: string) => JobStore.open(folder).catch(({ message }: Error) => message);
  assert.is(
    await refusal(home),
    `${home}/lab is in use by process ${process.pid}, a tapline lab running since ${since}; ` +
      "stop it or choose another folder with --home.",
  );
  const file = join(home, "file");
  await writeFile(file, "");
  assert.is(
    await refusal(file),
    `${file}/lab cannot be written (ENOTDIR); choose another folder with --home.`,
  );
});

test("a removal that the disk refuses leaves the job where it was, complete", async () => {
  const id = JobStore.newId();
  const job = jobOf(id, 1, "completed");
  await store.create(job);
  await writeFile(store.artifactPath(id, "a.npz"), "bytes");
  const { open } = promises;
  let refused = 0;
  const failing: typeof open = async (path, ...rest) => {
    const handle = await open(path, ...rest);
    if (path !== store.folder) return handle;
    handle.sync = () => {
      refused++;
      return Promise.reject(new Error("EIO: i/o error, fsync"));
    };
    return handle;
  };
  const error = await withFiles({ open: failing }, () =>
    store.remove(id, quiet).catch((fault: unknown) => fault),
  );
  assert.is(refused, 1);
  assert.match(String(error), "EIO");
  assert.equal(await store.read(id), job);
  assert.equal(readdirSync(store.jobFolder(id)).sort(), ["a.npz", "job.json"]);
  await store.remove(id, quiet);
  assert.not(readdirSync(store.folder).some((name) => name.includes(id)));
});

test("undeletable files of a removed job are reported and removed at the next start", async () => {
  const id = JobStore.newId();
  await store.create(jobOf(id, 1, "completed"));
  const said: string[] = [];
  await withFiles({ rm: () => Promise.reject(new Error("EBUSY: resource busy")) }, () =>
    store.remove(id, (line) => said.push(line)),
  );
  assert.equal(said, [
    `job ${id} was deleted, but some of its files remain until the next start: EBUSY: resource busy`,
  ]);
  assert.not(existsSync(store.jobFolder(id)));
  assert.ok(existsSync(join(store.folder, `.removed-${id}`)));
  assert.equal(await store.load(quiet), []);
  assert.not(existsSync(join(store.folder, `.removed-${id}`)));
});

test("a job of a later version keeps its artifacts, whatever its status is called", async () => {
  const [unknown, odd, old] = ["1", "2", "3"].map((digit) => digit.repeat(32)) as [string, string, string];
  await store.create(jobOf(unknown, 1, "archived" as Job["status"]));
  await store.create({ ...jobOf(odd, 2, "completed"), progress: undefined } as unknown as Job);
  await store.create({
    ...jobOf(old, 3, "interrupted"),
    ended: 4,
    result: { artifacts: [] },
  } as unknown as Job);
  const files = ["a.npz", "b.partial", "worker.log"];
  for (const id of [unknown, odd])
    for (const name of files) await writeFile(store.artifactPath(id, name), "bytes");
  const before = readFileSync(store.artifactPath(unknown, "job.json"), "utf8");
  const said: string[] = [];
  const jobs = await store.load((line) => said.push(line));
  assert.equal(
    jobs.map(({ summary }) => summary.id),
    [old],
  );
  for (const id of [unknown, odd])
    assert.equal(readdirSync(store.jobFolder(id)).sort(), ["a.npz", "b.partial", "job.json", "worker.log"]);
  assert.is(readFileSync(store.artifactPath(unknown, "job.json"), "utf8"), before);
  assert.is(said.length, 2);
  assert.match(said.join("\n"), `job ${unknown} is skipped: its job.json is invalid (status`);
});

test("a lock file is private to its account", async () => {
  assert.is(statSync(join(store.folder, "lock")).mode & 0o777, 0o600);
});

(process.platform === "win32" ? test.skip : test)(
  "FIFOs instead of files are refused immediately",
  async () => {
    const fifo = (path: string) => assert.is(spawnSync("mkfifo", [path]).status, 0);
    const id = "4".repeat(32);
    await mkdir(store.jobFolder(id));
    fifo(store.artifactPath(id, "job.json"));
    fifo(store.artifactPath(id, "worker.log"));
    const said: string[] = [];
    assert.equal(await store.load((line) => said.push(line)), []);
    assert.match(said.join(), `job ${id} is skipped: its job.json is invalid (`);
    assert.match(said.join(), "is not a regular file");
    const refused = await store.openLog(id).catch((error: Error) => error);
    assert.match(String(refused), "worker.log is not a regular file");
    const other = join(home, "other");
    await mkdir(join(other, "lab"), { recursive: true });
    fifo(join(other, "lab", "lock"));
    const locked = await JobStore.open(other).catch((error: Error) => error);
    assert.is(String(locked), `UserError: ${other}/lab/lock is not a regular file; remove it.`);
  },
);

test("a start restores the jobs' order, ends unfinished ones, ignores foreign files", async () => {
  const [second, first, running] = ["b", "a", "c"].map((letter) => letter.repeat(32)) as [
    string,
    string,
    string,
  ];
  await store.create({ ...jobOf(second, 20.5, "failed"), ended: 21, error: "no" });
  await store.create({
    ...jobOf(first, 10.5, "completed"),
    ended: 11,
    result: { artifacts: ["a.npz"] },
  } as unknown as Job);
  await store.create(jobOf(running, 30.5, "running"));
  for (const id of [first, running]) {
    for (const name of ["a.npz", "b.partial", "c.tmp", "worker.log"]) {
      await writeFile(store.artifactPath(id, name), "bytes");
    }
  }
  // Never acknowledged, another's, damaged, no id, no folder.
  const [empty, moved, damaged] = ["d", "e", "f"].map((letter) => letter.repeat(32)) as [
    string,
    string,
    string,
  ];
  for (const name of [empty, moved, damaged, "notes", "A".repeat(32)]) {
    await mkdir(join(store.folder, name));
  }
  await writeFile(join(store.folder, moved, "job.json"), JSON.stringify(jobOf(first, 1, "completed")));
  await writeFile(join(store.folder, damaged, "job.json"), "{");
  const said: string[] = [];
  const before = Date.now() / 1000;
  const jobs = await store.load((line) => said.push(line));
  assert.equal(
    jobs.map(({ summary, artifacts }) => [summary.id, summary.status, artifacts]),
    [
      [first, "completed", ["a.npz"]],
      [second, "failed", []],
      [running, "interrupted", []],
    ],
  );
  for (const field of ["config", "result"])
    assert.not(field in (jobs[0] as (typeof jobs)[number]).summary, field);
  const ended = await store.read(running);
  assert.is(ended.error, "The service shut down while the job was running.");
  assert.ok((ended.ended as number) >= before);
  assert.is((await store.read(first)).ended, 11);
  assert.equal(readdirSync(store.jobFolder(first)).sort(), ["a.npz", "job.json", "worker.log"]);
  assert.equal(readdirSync(store.jobFolder(running)).sort(), ["job.json", "worker.log"]);
  assert.not(existsSync(store.jobFolder(empty)));
  for (const name of [moved, damaged, "notes", "A".repeat(32)])
    assert.ok(existsSync(join(store.folder, name)), name);
  assert.is(said.length, 2);
  assert.ok(
    said.some((line) =>
      line.startsWith(`job ${moved} is skipped: its job.json is invalid (it belongs to another job)`),
    ),
  );
  assert.ok(said.some((line) => line.startsWith(`job ${damaged} is skipped: its job.json is invalid (`)));
});

test("the newest hundred jobs are listed, newest first; older ones are found by id", async () => {
  const ids: string[] = [];
  for (let count = 0; count < 102; count++) {
    const id = count.toString(16).padStart(32, "0");
    ids.push(id);
    await store.create({ ...jobOf(id, 1000 + count, "failed"), ended: 2000, error: "no" });
  }
  await store.close();
  const lab = await Lab.open({ home, log: quiet });
  try {
    assert.equal(
      lab.list().map(({ id }) => id),
      ids.slice(2).reverse(),
    );
    assert.is((await lab.get(ids[0] as string)).error, "no");
  } finally {
    await lab.close();
  }
});

test("a file is written completely despite short writes, and appears once complete", async () => {
  const folder = await mkdtemp(join(home, "artifacts-"));
  const taken: [Uint8Array, number][] = [];
  const handle = {
    write: async (bytes: Uint8Array, from: number, length: number, at: number) => {
      const bytesWritten = Math.min(3, length);
      taken.push([bytes.slice(from, from + bytesWritten), at]);
      return { bytesWritten };
    },
  };
  const file = new ArtifactFile(handle as never, "partial", "final");
  await file.write(Uint8Array.of(1, 2, 3, 4, 5, 6, 7), 10);
  assert.equal(taken, [
    [Uint8Array.of(1, 2, 3), 10],
    [Uint8Array.of(4, 5, 6), 13],
    [Uint8Array.of(7), 16],
  ]);
  const artifacts = new Artifacts(folder);
  await artifacts.create("a", async (whole) => {
    await whole.write(Buffer.from("bytes"), 0);
    assert.equal(readdirSync(folder), ["a.partial"]);
  });
  const fails = artifacts.create("b", async () => {
    throw new Error("no room");
  });
  assert.match(String(await fails.catch(String)), "no room");
  assert.equal([readdirSync(folder), artifacts.names], [["a"], ["a"]]);
  const used: string[] = [];
  const made = await artifacts.scratch(async (place) => {
    used.push(place);
    await writeFile(join(place, "x"), "");
    return 7;
  });
  assert.equal([made, readdirSync(folder), used.length], [7, ["a"], 1]);
  await artifacts.scratch(() => Promise.reject(new Error("x"))).catch(() => {});
  assert.equal(readdirSync(folder), ["a"]);
});

test("time is booked per stage, failures included, to a millionth of a second", async () => {
  let ms = 0;
  const takes = (time: number) => async () => {
    ms += time;
  };
  const clock = await withTime({ "performance.now": () => ms }, async () => {
    const clock = new StageClock();
    await clock.measure("compute", takes(1500));
    await clock.measure("compute", takes(250.00049));
    await clock
      .measure("own", async () => {
        await takes(20)();
        throw new Error("x");
      })
      .catch(() => {});
    return clock;
  });
  clock.add("addon", 0.0000014);
  assert.equal(clock.seconds, {
    process: 0,
    addon: 0.000001,
    model: 0,
    compute: 1.75,
    artifact: 0,
    own: 0.02,
  });
});

test("a job refused for a full queue learns its size; waiting jobs end with the service", async () => {
  await store.close();
  const entry = join(home, "worker.mjs");
  await writeFile(entry, 'process.on("message", () => {}); process.on("disconnect", () => process.exit(1));');
  const config = { operation: "inspect", model: "demo", layers: [1] } as never;
  for (const [queueCapacity, sentence] of [
    [0, "A job is running, and this service has no queue (--queue)."],
    [1, "A job is running, and the only place in the queue is taken."],
    [2, "A job is running, and all 2 places in the queue are taken."],
  ] as const) {
    const lab = await Lab.open({ home, log: quiet, queueCapacity, worker: { entry, execArgv: [] } });
    const jobs = [];
    for (let i = 0; i <= queueCapacity; i++) jobs.push(await lab.submit(config));
    const refused = await lab.submit(config).catch((error) => error);
    assert.equal([refused.status, refused.message], [409, sentence]);
    assert.equal([lab.queued, lab.queueCapacity], [queueCapacity, queueCapacity]);
    assert.equal(
      lab
        .list()
        .slice(0, jobs.length)
        .map(({ id }) => id),
      jobs.map(({ id }) => id).reverse(),
    );
    await until(() => lab.activeJob !== null && lab.list().some(({ status }) => status === "running"));
    await lab.close();
    for (const [place, { id }] of jobs.entries()) {
      const { status, error } = await lab.get(id);
      const was = place === 0 ? "running" : "queued";
      assert.equal([status, error], ["interrupted", `The service shut down while the job was ${was}.`]);
    }
    assert.equal((await lab.submit(config).catch((error) => error)).message, "The service is shutting down.");
    const none = (id: string) => lab.get(id).catch((error) => [error.status, error.message]);
    assert.equal(await none("0".repeat(32)), [404, `There is no job ${"0".repeat(32)}.`]);
    assert.equal(await none("../x"), [404, "There is no such job."]);
  }
});

test.run();
