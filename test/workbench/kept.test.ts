/** What the workbench's service keeps and tells: conversations in files, events by number. */
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
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PassThrough } from "node:stream";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { HttpError } from "../../src/http/index.js";
import { Conversations } from "../../src/workbench/conversations.js";
import { Events } from "../../src/workbench/events.js";
import type { Conversation, TurnAnswer, WorkbenchEvent } from "../../src/workbench/wire.js";
import { until } from "../support/until.js";
import { withFiles } from "../support/with-files.js";
import { withTime } from "../support/with-time.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-kept-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));
const streams: PassThrough[] = [];
test.after.each(() => {
  for (const stream of streams.splice(0)) stream.destroy();
});

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

test("a conversation is a private file; answers running at a crash are marked cut off", async () => {
  const { place, all, events } = await store();
  assert.is(statSync(place).mode & 0o777, 0o700);
  const made = all.create(true, "  one\n two ".padEnd(100, "x"), [turn("running"), turn("failed")], {
    ...{ conversation: "f".repeat(16), turn: 3 },
  });
  assert.match(made.id, /^[0-9a-f]{16}$/);
  assert.equal([made.title, made.title.length], [` one two ${"x".repeat(71)}`, 80]);
  assert.ok(Math.abs(made.created - Date.now() / 1000) < 60, "Unix seconds");
  await all.save(made);
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

test("files that are not conversations are left alone", async () => {
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
  const made: Conversation[] = [];
  for (const seconds of [1, 3, 2]) {
    const turns = [turn("done"), turn(seconds === 2 ? "running" : "stopped")];
    const create = () => all.create(false, `t${seconds}`, turns);
    made.push(withTime({ "Date.now": () => seconds * 1000 }, create));
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
      error.status === 404 && error.message === `Conversation ${"z".repeat(32)} does not exist.`,
  );
});

test("removing a conversation deletes its file, unless an answer is running", async () => {
  const { place, all, told } = await store();
  const made = all.create(false, "a", [turn("running")]);
  await all.save(made);
  const busy = await all.remove(made.id).catch((error: HttpError) => error);
  assert.equal([(busy as HttpError).status, (busy as HttpError).message], [409, "Stop the answer first."]);
  (made.turns[0]?.answers[0] as TurnAnswer).state = "done";
  told.length = 0;
  await all.remove(made.id);
  assert.equal(told, [{ type: "conversations", conversations: [] }]);
  assert.equal(readdirSync(place), []);
  await all.save(made);
  assert.equal(readdirSync(place), []);
  assert.is(((await all.remove(made.id).catch((error) => error)) as HttpError).status, 404);
});

test("five hundred are kept; the oldest make room, but for those that are being answered", async () => {
  const { place, all } = await store();
  let ms = 0;
  await withTime({ "Date.now": () => ++ms }, async () => {
    const oldest = all.create(false, "oldest", [turn("running")]);
    const second = all.create(false, "second");
    await all.save(oldest);
    await all.save(second);
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
  });
});

/** What is written to stderr while something runs. */
async function saidWhile(run: () => Promise<unknown>): Promise<string> {
  const { write } = process.stderr;
  let said = "";
  process.stderr.write = ((text: string) => {
    said += text;
    return true;
  }) as typeof write;
  try {
    await run();
  } finally {
    process.stderr.write = write;
  }
  return said;
}

test("files that cannot be deleted are reported, and later writes succeed", async () => {
  const { place, all, told } = await store();
  const [one, two] = [all.create(false, "one"), all.create(false, "two")];
  await all.save(one);
  await withFiles({ rm: async () => Promise.reject(new Error("EROFS: read-only")) }, async () => {
    told.length = 0;
    const [refused] = await Promise.all([all.remove(one.id).catch((error) => error), all.save(two)]);
    assert.equal(
      [refused.status, refused.message],
      [500, "The conversation could not be deleted: EROFS: read-only."],
    );
    assert.equal([all.get(one.id), existsSync(join(place, `${two.id}.json`))], [one, true]);
    assert.equal(told.at(-1), { type: "conversations", conversations: all.list() });
    for (let count = 2; count < 500; count++) all.create(false, "t");
    assert.match(
      await saidWhile(async () => {
        all.create(false, "one more");
        await all.save(two);
      }),
      /^tapline: could not delete an old conversation: EROFS: read-only\n$/,
    );
  });
});

test("a partially written conversation is deleted and never listed", async () => {
  const { place, all, events } = await store();
  const made = all.create(false, "one");
  await all.save(made);
  const part = join(place, `${made.id}.json.part`);
  writeFileSync(part, JSON.stringify({ ...made, title: "half written" }));
  assert.is((await Conversations.open(place, events)).get(made.id).title, "one");
  await all.remove(made.id);
  assert.equal(readdirSync(place), []);
  writeFileSync(part, JSON.stringify(made));
  assert.equal((await Conversations.open(place, events)).list(), []);
});

test("what cannot be written is said, and the next one is written all the same", async () => {
  const { place, all } = await store();
  const [one, two] = [all.create(false, "one"), all.create(false, "two")];
  mkdirSync(join(place, `${one.id}.json.part`));
  assert.match(await saidWhile(() => all.save(one)), /^tapline: could not save a conversation: EISDIR/);
  await all.save(two);
  assert.ok(existsSync(join(place, `${two.id}.json`)));
});

test("a reconnecting page gets the events it missed, or is told to reload", async () => {
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
  await until(() => future() === hello + missed + said(1) + said(2), "nobody has seen what is not there yet");
  assert.is(events.number, 2);
  const again = reading(events, 1);
  const all = reading(events, 0);
  const none = reading(events, 2);
  await until(() => none() === hello);
  await until(() => again() === hello + said(2));
  await until(() => all() === hello + said(1) + said(2));
  // 4096 are kept: from the first one that is, nothing was missed.
  for (let count = 2; count < 4098; count++) tell();
  const [just, late] = [reading(events, 2), reading(events, 1)];
  await until(() => just().match(/data: /g)?.length === 4096);
  await until(() => late() !== "");
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
  const { clearInterval: realClear } = globalThis;
  const beats: [() => void, number][] = [];
  const cleared: unknown[] = [];
  const handle: object = {};
  const noted = {
    setInterval: (run: () => void, ms: number) => {
      beats.push([run, ms]);
      return handle;
    },
    clearInterval: (timer: NodeJS.Timeout) => (timer === handle ? cleared.push(timer) : realClear(timer)),
  };
  const events = new Events();
  await withTime(noted, async () => {
    const stream = events.stream(0);
    assert.is(beats[0]?.[1], 15_000);
    beats[0]?.[0]();
    assert.is(stream.read().toString(), ": tapline\n\n: \n\n");
    const closed = new Promise((resolve) => stream.once("close", resolve));
    stream.destroy();
    await closed;
  });
  assert.equal([cleared, events.readers], [[handle], 0]);
});

test.run();
