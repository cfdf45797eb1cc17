/** What commands about a running service ask of it, what they print of its answer, and how they end. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { CaptureResult, JobSummary } from "../../src/contracts/index.js";
import type { StoredProbe, StoredVector } from "../../src/contracts/library.js";
import { sample } from "../mcp/stand-in.js";
import { command } from "./in-process.js";
import { Refused, standIn } from "./stand-in.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-asked-"));
const service = await standIn();
test.before.each(() => service.begin());
test.after(async () => {
  await service.close();
  rmSync(folder, { recursive: true, force: true });
});

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

/** What a command of a server prints; it must end well and say nothing else. */
async function told(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await command([...words, "--url", service.url]);
  assert.equal([code, stderr], [0, ""], words.join(" "));
  return stdout;
}

async function ofLab(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await command([...words, "--lab", service.url]);
  assert.equal([code, stderr], [0, ""], words.join(" "));
  return stdout;
}

const sha256 = "0123456789abcdef".repeat(4);
const vector: StoredVector = {
  ...{ name: "calm", sha256, model: { id: "demo", fingerprint: "f" }, n_embd: 128, created: 1, note: "" },
  ...{ point: "block_out", operation: "add" },
  layers: [
    { layer: 4, length: 12.345, typical_row: 100, separation: 0.9876, shuffled_separation: 0.5 },
    { layer: 12, length: 3, separation: null },
  ],
};
const probe: StoredProbe = {
  ...{ name: "truth", sha256, model: null, n_embd: 64, created: 1, note: "A note." },
  ...{ point: "mid", operation: "probe", layer: 5, separation: 0.75 },
};
const vectorTable = `calm  0123456789abcdef
       layer        norm    relative       AUROC    shuffled
           4       12.35      12.3 %       0.988       0.500
          12        3.00           -           -           -
`;
const probeTable = `truth  0123456789abcdef  mid
       layer       AUROC    shuffled
           5       0.750           -
A note.
`;

test("vectors and probes are listed, shown, deleted and printed as JSON", async () => {
  service.answers = {
    "GET /lab/vectors": { vectors: [vector, { ...vector, name: "other", model: null }] },
    "GET /lab/probes": { probes: [probe, { ...probe, point: "block_out", model: { id: "demo" } }] },
    "GET /lab/vectors/calm": vector,
    "GET /lab/probes/a%2Fb": probe,
    "DELETE /lab/vectors/calm": { deleted: true },
    "DELETE /lab/probes/truth": { deleted: true },
  };
  assert.is(
    await told("vector", "list"),
    "calm                     layers 4,12, width 128, demo\nother                    layers 4,12, width 128, any model\n",
  );
  assert.is(
    await told("probe", "list"),
    "truth                    mid of layer 5, width 64, any model\ntruth                    layer 5, width 64, demo\n",
  );
  assert.is(await told("vector", "show", "calm"), vectorTable);
  assert.is(await told("probe", "show", "a/b"), probeTable);
  assert.is(await told("vector", "rm", "calm"), "Deleted calm.\n");
  assert.is(await told("probe", "rm", "truth"), "Deleted truth.\n");
  assert.equal(JSON.parse(await told("vector", "show", "calm", "--json")), vector);
  assert.equal(JSON.parse(await told("vector", "list", "--json")).vectors.length, 2);
  assert.equal(JSON.parse(await told("vector", "rm", "calm", "--json")), { deleted: true });
  service.answers = { "GET /lab/vectors": { vectors: [] }, "GET /lab/probes": { probes: [] } };
  assert.is(await told("vector", "list"), "No vectors saved yet. Create one with tapline vector make.\n");
  assert.is(await told("probe", "list"), "No probes saved yet. Create one with tapline probe make.\n");
});

test("making one sends both lists, and of the settings what was said", async () => {
  service.answers = { "POST /lab/vectors": vector, "POST /lab/probes": probe };
  const [positive, negative] = [file("positive.txt", "a\nb\n"), file("negative.json", '["c"]')];
  const texts = ["--positive", positive, "--negative", negative];
  assert.is(await told("vector", "make", "calm", ...texts, "--layers", "4,12"), vectorTable);
  await told("vector", "make", "calm", ...texts, "--layers", "1", "--position", "mean", "--method", "pca");
  assert.is(await told("probe", "make", "truth", ...texts, "--layer", "5"), probeTable);
  assert.equal(
    JSON.parse(
      await told("probe", "make", "truth", ...texts, "--layer", "0", "--position", "last", "--json"),
    ),
    probe,
  );
  const lists = { positive: ["a", "b"], negative: ["c"] };
  assert.equal(service.asked(), [
    ["POST /lab/vectors", { name: "calm", ...lists, layers: [4, 12] }],
    ["POST /lab/vectors", { name: "calm", ...lists, layers: [1], position: "mean", method: "pca" }],
    ["POST /lab/probes", { name: "truth", ...lists, layer: 5 }],
    ["POST /lab/probes", { name: "truth", ...lists, layer: 0, position: "last" }],
  ]);
});

