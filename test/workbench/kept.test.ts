/** What the workbench's service keeps and tells: conversations in files, events by number, what it last saw of the services, heads. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PassThrough } from "node:stream";
import ndarray from "ndarray";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Lab, TaplineError, TimeoutError } from "../../src/client/index.js";
import type { HttpError } from "../../src/http/index.js";
import { HeadReader } from "../../src/workbench/attention.js";
import { Conversations } from "../../src/workbench/conversations.js";
import { Events } from "../../src/workbench/events.js";
import { sentenceOf } from "../../src/workbench/services.js";
import type { Conversation, TurnAnswer, WorkbenchEvent } from "../../src/workbench/wire.js";
import { until } from "../support/until.js";
import { type Answers, capabilities, openParts, type Parts } from "./parts.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-kept-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));
const opened: Parts[] = [];
const streams: PassThrough[] = [];
test.after.each(async () => {
  for (const stream of streams.splice(0)) stream.destroy();
  for (const one of opened.splice(0)) await one.close();
});

async function open(answers: Answers = {}): Promise<Parts> {
  const parts = await openParts(answers);
  opened.push(parts);
  return parts;
}

/** What a stream of events has said so far. */
function reading(events: Events, after: number): () => string {
  const stream = events.stream(after);
  streams.push(stream);
  let text = "";
  stream.on("data", (chunk) => {
    text += chunk;
  });
  return () => text;
}

const turn = (state: TurnAnswer["state"]) => ({
  ...{ question: "q", request: { path: "/", body: {} }, interventions: [], layers: [], kept: 0 },
  answers: [{ state, edited: true, tokens: [], finish: null } as TurnAnswer],
});

let places = 0;
async function store() {
  const place = join(folder, `store-${places++}`, "conversations");
  const told: WorkbenchEvent[] = [];
  const events = new Events();
  events.publish = (event) => void told.push(event);
  return { place, told, events, all: await Conversations.open(place, events) };
}

test("a conversation is a private file of its own, which the next start reads; what ran then was cut off", async () => {
  const { place, all, events } = await store();
  assert.is(statSync(place).mode & 0o777, 0o700);
  const made = all.create(true, "  one\n two ".padEnd(100, "x"), [turn("running"), turn("failed")], {
    ...{ conversation: "f".repeat(16), turn: 3 },
  });
  assert.match(made.id, /^[0-9a-f]{16}$/);
  assert.equal([made.title, made.title.length], [` one two ${"x".repeat(71)}`, 80]);
  assert.ok(Math.abs(made.created - Date.now() / 1000) < 60, "Unix seconds");
  await all.keep(made);
  const file = join(place, `${made.id}.json`);
  assert.is(statSync(file).mode & 0o777, 0o600);
  assert.equal(readdirSync(place), [`${made.id}.json`], "nothing half written");
  assert.equal(JSON.parse(readFileSync(file, "utf8")), made);
  const read = (await Conversations.open(place, events)).get(made.id);
  assert.equal(
    read.turns.map(({ answers }) => answers[0]?.state),
    ["stopped", "failed"],
  );
  assert.equal({ ...read, turns: [] }, { ...made, turns: [] });
});

test("files that are none of its conversations are left alone", async () => {
  const { place, all, events } = await store();
  const id = "0123456789abcdef";
  const good = { id, title: "t", created: 1, raw: false, turns: [] };
  for (const [name, content] of [
    [`${id}.json`, good],
    [`${"a".repeat(16)}.json`, good], // another one's
    [`${"b".repeat(16)}.txt`, { ...good, id: "b".repeat(16) }],
    [`${"C".repeat(16)}.json`, { ...good, id: "C".repeat(16) }],
    [`${"d".repeat(16)}.json`, { ...good, id: "d".repeat(16), turns: {} }],
    [`${"e".repeat(16)}.json`, "{"],
    [`${"f".repeat(16)}.json`, null],
  ] as const) {
    writeFileSync(join(place, name), typeof content === "string" ? content : JSON.stringify(content));
  }
  mkdirSync(join(place, `${"9".repeat(16)}.json`));
  const again = await Conversations.open(place, events);
  assert.equal(
    again.list().map((one) => one.id),
    [id],
  );
  assert.is(readdirSync(place).length, 8);
  assert.equal(all.list(), []);
});

