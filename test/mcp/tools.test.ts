/** Every tool before clients of the test's: what it asks of them, what it shows of the answer, and how it refuses. No process. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, InMemoryTransport } from "@modelcontextprotocol/client";
import type { McpServer } from "@modelcontextprotocol/server";
import type { TSchema } from "typebox";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  DraftMayExistError,
  ResearchError,
  type ResearchErrorDetails,
  TaplineError,
  TimeoutError,
} from "../../src/client/index.js";
import { Capabilities, CaptureResult, JobSummary, LabHealth } from "../../src/contracts/index.js";
import { StoredDictionary, StoredLens, StoredProbe, StoredVector } from "../../src/contracts/library.js";
import { Comment, StudyEnvelope, StudySummary } from "../../src/contracts/studies/index.js";
import { labServer, researchServer } from "../../src/mcp/index.js";
import { samplePackage } from "../studies/support/packages.js";
import { until } from "../support/until.js";
import { type ToolInfo, type ToolResult, unfence } from "./session.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-tools-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

/** Calls of the clients, without their signals, which are looked at here. */
const calls: unknown[][] = [];
/** What the clients answer, by method; a function is called. */
let answers: Record<string, unknown> = {};
/** The signal of the last call. */
let signal: AbortSignal;

function standIn(of: string): never {
  const call =
    (method: string) =>
    async (...words: unknown[]) => {
      const { signal: given, ...options } = (words.pop() ?? {}) as { signal?: AbortSignal };
      assert.instance(given, AbortSignal, `${method} can be ended`);
      signal = given as AbortSignal;
      calls.push([`${of}.${method}`, ...words, ...(Object.keys(options).length > 0 ? [options] : [])]);
      const answer = answers[method];
      return typeof answer === "function" ? answer(...words, options) : answer;
    };
  return new Proxy({}, { get: (_, method) => call(String(method)) }) as never;
}

test.before.each(() => {
  calls.length = 0;
  answers = {};
});

/** Servers with their clients, each connected once. */
const connections = new Map<string, Promise<Client>>();
test.after(async () => {
  for (const client of connections.values()) await (await client).close();
});

function connected(name: string, make: () => McpServer): Promise<Client> {
  const connect = async () => {
    const client = new Client({ name: "test", version: "1" });
    const [near, far] = InMemoryTransport.createLinkedPair();
    await make().connect(far);
    await client.connect(near);
    return client;
  };
  const found = connections.get(name) ?? connect();
  connections.set(name, found);
  return found;
}

const labUrl = "http://127.0.0.1:8980";
const lab = (artifacts: string | null = null) =>
  connected(`lab ${artifacts}`, () =>
    labServer({ lab: standIn("lab"), labUrl, serving: standIn("serving"), artifacts }),
  );
const research = (drafts = true) =>
  connected(`research ${drafts}`, () => researchServer(standIn("research"), { drafts }));

const call = async (client: Client, name: string, input: object = {}) =>
  (await client.callTool({ name, arguments: input as Record<string, unknown> })) as ToolResult;

/** What a result shows, which is the same twice. */
async function shown(client: Client, name: string, input: object = {}) {
  const result = await call(client, name, input);
  assert.not(result.isError, result.content[0]?.text);
  const { untrusted, notice, hidden_characters, ...data } = result.structuredContent;
  assert.is(untrusted, true);
  assert.match(notice, /untrusted data/);
  assert.equal(unfence(result.content[0]!.text).data, data);
  return { ...data, hidden_characters };
}

async function refused(client: Client, name: string, input: object = {}): Promise<string> {
  const result = await call(client, name, input);
  assert.ok(result.isError, JSON.stringify(result));
  assert.is(result.structuredContent, undefined);
  return result.content[0]!.text;
}

