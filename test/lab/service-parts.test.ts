/** The Lab's guarantees for a job: its order, its files, and its states on disk before clients see them. */
import { existsSync, readdirSync, readFileSync, readlinkSync, renameSync, statSync } from "node:fs";
import promises, { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Config, Job } from "../../src/contracts/index.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { Lab, type LabOptions } from "../../src/lab/lab.js";
import { startLab } from "../../src/lab/service.js";
import { JobStore } from "../../src/lab/store.js";
import { watchDisk } from "../support/disk.js";
import { send } from "../support/request.js";
import { saying } from "../support/saying.js";
import { until } from "../support/until.js";
import { withFiles } from "../support/with-files.js";
import { withTime } from "../support/with-time.js";

let home: string;
test.before.each(async () => {
  home = await mkdtemp(join(tmpdir(), "tapline-service-parts-"));
});
test.after.each(() => rm(home, { recursive: true, force: true }));

const config = { operation: "inspect", model: "demo", layers: [1], seed: 3 } as unknown as Config;
const ended = (lab: Lab, id: string) =>
  until(async () => {
    const job = await lab.get(id);
    return job.ended !== null && job;
  }, "the job has ended");
const mode = (path: string) => statSync(path).mode & 0o777;

/** A Lab whose workers are a few lines of code; `task` is their task, `tell` answers. */
async function labOf(body: string, more: Partial<LabOptions> = {}) {
  const entry = join(home, "worker.mjs");
  await writeFile(
    entry,
    `import { readFileSync, writeFileSync } from "node:fs";
     const tell = (message) => process.send(message);
     const hang = () => setInterval(() => {}, 1000);
     process.on("disconnect", () => process.exit(1));
     process.once("message", (task) => { ${body} });`,
  );
  const said: string[] = [];
  const log = (line: string) => void said.push(line);
  const lab = await Lab.open({ home, log, worker: { entry, execArgv: [] }, ...more });
  return { lab, said };
}

/** While the rule applies, files cannot be renamed. */
async function withoutNames<T>(refused: (to: string) => boolean, run: () => Promise<T>): Promise<T> {
  const { rename } = promises;
  const refusing: typeof rename = async (from, to) => {
    if (refused(String(to))) throw Object.assign(new Error("EIO: i/o error"), { code: "EIO" });
    return rename(from, to);
  };
  return withFiles({ rename: refusing }, run);
}

const isState = (to: string) => to.endsWith("job.json");

test("a job's files are private to the owner, and either complete on disk or absent", async () => {
  const disk = watchDisk();
  const store = await JobStore.open(home);
  try {
    const id = JobStore.newId();
    const job = { id, status: "queued", config } as unknown as Job;
    await store.create(job);
    assert.is(disk.lossOf(join(store.jobFolder(id), "job.json")), null);
    for (const text of ["one", " two"]) {
      const log = await store.openLog(id);
      await log.write(text);
      await log.close();
    }
    assert.is(readFileSync(store.artifactPath(id, "worker.log"), "utf8"), "one two");
    const artifacts = new Artifacts(store.jobFolder(id));
    await artifacts.create("a.npz", (file) => file.write(Buffer.from("bytes"), 0));
    assert.is(disk.lossOf(store.artifactPath(id, "a.npz")), null);
    if (process.platform !== "win32") {
      assert.equal([mode(store.folder), mode(store.jobFolder(id))], [0o700, 0o700]);
      for (const name of ["job.json", "worker.log", "a.npz"]) {
        assert.is(mode(store.artifactPath(id, name)), 0o600, name);
      }
    }
    // A temporary file owned by another user must not be written to.
    await writeFile(store.artifactPath(id, "b.npz.partial"), "mine");
    const taken = await artifacts.create("b.npz", async () => {}).catch((error) => error.code);
    assert.equal([taken, readFileSync(store.artifactPath(id, "b.npz.partial"), "utf8")], ["EEXIST", "mine"]);
    const torn = await artifacts
      .create("c.npz", () => Promise.reject(new Error("x")))
      .catch((error) => error.message);
    assert.equal(
      [torn, existsSync(store.artifactPath(id, "c.npz.partial")), artifacts.names],
      ["x", false, ["a.npz"]],
    );
    const lost = JobStore.newId();
    const failed = await withoutNames(isState, () => store.create({ ...job, id: lost })).catch(
      (error) => error.code,
    );
    assert.equal([failed, existsSync(store.jobFolder(lost))], ["EIO", false]);
    assert.equal(disk.hasty, []);
  } finally {
    disk.stop();
    await store.close();
  }
});

