/** A system's own sqlite3 next to processes that write and are killed: what it must not remove. */
import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { promisify } from "node:util";
import * as assert from "uvu/assert";
import { signInAccount } from "../../../src/studies/store/accounts.js";
import { openStore } from "../../../src/studies/store/open.js";
import { forkWriter } from "../../stress/studies/support/fork-writer.js";

const run = promisify(execFile);

export async function hasSqlite3(): Promise<boolean> {
  return run("sqlite3", ["--version"]).then(
    () => true,
    () => false,
  );
}

/**
 * Rounds of: two processes write, a foreign sqlite3 reads and copies the database meanwhile, the writers are killed.
 * @returns how many drafts were acknowledged; all of them are there, and in each copy all from before it
 */
export async function foreignRounds(location: string, rounds: number): Promise<number> {
  const store = await openStore(location);
  const identity = { issuer: "test", subject: "a", name: "Ada", email: null, login: null };
  const { id } = await signInAccount(store, identity);
  const other = await signInAccount(store, { ...identity, subject: "b", name: "Ben" });
  await store.close();
  const acknowledged = new Set<string>();
  for (let round = 0; round < rounds; round += 1) {
    const writers = [0, 1].map(() => startWriter(location, [id, other.id], acknowledged));
    try {
      await Promise.all(writers.map((one) => one.wrote(2)));
      await run("sqlite3", [location, "select count(*) from studies"]);
      await Promise.all(writers.map((one) => one.wrote(2)));
      await includes(location, acknowledged, `round ${round}, beside the writers`);
      const copy = `${location}.copy`;
      const before = new Set(acknowledged);
      // In one reading: `.backup` restarts whenever another process has written, and never ends next to constant
      // writers.
      await run("sqlite3", ["-cmd", ".timeout 300000", location, `vacuum into '${copy}'`]);
      await includes(copy, before, `round ${round}, the copy`);
      rmSync(copy);
      await Promise.all(writers.map((one) => one.wrote(1)));
    } finally {
      await Promise.all(writers.map((one) => one.kill()));
    }
    await includes(location, acknowledged, `round ${round}, after the kills`);
  }
  return acknowledged.size;
}

/**
 * Repeatedly starts a foreign sqlite3 that counts studies and exits: its exit is what would clear an unlocked log. Null
 * without sqlite3.
 */
export async function readAllTheTime(location: string): Promise<{ stop(): Promise<number> } | null> {
  if (!(await hasSqlite3())) return null;
  let reads = 0;
  let stopped = false;
  const query = "select count(*) from studies";
  const reading = (async () => {
    while (!stopped) {
      await run("sqlite3", ["-cmd", ".timeout 300000", location, query]);
      reads += 1;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return reads;
  })();
  reading.catch(() => {}); // told by stop()
  return {
    stop() {
      stopped = true;
      return reading;
    },
  };
}

/** Every one of the drafts is in the database, as a foreign sqlite3 reads it. */
async function includes(location: string, drafts: ReadonlySet<string>, when: string): Promise<void> {
  const expected = [...drafts]; // more may come while the reader reads
  const query = "pragma integrity_check; select id from drafts union select id from studies";
  const { stdout } = await run("sqlite3", ["-cmd", ".timeout 300000", location, query], { maxBuffer: 1e8 });
  const [verdict, ...found] = stdout.trimEnd().split("\n");
  assert.is(verdict, "ok", when);
  const there = new Set(found);
  const lost = expected.filter((id) => !there.has(id));
  assert.equal(lost, [], `${when}: ${lost.length} of ${expected.length} acknowledged drafts are lost`);
}

interface Writer {
  /** So many more drafts were acknowledged. */
  wrote(more: number): Promise<void>;
  kill(): Promise<void>;
}

function startWriter(
  location: string,
  accounts: readonly [string, string],
  acknowledged: Set<string>,
): Writer {
  const child = forkWriter(location, ...accounts);
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  let count = 0;
  child.on("message", (message: { draft?: string }) => {
    if (message.draft === undefined) return;
    acknowledged.add(message.draft);
    count += 1;
  });
  return {
    async wrote(more) {
      const goal = count + more;
      while (count < goal) {
        if (child.signalCode !== null) throw new Error("The writer was killed meanwhile.");
        if (child.exitCode !== null) throw new Error(`The writer ended by itself with ${child.exitCode}.`);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
