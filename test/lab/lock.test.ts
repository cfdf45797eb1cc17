import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { lock } from "../../src/lab/lock.js";
import { until } from "../support/until.js";

const onLinux = process.platform === "linux" ? test : test.skip;
const folder = mkdtempSync(join(tmpdir(), "tapline-lock-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const fields = (pid: string) => {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
};

onLinux("an ended process's lock is taken over without a request; a running one's is not", async () => {
  // The shell becomes a program that never asks what became of the child, which ends after that.
  const parent = spawn("sh", ["-c", "read line <&3 & echo $!; exec sleep 1000"], {
    stdio: ["ignore", "pipe", "ignore", "pipe"],
  });
  try {
    const [said] = (await once(parent.stdout as Readable, "data")) as [Buffer];
    const ended = said.toString().trim();
    const program = () => readFileSync(`/proc/${parent.pid}/comm`, "latin1").trim();
    await until(() => program() === "sleep", "the shell has become another program");
    (parent.stdio[3] as Writable).end();
    await until(() => fields(ended)[0] === "Z", "it has ended");
    const path = join(folder, "lock");
    const of = (pid: string) =>
      JSON.stringify({ pid: Number(pid), started: fields(pid)[19], since: "2026-01-01T00:00:00.000Z" });

    writeFileSync(path, of(String(parent.pid)));
    const refused = await lock(path, (holder) => `held by ${holder?.pid}`).catch((error) => error.message);
    assert.is(refused, `held by ${parent.pid}`);

    writeFileSync(path, of(ended));
    const taken = await lock(path, (holder) => `held by ${holder?.pid}`);
    assert.is(JSON.parse(readFileSync(path, "utf8")).pid, process.pid);
    await taken.release();
  } finally {
    parent.kill("SIGKILL");
  }
});

test("a holder owned by another user counts as alive, an unknown one as dead", async () => {
  const path = join(folder, "theirs");
  writeFileSync(path, JSON.stringify({ pid: 4_000_000, started: null, since: "2026-01-01T00:00:00.000Z" }));
  const { kill } = process;
  let code = "EPERM";
  process.kill = () => {
    throw Object.assign(new Error(code), { code });
  };
  try {
    const refused = await lock(path, (holder) => `held by ${holder?.pid}`).catch((error) => error.message);
    assert.is(refused, "held by 4000000");
    code = "ESRCH";
    const taken = await lock(path, (holder) => `held by ${holder?.pid}`);
    await taken.release();
  } finally {
    process.kill = kill;
  }
});

test.run();