test("jobs stay in order of arrival, whatever the clock shows", async () => {
  const { lab } = await labOf("hang();", { queueCapacity: 4 });
  let seconds = 0;
  await withTime({ "Date.now": () => seconds * 1000 }, async () => {
    const jobs: Job[] = [];
    for (seconds of [2000, 2000, 1000, 2000.5]) jobs.push(await lab.submit(config));
    const created = jobs.map((job) => job.created);
    assert.equal([created[0], created[3]], [2000, 2000.5]);
    assert.ok(
      created.every((time, i) => i === 0 || time > created[i - 1]!),
      String(created),
    );
    assert.equal(
      lab.list().map(({ id }) => id),
      jobs.map(({ id }) => id).reverse(),
    );
    assert.equal([lab.activeJob, lab.queued], [jobs[0]!.id, 3]);
    // A second service on the same folder, whose clock is behind.
    seconds = 1000;
    await lab.close();
    const { lab: next } = await labOf("hang();");
    try {
      const last = await next.submit(config);
      assert.equal(
        next.list().map(({ id }) => id),
        [last, ...jobs.reverse()].map(({ id }) => id),
      );
    } finally {
      await next.close();
    }
  }).finally(() => lab.close());
});

test("a worker finds its job marked running, its library and task; partial files are removed", async () => {
  const { lab } = await labOf(
    `const { status, started } = JSON.parse(readFileSync(task.folder + "/job.json", "utf8"));
     for (const name of ["a", "b.partial", "c.tmp"]) writeFileSync(task.folder + "/" + name, "");
     const { TAPLINE_HOME: library, GGML_NO_BACKTRACE: quiet } = process.env;
     if (task.config.seed !== 3) return tell({ type: "failure", message: "Not this one." });
     tell({ type: "result", result: { artifacts: ["a"], told: { status, started, library, quiet, task } } });`,
    { library: "/own/library", load: { gpuLayers: 2 } },
  );
  try {
    const { id } = await lab.submit(config);
    const done = await ended(lab, id);
    const { told } = done.result as unknown as {
      told: Record<string, unknown> & { task: Record<string, unknown> };
    };
    assert.equal(
      [told.status, told.started, told.library, told.quiet],
      ["running", done.started, "/own/library", "1"],
    );
    const { spawnedAt, ...task } = told.task;
    assert.equal(task, { config, folder: join(lab.folder, id), load: { gpuLayers: 2 } });
    assert.ok(Math.abs(Number(spawnedAt) / 1000 - done.started!) < 60);
    assert.equal([done.status, done.progress], ["completed", { stage: "completed", done: 1, total: 1 }]);
    assert.equal(JSON.parse(readFileSync(join(lab.folder, id, "job.json"), "utf8")), done);
    assert.equal(readdirSync(join(lab.folder, id)).sort(), ["a", "job.json", "worker.log"]);
    assert.is(lab.artifact(id, "a"), join(lab.folder, id, "a"));
    for (const [job, name, sentence] of [
      [id, "job.json", `Job ${id} has no artifact of that name.`],
      ["0".repeat(32), "a", `There is no job ${"0".repeat(32)}.`],
    ] as const) {
      assert.throws(
        () => lab.artifact(job, name),
        (error: Error & { status: number }) => error.status === 404 && error.message === sentence,
      );
    }
    const { result: _, ...metadata } = done;
    assert.equal(await lab.cancel(id), metadata, "a finished job stays as it is; its result is not told");
    if (process.platform === "linux") {
      const open = readdirSync("/proc/self/fd").map((fd) => {
        try {
          return readlinkSync(`/proc/self/fd/${fd}`);
        } catch {
          return ""; // that of the listing itself
        }
      });
      assert.not(
        open.some((path) => path.endsWith("worker.log")),
        "its log is closed",
      );
    }
    // The folder is removed during the request: the job is then missing, which is not a fault of the service.
    renameSync(join(lab.folder, id), join(lab.folder, "elsewhere"));
    const gone = await lab.get(id).catch((error: Error & { status?: number }) => error);
    assert.equal(
      [(gone as { status?: number }).status, (gone as Error).message],
      [404, `There is no job ${id}.`],
    );
    renameSync(join(lab.folder, "elsewhere"), join(lab.folder, id));
    const failed = await ended(lab, (await lab.submit({ ...config, seed: 4 } as Config)).id);
    assert.equal([failed.status, failed.error, failed.result], ["failed", "Not this one.", undefined]);
    assert.equal(readdirSync(join(lab.folder, failed.id)).sort(), ["job.json", "worker.log"]);
  } finally {
    await lab.close();
  }
});