test("adding sends the file's bytes, and what it does not say itself", async () => {
  const add = async (kind: "vector" | "probe", ...words: string[]) => {
    service.begin();
    service.answers = { [`PUT /lab/${kind}s/n`]: kind === "vector" ? vector : probe };
    await told(kind, "add", "n", ...words);
    return service.asked();
  };
  const bytes = file("v.npz", "bytes");
  assert.equal(await add("vector", bytes), [["PUT /lab/vectors/n", "bytes"]]);
  assert.equal(await add("probe", bytes, "--layer", "255", "--model", "m", "--restamp"), [
    ["PUT /lab/probes/n?layer=255&model=m&restamp=1", "bytes"],
  ]);
  assert.equal(await add("vector", bytes, "--format", "assistant-axis", "--entry", "e"), [
    ["PUT /lab/vectors/n?format=assistant-axis&entry=e", "bytes"],
  ]);
  // A refusal direction's layer stands in a file beside it, unless it is said.
  const refusal = file("direction.pt", "bytes");
  const ofRefusal = ["vector", refusal, "--format", "refusal"] as const;
  assert.equal(await add(...ofRefusal), [["PUT /lab/vectors/n?format=refusal", "bytes"]]);
  file("direction_metadata.json", '{"layer": 14, "pos": -2}');
  assert.equal(await add(...ofRefusal), [["PUT /lab/vectors/n?layer=14&format=refusal", "bytes"]]);
  assert.equal(await add(...ofRefusal, "--layer", "3"), [
    ["PUT /lab/vectors/n?layer=3&format=refusal", "bytes"],
  ]);
  file("direction_metadata.json", '{"layer": "14"}');
  assert.equal(await add(...ofRefusal), [["PUT /lab/vectors/n?format=refusal", "bytes"]]);
  assert.equal(await add("vector", refusal, "--format", "assistant-axis"), [
    ["PUT /lab/vectors/n?format=assistant-axis", "bytes"],
  ]);
  file("direction_metadata.json", "{");
  service.begin();
  for (const [words, sentence] of [
    [["add", "n", refusal, "--format", "refusal"], "direction_metadata.json is not valid JSON; use --layer."],
    [["add", "n", join(folder, "nowhere")], `Cannot read ${join(folder, "nowhere")} (ENOENT).`],
    [["add", "n", bytes, "--layer", "256"], "It must be a whole number between 0 and 255."],
  ] as const) {
    const { code, stderr } = await command(["vector", ...words, "--url", service.url]);
    assert.is(code, 2);
    assert.match(stderr, sentence);
  }
  assert.equal(service.asked(), []);
});

test("exporting asks for the form that the file's name says", async () => {
  service.answers = { "GET /lab/vectors/calm": Buffer.from("exported") };
  const [out, gguf] = [join(folder, "calm.SafeTensors"), join(folder, "calm.gguf")];
  assert.is(await told("vector", "export", "calm", out), `${out} (8 bytes)\n`);
  assert.equal(JSON.parse(await told("vector", "export", "calm", gguf, "--json")), {
    ...{ name: "calm", file: gguf, bytes: 8 },
  });
  assert.equal([readFileSync(out, "utf8"), readFileSync(gguf, "utf8")], ["exported", "exported"]);
  assert.equal(service.asked(), [
    ["GET /lab/vectors/calm?format=safetensors"],
    ["GET /lab/vectors/calm?format=gguf"],
  ]);
  for (const [kind, name, forms] of [
    ["vector", "calm.npz", ".safetensors or .gguf for llama.cpp's --control-vector"],
    ["vector", "calm", ".safetensors or .gguf for llama.cpp's --control-vector"],
    ["probe", "truth.gguf", ".safetensors"],
  ] as const) {
    const { code, stderr } = await command([kind, "export", "x", name, "--url", service.url]);
    assert.equal([code, stderr], [2, `tapline: ${name}: a ${kind} can be exported as ${forms}.\n`]);
  }
});

