/** Every tool of the Lab and of the served model: its requests, its output, and its refusals. No process. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { TaplineError, TimeoutError } from "../../src/client/index.js";
import { Capabilities, CaptureResult, JobSummary, LabHealth } from "../../src/contracts/index.js";
import { StoredDictionary, StoredLens, StoredProbe, StoredVector } from "../../src/contracts/library.js";
import { claimStdout } from "../../src/mcp/stdout.js";
import { until } from "../support/until.js";
import type { ToolInfo } from "./session.js";
import { begin, closeAll, lab, refused, research, sample, shown, stand } from "./stand-in.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-tools-"));
test.before.each(begin);
test.after(async () => {
  await closeAll();
  rmSync(folder, { recursive: true, force: true });
});

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
const id = "0123456789abcdef0123456789abcdef";

const texts = { positive: Array(6).fill("a"), negative: Array(6).fill("b") };
const vectorRequest = { name: "v", ...texts, layers: [1] };
const probeRequest = { name: "p", ...texts, layer: 1 };

const scale = { interventions: [{ kind: "scale", layer: 1, strength: 2 }] };

test("by default, lab_job does not wait, and a piece starts at its beginning", async () => {
  const { tools } = await (await lab()).listTools();
  const { properties } = tools.find(({ name }) => name === "lab_job")!.inputSchema as unknown as {
    properties: Record<string, { minimum: number; default: number }>;
  };
  const { wait_seconds: wait, offset } = properties;
  assert.equal([wait?.minimum, wait?.default, offset?.minimum, offset?.default], [0, 0, 0, 0]);
});

test("each tool declares whether it reads, deletes or leaves this machine", async () => {
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
    lab_submit: "removes",
    lab_operation: "reads",
    lab_dictionaries: "reads",
    lab_add_dictionary: "removes far",
    lab_lenses: "reads",
    lab_add_lens: "removes far",
    lab_forget: "removes",
    lab_cancel: "removes",
    lab_artifacts: "reads",
    serving_capabilities: "reads",
    serving_inspect: "reads",
    serving_generate: "reads",
    serving_library: "reads",
    serving_make_vector: "removes",
    serving_make_probe: "removes",
    serving_save_profile: "removes",
    serving_forget: "removes",
  };
  assert.equal(await told(await lab()), tools);
  assert.equal(await told(await lab(folder)), { ...tools, lab_artifacts: "" }, "it writes files there");
  const readers = { list_studies: "reads far", get_study: "reads far", get_discussion: "reads far" };
  assert.equal(await told(await research(false)), readers);
  assert.equal(await told(await research()), { ...readers, save_private_draft: "far" });
});

test("each tool sends its request and shows the answer", async () => {
  const client = await lab();
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
      "serving_save_profile",
      { name: "polite", description: "Polite.", tapline: scale },
      "serving.putProfile",
      ["polite", { description: "Polite.", tapline: scale }],
      { name: "polite" },
      { profile: { name: "polite" } },
    ],
    [
      "serving_forget",
      { kind: "profile", name: "polite" },
      "serving.removeProfile",
      ["polite"],
      undefined,
      { forgotten: "polite" },
    ],
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
    stand.calls.length = 0;
    // Existing names, for tools that check first.
    const lists = { vectors: [], probes: [], profiles: [], dictionaries: [], lenses: [] };
    stand.answers = { ...lists, [method.split(".")[1] as string]: answer };
    assert.equal(await shown(client, name, input), { ...told, hidden_characters: 0 }, name);
    const calls = stand.calls.filter(
      ([called]) =>
        called === method || !String(called).match(/\.(vectors|probes|profiles|dictionaries|lenses)$/),
    );
    assert.equal(calls, [[method, ...asked]], name);
  }
});

test("an existing name is replaced only when the call says so", async () => {
  const client = await lab();
  for (const [tool, kind, list, make, input] of [
    ["serving_make_vector", "vector", "vectors", "makeVector", vectorRequest],
    ["serving_make_probe", "probe", "probes", "makeProbe", probeRequest],
    ["serving_save_profile", "profile", "profiles", "putProfile", { name: "polite", tapline: scale }],
    [
      "lab_add_dictionary",
      "dictionary",
      "dictionaries",
      "addDictionary",
      { name: "d", from: "owner/name/x" },
    ],
    ["lab_add_lens", "lens", "lenses", "addLens", { name: "l", from: "demo" }],
  ] as const) {
    const { name } = input as { name: string };
    stand.answers = { [list]: [{ name: "other" }, { name }], [make]: {} };
    stand.calls.length = 0;
    assert.is(
      await refused(client, tool, input),
      `A ${kind} named ${name} already exists; choose another name, or pass replace: true to replace it.`,
    );
    assert.not(stand.calls.some(([called]) => String(called).endsWith(make)));
    await shown(client, tool, { ...input, replace: true });
    assert.equal(
      stand.calls
        .filter(([called]) => String(called).endsWith(make))
        .map((words) => JSON.stringify(words).includes("replace")),
      [false],
    );
  }
});

test("lists have fitting items and a total; hidden characters are escaped", async () => {
  const client = await lab();
  const jobs = Array.from({ length: 5 }, (_, index) => ({ ...job, model: `m${index}` }));
  stand.answers = { jobs };
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
  stand.answers = { dictionaries: long(dictionary), lenses: long(lens) };
  for (const [name, field] of [
    ["lab_dictionaries", "dictionaries"],
    ["lab_lenses", "lenses"],
  ] as const) {
    const result = await shown(client, name);
    assert.equal([result[field].length, result.total, result.hidden_characters], [3, 5, 5], name);
    assert.is(result[field][0].name, `\\u{202E}${"n".repeat(11_000)}`);
  }
});

test("a job is awaited only if running and requested, then read once more", async () => {
  const client = await lab();
  const status = (status: string) => ({ ...job, status });
  const waited = async (states: string[], input: object, wait: unknown = () => undefined) => {
    stand.calls.length = 0;
    stand.answers = { job: () => status(states.shift() as string), wait };
    const told = await shown(client, "lab_job", { id, ...input });
    return [told.job.status, ...stand.calls.map(([method, ...words]) => [method, ...words.slice(1)].flat())];
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
  // However the wait ends, the job is shown in its current state.
  for (const error of [new TaplineError("It failed."), new TimeoutError("still running")]) {
    const ends = () => Promise.reject(error);
    assert.equal(await waited(["running", "failed"], { wait_seconds: 2.5 }, ends), [
      ...["failed", ["lab.job"], wait, ["lab.job"]],
    ]);
  }
});

test("a wait that fails by a fault is a fault, and no word of the job's", async () => {
  const client = await lab();
  stand.answers = {
    job: { ...job, status: "running" },
    wait: () => Promise.reject(new TypeError("a fault")),
  };
  const { write } = process.stderr;
  process.stderr.write = (() => true) as typeof write;
  try {
    const sentence = await refused(client, "lab_job", { id, wait_seconds: 1 });
    assert.is(sentence, "lab_job failed with an internal error.");
  } finally {
    process.stderr.write = write;
  }
});

test("no tool takes a field that it does not know", async () => {
  for (const client of [await lab(), await research()]) {
    const { tools } = await client.listTools();
    const open = tools.filter(({ inputSchema }) => inputSchema.additionalProperties !== false);
    assert.equal(
      open.map(({ name }) => name),
      [],
    );
  }
  const sentence = await refused(await lab(), "serving_library", { odd: 1 });
  assert.match(sentence, 'unknown field "odd"');
});

test("part of a job is read by pointer and offset; the whole is cut to fit", async () => {
  const client = await lab();
  const tokens = Array.from({ length: 300 }, (_, index) => `token ${index} ${"x".repeat(200)}`);
  stand.answers = { job: { ...job, result: { tokens } } };
  const whole = await shown(client, "lab_job", { id });
  assert.equal(whole.cut, [{ pointer: "/result/tokens", total: 300, shown: 100 }]);
  assert.equal(whole.job.result.tokens, tokens.slice(0, 100));
  const { piece } = await shown(client, "lab_job", { id, pointer: "/result/tokens", offset: 298 });
  assert.equal([piece.value, piece.offset, piece.next_offset], [tokens.slice(298), 298, null]);
  assert.is((await shown(client, "lab_job", { id, pointer: "/result/tokens" })).piece.value[0], tokens[0]);
  // The empty pointer is all of it.
  const all = (await shown(client, "lab_job", { id, pointer: "" })).piece;
  assert.equal([all.pointer, all.total, all.value.id], ["", null, job.id]);
  assert.is(await refused(client, "lab_job", { id, pointer: "/a" }), 'The job has no value at "/a".');
});

test("a job's files have addresses; only they are downloaded, to a folder", async () => {
  const names = ["a b.npz", "c.safetensors"];
  stand.answers = {
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
    "Downloads require `tapline mcp lab --artifacts <folder>`; fetch the file's URL instead.",
  );
  assert.is(await refused(reading, "lab_artifacts", { id, name: "d" }), 'The job has no artifact "d".');
  const writing = await lab(folder);
  const path = join(folder, id, "a b.npz");
  assert.equal(await shown(writing, "lab_artifacts", { id, name: "a b.npz" }), {
    ...{ artifacts, path, hidden_characters: 0 },
  });
  assert.equal(stand.calls.at(-1), ["lab.artifact", id, "a b.npz", path]);
  assert.ok(existsSync(join(folder, id)), "the folder is made");
  await shown(writing, "lab_artifacts", { id, name: "c.safetensors" });
  assert.is(await refused(writing, "lab_artifacts", { id, name: "../x" }), 'The job has no artifact "../x".');
  // A name that leads elsewhere, from whatever listens there, stays in the folder.
  stand.answers = {
    job: { ...job, result: { artifacts: ["../../up.npz"] } },
    artifact: (_id: string, _name: string, to: string) => to,
  };
  await shown(writing, "lab_artifacts", { id, name: "../../up.npz" });
  assert.equal(stand.calls.at(-1), ["lab.artifact", id, "../../up.npz", join(folder, id, "up.npz")]);
  stand.answers = { job };
  assert.equal((await shown(writing, "lab_artifacts", { id })).artifacts, []);
});

test("an invalid submission is refused with the Lab's sentence, unsent", async () => {
  const client = await lab();
  const sentence = await refused(client, "lab_submit", {
    ...{ operation: "compare", model: "demo", prompt: "a", intervention: "patch" },
  });
  assert.match(sentence, /^donor_prompt is required for patch\.$/);
  assert.match(await refused(client, "lab_jobs", { limit: 101 }), "limit: at most 100, got 101.");
  assert.equal(stand.calls, []);
});

test("a question is sent as given, and omitted parts are named", async () => {
  const client = await lab();
  const told = (given: object) => [{ choice: 0, text: "t", reasoning: "r", finishReason: "stop", ...given }];
  stand.answers = { answers: told({ tapline: { tokens: [] } }) };
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
    stand.calls.length = 0;
    const { answers: given, cut } = await shown(client, "serving_generate", input);
    assert.equal(given, [
      { choice: 0, text: "t", reasoning: "r", tapline: { tokens: [] }, finish_reason: "stop" },
    ]);
    assert.equal(cut, []);
    assert.equal(stand.calls, [["serving.answers", question, { request }]]);
  }
  stand.answers = { answers: told({ text: "\u200b".repeat(20_000), finishReason: null }) };
  const long = await shown(client, "serving_generate", { prompt: "a" });
  assert.equal([long.hidden_characters, long.answers[0].finish_reason], [20_000, null]);
  assert.equal(long.cut, [{ pointer: "/answers/0/text", total: 160_000, shown: 12_000 }]);
  stand.calls.length = 0;
  const one = "Pass either messages or prompt, but not both.";
  assert.is(await refused(client, "serving_generate", {}), one);
  assert.is(await refused(client, "serving_generate", { prompt: "a", messages }), one);
  for (const thinking of [true, false]) {
    assert.is(
      await refused(client, "serving_generate", { prompt: "a", thinking }),
      "thinking requires messages: a raw prompt has no chat template.",
    );
  }
  assert.equal(stand.calls, []);
});

test("the library: everything, one kind, or one by its name", async () => {
  const client = await lab();
  const profile = { name: "polite", tapline: { interventions: [{ kind: "scale", layer: 1, strength: 2 }] } };
  stand.answers = { vectors: [vector], probes: [probe], profiles: [profile], vector, probe, profile };
  for (const [input, methods, told] of [
    [{}, ["vectors", "probes", "profiles"], { vectors: [vector], probes: [probe], profiles: [profile] }],
    [{ kind: "vector" }, ["vectors"], { vectors: [vector] }],
    [{ kind: "probe" }, ["probes"], { probes: [probe] }],
    [{ kind: "vector", name: "v" }, ["vector v"], { vectors: [vector] }],
    [{ kind: "probe", name: "p" }, ["probe p"], { probes: [probe] }],
    [{ kind: "profile", name: "polite" }, ["profile polite"], { profiles: [profile] }],
  ] as const) {
    stand.calls.length = 0;
    assert.equal(await shown(client, "serving_library", input), { ...told, cut: [], hidden_characters: 0 });
    assert.equal(
      stand.calls.map((words) => words.join(" ")),
      methods.map((method) => `serving.${method}`),
    );
  }
  const sentence = "name requires kind: vector, probe or profile.";
  assert.is(await refused(client, "serving_library", { name: "v" }), sentence);
});

test("an internal fault is logged, not shown; a cancelled call is neither", async () => {
  const client = await lab();
  const { write } = process.stderr;
  let log = "";
  process.stderr.write = ((text: string) => {
    log += text;
    return true;
  }) as typeof write;
  try {
    stand.answers = { health: () => Promise.reject(new Error("secret")) };
    assert.is(await refused(client, "lab_health"), "lab_health failed with an internal error.");
    assert.match(log, /^tapline mcp: lab_health: Error: secret\n +at /);
    log = "";
    stand.answers = { health: () => Promise.reject("a text") };
    assert.is(await refused(client, "lab_health"), "lab_health failed with an internal error.");
    assert.is(log, "tapline mcp: lab_health: a text\n");
    log = "";
    let ended = false;
    stand.answers = {
      health: () =>
        new Promise((_, reject) => {
          stand.signal?.addEventListener("abort", () => {
            ended = true;
            reject(new Error("aborted"));
          });
        }),
    };
    stand.calls.length = 0;
    const stop = new AbortController();
    const asked = client.callTool({ name: "lab_health", arguments: {} }, { signal: stop.signal });
    const outcome = asked.catch(() => "cancelled");
    await until(() => stand.calls.length === 1);
    stop.abort();
    assert.is(await outcome, "cancelled");
    await until(() => ended);
    await new Promise((resolve) => setTimeout(resolve, 0));
    assert.is(log, "");
  } finally {
    process.stderr.write = write;
  }
});

test("stdout is the protocol's alone: whatever else writes there lands on stderr", async () => {
  const { stdout, stderr } = process;
  const before = [stdout.write, stderr.write] as const;
  const [out, err]: string[][] = [[], []];
  const taking = (to: string[] | undefined) =>
    ((text: string, _encoding: unknown, done?: () => void) => {
      to?.push(String(text));
      done?.();
      return true;
    }) as typeof stdout.write;
  try {
    stdout.write = taking(out);
    stderr.write = taking(err);
    const protocol = claimStdout();
    stdout.write("a greeting");
    protocol.write("a message");
  } finally {
    [stdout.write, stderr.write] = before;
  }
  assert.equal([out, err], [["a message"], ["a greeting"]]);
});

test.run();