test("a state is reported once it is on disk, and an ended job has no partial result", async () => {
  const { lab } = await labOf(
    `tell({ type: "progress", progress: { stage: "a", done: 1, total: 2, growth: { layers: [5] } } });
     tell({ type: "failure", message: "Halfway." });`,
  );
  const { rename } = promises;
  const heard: [next: string, told: string, active: boolean][] = [];
  const hearing: typeof rename = async (from, to) => {
    if (isState(String(to)) && existsSync(to)) {
      const { id, status } = JSON.parse(readFileSync(from, "utf8")) as Job;
      heard.push([status, (await lab.get(id)).status, lab.activeJob === id]);
    }
    return rename(from, to);
  };
  await withFiles({ rename: hearing }, async () => {
    const last = await ended(lab, (await lab.submit(config)).id);
    assert.equal(heard, [
      ["running", "queued", true],
      ["failed", "running", true],
    ]);
    assert.equal([last.error, last.progress], ["Halfway.", { stage: "a", done: 1, total: 2 }]);
    assert.equal(lab.list()[0]!.progress, { stage: "a", done: 1, total: 2 });
  }).finally(() => lab.close());
});

test("a running job's partial result is in the job, and not in the list", async () => {
  const { lab } = await labOf(
    `tell({ type: "progress", progress: { stage: "a", done: 1, total: 2, growth: { layers: [5] } } });
     hang();`,
  );
  try {
    const { id } = await lab.submit(config);
    const running = await until(async () => {
      const job = await lab.get(id);
      return job.progress.stage === "a" && job;
    }, "the worker reports its progress");
    assert.equal(running.progress, { stage: "a", done: 1, total: 2, growth: { layers: [5] } });
    assert.equal(
      lab.list().map(({ progress }) => progress),
      [{ stage: "a", done: 1, total: 2 }],
    );
  } finally {
    await lab.close();
  }
});

