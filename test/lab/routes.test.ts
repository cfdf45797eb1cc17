import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Compile } from "typebox/compile";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Job, JobList, LabHealth, limits, operations } from "../../src/contracts/index.js";
import { rawGet } from "../http/raw.js";
import { send } from "../support/request.js";
import { demoInspect, gone, type Harness, openHarness, setMeddle } from "./harness.js";

const absent = "0123456789abcdef0123456789abcdef";
let harness: Harness;
/** A completed job, for every test that needs one. */
let done: Job;

test.before(async () => {
  harness = await openHarness({ queueCapacity: 2 });
  done = await harness.finished((await harness.submit(demoInspect)).id);
  assert.is(done.status, "completed", done.error);
  // From here on jobs run until they are stopped.
  setMeddle("hang", harness.home);
});
test.after(() => harness.close());

const running = ({ status }: Job) => status === "running";

test("health reports every limit and the running jobs", async () => {
  const { status, body, headers } = await harness.request("GET", "/health");
  assert.is(status, 200);
  assert.is(headers["cache-control"], "no-store");
  assert.ok(Compile(LabHealth).Check(body));
  assert.equal(body.limits, limits);
  assert.equal(body.operations, [...operations]);
  assert.is(body.active_job, null);
  assert.is(body.queued, 0);
  assert.is(body.queue_capacity, 2);
});

test("submission returns metadata; the list has summaries, newest first", async () => {
  const job = await harness.submit({ ...demoInspect, seed: 3 });
  assert.ok(Compile(Job).Check(job), "metadata is a job");
  assert.match(job.id, /^[0-9a-f]{32}$/);
  assert.is(job.status, "queued");
  assert.is(job.started, null);
  assert.is(job.config.seed, 3);
  assert.not("result" in job);
  const { body } = await harness.request("GET", "/jobs");
  assert.ok(Compile(JobList).Check(body));
  assert.equal(
    body.jobs.map((entry: { id: string }) => entry.id),
    [job.id, done.id],
  );
  for (const entry of body.jobs) assert.not("config" in entry || "result" in entry);
  assert.ok(job.created > done.created);
  await harness.request("POST", `/jobs/${job.id}/cancel`, {});
});

test("one job runs, two wait, the next is refused; they run in order", async () => {
  const first = await harness.submit(demoInspect);
  await harness.until(first.id, running);
  const second = await harness.submit(demoInspect);
  const third = await harness.submit(demoInspect);
  const refused = await harness.request("POST", "/jobs", demoInspect);
  assert.is(refused.status, 409);
  assert.match(refused.body.error, "all 2 places in the queue are taken");
  const health = (await harness.request("GET", "/health")).body;
  assert.is(health.active_job, first.id);
  assert.is(health.queued, 2);

  assert.is((await harness.request("POST", `/jobs/${first.id}/cancel`, {})).body.status, "cancelled");
  await harness.until(second.id, running);
  assert.is((await harness.request("GET", `/jobs/${third.id}`)).body.status, "queued");
  // A waiting job is cancelled at once and leaves its place.
  const cancelled = await harness.request("POST", `/jobs/${third.id}/cancel`, {});
  assert.is(cancelled.status, 200);
  assert.is(cancelled.body.status, "cancelled");
  assert.is(cancelled.body.started, null);
  assert.type(cancelled.body.ended, "number");
  assert.is((await harness.request("GET", "/health")).body.queued, 0);
  await harness.request("POST", `/jobs/${second.id}/cancel`, {});
});

test("simultaneous submissions take no more places than there are", async () => {
  const answers = await Promise.all(
    Array.from({ length: 12 }, () => harness.request("POST", "/jobs", demoInspect)),
  );
  const statuses = answers.map(({ status }) => status).sort();
  assert.equal(statuses, [...Array(3).fill(202), ...Array(9).fill(409)]);
  const taken = answers.filter(({ status }) => status === 202);
  await Promise.all(taken.map(({ body }) => harness.request("POST", `/jobs/${body.id}/cancel`, {})));
  assert.is((await harness.request("GET", "/health")).body.active_job, null);
});