test("capture measures the named blocks, by default four", async () => {
  const measured = {
    ...sample(CaptureResult),
    tokens: ["a"],
    token_ids: [7],
    layers: [{ layer: 3, norms: [1.5] }],
    next_tokens: [{ token_id: 1, token: " b", probability: 0.5, logit: 1 }],
    note: "Measured.",
  };
  service.answers = {
    "GET /lab/capabilities": { model: "the model", n_layer: 16 },
    "POST /lab/activations": measured,
  };
  const text = await told("capture", "The x");
  assert.match(text, /^Model +the model\nCaptured +The x\n\n[\s\S]*\n\nNote +Measured\.\n$/);
  assert.equal(
    JSON.parse(await told("capture", "p", "--layers", "3,7", "--max-input-tokens", "256", "--json")),
    {
      ...measured,
    },
  );
  const asked = { model: "the model", prompt: "The x", layers: [3, 7, 11, 15] };
  assert.equal(service.asked(), [
    ["GET /lab/capabilities"],
    ["POST /lab/activations", asked],
    ["GET /lab/capabilities"],
    ["POST /lab/activations", { ...asked, prompt: "p", layers: [3, 7], max_input_tokens: 256 }],
  ]);
  // From a pipe the line's end is none of the text; a second one is.
  const stdin = Object.getOwnPropertyDescriptor(process, "stdin") as PropertyDescriptor;
  for (const [piped, prompt] of [
    ["two\nlines\r\n", "two\nlines"],
    ["one\n\n", "one\n"],
    [" as it is ", " as it is "],
  ] as const) {
    Object.defineProperty(process, "stdin", {
      configurable: true,
      value: Readable.from([Buffer.from(piped)]),
    });
    try {
      await told("capture", "-", "--json");
    } finally {
      Object.defineProperty(process, "stdin", stdin);
    }
    assert.is((service.asked().at(-1) as [string, { prompt: string }])[1].prompt, prompt);
  }
  service.answers = { "GET /lab/capabilities": { model: null, n_layer: null } };
  const none = await command(["capture", "x", "--url", service.url]);
  assert.equal([none.code, none.stderr], [1, "tapline: The server has no model loaded.\n"]);
  const long = await command(["capture", "x", "--url", service.url, "--max-input-tokens", "257"]);
  assert.match(long.stderr, "It must be a whole number between 1 and 256.");
});

const ids = ["1a", "2a", "1b"].map((beginning) => beginning.padEnd(32, "0"));
const [running, newest, oldest] = ids as [string, string, string];
const summary = (id: string, status: string) => ({
  ...{
    id,
    status,
    parent_id: null,
    endpoint: "/v1/completions",
    started: 1,
    ended: 2,
    model: "m",
    thinking: null,
  },
  ...{
    stream: false,
    truncated: false,
    finish_reason: "stop",
    output_tokens: 1,
    usage: null,
    preview: `of ${id}`,
  },
});

test("executions: by id, by its beginning, or the newest that has ended", async () => {
  const list = {
    executions: [summary(running, "running"), summary(newest, "failed"), summary(oldest, "completed")],
    ...{ capacity: 64, text_limit: 262_144, dropped: 0 },
  };
  service.answers = { "GET /executions": list, "DELETE /executions": { deleted: 2 } };
  for (const id of ids) {
    service.answers[`GET /executions/${id}`] = { ...summary(id, "completed"), input: {}, events: [] };
  }
  const found = async (name: string) => JSON.parse(await told("executions", name, "--json")).id;
  assert.is(await found("last"), newest);
  assert.is(await found("1b"), oldest);
  assert.is(await found("1a0"), running, "one that is running is found by its id");
  assert.is(await found(oldest), oldest);
  assert.equal(service.asked().at(-1), [`GET /executions/${oldest}`]);
  assert.is(service.asked().length, 7, "a whole id is asked for at once");
  for (const [name, sentence] of [
    ["1", "2 requests start with 1."],
    ["9", "The server has no record of request 9; it keeps only recent ones."],
  ] as const) {
    const { code, stderr } = await command(["executions", name, "--url", service.url]);
    assert.equal([code, stderr], [1, `tapline: ${sentence}\n`]);
  }
  assert.match(await told("executions", "last"), newest.slice(0, 8));
  assert.match(await told("executions"), `of ${oldest.slice(0, 4)}`);
  assert.equal(JSON.parse(await told("executions", "--json")), list);
  service.begin();
  const one = await command(["executions", "last", "--clear", "--url", service.url]);
  assert.equal(
    [one.code, one.stderr, service.asked()],
    [2, "tapline: --clear removes all finished requests and takes no id.\n", []],
  );
  service.answers = { "GET /executions": list, "DELETE /executions": { deleted: 2 } };
  assert.is(await told("executions", "--clear"), "Finished requests cleared.\n");
  assert.equal(JSON.parse(await told("executions", "--clear", "--json")), { deleted: 2 });
  service.answers["GET /executions"] = { ...list, executions: list.executions.slice(0, 1) };
  assert.is((await command(["executions", "last", "--url", service.url])).code, 1, "none has ended");
});