/** The least that a schema takes. */
// biome-ignore lint/suspicious/noExplicitAny: a schema of any kind, and its value
function sample(schema: any): any {
  if ("const" in schema) return schema.const;
  if (schema.enum) return schema.enum[0];
  if (schema.anyOf) return sample(schema.anyOf[0]);
  if (schema.type === "object") {
    const { required = [], properties } = schema as {
      required?: string[];
      properties: Record<string, TSchema>;
    };
    return Object.fromEntries(required.map((name) => [name, sample(properties[name])]));
  }
  return { array: [], string: "x", number: 1, integer: 1, boolean: true, null: null }[schema.type as string];
}

const [health, vector, probe, dictionary, lens, capabilities, capture, job] = [
  ...[
    LabHealth,
    StoredVector,
    StoredProbe,
    StoredDictionary,
    StoredLens,
    Capabilities,
    CaptureResult,
    JobSummary,
  ],
].map(sample);
const [summary, comment] = [StudySummary, Comment].map(sample);
const uuid = "12345678-1234-4234-8234-123456789abc";
const id = "0123456789abcdef0123456789abcdef";

test("what each tool may do is told: whether it only reads, removes something, reaches beyond this machine", async () => {
  const told = async (client: Client) =>
    Object.fromEntries(
      ((await client.listTools()).tools as unknown as ToolInfo[]).map(({ name, annotations }) => {
        const { readOnlyHint, destructiveHint, openWorldHint } = annotations as Record<string, boolean>;
        const words = [readOnlyHint && "reads", destructiveHint && "removes", openWorldHint && "far"];
        return [name, words.filter(Boolean).join(" ")];
      }),
    );
  const tools = {
    lab_health: "reads",
    lab_jobs: "reads",
    lab_job: "reads",
    lab_submit: "",
    lab_dictionaries: "reads",
    lab_add_dictionary: "far",
    lab_lenses: "reads",
    lab_add_lens: "far",
    lab_forget: "removes",
    lab_cancel: "removes",
    lab_artifacts: "reads",
    serving_capabilities: "reads",
    serving_inspect: "reads",
    serving_generate: "reads",
    serving_library: "reads",
    serving_make_vector: "",
    serving_make_probe: "",
    serving_forget: "removes",
  };
  assert.equal(await told(await lab()), tools);
  assert.equal(await told(await lab(folder)), { ...tools, lab_artifacts: "" }, "it writes files there");
  const readers = { list_studies: "reads far", get_study: "reads far", get_discussion: "reads far" };
  assert.equal(await told(await research(false)), readers);
  assert.equal(await told(await research()), { ...readers, save_private_draft: "far" });
});

test("what a tool asks of its client, and shows", async () => {
  const client = await lab();
  const texts = { positive: Array(6).fill("a"), negative: Array(6).fill("b") };
  const vectorRequest = { name: "v", ...texts, layers: [1] };
  const probeRequest = { name: "p", ...texts, layer: 1 };
  for (const [name, input, method, asked, answer, told] of [
    ["lab_health", {}, "lab.health", [], health, { health }],
    [
      "lab_submit",
      { operation: "inspect", model: "demo", prompt: "a", layers: [1] },
      "lab.submit",
      ["inspect", "demo", { prompt: "a", layers: [1] }],
      job,
      { job },
    ],
    ["lab_cancel", { id }, "lab.cancel", [id], job, { job }],
    [
      "lab_add_dictionary",
      { name: "d", from: "owner/name/x", layer: 3 },
      "lab.addDictionary",
      ["d", "owner/name/x", { layer: 3 }],
      dictionary,
      { dictionary },
    ],
    [
      "lab_add_lens",
      { name: "l", from: "demo", revision: "main" },
      "lab.addLens",
      ["l", "demo", { revision: "main" }],
      lens,
      { lens },
    ],
    [
      "lab_forget",
      { kind: "dictionary", name: "d" },
      "lab.removeDictionary",
      ["d"],
      undefined,
      { forgotten: "d" },
    ],
    ["lab_forget", { kind: "lens", name: "l" }, "lab.removeLens", ["l"], undefined, { forgotten: "l" }],
    ["serving_capabilities", {}, "serving.capabilities", [], capabilities, { capabilities }],
    [
      "serving_inspect",
      { prompt: "a", layers: [2], max_input_tokens: 9 },
      "serving.inspect",
      ["a", { layers: [2], maxInputTokens: 9 }],
      capture,
      { capture },
    ],
    ["serving_make_vector", vectorRequest, "serving.makeVector", [vectorRequest], vector, { vector }],
    ["serving_make_probe", probeRequest, "serving.makeProbe", [probeRequest], probe, { probe }],
    [
      "serving_forget",
      { kind: "vector", name: "v" },
      "serving.removeVector",
      ["v"],
      undefined,
      { forgotten: "v" },
    ],
    [
      "serving_forget",
      { kind: "probe", name: "p" },
      "serving.removeProbe",
      ["p"],
      undefined,
      { forgotten: "p" },
    ],
  ] as [string, object, string, unknown[], unknown, object][]) {
    calls.length = 0;
    answers = { [method.split(".")[1] as string]: answer };
    assert.equal(await shown(client, name, input), { ...told, hidden_characters: 0 }, name);
    assert.equal(calls, [[method, ...asked]], name);
  }
});