test("a final state that the disk rejects is still reported until the job is removed", async () => {
  const { lab, said } = await labOf('tell({ type: "result", result: { artifacts: [] } });');
  try {
    let begun = false;
    const refused = (to: string) => {
      if (!isState(to)) return true;
      const { status } = JSON.parse(readFileSync(to, "utf8")) as Job;
      begun ||= status === "running";
      return begun;
    };
    const { id } = await lab.submit(config);
    // Its state as it runs finds a place, its last one does not; nor does its removal.
    const last = await withoutNames(
      (to) => isState(to) && existsSync(to) && refused(to),
      () => ended(lab, id),
    );
    const message = "The job's final state could not be written (EIO: i/o error).";
    assert.equal([last.status, last.error], ["failed", message]);
    assert.equal(said, [`job ${id}: ${message}`]);
    assert.is(JSON.parse(readFileSync(join(lab.folder, id, "job.json"), "utf8")).status, "running");
    const kept = await withoutNames(
      () => true,
      () => lab.remove(id).catch((error) => [error.status, error.message]),
    );
    assert.equal(kept, [500, `Job ${id} could not be deleted (EIO: i/o error).`]);
    assert.equal(await lab.get(id), last, "not what the disk has of it");
    await lab.remove(id);
    assert.is(await lab.get(id).catch((error) => error.status), 404);
  } finally {
    await lab.close();
  }
});

test("a result that cannot be written fails the job and removes its artifacts", async () => {
  const { lab, said } = await labOf(
    `writeFileSync(task.folder + "/a", "bytes");
     tell({ type: "result", result: { artifacts: ["a"] } });`,
  );
  const { rename } = promises;
  const full: typeof rename = async (from, to) => {
    if (isState(String(to)) && (JSON.parse(readFileSync(from, "utf8")) as Job).status === "completed") {
      throw Object.assign(new Error("ENOSPC: no space left"), { code: "ENOSPC" });
    }
    return rename(from, to);
  };
  await withFiles({ rename: full }, async () => {
    const last = await ended(lab, (await lab.submit(config)).id);
    assert.equal(
      [last.status, last.error, last.result],
      ["failed", "The job's final state could not be written (ENOSPC: no space left).", undefined],
    );
    const place = join(lab.folder, last.id);
    assert.equal(readdirSync(place).sort(), ["job.json", "worker.log"]);
    assert.equal(JSON.parse(readFileSync(join(place, "job.json"), "utf8")), last);
    assert.throws(() => lab.artifact(last.id, "a"), saying("has no artifact of that name"));
    assert.equal(said, []);
  }).finally(() => lab.close());
});

test("of two simultaneous removals of a job, one succeeds and one finds it missing", async () => {
  const { lab } = await labOf('tell({ type: "failure", message: "No." });');
  try {
    const { id } = await ended(lab, (await lab.submit(config)).id);
    const remove = () =>
      lab.remove(id).then(
        () => "removed",
        (error) => error.status,
      );
    assert.equal(await Promise.all([remove(), remove()]), ["removed", 404]);
    assert.equal(lab.list(), []);
    assert.not(existsSync(join(lab.folder, id)));
  } finally {
    await lab.close();
  }
});

test("jobs that cannot be read leave the folder free", async () => {
  const elsewhere = await mkdtemp(join(tmpdir(), "tapline-unread-"));
  const readdir = () => Promise.reject(Object.assign(new Error("EIO: i/o error"), { code: "EIO" }));
  await withFiles({ readdir }, async () => {
    const refused = await Lab.open({ home: elsewhere }).catch((error: Error) => error);
    assert.is((refused as Error).message, "EIO: i/o error");
  });
  const lab = await Lab.open({ home: elsewhere });
  await lab.close();
  await rm(elsewhere, { recursive: true, force: true });
});

test("a port that is taken leaves the folder free; a wrong field is named", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => other.once("listening", resolve));
  const { port } = other.address() as { port: number };
  const options = { home, backend: "test", log: () => {} };
  const refused = await startLab({ ...options, port }).catch((error: Error) => error);
  assert.instance(refused, Error);
  await new Promise((resolve) => other.close(resolve));
  const service = await startLab({ ...options, port: 0 });
  try {
    assert.is(service.folder, join(home, "lab"));
    const body = { operation: "inspect", model: "demo", prompt: "a", layers: [-1] };
    const answer = await send(`${service.url}/lab/v1/jobs`, "POST", body);
    assert.is(answer.status, 400);
    assert.match(answer.body.error, /^layers\[0\]: /);
  } finally {
    await service.close();
  }
});

test.run();