const jobOf = (id: string, more: object = {}) => ({
  ...sample(JobSummary),
  ...{ id, status: "completed", operation: "inspect", model: "demo", created: 1, started: 1, ended: 2 },
  ...{ config: { operation: "inspect", model: "demo", prompt: "p" } },
  ...more,
});

test("jobs: as many as are wanted, and how many are left out", async () => {
  const jobs = Array.from({ length: 22 }, (_, index) => jobOf(index.toString(16).padStart(32, "a")));
  service.answers = { "GET /lab/v1/jobs": { jobs } };
  const listed = async (...words: string[]) => {
    const text = await ofLab("jobs", ...words);
    return [text.match(/^a{30}/gm)?.length ?? 0, /… .*/.exec(text)?.[0]];
  };
  assert.equal(await listed(), [20, "… and 2 older; see --limit"]);
  assert.equal(await listed("--limit", "3"), [3, "… and 19 older; see --limit"]);
  assert.equal(await listed("--limit", "22"), [22, undefined]);
  assert.equal(JSON.parse(await ofLab("jobs", "--limit", "3", "--json")), { jobs });
  service.answers = { "GET /lab/v1/jobs": { jobs: [] } };
  assert.equal(JSON.parse(await ofLab("jobs", "--json")), { jobs: [] });
});

test("a job is named by its id, a unique prefix of four characters, or last", async () => {
  const [first, second] = ["abcd1".padEnd(32, "0"), "abcd2".padEnd(32, "0")] as [string, string];
  service.answers = {
    "GET /lab/v1/jobs": { jobs: [jobOf(first), jobOf(second)] },
    [`POST /lab/v1/jobs/${first}/cancel`]: jobOf(first, { status: "cancelled" }),
    [`POST /lab/v1/jobs/${second}/cancel`]: jobOf(second),
  };
  assert.is(await ofLab("cancel", "last"), `Job ${first} is cancelled.\n`);
  assert.is(await ofLab("cancel", "abcd2"), `Job ${second} is completed.\n`);
  assert.equal(JSON.parse(await ofLab("cancel", second, "--json")).id, second);
  assert.is(service.asked().length, 5, "a whole id is asked for at once");
  for (const [name, sentence] of [
    ["abcd", "2 jobs start with abcd."],
    ["abc", "There is no job abc; use its id, at least four characters of it, or last."],
    ["abcd3", "There is no job abcd3; use its id, at least four characters of it, or last."],
    ["ABCD1", "There is no job ABCD1; use its id, at least four characters of it, or last."],
  ] as const) {
    const { code, stderr } = await command(["cancel", name, "--lab", service.url]);
    assert.equal([code, stderr], [1, `tapline: ${sentence}\n`]);
  }
  service.answers = { "GET /lab/v1/jobs": { jobs: [] } };
  const none = await command(["cancel", "last", "--lab", service.url]);
  assert.equal([none.code, none.stderr], [1, "tapline: The Lab has no jobs yet.\n"]);
});