test("lists: as many as are wanted and as fit, and how many there are; what hides is written out and counted", async () => {
  const client = await lab();
  const jobs = Array.from({ length: 5 }, (_, index) => ({ ...job, model: `m${index}` }));
  answers = { jobs };
  for (const [limit, count] of [
    [undefined, 5],
    [2, 2],
    [5, 5],
    [9, 5],
  ] as const) {
    const { jobs: told, total, hidden_characters } = await shown(client, "lab_jobs", { limit });
    assert.equal([told, total, hidden_characters], [jobs.slice(0, count), 5, 0]);
  }
  // Ten thousand characters each: three fit into a page, with the room between them.
  const long = (one: object) =>
    Array.from({ length: 5 }, () => ({ ...one, name: `\u202e${"n".repeat(11_000)}` }));
  answers = { dictionaries: long(dictionary), lenses: long(lens) };
  for (const [name, field] of [
    ["lab_dictionaries", "dictionaries"],
    ["lab_lenses", "lenses"],
  ] as const) {
    const result = await shown(client, name);
    assert.equal([result[field].length, result.total, result.hidden_characters], [3, 5, 5], name);
    assert.is(result[field][0].name, `\\u{202E}${"n".repeat(11_000)}`);
  }
});

test("a job is waited for only where it still runs and somebody wants that, and is read once more", async () => {
  const client = await lab();
  const status = (status: string) => ({ ...job, status });
  const waited = async (states: string[], input: object, wait: unknown = () => undefined) => {
    calls.length = 0;
    answers = { job: () => status(states.shift() as string), wait };
    const told = await shown(client, "lab_job", { id, ...input });
    return [told.job.status, ...calls.map(([method, ...words]) => [method, ...words.slice(1)].flat())];
  };
  const wait = ["lab.wait", { timeoutMs: 2500 }];
  assert.equal(await waited(["running"], {}), ["running", ["lab.job"]]);
  assert.equal(await waited(["running"], { wait_seconds: 0 }), ["running", ["lab.job"]]);
  const both = ["completed", ["lab.job"], wait, ["lab.job"]];
  assert.equal(await waited(["running", "completed"], { wait_seconds: 2.5 }), both);
  assert.equal(await waited(["queued", "completed"], { wait_seconds: 2.5 }), both);
  for (const end of ["completed", "failed", "cancelled", "interrupted"]) {
    assert.equal(await waited([end], { wait_seconds: 2.5 }), [end, ["lab.job"]]);
  }
  // However the wait ends, the job is told as it is then.
  for (const error of [new TaplineError("It failed."), new TimeoutError("still running")]) {
    const ends = () => Promise.reject(error);
    assert.equal(await waited(["running", "failed"], { wait_seconds: 2.5 }, ends), [
      ...["failed", ["lab.job"], wait, ["lab.job"]],
    ]);
  }
});

