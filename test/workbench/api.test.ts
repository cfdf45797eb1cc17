/** The answers of the page's own service at each of its addresses, with scripted services: no browser. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { TimeoutError } from "../../src/client/index.js";
import { createApp } from "../../src/http/index.js";
import { keyPath, startWorkbench, type WorkbenchService } from "../../src/workbench/index.js";
import type { Workbench } from "../../src/workbench/routes.js";
import { apiRoutes } from "../../src/workbench/routes.js";
import { scripted, sendJson } from "../client/scripted.js";
import { inspectJob } from "../report/jobs.js";
import { type Answer, send } from "../support/request.js";
import { until } from "../support/until.js";
import { type Answering, type Answers, capabilities, stop, streams } from "./parts.js";

const home = mkdtempSync(join(tmpdir(), "tapline-api-"));
const page = join(home, "page");
const jobId = "0123456789abcdef0123456789abcdef";
const job = {
  ...inspectJob(),
  ...{ id: jobId, status: "completed", model: "demo", progress: { stage: "done", done: 1, total: 1 } },
  ...{ created: 1, started: 2, ended: 3 },
};
const asked: [string, string, unknown][] = [];
let answers: Answers = {};
let service: Awaited<ReturnType<typeof scripted>>;
let bench: WorkbenchService;
let session: Record<string, string>;

test.before(async () => {
  mkdirSync(page);
  for (const [name, text] of [
    ["index.html", "the page"],
    ["main.js", "script"],
    ["style.css", "style"],
    ["icon.svg", "<svg/>"],
    ["LICENSE.txt", "words"],
    ["main.js.map", "none of it"],
  ] as const)
    writeFileSync(join(page, name), text);
  service = await scripted((request, response) => {
    const { method, path, body } = request;
    asked.push([method, path, body === "" ? undefined : JSON.parse(body)]);
    const answer = answers[`${method} ${path}`];
    if (typeof answer === "function") (answer as Answering)(response, request);
    else sendJson(response, answer === undefined ? 404 : 200, answer ?? { error: `Nothing is at ${path}.` });
  });
  const { url } = service;
  bench = await startWorkbench({
    ...{ port: 0, home, server: url, lab: url, page },
    models: { layOut: async () => [] },
  });
  const token = bench.link().split("#")[1];
  let opened = false;
  void bench.opened.then(() => {
    opened = true;
  });
  await Promise.resolve();
  assert.not(opened);
  const own = { Host: `127.0.0.1:${bench.port}`, Origin: bench.url, "Content-Type": "application/json" };
  const answer = await send(`${bench.url}/api/session`, "POST", { token }, own);
  const [cookie] = (answer.headers["set-cookie"]![0] as string).split(";");
  session = { ...own, Cookie: cookie as string, "X-Tapline-Workbench": answer.body.secret };
  await bench.opened;
});
test.before.each(() => {
  asked.length = 0;
  answers = {
    "GET /lab/capabilities": capabilities(4),
    "GET /props": { model_path: "/models/m.gguf" },
    "GET /lab/v1/health": { active_job: null, queued: 0 },
    "GET /lab/v1/jobs": { jobs: [] },
    [`GET /lab/v1/jobs/${jobId}`]: job,
  };
});
test.after(async () => {
  await bench.close();
  await bench.close(); // once more is the same
  assert.not(existsSync(keyPath(home, bench.port)), "its key is gone");
  await service.close();
  rmSync(home, { recursive: true, force: true });
});

const api = (method: string, path: string, body?: unknown): Promise<Answer> =>
  send(`${bench.url}/api${path}`, method, body, {
    ...session,
    // Node frames the body of a DELETE only where its length is given.
    ...(body !== undefined && { "Content-Length": String(Buffer.byteLength(JSON.stringify(body))) }),
  });
const saidBy = async (method: string, path: string, body?: unknown) => {
  const { status, body: told } = await api(method, path, body);
  return [status, told?.error];
};
const state = async () => (await api("GET", "/state")).body;

test("the page and its files are served with types, and nothing else", async () => {
  const get = async (path: string) => {
    const { status, headers, bytes } = await send(`${bench.url}${path}`, "GET", undefined, session);
    return [status, headers["content-type"], status === 200 ? bytes.toString() : ""];
  };
  const shell = [200, "text/html; charset=utf-8", "the page"];
  assert.equal(await get("/"), shell);
  for (const view of [
    "chat",
    "inspect",
    "compare",
    "patch",
    "graph",
    "steer",
    "probe",
    "features",
    "drift",
    "jobs",
    "session",
    "models",
  ]) {
    assert.equal([await get(`/${view}`), await get(`/${view}/a`)], [shell, shell], view);
  }
  assert.is((await get("/other"))[0], 404);
  // A browser gets the page, which says that the address is wrong; a program gets an error.
  for (const [path, accept, kind] of [
    ["/other", "text/html,application/xhtml+xml", "text/html; charset=utf-8"],
    ["/jobs/a/b", "text/html", "text/html; charset=utf-8"],
    ["/other", "*/*", "application/json; charset=utf-8"],
    ["/page/none.js", "text/html", "application/json; charset=utf-8"],
    ["/api/none", "text/html", "application/json; charset=utf-8"],
  ] as const) {
    const { status, headers } = await send(`${bench.url}${path}`, "GET", undefined, {
      ...{ ...session, Accept: accept },
    });
    assert.equal([status, headers["content-type"]], [404, kind], `${path}, ${accept}`);
  }
  assert.equal(await get("/page/main.js"), [200, "text/javascript; charset=utf-8", "script"]);
  assert.equal(await get("/page/style.css"), [200, "text/css; charset=utf-8", "style"]);
  assert.equal(await get("/page/icon.svg"), [200, "image/svg+xml", "<svg/>"]);
  assert.equal(await get("/page/LICENSE.txt"), [200, "text/plain; charset=utf-8", "words"]);
  assert.is((await get("/page/main.js.map"))[0], 404);
  const health = await send(`${bench.url}/health`, "GET", undefined, session);
  assert.equal([health.status, health.body], [200, { status: "ok" }]);
});