test("cancel kills the worker, changes nothing on finished jobs, and needs no body", async () => {
  const job = await harness.submit(demoInspect);
  await harness.until(job.id, ({ progress }) => progress.stage === "artifact");
  const worker = harness.pids().at(-1) as number;
  const path = `/jobs/${job.id}/cancel`;
  assert.is((await harness.request("POST", path, { force: true })).status, 400);
  assert.is((await harness.request("POST", path, "[]")).status, 400);
  assert.is((await harness.request("POST", path, "{")).status, 400);
  const [one, two] = await Promise.all([harness.request("POST", path, {}), harness.request("POST", path)]);
  assert.is(one.body.status, "cancelled");
  assert.equal(one.body, two.body);
  assert.not("result" in one.body || "error" in one.body);
  await gone(worker);
  assert.equal((await harness.request("POST", path, {})).body, one.body);
  const unchanged = await harness.request("POST", `/jobs/${done.id}/cancel`, {});
  assert.is(unchanged.status, 200);
  assert.is(unchanged.body.status, "completed");
  assert.is((await harness.request("POST", `/jobs/${absent}/cancel`, {})).status, 404);
});

test("DELETE accepts finished jobs only", async () => {
  const job = await harness.submit(demoInspect);
  await harness.until(job.id, running);
  const waiting = await harness.submit(demoInspect);
  for (const [id, state] of [
    [job.id, "running"],
    [waiting.id, "queued"],
  ]) {
    const refused = await harness.request("DELETE", `/jobs/${id}`);
    assert.is(refused.status, 409);
    assert.match(refused.body.error, `is ${state}`);
  }
  for (const { id } of [waiting, job]) {
    await harness.request("POST", `/jobs/${id}/cancel`, {});
    const deleted = await harness.request("DELETE", `/jobs/${id}`);
    assert.is(deleted.status, 200);
    assert.equal(deleted.body, { deleted: true });
    assert.is((await harness.request("DELETE", `/jobs/${id}`)).status, 404);
    assert.is((await harness.request("GET", `/jobs/${id}`)).status, 404);
  }
});

test("a DELETE that fails leaves the job unchanged and can be retried", async () => {
  const job = await harness.submit(demoInspect);
  await harness.request("POST", `/jobs/${job.id}/cancel`, {});
  const before = (await harness.request("GET", `/jobs/${job.id}`)).body;
  // A folder that is not empty stands where the job's would go.
  const trash = join(harness.lab.folder, `.removed-${job.id}`);
  await mkdir(join(trash, "in the way"), { recursive: true });
  const failed = await harness.request("DELETE", `/jobs/${job.id}`);
  assert.is(failed.status, 500);
  assert.match(failed.body.error, `Job ${job.id} could not be deleted`);
  assert.equal((await harness.request("GET", `/jobs/${job.id}`)).body, before);
  const { body } = await harness.request("GET", "/jobs");
  assert.is(body.jobs[0].id, job.id);
  await rm(trash, { recursive: true });
  assert.is((await harness.request("DELETE", `/jobs/${job.id}`)).status, 200);
  assert.is((await harness.request("GET", `/jobs/${job.id}`)).status, 404);
});

test("artifacts: listed names only, with ranges", async () => {
  const base = `/jobs/${done.id}/artifacts`;
  const whole = await harness.request("GET", `${base}/activations.npz`);
  assert.is(whole.status, 200);
  assert.is(whole.headers["content-type"], "application/octet-stream");
  assert.is(whole.headers["content-length"], String(whole.bytes.length));
  const url = `${harness.lab.url}/lab/v1${base}/activations.npz`;
  const part = await send(url, "GET", undefined, { range: "bytes=0-3" });
  assert.is(part.status, 206);
  assert.is(part.bytes.toString("latin1"), "PK\x03\x04");
  const beyond = await send(url, "GET", undefined, { range: `bytes=${whole.bytes.length}-` });
  assert.is(beyond.status, 416);
  assert.type(beyond.body.error, "string");
  await writeFile(join(harness.lab.folder, done.id, "unlisted"), "secret");
  const names = [
    "job.json",
    "worker.log",
    "unlisted",
    "..",
    "%2e%2e%2flock",
    "..%2f..%2flab%2flock",
    "%00",
    "%zz",
    "",
  ];
  for (const name of names) {
    const { status, body } = await harness.request("GET", `${base}/${name}`);
    assert.is(status, 404, name);
    assert.type(body.error, "string");
  }
  assert.is((await harness.request("GET", `/jobs/${absent}/artifacts/activations.npz`)).status, 404);
});