test("a job's piece is at its pointer, from an offset on; the whole is cut where it does not fit", async () => {
  const client = await lab();
  const tokens = Array.from({ length: 300 }, (_, index) => `token ${index} ${"x".repeat(200)}`);
  answers = { job: { ...job, result: { tokens } } };
  const whole = await shown(client, "lab_job", { id });
  assert.equal(whole.cut, [{ pointer: "/result/tokens", total: 300, shown: 100 }]);
  assert.equal(whole.job.result.tokens, tokens.slice(0, 100));
  const { piece } = await shown(client, "lab_job", { id, pointer: "/result/tokens", offset: 298 });
  assert.equal([piece.value, piece.offset, piece.next_offset], [tokens.slice(298), 298, null]);
  assert.is((await shown(client, "lab_job", { id, pointer: "/result/tokens" })).piece.value[0], tokens[0]);
  assert.is(await refused(client, "lab_job", { id, pointer: "/a" }), 'The job has nothing at "/a".');
});

test("files of a job: their addresses; one is downloaded where there is a folder for it, and only a file of the job's", async () => {
  const names = ["a b.npz", "c.safetensors"];
  answers = {
    job: { ...job, result: { artifacts: names } },
    artifact: (_id: string, _name: string, to: string) => to,
  };
  const url = `http://127.0.0.1:8980/lab/v1/jobs/${id}/artifacts`;
  const artifacts = [
    { name: "a b.npz", url: `${url}/a%20b.npz` },
    { name: "c.safetensors", url: `${url}/c.safetensors` },
  ];
  const reading = await lab();
  assert.equal(await shown(reading, "lab_artifacts", { id }), { artifacts, hidden_characters: 0 });
  assert.is(
    await refused(reading, "lab_artifacts", { id, name: "a b.npz" }),
    "Downloads need `tapline mcp lab --artifacts <folder>`; fetch its url instead.",
  );
  assert.is(await refused(reading, "lab_artifacts", { id, name: "d" }), 'The job has no artifact "d".');
  const writing = await lab(folder);
  const path = join(folder, id, "a b.npz");
  assert.equal(await shown(writing, "lab_artifacts", { id, name: "a b.npz" }), {
    ...{ artifacts, path, hidden_characters: 0 },
  });
  assert.equal(calls.at(-1), ["lab.artifact", id, "a b.npz", path]);
  assert.ok(existsSync(join(folder, id)), "the folder is made");
  await shown(writing, "lab_artifacts", { id, name: "c.safetensors" });
  assert.is(await refused(writing, "lab_artifacts", { id, name: "../x" }), 'The job has no artifact "../x".');
  answers = { job };
  assert.equal((await shown(writing, "lab_artifacts", { id })).artifacts, []);
});

test("a submission is refused with the sentence that the Lab would answer, before it is asked", async () => {
  const client = await lab();
  const sentence = await refused(client, "lab_submit", {
    ...{ operation: "compare", model: "demo", prompt: "a", intervention: "patch" },
  });
  assert.match(sentence, /^donor_prompt: is required for patch\.$/);
  assert.match(await refused(client, "lab_jobs", { limit: 101 }), "limit: at most 100, got 101.");
  assert.equal(calls, []);
});

