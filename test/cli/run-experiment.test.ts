/** An experiment from its submission to its files, in a Lab that answers as the test says; whatever fails, nothing is left. */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { findJob, isLab, openLab } from "../../src/cli/lab-session.js";
import { runExperiment } from "../../src/cli/run-experiment.js";
import { Lab } from "../../src/client/index.js";
import { runJob } from "../../src/client/run-job.js";
import { Refused, standInWithFolder } from "./stand-in.js";

const service = await standInWithFolder();
const { folder } = service;
test.after(() => service.close());

const id = "0123456789abcdef0123456789abcdef";
const job = (status: string, more: object = {}) => ({ id, operation: "compare", status, ...more });
const result = { artifacts: ["a.npz", "in/b.npz"] };
const path = `/lab/v1/jobs/${id}`;

/** The Lab's answers to an experiment whose job goes through these states. */
function through(...states: object[]): void {
  service.begin();
  service.answers = {
    "GET /lab/v1/health": { api_version: 1 },
    "POST /lab/v1/jobs": job("queued"),
    [`GET ${path}`]: () => (states.length > 1 ? states.shift() : states[0]),
    [`POST ${path}/cancel`]: job("cancelled"),
    [`GET ${path}/artifacts/a.npz`]: Buffer.from("A"),
    [`GET ${path}/artifacts/in%2Fb.npz`]: Buffer.from("B"),
  };
}

const stages: string[] = [];
const run = (out: string | false | undefined, signal = new AbortController().signal) =>
  runExperiment({
    ...{ operation: "compare", model: "demo", settings: { prompt: "p" }, lab: service.url, out, signal },
    onStage: (stage) => stages.push(stage),
    onProgress: ({ status }) => stages.push(status),
  });
const failing = (work: Promise<unknown>) =>
  work.then(
    () => assert.unreachable("it did not fail") as never,
    (error: Error) => error,
  );
const lines = () => service.asked().map(([line]) => line);

test("a job is submitted and awaited; its files go to a folder of its name", async () => {
  const done = job("completed", { result });
  for (const [out, place] of [
    [undefined, join(folder, "tapline-compare-01234567")],
    [join(folder, "named", "deep"), join(folder, "named", "deep")],
  ] as const) {
    through(job("running"), done);
    stages.length = 0;
    const { report, unwritten } = await run(out);
    const files = ["a.npz", "b.npz", "job.json"].map((name) => join(place, name));
    assert.equal(report, { lab: service.url, job: done, folder: place, files });
    assert.is(unwritten, undefined);
    assert.equal(readdirSync(place), ["a.npz", "b.npz", "job.json"]);
    assert.equal([readFileSync(files[0]!, "utf8"), readFileSync(files[1]!, "utf8")], ["A", "B"]);
    assert.equal(JSON.parse(readFileSync(files[2]!, "utf8")), done);
    assert.equal(stages, ["running", "completed"]);
    assert.equal(service.asked().slice(0, 2), [
      ["GET /lab/v1/health"],
      ["POST /lab/v1/jobs", { operation: "compare", model: "demo", prompt: "p" }],
    ]);
    for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true });
  }
  through(done);
  assert.equal((await run(false)).report, { lab: service.url, job: done, folder: null, files: [] });
  assert.not(lines().some((line) => line.includes("artifacts")));
});

test("if a file fails, the result is printed and partial files are deleted", async () => {
  through(job("completed", { result }));
  service.answers[`GET ${path}/artifacts/in%2Fb.npz`] = new Refused(500, "No.");
  for (const out of [undefined, join(folder, "named")]) {
    const { report, unwritten } = await run(out);
    assert.equal([report.folder, report.files, report.job.id], [null, [], id]);
    assert.is((unwritten as Error).message, "No.");
  }
  assert.equal(readdirSync(folder), []);
});