test("the list: the newest first, with how far each is", async () => {
  const { all, told } = await store();
  const { now } = Date;
  const made: Conversation[] = [];
  try {
    for (const seconds of [1, 3, 2]) {
      Date.now = () => seconds * 1000;
      made.push(
        all.create(false, `t${seconds}`, [turn("done"), turn(seconds === 2 ? "running" : "stopped")]),
      );
    }
  } finally {
    Date.now = now;
  }
  const rows = all.list();
  assert.equal(
    rows.map(({ title, created, turns, running }) => [title, created, turns, running]),
    [
      ["t3", 3, 2, false],
      ["t2", 2, 2, true],
      ["t1", 1, 2, false],
    ],
  );
  assert.equal(Object.keys(rows[0] ?? {}), ["id", "title", "created", "turns", "running"]);
  assert.is(told.length, 3);
  assert.equal(told.at(-1), { type: "conversations", conversations: rows });
  assert.throws(
    () => all.get("z".repeat(99)),
    (error: HttpError) =>
      error.status === 404 && error.message === `There is no conversation ${"z".repeat(32)}.`,
  );
});

test("one is removed with its file, unless it is being answered; what is removed is not written any more", async () => {
  const { place, all, told } = await store();
  const made = all.create(false, "a", [turn("running")]);
  await all.keep(made);
  const busy = await all.remove(made.id).catch((error: HttpError) => error);
  assert.equal([(busy as HttpError).status, (busy as HttpError).message], [409, "Stop the answer first."]);
  (made.turns[0]?.answers[0] as TurnAnswer).state = "done";
  told.length = 0;
  await all.remove(made.id);
  assert.equal(told, [{ type: "conversations", conversations: [] }]);
  assert.equal(readdirSync(place), []);
  await all.keep(made);
  assert.equal(readdirSync(place), []);
  assert.is(((await all.remove(made.id).catch((error) => error)) as HttpError).status, 404);
});

test("five hundred are kept; the oldest make room, but for those that are being answered", async () => {
  const { place, all } = await store();
  const { now } = Date;
  let ms = 0;
  Date.now = () => ++ms;
  try {
    const oldest = all.create(false, "oldest", [turn("running")]);
    const second = all.create(false, "second");
    await all.keep(oldest);
    await all.keep(second);
    for (let count = 2; count < 500; count++) all.create(false, "t");
    assert.is(all.list().length, 500);
    all.create(false, "one more");
    assert.equal([all.list().length, all.get(oldest.id)], [501, oldest], "it is being answered");
    assert.ok(all.get(second.id));
    all.create(false, "two more");
    assert.throws(() => all.get(second.id));
    await all.settled();
    assert.equal([existsSync(join(place, `${second.id}.json`)), all.list().length], [false, 501]);
    assert.ok(existsSync(join(place, `${oldest.id}.json`)));
  } finally {
    Date.now = now;
  }
});

test("what cannot be written is said, and the next one is written all the same", async () => {
  const { place, all } = await store();
  const [one, two] = [all.create(false, "one"), all.create(false, "two")];
  mkdirSync(join(place, `${one.id}.json.part`));
  const { write } = process.stderr;
  let said = "";
  process.stderr.write = ((text: string) => {
    said += text;
    return true;
  }) as typeof write;
  try {
    await all.keep(one);
  } finally {
    process.stderr.write = write;
  }
  assert.match(said, /^tapline: a conversation was not written: EISDIR/);
  await all.keep(two);
  assert.ok(existsSync(join(place, `${two.id}.json`)));
});

test("events are numbered; who comes back is told what it missed, or that it missed too much", async () => {
  const events = new Events();
  const tell = () => events.publish({ type: "library" });
  const said = (number: number) => `data: {"number":${number},"event":{"type":"library"}}\n\n`;
  const missed = 'data: {"missed":true}\n\n';
  const hello = ": tapline\n\n";
  const fresh = reading(events, 0);
  const future = reading(events, 1);
  tell();
  tell();
  await until(() => fresh() === hello + said(1) + said(2), "those who are there hear it");
  assert.is(future(), hello + missed + said(1) + said(2), "nobody has seen what is not there yet");
  assert.is(events.number, 2);
  const again = reading(events, 1);
  const all = reading(events, 0);
  const none = reading(events, 2);
  await until(() => none() === hello);
  assert.equal([again(), all()], [hello + said(2), hello + said(1) + said(2)]);
  // 4096 are kept: from the first one that is, nothing was missed.
  for (let count = 2; count < 4098; count++) tell();
  const [just, late] = [reading(events, 2), reading(events, 1)];
  await until(() => just().length > 0 && late().length > 0);
  assert.is(just().match(/data: /g)?.length, 4096);
  assert.ok(just().startsWith(hello + said(3)));
  assert.is(late(), hello + missed);
});

test("readers are counted until they leave; one that reads nothing is let go at eight mebibytes", () => {
  const events = new Events();
  let heard = 0;
  events.onReaders = () => heard++;
  const [one, two] = [events.stream(0), events.stream(0)];
  streams.push(one, two);
  assert.equal([events.readers, heard], [2, 2]);
  one.destroy();
  const big = "x".repeat(1024 ** 2 - 200);
  for (let count = 0; count < 8; count++) events.publish({ type: big } as never);
  assert.not(two.destroyed);
  events.publish({ type: big } as never);
  assert.ok(two.destroyed);
});

