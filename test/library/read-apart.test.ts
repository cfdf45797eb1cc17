/** How the Lab has large things read: one at a time, by a process that a client's leaving ends. No process is started. */
import child_process from "node:child_process";
import { EventEmitter } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { createApp, type Listening, listen, routesOf } from "../../src/http/index.js";
import { libraryEndpoints } from "../../src/library/endpoints.js";
import { openLibrary } from "../../src/library/library.js";
import { until } from "../support/until.js";

/** What the Lab holds of a process; the test says when it answers, and when it ends. */
class Reader extends EventEmitter {
  connected = true;
  stderr = new EventEmitter();
  task: { kind?: string; name?: string } = {};
  send(task: object): void {
    this.task = task;
  }
  disconnect(): void {
    this.connected = false;
  }
  end(answer?: object): void {
    if (answer !== undefined) this.emit("message", answer);
    this.connected = false;
    this.emit("close");
  }
}

const home = mkdtempSync(join(tmpdir(), "tapline-library-turns-"));
const readers: Reader[] = [];
const { fork } = child_process;
let service: Listening;
let arrived = 0;
test.before(() => {
  child_process.fork = (() => readers[readers.push(new Reader()) - 1]) as never;
  syncBuiltinESMExports();
});
test.after(() => {
  child_process.fork = fork;
  syncBuiltinESMExports();
  rmSync(home, { recursive: true, force: true });
});
test.before.each(async () => {
  readers.length = 0;
  arrived = 0;
  const router = routesOf(libraryEndpoints, openLibrary(home));
  service = await listen(createApp({ routers: [router], log: () => {} }), { port: 0, graceMs: 0 });
  service.server.on("request", (request) => {
    if (request.method === "PUT") request.once("end", () => arrived++);
  });
});
test.after.each(() => service.close());

function put(path: string) {
  const leave = new AbortController();
  const [method, body] = ["PUT", JSON.stringify({ from: "/a/b" })];
  const answer = fetch(`${service.url}/lab/${path}`, { method, body, signal: leave.signal }).then(
    async (response) => [response.status, await response.json()],
    () => "left",
  );
  return { answer, leave: () => leave.abort() };
}
/** Until so many requests are read, and whatever they lead to has had its time. */
async function read(count: number): Promise<void> {
  await until(() => arrived >= count, "the requests are read", 1);
  for (let i = 0; i < 3; i++) await (await fetch(`${service.url}/lab/dictionaries`)).arrayBuffer();
}
const reader = (index: number) => until(() => readers[index], "a reader is started", 1);

test("files are read one at a time, in order, whatever happens to others", async () => {
  const first = put("dictionaries/a");
  await read(1);
  const second = put("lenses/b");
  await read(2);
  const third = put("dictionaries/c");
  await read(3);
  assert.is(readers.length, 1, "as large as its file is what one takes in memory");
  (await reader(0)).end({ refused: "No." });
  assert.equal(await first.answer, [400, { error: "No." }]);
  await reader(1);
  await read(3);
  assert.is(readers.length, 2);
  readers[1]!.end();
  assert.is(((await second.answer) as [number])[0], 500, "it ended without a word");
  (await reader(2)).end({ stored: { name: "c" } });
  assert.equal(await third.answer, [200, { name: "c" }]);
  assert.equal(
    readers.map(({ task: { kind, name } }) => [kind, name]),
    [
      ["dictionary", "a"],
      ["lens", "b"],
      ["dictionary", "c"],
    ],
  );
});

test("a lost client ends its reader; the next starts after that", async () => {
  const first = put("dictionaries/a");
  await reader(0);
  const second = put("dictionaries/b");
  const third = put("dictionaries/c");
  await read(3);
  assert.ok(readers[0]!.connected);
  second.leave();
  first.leave();
  assert.equal([await first.answer, await second.answer], ["left", "left"]);
  await until(() => !readers[0]!.connected, "its reader is told", 1);
  await read(3);
  assert.is(readers.length, 1, "it is still at its end");
  readers[0]!.end();
  const next = await reader(1);
  assert.is(next.task.name, "c", "nobody waits for the second");
  next.end({ stored: { name: "c" } });
  assert.equal(await third.answer, [200, { name: "c" }]);
});

test("a reader that is done is left alone when its client leaves later", async () => {
  const { answer } = put("dictionaries/a");
  const done = await reader(0);
  done.emit("message", { stored: { name: "a" } });
  assert.equal(await answer, [200, { name: "a" }]);
  assert.ok(done.connected);
});

test.run();