test("a job that fails, is refused or has no Lab leaves nothing behind", async () => {
  const out = join(folder, "named");
  through(job("running"), job("failed", { error: "Why it failed." }));
  assert.is((await failing(run(out))).message, "Why it failed.");
  through();
  service.answers["POST /lab/v1/jobs"] = new Refused(400, "It is wrong.");
  assert.is((await failing(run(out))).message, "It is wrong.");
  service.answers["GET /lab/v1/health"] = new Refused(503, "Not yet.");
  assert.is((await failing(run(out))).message, "Not yet.");
  assert.not(existsSync(out));
  assert.not(lines().some((line) => line.endsWith("/cancel")));
});

test("the signal cancels the job, by its name, and takes the folder away", async () => {
  const stop = new AbortController();
  through(job("running"));
  service.answers[`GET ${path}`] = () => {
    stop.abort("SIGINT");
    return job("running");
  };
  assert.is(await failing(run(join(folder, "named"), stop.signal)), "SIGINT");
  assert.is(lines().at(-1), `POST ${path}/cancel`);
  assert.not(existsSync(join(folder, "named")));
  // Before it is handed in there is nothing to be cancelled.
  through(job("running"));
  assert.is(await failing(run(false, stop.signal)), "SIGINT");
  assert.equal(lines(), ["GET /lab/v1/health"]);
  // A signal between the result and its files ends it as well.
  const late = new AbortController();
  through(job("completed", { result }));
  service.answers[`GET ${path}/artifacts/a.npz`] = () => {
    late.abort("SIGTERM");
    return Buffer.from("A");
  };
  assert.is(await failing(run(join(folder, "named"), late.signal)), "SIGTERM");
  assert.not(existsSync(join(folder, "named")));
});

test("stages are reported; a signal cancels the job, even if the Lab is gone", async () => {
  const lab = new Lab(service.url);
  const experiment = { operation: "compare", model: "demo", settings: { prompt: "p" } } as const;
  const told: string[] = [];
  const tell = (stage: string) => told.push(stage);
  const progress = { stage: "sweep", done: 3, total: 9 };
  through(job("running", { progress }), job("running"), job("completed"));
  assert.equal(await runJob(lab, experiment, new AbortController().signal, tell), job("completed"));
  assert.equal(told, ["sweep 3/9"]);
  const stop = new AbortController();
  through(job("running"));
  service.answers[`GET ${path}`] = () => {
    stop.abort("SIGINT");
    return job("running");
  };
  service.answers[`POST ${path}/cancel`] = new Refused(500, "Gone.");
  assert.is(await failing(runJob(lab, experiment, stop.signal, tell)), "SIGINT");
  assert.is(lines().at(-1), `POST ${path}/cancel`);
  through(job("failed", { error: "Why." }));
  assert.is((await failing(runJob(lab, experiment, new AbortController().signal, tell))).message, "Why.");
  assert.not(lines().some((line) => line.endsWith("/cancel")));
});

test("a named Lab is used, never started or closed, and its logs stay there", async () => {
  through();
  let started = false;
  const session = await openLab(service.url, () => {
    started = true;
  });
  assert.equal([session.own, session.url, started], [false, service.url, false]);
  assert.is(await session.keepLog(id, join(folder, "log")), false);
  await session.close();
  assert.equal((await session.lab.health()).api_version as number, 1);
  assert.is(await isLab(service.url), true);
  service.answers["GET /lab/v1/health"] = { api_version: 2 };
  assert.is(await isLab(service.url), false);
  service.answers["GET /lab/v1/health"] = new Refused(404, "No.");
  assert.is(await isLab(service.url), false);
  service.answers["GET /lab/v1/jobs"] = { jobs: [{ id: "b".repeat(32) }, { id: "a".repeat(32) }] };
  assert.is(await findJob(session.lab, "last"), "b".repeat(32), "the newest comes first");
  assert.is(await findJob(session.lab, "aaaa"), "a".repeat(32));
});

test.run();