test("an answer is asked for with what was given and nothing else; what of it did not fit is named", async () => {
  const client = await lab();
  const told = (given: object) => [{ choice: 0, text: "t", reasoning: "r", finishReason: "stop", ...given }];
  answers = { answers: told({ tapline: { tokens: [] } }) };
  const messages = [{ role: "user", content: "a" }];
  for (const [input, question, request] of [
    [{ prompt: "a" }, "a", { max_tokens: 256 }],
    [{ messages }, messages, { max_tokens: 256 }],
    [
      {
        messages,
        thinking: false,
        max_tokens: 9,
        temperature: 0.5,
        seed: 3,
        tapline: { watch: { layers: [1] } },
      },
      messages,
      {
        ...{ max_tokens: 9, temperature: 0.5, seed: 3, tapline: { watch: { layers: [1] } } },
        chat_template_kwargs: { enable_thinking: false },
      },
    ],
    [
      { messages, thinking: true },
      messages,
      { max_tokens: 256, chat_template_kwargs: { enable_thinking: true } },
    ],
  ] as const) {
    calls.length = 0;
    const { answers: given, cut } = await shown(client, "serving_generate", input);
    assert.equal(given, [
      { choice: 0, text: "t", reasoning: "r", tapline: { tokens: [] }, finish_reason: "stop" },
    ]);
    assert.equal(cut, []);
    assert.equal(calls, [["serving.answers", question, { request }]]);
  }
  answers = { answers: told({ text: "\u200b".repeat(20_000), finishReason: null }) };
  const long = await shown(client, "serving_generate", { prompt: "a" });
  assert.equal([long.hidden_characters, long.answers[0].finish_reason], [20_000, null]);
  assert.equal(long.cut, [{ pointer: "/answers/0/text", total: 160_000, shown: 12_000 }]);
  calls.length = 0;
  const one = "One of messages and prompt is required, and not both.";
  assert.is(await refused(client, "serving_generate", {}), one);
  assert.is(await refused(client, "serving_generate", { prompt: "a", messages }), one);
  for (const thinking of [true, false]) {
    assert.is(
      await refused(client, "serving_generate", { prompt: "a", thinking }),
      "thinking belongs to messages: a raw prompt has no chat template.",
    );
  }
  assert.equal(calls, []);
});

test("the library: everything, one kind, or one by its name", async () => {
  const client = await lab();
  answers = { vectors: [vector], probes: [probe], vector, probe };
  for (const [input, methods, told] of [
    [{}, ["vectors", "probes"], { vectors: [vector], probes: [probe] }],
    [{ kind: "vector" }, ["vectors"], { vectors: [vector] }],
    [{ kind: "probe" }, ["probes"], { probes: [probe] }],
    [{ kind: "vector", name: "v" }, ["vector v"], { vectors: [vector] }],
    [{ kind: "probe", name: "p" }, ["probe p"], { probes: [probe] }],
  ] as const) {
    calls.length = 0;
    assert.equal(await shown(client, "serving_library", input), { ...told, cut: [], hidden_characters: 0 });
    assert.equal(
      calls.map((words) => words.join(" ")),
      methods.map((method) => `serving.${method}`),
    );
  }
  const sentence = "kind is required with name: vector or probe.";
  assert.is(await refused(client, "serving_library", { name: "v" }), sentence);
});

test("pages of studies and comments go on behind what was shown, and end where the service does", async () => {
  const client = await research();
  for (const [name, method, field, one, rest, input, asked] of [
    ["list_studies", "listStudies", "items", summary, {}, { query: "q", limit: 5, offset: 20 }, []],
    [
      "get_discussion",
      "getDiscussion",
      "comments",
      comment,
      { study_id: uuid, upvotes: 0 },
      { id: uuid, offset: 20 },
      [uuid],
    ],
  ] as const) {
    const read = async (count: number, characters: number, next_offset: number | null) => {
      const all = Array.from({ length: count }, () => ({ ...one, long: "t".repeat(characters) }));
      answers = { [method]: { ...rest, total: 90, limit: 20, offset: 20, next_offset, [field]: all } };
      calls.length = 0;
      const page = await shown(client, name, input);
      assert.equal(page[field], all.slice(0, page[field].length));
      assert.is(page.total, 90);
      return [page[field].length, page.next_offset];
    };
    assert.equal(await read(5, 10, 25), [5, 25], name);
    const { id: _, ...options } = input as { id?: string; offset: number };
    assert.equal(calls, [[`research.${method}`, ...asked, options]]);
    assert.equal(await read(5, 10, null), [5, null], name);
    // Three of eleven thousand characters fit.
    assert.equal(await read(5, 11_000, 25), [3, 23], name);
    assert.equal(await read(5, 11_000, null), [3, 23], name);
    assert.equal(await read(3, 11_000, 23), [3, 23], name);
  }
});