test("a missing build of the page and a taken port are reported", async () => {
  const { url } = service;
  const begin = (given: object) =>
    startWorkbench({
      ...{ port: 0, home, server: url, lab: url, page, models: { layOut: async () => [] } },
      ...given,
    }).then(
      () => assert.unreachable() as never,
      (error: Error) => error.message,
    );
  const sentence = "The workbench's page is not built; run `npm run build`.";
  assert.is(await begin({ page: join(home, "none") }), sentence);
  const bare = join(home, "bare");
  mkdirSync(bare);
  writeFileSync(join(bare, "main.js"), "");
  assert.is(await begin({ page: bare }), sentence);
  assert.match(await begin({ port: bench.port }), String(bench.port));
});

test("a job gets a title, a note and a pin, and is deleted in the Lab", async () => {
  assert.equal(await saidBy("POST", `/jobs/${"0".repeat(32)}/note`, { note: "n" }), [
    ...[404, `Nothing is at /lab/v1/jobs/${"0".repeat(32)}.`],
  ]);
  const long = await api("POST", `/jobs/${jobId}/note`, { title: "x".repeat(121) });
  assert.is(long.status, 400);
  const { status, body } = await api("POST", `/jobs/${jobId}/note`, { title: "Mine", pinned: true });
  assert.is(status, 200);
  assert.equal([body.own, body.pinned], ["Mine", true]);
  assert.match(body.title, /^“/);
  assert.equal((await state()).notes[jobId], body);
  assert.is((await api("DELETE", `/jobs/${jobId}`)).status, 404, "the Lab says no");
  assert.equal((await state()).notes[jobId], body, "and the note stays");
  answers[`DELETE /lab/v1/jobs/${jobId}`] = { deleted: true };
  assert.equal((await api("DELETE", `/jobs/${jobId}`)).body, { deleted: true });
  assert.is((await state()).notes[jobId], undefined);
  assert.is((await api("DELETE", "/jobs/nonsense")).status, 404);
});

test("saved things are renamed and deleted where they are saved; every tab is notified", async () => {
  answers["POST /lab/vectors/old/rename"] = { name: "new" };
  answers["DELETE /lab/dictionaries/corner"] = { deleted: true };
  const before = (await state()).number;
  assert.equal((await api("POST", "/library/vectors/old/rename", { name: "new" })).body, { name: "new" });
  assert.equal((await api("DELETE", "/library/dictionaries/corner")).body, { deleted: true });
  assert.is((await state()).number, before + 2);
  assert.equal(
    asked.filter(({ 0: method }) => method !== "GET"),
    [
      ["POST", "/lab/vectors/old/rename", { name: "new" }],
      ["DELETE", "/lab/dictionaries/corner", undefined],
    ],
  );
  assert.is((await api("POST", "/library/vectors/old/rename", { name: "../x" })).status, 400);
  for (const path of ["/library/jobs/old", "/library/vectors/..%2Fx", "/library/probes/.hidden"]) {
    assert.is((await api("DELETE", path)).status, 404, path);
  }
});