test("job --wait downloads the files and exits with 1 unless the job completed", async () => {
  const id = "c".repeat(32);
  const states = ["queued", "running", "completed", "completed"];
  const result = { artifacts: ["a.npz", "sub/b.npz"] };
  const job = (status: string) => jobOf(id, { status, ...(status === "completed" && { result }) });
  service.answers = {
    [`GET /lab/v1/jobs/${id}`]: () => job(states.shift() ?? "completed"),
    [`GET /lab/v1/jobs/${id}/artifacts/a.npz`]: Buffer.from("A"),
    [`GET /lab/v1/jobs/${id}/artifacts/sub%2Fb.npz`]: Buffer.from("B"),
  };
  const out = join(folder, "new", "out");
  const done = await command(["job", id, "--wait", "--json", "--out", out, "--lab", service.url]);
  assert.is(done.code, 0, done.stderr);
  assert.equal(JSON.parse(done.stdout), job("completed"));
  assert.equal(states, []);
  // Only the name counts: what a service calls a file leads nowhere else.
  assert.equal(
    [readFileSync(join(out, "a.npz"), "utf8"), readFileSync(join(out, "b.npz"), "utf8")],
    ["A", "B"],
  );
  assert.equal(JSON.parse(readFileSync(join(out, "job.json"), "utf8")), job("completed"));
  for (const status of ["failed", "cancelled", "interrupted"]) {
    service.answers[`GET /lab/v1/jobs/${id}`] = jobOf(id, { status, error: "Why." });
    const words = ["job", id, "--json", "--lab", service.url];
    const waited = await command([...words, "--wait"]);
    assert.equal([waited.code, JSON.parse(waited.stdout).status], [1, status]);
    assert.is((await command(words)).code, 0, "who only looks is told");
  }
  // A service that refuses is no end of the job.
  service.answers[`GET /lab/v1/jobs/${id}`] = new Refused(503, "Not now.");
  const refused = await command(["job", id, "--wait", "--lab", service.url]);
  assert.equal([refused.code, refused.stdout, refused.stderr], [3, "", "tapline: Not now.\n"]);
  // Nor is one that falters while the job waits for its turn.
  const seen = [new Refused(500, "It faltered."), job("queued")];
  service.answers[`GET /lab/v1/jobs/${id}`] = () => seen.shift();
  const faltered = await command(["job", id, "--wait", "--lab", service.url]);
  assert.equal([faltered.code, faltered.stdout, faltered.stderr], [1, "", "tapline: It faltered.\n"]);
  // Files that cannot be written are told behind what can be shown.
  service.answers[`GET /lab/v1/jobs/${id}`] = job("completed");
  const lost = await command([
    "job",
    id,
    "--json",
    "--out",
    join(file("plain", ""), "x"),
    "--lab",
    service.url,
  ]);
  assert.equal([lost.code, JSON.parse(lost.stdout).id], [1, id]);
  assert.match(lost.stderr, /^tapline: Cannot write to .*plain\/x \(ENOTDIR\); see --out\.\n$/);
});

test("rm takes whole job ids and deletes nothing if one does not exist", async () => {
  const [first, second] = ["d".repeat(32), "e".repeat(32)];
  service.answers = { [`DELETE /lab/v1/jobs/${first}`]: {}, [`DELETE /lab/v1/jobs/${second}`]: {} };
  assert.is(await ofLab("rm", first, second), `Deleted job ${first}.\nDeleted job ${second}.\n`);
  service.begin();
  for (const name of ["last", "d".repeat(31), "D".repeat(32)]) {
    const { code, stderr } = await command(["rm", first, name, "--lab", service.url]);
    const sentence = `${name} is neither a job id (32 hexadecimal characters) nor a hub model (owner/name).`;
    assert.equal([code, stderr], [2, `tapline: ${sentence}\n`]);
  }
  assert.equal(service.asked(), []);
});

test("stats: a server's, or a router's, which has backends", async () => {
  const stats = {
    ...{ uptime_seconds: 5, model: "m", tokens: { prompt: 1, cached: 0, generated: 2 } },
    requests: { total: 1, active: 0, queued: 0, failed: 0, cancelled: 0 },
    throughput: { prompt_tokens_per_second: 1, generated_tokens_per_second: 2 },
    latency_ms: Object.fromEntries(
      ["time_to_first_token", "inter_token", "total"].map((name) => [name, { p50: 1, p95: 1, p99: 1 }]),
    ),
    ...{ slots: { total: 4, busy: 3 }, memory: { rss_bytes: 1e6, model_bytes: 1e6 } },
    captures: { served: 0, expired: 0, rejected: 0 },
  };
  service.answers = { "GET /stats": stats };
  assert.match(await told("stats"), "3 of 4 busy");
  assert.equal(JSON.parse(await told("stats", "--json")), stats);
});

test("what a service refuses, and that it is not there, by the exit code", async () => {
  for (const [status, code] of [
    [400, 2],
    [404, 1],
    [409, 1],
    [500, 1],
    [503, 3],
  ] as const) {
    service.answers = { "GET /stats": new Refused(status, "A sentence.") };
    const ran = await command(["stats", "--url", service.url]);
    assert.equal([ran.code, ran.stdout, ran.stderr], [code, "", "tapline: A sentence.\n"], String(status));
  }
});

test.run();