test("a study: its head with the first entry, as many entries as fit, pieces by their pointer, and versions", async () => {
  const client = await research();
  const entry = (characters: number) => ({ id: uuid, kind: "note", title: "", note: "n".repeat(characters) });
  // The room that an entry without its note takes, and the two characters between entries.
  const around = JSON.stringify(entry(0)).length + 2;
  const read = async (entries: object[], input: object = {}, finding = "") => {
    const study = { ...samplePackage({ finding }), entries };
    answers = { getStudy: { ...sample(StudyEnvelope), package: study } };
    calls.length = 0;
    const { entries: _, ...head } = study;
    return { head, page: await shown(client, "get_study", { id: uuid, ...input }) };
  };
  const few = await read([entry(1), entry(2)]);
  assert.equal(calls, [["research.getStudy", uuid, { version: undefined }]]);
  assert.equal(few.page.package, JSON.parse(JSON.stringify(few.head)));
  assert.is(few.page.study.package, undefined);
  const { entry_count, entry_offset, next_entry_offset, cut } = few.page;
  assert.equal([entry_count, entry_offset, next_entry_offset, cut], [2, 0, null, []]);

  // Of 40,000 characters the head takes its own, and the rest is the entries'.
  const left = 40_000 - JSON.stringify(few.head).length;
  const exact = [entry(10_000), entry(left - 2 * around - 10_000), entry(1)];
  assert.equal((await read(exact)).page.entries, exact.slice(0, 2));
  assert.is((await read(exact)).page.next_entry_offset, 2);
  const wider = [entry(10_000), entry(left - 2 * around - 9999), entry(1)];
  assert.equal((await read(wider)).page.entries, wider.slice(0, 1));
  // Behind it, without the head.
  const rest = [entry(1), entry(20_000), entry(20_000 - 2 * around), entry(1)];
  const { page } = await read(rest, { entry_offset: 1 });
  assert.equal(
    [page.entries, page.package, page.entry_offset, page.next_entry_offset],
    [...[rest.slice(1, 3), undefined, 1, 3]],
  );
  const long = await read([entry(1), entry(30_000)], { entry_offset: 1 });
  assert.equal(long.page.cut, []);
  const longer = await read([entry(1), entry(50_000)], { entry_offset: 1 });
  assert.equal(longer.page.cut, [{ pointer: "/entries/1/note", total: 50_000, shown: 12_000 }]);
  // A head has half of a page.
  const wide = await read([entry(19_000)], {}, "f".repeat(30_000));
  assert.equal(wide.page.cut, [{ pointer: "/finding", total: 30_000, shown: 12_000 }]);

  const pointed = await read([entry(13_000)], { pointer: "/entries/0/note", offset: 12_999, version: 3 });
  assert.equal(calls, [["research.getStudy", uuid, { version: 3 }]]);
  assert.equal(
    [pointed.page.piece.value, pointed.page.piece.next_offset, pointed.page.entry_count],
    ["n", null, 1],
  );
  assert.is(pointed.page.entries, undefined);
  assert.is((await read([entry(3)], { pointer: "/entries/0/note" })).page.piece.value, "nnn");
  assert.is(
    await refused(client, "get_study", { id: uuid, pointer: "/a" }),
    'There is nothing at "/a"; a pointer looks like /entries/3/answer.',
  );
});

test("what a service says of a refusal is fenced, with the facts before it", async () => {
  const client = await research();
  const failing = async (error: Error, name = "list_studies", input: object = {}) => {
    answers = { listStudies: () => Promise.reject(error), savePrivateDraft: () => Promise.reject(error) };
    return refused(client, name, input);
  };
  const said = async (details: ResearchErrorDetails) => {
    const { preface, data } = unfence(await failing(new ResearchError("not shown", details)));
    return [/\((.*)\)/.exec(preface)?.[1], data];
  };
  const serviceSentence = "No\u200b.";
  assert.equal(await said({ status: 400, serviceSentence }), ["status 400", { error: "No\\u{200B}." }]);
  const code = `${"a".repeat(57)}_09`;
  assert.equal(
    await said({ status: 429, code, retryAfter: 0, serviceSentence, field: "/a\u200b", reason: "b\u200b" }),
    [`status 429, ${code}, wait 0 s`, { error: "No\\u{200B}.", field: "/a\\u{200B}", reason: "b\\u{200B}" }],
  );
  for (const odd of [`${code}x`, "Ignore", "a b", ""]) {
    assert.is((await said({ status: 400, code: odd, serviceSentence }))[0], "status 400", odd);
  }
  const draft = { package: samplePackage() };
  const unclear = new DraftMayExistError("It broke.", "key", { status: 504, serviceSentence });
  assert.is(
    unfence(await failing(unclear, "save_private_draft", draft)).preface,
    "The studies service refused the call (status 504). The draft may exist; look on the website. Its own words follow.",
  );
  // Without words of the service's, the client's own sentence, on one line.
  assert.is(await failing(new ResearchError("One.\r\n\nTwo\u200b.")), "One. Two\\u{200B}.");
  assert.is(await failing(new TimeoutError("Too late.")), "Too late.");
});