test("a dictionary is added by its place, in the Lab", async () => {
  answers["PUT /lab/dictionaries/new"] = { name: "new", features: 4 };
  const added = { name: "new", from: "/a/folder", layer: 3 };
  const { status, body } = await api("POST", "/dictionaries", added);
  assert.equal([status, body.features], [201, 4]);
  assert.equal(asked.at(-1), ["PUT", "/lab/dictionaries/new", { from: "/a/folder", layer: 3 }]);
  assert.is((await api("POST", "/dictionaries", { ...added, name: "../x" })).status, 400);
  assert.is((await api("POST", "/dictionaries", { name: "new" })).status, 400);
});

test("a draft goes to the studies service of the environment or the given one, once it is complete", async () => {
  const words = {
    ...{ title: "T", question: "Q", hypothesis: "", method: "M", finding: "", limitations: "L" },
    ...{ license: "CC0-1.0", omissions: [] },
  };
  const draft = { jobs: [jobId], words };
  delete process.env.AGENT_RESEARCH_URL;
  assert.equal((await api("GET", "/studies/service")).body, { url: null });
  assert.match(
    (await saidBy("POST", "/studies/drafts", { ...draft, words: { ...words, title: "" } }))[1],
    /^Not ready to save yet: .*title/,
  );
  assert.match((await saidBy("POST", "/studies/drafts", draft))[1], /^No studies service is configured/);
  const plain = { ...draft, service: { url: "http://example.org", token: "t" } };
  assert.match((await saidBy("POST", "/studies/drafts", plain))[1], /must look like https:/);
});

