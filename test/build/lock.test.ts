import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { withLock } from "../../scripts/build/lock.js";
import { until } from "../support/until.js";

const test = suite<{ folder: string; file: string }>("lock");

test.before.each((context) => {
  context.folder = mkdtempSync(join(os.tmpdir(), "tapline-lock-"));
  context.file = join(context.folder, "cpu.lock");
});
test.after.each(({ folder }) => rmSync(folder, { recursive: true, force: true }));

const never = () => assert.unreachable("nobody holds the lock");

test("locks are taken one after the other, with one note for the waiting process", async ({
  file,
  folder,
}) => {
  const events: string[] = [];
  const work = (name: string, end?: Promise<void>) => async () => {
    events.push(`${name} starts`);
    await end;
    events.push(`${name} ends`);
  };
  let told = 0;
  let waits = () => {};
  const waiting = new Promise<void>((resolve) => {
    waits = resolve;
  });
  const first = withLock(file, never, work("first", waiting));
  await until(() => events.length > 0);
  await Promise.all([
    first,
    withLock(
      file,
      () => {
        told++;
        waits();
      },
      work("second"),
    ),
  ]);
  assert.equal(events, ["first starts", "first ends", "second starts", "second ends"]);
  assert.is(told, 1);
  assert.equal(readdirSync(folder), []);
});

test("is given back when the work fails", async ({ file }) => {
  try {
    await withLock(file, never, () => Promise.reject(new Error("no compiler")));
    assert.unreachable();
  } catch (error) {
    assert.is((error as Error).message, "no compiler");
  }
  assert.not(existsSync(file));
});

test("the lock of a dead process is taken over", async ({ file, folder }) => {
  const dead = spawn(process.execPath, ["-e", ""]);
  await new Promise((ended) => dead.on("exit", ended));
  writeFileSync(file, String(dead.pid));
  assert.is(await withLock(file, never, async () => 42), 42);
  assert.equal(readdirSync(folder), []);
});

test("a lock without a sign of life expires, even if its process id is in use", async ({ file }) => {
  writeFileSync(file, String(process.ppid));
  const longAgo = new Date(Date.now() - 3600_000);
  utimesSync(file, longAgo, longAgo);
  assert.is(await withLock(file, never, async () => 42), 42);
});

test.run();