test("a fault of its own is a line in the log, and no word of it in the result; what was cancelled is neither", async () => {
  const client = await lab();
  const { write } = process.stderr;
  let log = "";
  process.stderr.write = ((text: string) => {
    log += text;
    return true;
  }) as typeof write;
  try {
    answers = { health: () => Promise.reject(new Error("secret")) };
    assert.is(await refused(client, "lab_health"), "lab_health failed by a fault of its own.");
    assert.match(log, /^tapline mcp: lab_health: Error: secret\n +at /);
    log = "";
    answers = { health: () => Promise.reject("a text") };
    assert.is(await refused(client, "lab_health"), "lab_health failed by a fault of its own.");
    assert.is(log, "tapline mcp: lab_health: a text\n");
    log = "";
    let ended = false;
    answers = {
      health: () =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            ended = true;
            reject(new Error("aborted"));
          });
        }),
    };
    calls.length = 0;
    const stop = new AbortController();
    const asked = client.callTool({ name: "lab_health", arguments: {} }, { signal: stop.signal });
    const outcome = asked.catch(() => "cancelled");
    await until(() => calls.length === 1);
    stop.abort();
    assert.is(await outcome, "cancelled");
    await until(() => ended);
    await new Promise((resolve) => setTimeout(resolve, 0));
    assert.is(log, "");
  } finally {
    process.stderr.write = write;
  }
});

test("a save keeps its key while its outcome is open, and no longer", async () => {
  const client = await research();
  const draft = { id: "x", review_url: "https://x/", expires_at: null, package_sha256: "0" };
  const study = samplePackage();
  const key = async (outcome: () => unknown, given = study) => {
    calls.length = 0;
    answers = { savePrivateDraft: outcome };
    await call(client, "save_private_draft", { package: given });
    const [, bytes, { idempotencyKey }] = calls[0] as [string, Buffer, { idempotencyKey: string }];
    assert.equal(JSON.parse(bytes.toString()), given);
    assert.match(idempotencyKey, /^[0-9a-f-]{36}$/);
    return idempotencyKey;
  };
  const rejects = (error: Error) => () => Promise.reject(error);
  const open = rejects(new DraftMayExistError("It broke.", "k"));
  const first = await key(open);
  assert.is(await key(open), first, "tried again");
  assert.is.not(await key(open, samplePackage()), first, "another study");
  assert.is(await key(() => draft), first);
  const second = await key(rejects(new ResearchError("No.")));
  assert.is.not(second, first, "what was saved is done");
  const third = await key(() => draft);
  assert.is.not(third, second, "what was refused is done");
  // A call that was ended in its middle may have arrived.
  calls.length = 0;
  answers = {
    savePrivateDraft: () =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("aborted")))),
  };
  const stop = new AbortController();
  const asked = client.callTool(
    { name: "save_private_draft", arguments: { package: study } },
    { signal: stop.signal },
  );
  asked.catch(() => {});
  await until(() => calls.length === 1);
  const { idempotencyKey } = calls[0]![2] as { idempotencyKey: string };
  stop.abort();
  await until(() => signal.aborted);
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.is(await key(() => draft), idempotencyKey);
});

test.run();