test("a stream that lies still shows every fifteen seconds that it is alive, and no more once it is closed", async () => {
  const { setInterval: real, clearInterval: realClear } = globalThis;
  const beats: [() => void, number][] = [];
  const cleared: unknown[] = [];
  const handle: object = {};
  Object.assign(globalThis, {
    setInterval: (run: () => void, ms: number) => {
      beats.push([run, ms]);
      return handle;
    },
    clearInterval: (timer: NodeJS.Timeout) => (timer === handle ? cleared.push(timer) : realClear(timer)),
  });
  const events = new Events();
  try {
    const stream = events.stream(0);
    assert.is(beats[0]?.[1], 15_000);
    beats[0]?.[0]();
    assert.is(stream.read().toString(), ": tapline\n\n: \n\n");
    const closed = new Promise((resolve) => stream.once("close", resolve));
    stream.destroy();
    await closed;
  } finally {
    Object.assign(globalThis, { setInterval: real, clearInterval: realClear });
  }
  assert.equal([cleared, events.readers], [[handle], 0]);
});

test("what the services say of themselves, told when it changes and not again", async () => {
  const job = { id: "0".repeat(32), status: "running" };
  const answers: Answers = {
    "GET /lab/v1/health": { active_job: job.id, queued: 2 },
    "GET /lab/v1/jobs": { jobs: [job] },
  };
  const { services, told } = await open(answers);
  const url = services.server.url;
  assert.equal(services.server, {
    ...{ url, ok: false, sentence: "It was not asked yet.", model: null, path: null },
    ...{ n_layer: null, n_embd: null, architecture: null, backend: null },
  });
  await services.look();
  const server = {
    ...{ url, ok: true, sentence: "ready", model: "m", path: "/models/m.gguf" },
    ...{ n_layer: 4, n_embd: 8, architecture: "a", backend: "cpu" },
  };
  const lab = { url, ok: true, sentence: "ready", active: job.id, queued: 2 };
  assert.equal([services.server, services.labStatus, services.jobs], [server, lab, [job]]);
  assert.equal(
    told.toSorted((a, b) => a.type.localeCompare(b.type)),
    [
      { type: "jobs", jobs: [job] },
      { type: "lab", lab },
      { type: "server", server },
    ] as never,
  );
  told.length = 0;
  await services.look();
  assert.equal(told, []);
  answers["GET /lab/v1/health"] = undefined;
  answers["GET /lab/capabilities"] = capabilities(4, null);
  await services.look();
  const away = { ...lab, ok: false, sentence: "Nothing is at /lab/v1/health.", active: null, queued: 0 };
  assert.equal(services.labStatus, away);
  assert.equal(services.jobs, [job], "as they were last seen");
  assert.equal([services.server.ok, services.server.sentence], [false, "It holds no model at the moment."]);
  answers["GET /lab/capabilities"] = undefined;
  await services.look();
  assert.equal(
    [services.server.sentence, services.server.n_layer],
    ["Nothing is at /lab/capabilities.", null],
  );
});

test("the file of a served model is asked for once a model, and not where the caller knows it", async () => {
  let props = 0;
  const answers: Answers = {
    "GET /props": (response: ServerResponse) => {
      props++;
      response.end(JSON.stringify({ model_path: props > 1 ? 7 : "/a.gguf" }));
    },
  };
  const { services } = await open(answers);
  await services.look();
  await services.look();
  assert.equal([services.server.path, props], ["/a.gguf", 1]);
  answers["GET /lab/capabilities"] = capabilities(4, "other");
  await services.look();
  assert.equal([services.server.path, props], [null, 2], "what is no path is none");
  services.served = "demo";
  await services.look();
  assert.equal([services.server.path, services.served, props], ["demo", "demo", 2]);
  services.served = undefined;
  assert.is(services.served, undefined);
  await services.look();
  assert.is(services.server.path, "demo", "the same model's");
});

