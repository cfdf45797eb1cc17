/** What the list of jobs says of time, and what becomes of jobs and a person's words. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Job, JobSummary } from "../../src/contracts/index.js";
import { readWords } from "../../src/study/index.js";
import { extent, timeLeft, waiting } from "../../src/workbench/page/job-time.js";
import { jobPath, noWords, studyJobs, withJob } from "../../src/workbench/page/study.js";
import { studyDraft } from "../../src/workbench/study.js";
import { inspectJob, patchJob } from "../report/jobs.js";

const summary = (change: Partial<JobSummary>): JobSummary => ({
  ...{ id: "a".repeat(32), created: 5, started: 6, ended: null, status: "running" },
  ...{ operation: "patch_sweep", model: "demo", progress: { stage: "patch", done: 0, total: 12 } },
  ...change,
});

test("a job's remaining time follows the observed speed, or is unknown", () => {
  const at = (now: number, stage: string, done: number, total: number) =>
    timeLeft(summary({ progress: { stage, done, total } }), now);
  assert.is(at(100, "model", 0, 0), "Time remaining: unknown");
  assert.is(at(101, "patch", 2, 12), "");
  assert.is(at(101.5, "patch", 3, 12), "", "too early to say");
  assert.is(at(111, "patch", 4, 12), "about 40 s left", "two in 10 s, eight are left");
  assert.is(at(121, "patch", 12, 12), "");
  assert.is(at(122, "artifact", 1, 2), "", "a stage of its own");
  assert.is(timeLeft(summary({ status: "completed" }), 130), "");
  // The next run of the same stage does not count the old one.
  assert.is(at(200, "patch", 1, 12), "");
  assert.is(extent(3, 12), "3 of 12");
  assert.is(extent(0.25, 1), "25 %");
});

test("a job that is queued says what the Lab runs before it", () => {
  const own = summary({ id: "b".repeat(32), status: "queued", created: 9 });
  const other = summary({ id: "c".repeat(32), status: "queued", created: 8 });
  const later = summary({ id: "d".repeat(32), status: "queued", created: 10 });
  assert.is(waiting([own, later], own), "Queued");
  assert.is(waiting([own, later, summary({})], own), "Queued after 1 job");
  assert.is(waiting([own, other, later, summary({})], own), "Queued after 2 jobs");
});

const job = (of: ReturnType<typeof inspectJob>, change: Partial<Job> = {}): Job =>
  ({
    ...of,
    ...{ created: 1, started: 2, ended: 3, status: "completed", model: "demo" },
    config: { layers: [3], seed: 0, max_input_tokens: 64, ...of.config, model: "demo" },
    progress: { stage: "completed", done: 1, total: 1 },
    ...change,
  }) as unknown as Job;

test("a study of jobs: the evidence is there at once, the words are a person's and stay empty until then", async () => {
  const jobs = [job(inspectJob()), job(patchJob())];
  const empty = await studyDraft(jobs, noWords);
  assert.is(empty.package, undefined);
  assert.equal(empty.faults, [
    "title must not be blank.",
    "question must not be blank.",
    "method must not be blank.",
    "limitations must not be blank.",
    "license must be CC-BY-4.0 or CC0-1.0.",
  ]);
  assert.match(empty.method, /^Model: [\s\S]*\n- inspect: [\s\S]*\n- patch_sweep/);
  assert.ok(empty.entries.length > 4);
  assert.equal(readWords(empty.words), noWords, "the file for an editor has the same empty places");
  const words = {
    ...noWords,
    ...{ title: "Where it is", question: "Where?", method: empty.method, limitations: "One pair." },
    ...{ license: "CC0-1.0", omissions: ["What I forgot."] },
  };
  const whole = await studyDraft(jobs, words);
  assert.equal(whole.faults, []);
  const study = JSON.parse(whole.package as string);
  assert.equal([study.title, study.finding, study.license], ["Where it is", "", "CC0-1.0"]);
  assert.is(study.omissions[0], "What I forgot.");
  assert.equal(whole.omissions, study.omissions.slice(1), "tapline's own stand apart");
  assert.equal(readWords(whole.words), words);
});

test("a study of a job that still runs is refused; of one that failed it says so", async () => {
  const going = job(inspectJob(), { status: "running" });
  const fault = await studyDraft([going], noWords).then(
    () => "",
    (error: Error) => error.message,
  );
  assert.is(fault, `Job ${going.id} is still running; draft a study once it has ended.`);
  const { result: _, ...rest } = job(inspectJob(), { status: "failed", error: "It broke." });
  const { entries } = await studyDraft([rest as Job], noWords);
  assert.equal(
    entries.map(({ kind }) => kind),
    ["prompt", "error"],
  );
});

test("the address lists a study's jobs and keeps them when another job opens", () => {
  const [a, b] = ["a".repeat(32), "b".repeat(32)] as const;
  assert.is(studyJobs(new URLSearchParams("")), undefined);
  assert.equal(studyJobs(new URLSearchParams("study=")), []);
  assert.equal(studyJobs(new URLSearchParams(`study=${a},x,${a},${b}`)), [a, b]);
  assert.is(withJob([a], b, true), `${a},${b}`);
  assert.is(withJob([a, b], a, false), b);
  assert.is(jobPath(a, {}), `/jobs/${a}`);
  assert.is(jobPath(a, { beside: b, study: [a] }), `/jobs/${a}?with=${b}&study=${a}`);
});

test.run();