test("everything that every tab shows, at the number of the last event that is in it", async () => {
  answers["GET /lab/v1/jobs"] = { jobs: [{ id: jobId, status: "running" }] };
  answers["GET /lab/v1/health"] = { active_job: jobId, queued: 1 };
  const told = await state();
  assert.equal(Object.keys(told), [
    ...["version", "started", "number", "server", "lab", "conversations", "jobs", "notes", "models"],
  ]);
  assert.equal([told.server.model, told.lab.active, told.jobs.length], ["m", jobId, 1]);
  assert.equal(told.models, { downloads: [], switching: null, changes: 0 });
  /** A stream's events, up to a given one. */
  const events = async (query: string, wanted: RegExp, meanwhile = async () => {}) => {
    const answer = await fetch(`${bench.url}/api/events${query}`, { headers: session });
    const reader = answer.body!.getReader();
    await meanwhile();
    let text = "";
    while (!wanted.test(text)) text += Buffer.from((await reader.read()).value as Uint8Array).toString();
    await reader.cancel();
    return text;
  };
  assert.match(await events("?after=0", /"number":/), /^: tapline\n\ndata: \{"number":1,/);
  assert.match(await events("?after=123456789012345", /missed/), '{"missed":true}');
  // From now on: the first reported event is the next one.
  for (const after of ["", "?after=x", "?after=1234567890123456", "?after=NOW"]) {
    const { number } = await state();
    const happens = async () => {
      answers["GET /lab/v1/jobs"] = { jobs: [{ id: jobId, status: "running", after }] };
      await state();
    };
    const text = await events(after.replace("NOW", number), /"number":\d+,/, happens);
    assert.match(text, new RegExp(`^: tapline\n\ndata: \\{"number":${number + 1},`), after);
  }
});

test("a conversation: begun, continued, continued from a token, stopped, removed", async () => {
  const tapline = { tokens: [{ token_id: 1, token: "a" }] };
  answers["POST /v1/chat/completions"] = streams([{ index: 0, delta: { content: "a" }, tapline }], [stop()]);
  answers["POST /v1/completions"] = streams([stop()]);
  answers["POST /apply-template"] = { prompt: "p" };
  answers["POST /tokenize"] = { tokens: [9] };
  const made = await api("POST", "/conversations", { text: "Hi" });
  assert.is(made.status, 201);
  const id = made.body.conversation as string;
  assert.is(made.body.turn, 0);
  const path = `/conversations/${id}`;
  const done = (of = path) =>
    until(async () => {
      const { conversation } = (await api("GET", of)).body;
      return conversation.turns.every(
        ({ answers }: { answers: { state: string }[] }) => answers[0]?.state === "done",
      );
    });
  await done();
  const read = await api("GET", path);
  assert.match(String(read.headers["content-type"]), /^application\/json/);
  assert.equal([read.body.conversation.id, read.body.number > 0], [id, true]);
  const second = await api("POST", `${path}/turns`, { text: "On" });
  assert.equal([second.status, second.body], [201, { conversation: id, turn: 1 }]);
  await done();
  const fork = await api("POST", `${path}/forks`, { turn: 0, answer: 0, token: 1 });
  assert.equal([fork.status, fork.body.turn], [201, 0]);
  await done(`/conversations/${fork.body.conversation}`);
  assert.equal((await api("POST", `${path}/stop`, {})).body, { stopped: true });
  assert.equal((await api("DELETE", path, {})).body, { deleted: true });
  assert.is((await api("GET", path)).status, 404);
  assert.equal(await saidBy("POST", `${path}/turns`, { text: "a" }), [
    404,
    `Conversation ${id} does not exist.`,
  ]);
});

test("no other model is served while an answer is given", async () => {
  let response = undefined as ServerResponse | undefined;
  answers["POST /v1/chat/completions"] = (given: ServerResponse) => {
    response = given.writeHead(200);
    given.write("\n");
  };
  const made = await api("POST", "/conversations", { text: "Hi" });
  assert.equal(await saidBy("POST", "/models/serve", { model: "demo" }), [
    ...[409, "An answer is being generated; stop it or wait until it is done."],
  ]);
  await until(() => response);
  await api("POST", `/conversations/${made.body.conversation}/stop`, {});
  await until(
    async () => !(await state()).conversations.some(({ running }: { running: boolean }) => running),
  );
  const [status, sentence] = await saidBy("POST", "/models/serve", { model: "demo" });
  assert.is(status, 409);
  assert.match(sentence as string, "was started outside the workbench");
});

test("the library works without a Lab, and every page learns of new items", async () => {
  const named = (name: string, more: object = {}) => ({ name, n_embd: 8, ...more });
  const here = { model: { id: "m", fingerprint: "served" } };
  const elsewhere = { model: { id: "o", fingerprint: "other" } };
  answers["GET /lab/capabilities"] = { ...capabilities(4), fingerprint: "served" };
  // Made on this model, or a file that names no model.
  answers["GET /lab/vectors"] = {
    vectors: [
      named("v", here),
      named("w", { model: null }),
      named("other", elsewhere),
      // A contrast set's direction, and its control, which is not offered.
      named("contrast-calm-0123abcd", here),
      named("contrast-calm-0123abcd-random", here),
      named("at-random", here),
      named("wide", { n_embd: 9 }),
    ],
  };
  answers["GET /lab/probes"] = {
    probes: [named("p", { ...here, layer: 3 }), named("q", { ...elsewhere, layer: 3 })],
  };
  answers["GET /lab/profiles"] = {
    profiles: [
      { name: "s", ...here, changed: [] },
      { name: "t", ...elsewhere, changed: [] },
      { name: "u", ...here, changed: ["The vector v has changed."] },
    ],
  };
  answers["GET /lab/dictionaries"] = {
    dictionaries: [
      named("d", { layer: 3 }),
      named("deep", { layer: 4 }),
      named("wide", { n_embd: 9, layer: 0 }),
    ],
  };
  answers["GET /lab/lenses"] = {
    lenses: [
      named("l", { model_layers: 4 }),
      named("m", { model_layers: null }),
      named("n", { model_layers: 5 }),
    ],
  };
  const names = async () => {
    const { body } = await api("GET", "/library");
    const lists = Object.entries(body as Record<string, Array<{ name: string }>>);
    return Object.fromEntries(lists.map(([list, all]) => [list, all.map(({ name }) => name)]));
  };
  const vectors = ["v", "w", "contrast-calm-0123abcd", "at-random"];
  assert.equal(await names(), {
    vectors,
    probes: ["p"],
    profiles: ["s"],
    dictionaries: ["d"],
    lenses: ["l", "m"],
  });
  answers["GET /lab/dictionaries"] = undefined;
  answers["GET /lab/lenses"] = undefined;
  // A server of an older version.
  answers["GET /lab/profiles"] = undefined;
  const left = { vectors, probes: ["p"], profiles: [], dictionaries: [], lenses: [] };
  assert.equal(await names(), left);
  answers["GET /lab/probes"] = undefined;
  assert.equal(await saidBy("GET", "/library"), [404, "Nothing is at /lab/probes."]);

  const texts = { positive: Array(6).fill("a"), negative: Array(6).fill("b") };
  for (const [path, request] of [
    ["/vectors", { name: "v", ...texts, layers: [1] }],
    ["/probes", { name: "v", ...texts, layer: 1 }],
  ] as const) {
    const { number } = await state();
    answers[`POST /lab${path}`] = { name: "v" };
    const made = await api("POST", path, request);
    assert.equal([made.status, made.body], [201, { name: "v" }]);
    assert.equal(asked.at(-1), ["POST", `/lab${path}`, request]);
    assert.is((await state()).number, number + 1);
    assert.is((await api("POST", path, { name: "v" })).status, 400);
  }
  answers["GET /lab/vectors/v"] = { name: "v" };
  assert.equal((await api("GET", "/vectors/v")).body, { name: "v" });
});

test("interventions are saved as a profile, which is renamed and deleted at the server", async () => {
  const tapline = { interventions: [{ kind: "scale", layer: 1, strength: 2 }] };
  answers["PUT /lab/profiles/s"] = { name: "s" };
  answers["POST /lab/profiles/s/rename"] = { name: "t" };
  answers["DELETE /lab/profiles/t"] = { deleted: true };
  const { number } = await state();
  const made = await api("POST", "/profiles", { name: "s", description: "Twice.", tapline });
  assert.equal([made.status, made.body], [201, { name: "s" }]);
  assert.equal(asked.at(-1), ["PUT", "/lab/profiles/s", { description: "Twice.", tapline }]);
  assert.is((await api("POST", "/library/profiles/s/rename", { name: "t" })).status, 200);
  assert.is((await api("DELETE", "/library/profiles/t", {})).status, 200);
  assert.is((await state()).number, number + 3, "every page learns of each change");
  for (const name of ["../x", "", "a/b", "<b>"])
    assert.is((await api("POST", "/profiles", { name, tapline })).status, 400, name);
});

test("tokens of several texts, each tokenized by the server", async () => {
  answers["POST /tokenize"] = { tokens: [{ id: 1, piece: "a" }] };
  const { body } = await api("POST", "/tokens", { texts: ["a", "b"] });
  assert.equal(body, { tokens: Array(2).fill([{ id: 1, text: "a" }]) });
  assert.is((await api("POST", "/tokens", { texts: [] })).status, 400);
});

test("a job is forwarded unchanged, and the Lab's answer is returned", async () => {
  answers["POST /lab/v1/jobs"] = job;
  const made = await api("POST", "/jobs", { operation: "inspect", model: "demo", prompt: "a", layers: [1] });
  assert.equal([made.status, made.body.id], [201, jobId]);
  assert.equal(asked[0], [
    ...["POST", "/lab/v1/jobs", { operation: "inspect", model: "demo", prompt: "a", layers: [1] }],
  ]);
  assert.ok(
    asked.some(([, path]) => path === "/lab/v1/health"),
    "and the jobs are looked at",
  );
  assert.is((await api("GET", `/jobs/${jobId}`)).body.id, jobId);
  asked.length = 0;
  answers[`POST /lab/v1/jobs/${jobId}/cancel`] = { ...job, status: "cancelled" };
  assert.is((await api("POST", `/jobs/${jobId}/cancel`, {})).body.status, "cancelled");
  assert.ok(asked.some(([, path]) => path === "/lab/v1/health"));
  assert.equal(await saidBy("GET", `/jobs/${"f".repeat(32)}`), [
    404,
    `Nothing is at /lab/v1/jobs/${"f".repeat(32)}.`,
  ]);
});

test("a job's figures and report, once it has a result", async () => {
  const { body } = await api("GET", `/jobs/${jobId}/findings`);
  assert.is(body.job.id, jobId);
  assert.ok(body.figures.length > 0 && body.figures.every((part: object) => "chart" in part));
  assert.ok(body.passages.every((part: object) => Object.keys(part).join() === "id,title"));
  assert.ok(Array.isArray(body.cautions) && body.summary !== undefined);
  const report = await api("GET", `/jobs/${jobId}/report`);
  assert.equal([report.status, report.headers["content-type"]], [200, "application/octet-stream"]);
  assert.match(report.bytes.toString(), /^<!doctype html>/i);
  const { result: _, ...running } = { ...job, status: "running" };
  answers[`GET /lab/v1/jobs/${jobId}`] = running;
  assert.equal((await api("GET", `/jobs/${jobId}/findings`)).body, {
    job: JSON.parse(JSON.stringify(running)),
  });
  assert.equal(await saidBy("GET", `/jobs/${jobId}/report`), [
    409,
    `Job ${jobId} has no result; it is running.`,
  ]);
});

test("artifacts and heads of attention, by names and numbers that are some", async () => {
  answers[`GET /lab/v1/jobs/${jobId}/artifacts/a-1.npz`] = (response: ServerResponse) =>
    void response.end("bytes");
  const file = await api("GET", `/jobs/${jobId}/artifacts/a-1.npz`);
  assert.equal(
    [file.status, file.headers["content-type"], file.bytes.toString()],
    [...[200, "application/octet-stream", "bytes"]],
  );
  for (const [layer, head] of [
    ["x", "0"],
    ["0", "1.5"],
    ["12345", "0"],
    ["0", "-1"],
  ]) {
    assert.equal(await saidBy("GET", `/jobs/${jobId}/attention/${layer}/${head}`), [
      ...[400, "Layer and head must be numbers."],
    ]);
  }
  assert.equal(await saidBy("GET", `/jobs/${jobId}/attention/0/9999`), [
    ...[404, `Job ${jobId} has no attention for layer 0, head 9999.`],
  ]);
});

test("a study of jobs, and the reason if there is none", async () => {
  const words = {
    ...{ title: "T", question: "", hypothesis: "", method: "", finding: "", limitations: "", license: "" },
    omissions: ["mine"],
  };
  const { status, body } = await api("POST", "/studies", { jobs: [jobId], words });
  assert.is(status, 200);
  assert.ok(body.faults.length > 0 && body.package === undefined, "words are missing");
  assert.is(body.entries.length > 0, true);
  assert.not(body.omissions.includes("mine"), "only what tapline leaves out");
  answers[`GET /lab/v1/jobs/${jobId}`] = { ...job, status: "running" };
  assert.equal(await saidBy("POST", "/studies", { jobs: [jobId], words }), [
    ...[409, `Job ${jobId} is still running; draft a study once it has ended.`],
  ]);
});

test("models: unavailable ones are reported with the reason", async () => {
  assert.equal(await saidBy("POST", "/models/downloads/7/stop", {}), [404, "Download 7 does not exist."]);
  assert.match(
    (await saidBy("POST", "/models/downloads", { model: "https://x" }))[1] as string,
    "is not a hub model",
  );
  assert.match(
    (await saidBy("POST", "/models/offers", { model: "tiny" }))[1] as string,
    "is not a hub model",
  );
  assert.equal(await saidBy("POST", "/models/remove", { model: "/etc/passwd" }), [
    ...[404, "Model /etc/passwd is not on this machine."],
  ]);
  assert.equal((await api("POST", "/models/fits", { model: "/etc/passwd" })).body, { memory: null });
  assert.is((await api("POST", "/models/fits", {})).status, 400);
});

test("a service that breaks off is a 502", async () => {
  answers[`GET /lab/v1/jobs/${jobId}`] = (response: ServerResponse) => void response.destroy();
  const [status, sentence] = await saidBy("GET", `/jobs/${jobId}`);
  assert.is(status, 502);
  assert.match(sentence as string, /^The connection to .* broke/);
});

test("a service that is silent is a 504, with the duration of its silence", async () => {
  const silent = () => Promise.reject(new TimeoutError("No response from http://127.0.0.1:8980 for 10 s."));
  const routes = apiRoutes({ services: { lab: { job: silent } } } as unknown as Workbench);
  const server = createServer(createApp({ routers: [routes] }).callback());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const { status, body } = await send(`http://127.0.0.1:${port}/api/jobs/${jobId}`, "GET");
  await new Promise((resolve) => server.close(resolve));
  assert.equal([status, body.error], [504, "No response from http://127.0.0.1:8980 for 10 s."]);
});

test("one request ends all sessions, including its own", async () => {
  assert.equal((await api("DELETE", "/sessions", {})).body, { ended: true });
  assert.is((await api("GET", "/state")).status, 401);
});

test.run();