test("looks that are asked for meanwhile are one; with nobody there nobody looks, with a page every second", async () => {
  const { setTimeout: real } = globalThis;
  let asked = 0;
  const { services, events, told } = await open({
    "GET /lab/v1/health": (response: ServerResponse) => {
      asked++;
      response.end(JSON.stringify({ active_job: null, queued: 0 }));
    },
  });
  await Promise.all([services.look(), services.look()]);
  assert.is(asked, 1);
  await services.look();
  assert.is(asked, 2);
  const timers: { run: () => void; ms: number }[] = [];
  Object.assign(globalThis, {
    setTimeout: (run: () => void, ms: number, ...rest: unknown[]) => {
      if (ms !== 0 && ms !== 1000) return real(run, ms, ...(rest as []));
      timers.push({ run, ms });
      return real(() => {}, 1e9);
    },
  });
  try {
    const stream = events.stream(0);
    assert.equal(
      timers.map(({ ms }) => ms),
      [0],
    );
    timers[0]?.run();
    await until(() => timers.length > 1);
    assert.equal([timers[1]?.ms, asked], [1000, 3]);
    timers[1]?.run();
    await until(() => timers.length > 2);
    assert.equal([timers[2]?.ms, asked], [1000, 4]);
    const closed = new Promise((resolve) => stream.once("close", resolve));
    stream.destroy();
    await closed;
    timers[2]?.run();
    await until(() => asked === 5);
    await services.look();
    assert.is(timers.length, 3, "nobody is there any more");
    services.close();
    events.stream(0).destroy();
    assert.is(timers.length, 3, "nor at the end");
  } finally {
    globalThis.setTimeout = real;
  }
  assert.is(told.filter(({ type }) => type === "lab").length, 1);
});

test("tokens of a text, bytes as text; what is told of faults", async () => {
  const { services, asked } = await open({
    "POST /tokenize": {
      tokens: [
        { id: 1, piece: "a" },
        { id: 2, piece: [0xc3, 0xa9] },
      ],
    },
  });
  assert.equal(await services.tokens("aé"), [
    { id: 1, text: "a" },
    { id: 2, text: "é" },
  ]);
  assert.equal(asked(), [
    ["POST", "/tokenize", { content: "aé", add_special: true, parse_special: false, with_pieces: true }],
  ]);
  const fault = "The service failed; its log says where.";
  assert.equal([new TaplineError("a"), new TimeoutError("b"), new Error("c"), "d"].map(sentenceOf), [
    ...["a", "b", fault, fault],
  ]);
});

test("a head of an inspection's attention: found by its layer and number, with four digits; a file is read once", async () => {
  const id = "0".repeat(32);
  const attention = [
    { layer: 1, head: 5 },
    { layer: 2, head: 5 },
    { layer: 2, head: 7 },
  ];
  const tokens = ["a", "b"];
  let job: object = { id, operation: "inspect", result: { tokens, attention } };
  let file = new Map([
    ["layer_2", ndarray(Float32Array.of(1, 0, 0.123456, 0.876544, 1, 0, 0.5, 0.5), [2, 2, 2])],
  ]);
  const read: string[] = [];
  let broken = false;
  const lab = {
    job: async () => job,
    arrays: async (of: string, name: string) => {
      read.push(`${of} ${name}`);
      if (broken) throw new TaplineError("broken");
      return file;
    },
  } as unknown as Lab;
  const heads = new HeadReader(lab);
  const refused = (layer: number, head: number) =>
    heads.read(id, layer, head).then(
      () => assert.unreachable() as never,
      (error: HttpError) => [error.status, error.message],
    );
  assert.equal(await heads.read(id, 2, 5), {
    layer: 2,
    head: 5,
    weights: [
      [1, 0],
      [0.1235, 0.8765],
    ],
  });
  assert.equal(await heads.read(id, 2, 7), {
    layer: 2,
    head: 7,
    weights: [
      [1, 0],
      [0.5, 0.5],
    ],
  });
  assert.equal(read, [`${id} attention.npz`]);
  for (const [layer, head] of [
    [2, 6],
    [3, 5],
    [1, 7],
  ] as const) {
    assert.equal(await refused(layer, head), [
      ...[404, `Job ${id} kept no attention of layer ${layer}, head ${head}.`],
    ]);
  }
  const not = `attention.npz of job ${id} does not hold layer`;
  assert.equal(await refused(1, 5), [502, `${not} 1, head 5.`]);
  for (const shape of [
    [1, 2, 2],
    [2, 1, 2],
    [2, 2, 1],
  ] as const) {
    const another = new HeadReader(lab);
    file = new Map([["layer_2", ndarray(new Float32Array(8), [...shape])]]);
    const error = await another.read(id, 2, 7).catch((error: HttpError) => error.message);
    assert.is(error, `${not} 2, head 7.`, String(shape));
  }
  job = { ...job, operation: "compare" };
  assert.is((await refused(2, 5))[0], 404);
  job = { id, operation: "inspect", result: { tokens } };
  assert.is((await refused(2, 5))[0], 404);
  // Another job's file takes its place; one that could not be read is asked for again.
  const other = "1".repeat(32);
  read.length = 0;
  job = { id: other, operation: "inspect", result: { tokens, attention } };
  broken = true;
  assert.is(((await heads.read(other, 2, 5).catch((error) => error)) as Error).message, "broken");
  broken = false;
  file = new Map([["layer_2", ndarray(new Float32Array(8), [2, 2, 2])]]);
  await heads.read(other, 2, 5);
  await heads.read(other, 2, 7);
  assert.equal(read, [`${other} attention.npz`, `${other} attention.npz`]);
});

test.run();