test("malformed ids are 404, never a path", async () => {
  for (const id of [
    "..",
    "%2e%2e",
    "..%2f..",
    "x",
    absent.toUpperCase(),
    `${absent}0`,
    "lock",
    "%00",
    "constructor",
  ]) {
    for (const [method, suffix] of [
      ["GET", ""],
      ["DELETE", ""],
      ["POST", "/cancel"],
      ["GET", "/artifacts/job.json"],
    ]) {
      const { status } = await rawStatus(method as string, `/lab/v1/jobs/${id}${suffix}`);
      assert.is(status, 404, `${method} ${id}${suffix}`);
    }
  }
});

function rawStatus(method: string, path: string) {
  // Not through URL, which would resolve the dots.
  return method === "GET"
    ? rawGet(harness.lab.port, path, [`Host: localhost:${harness.lab.port}`])
    : send(harness.lab.url + path.replace("/../", "/%2e%2e/"), method, method === "POST" ? {} : undefined);
}

test("wrong methods are 405, unknown routes 404", async () => {
  for (const [method, path] of [
    ["PUT", "/jobs"],
    ["DELETE", "/jobs"],
    ["POST", "/health"],
    ["POST", `/jobs/${done.id}`],
    ["GET", `/jobs/${done.id}/cancel`],
    ["DELETE", `/jobs/${done.id}/artifacts/activations.npz`],
  ]) {
    const { status, headers, body } = await harness.request(method as string, path as string);
    assert.is(status, 405, `${method} ${path}`);
    assert.type(headers.allow, "string");
    assert.type(body.error, "string");
  }
  for (const path of ["/", "/v1", "/jobs/x/y", `/jobs/${done.id}/artifacts`]) {
    assert.is((await harness.request("GET", path)).status, 404, path);
  }
  assert.is((await send(`${harness.lab.url}/nothing`, "GET")).status, 404);
});

test("browsers and foreign hosts are refused on every route", async () => {
  for (const path of ["/lab/v1/health", "/lab/v1/jobs", "/nothing", `/lab/v1/jobs/${done.id}`]) {
    const good = `Host: 127.0.0.1:${harness.lab.port}`;
    for (const headers of [
      ["Host: evil.example"],
      [good, "Origin: null"],
      [good, "Sec-Fetch-Site: none"],
      [good, "Cookie: a=1"],
    ]) {
      const { status, body } = await rawGet(harness.lab.port, path, headers);
      assert.is(status, 403, `${path} ${headers}`);
      assert.type(JSON.parse(body).error, "string");
    }
  }
});

test("/ greets every client, reveals no job, and refuses pages and foreign hosts", async () => {
  const good = `Host: 127.0.0.1:${harness.lab.port}`;
  const page = await rawGet(harness.lab.port, "/", [good, "Sec-Fetch-Site: none", "Cookie: a=1"]);
  assert.is(page.status, 200);
  assert.match(page.body, "<h1>tapline lab</h1>");
  assert.not.match(page.body, done.id);
  assert.not.match(page.body, "<script");
  for (const headers of [
    ["Host: evil.example"],
    [good, "Origin: null"],
    [good, "Origin: http://a.example"],
  ]) {
    assert.is((await rawGet(harness.lab.port, "/", headers)).status, 403, String(headers));
  }
  assert.is((await send(`${harness.lab.url}/`, "POST", {})).status, 404);
});

test("a body of exactly the limit is read, one byte more is refused", async () => {
  const body = (length: number) => {
    const empty = JSON.stringify({ ...demoInspect, bogus: "" });
    return JSON.stringify({ ...demoInspect, bogus: "x".repeat(length - empty.length) });
  };
  const fits = await harness.request("POST", "/jobs", body(limits.job_body_bytes));
  assert.is(fits.status, 400);
  assert.match(fits.body.error, "unknown field");
  const over = await harness.request("POST", "/jobs", body(limits.job_body_bytes + 1));
  assert.is(over.status, 400);
  assert.match(over.body.error, "500001 bytes; at most 500000");
});

test("faults found without the model are a 400; a job that only the model can check is a 202", async () => {
  assert.is((await harness.request("POST", "/jobs", { ...demoInspect, layers: [0, 0] })).status, 400);
  assert.is((await harness.request("POST", "/jobs", "nonsense")).status, 400);
  const empty = await harness.request("POST", "/jobs", "");
  assert.equal([empty.status, empty.body.error], [400, "The body is empty; send a JSON object."]);
  assert.is((await harness.request("POST", "/jobs", Buffer.from([0xff, 0xfe]))).status, 400);
  const job = await harness.submit({ ...demoInspect, layers: [255] });
  await harness.request("POST", `/jobs/${job.id}/cancel`, {});
});

test.run();
