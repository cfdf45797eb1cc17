import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { openStore } from "../../src/studies/store/open.js";
import { openSqlite } from "../../src/studies/store/sqlite.js";
import { SqliteFile } from "../../src/studies/store/sqlite-file.js";
import { holdsLock } from "../../src/studies/store/sqlite-lock.js";
import { saying } from "../support/saying.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-sqlite-"));
let made = 0;
const fresh = () => join(folder, `${++made}.db`);

/** Runs statements on an open file that is closed again. */
function withFile<T>(work: (file: SqliteFile) => T): T {
  const file = new SqliteFile(fresh(), 1000);
  try {
    return work(file);
  } finally {
    file.close();
  }
}

/** Open files of this process whose names begin so. */
function descriptorsOf(path: string): string[] {
  return readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(path);
    } catch {
      return false;
    }
  });
}

test("values round-trip: every kind of character, bytes as Buffers, numbers", () => {
  const texts = ["", "é\u{1F600}\u202E", "x".repeat(100_000)];
  const bytes = [Buffer.alloc(0), Buffer.from([0, 255, 0]), Buffer.alloc(300_000, 7)];
  const numbers = [0, -1, 2 ** 31, 2 ** 53 - 1, -(2 ** 53 - 1), 1e-15, -1e-17, 0.1 + 0.2, 1.5e300];
  withFile((file) => {
    file.exec("create table kept (value)");
    for (const value of [...texts, ...bytes, ...numbers, null]) {
      file.prepare("delete from kept").run([]);
      file.prepare("insert into kept values (?)").run([value]);
      const [row] = file.prepare("select value from kept").all([]) as { value: unknown }[];
      assert.equal(row, { value }, String(value).slice(0, 20));
      assert.is(Buffer.isBuffer(row?.value), Buffer.isBuffer(value));
    }
  });
});

test("an integer beyond JavaScript's safe range is refused, not rounded", () => {
  withFile((file) => {
    assert.throws(() => file.prepare("select 9007199254740993 as big").all([]), /too large/);
  });
});

test("values that the driver would change silently are refused", () => {
  withFile((file) => {
    for (const [value, sentence] of [
      ["a\0b", "The database cannot store text with a NUL character."],
      ["\0", "The database cannot store text with a NUL character."],
      [1e-17, "The database cannot store the number 1e-17."],
    ] as const) {
      for (const ask of ["all", "run"] as const)
        assert.throws(() => file.prepare("select ? as value")[ask]([value]), saying(sentence));
      assert.throws(() => [...file.prepare("select ? as value").iterate([value])], saying(sentence));
    }
    assert.equal(file.prepare("select 'a' || char(0) || 'b' as value").all([]), [{ value: "a\0b" }]);
  });
});

test("a row number beyond 2^53, as in the search index, breaks no statement", () => {
  const file = new SqliteFile(":memory:", 0);
  file.exec("create table t (id integer primary key)");
  const run = (text: string) => file.prepare(text).run([]);
  assert.is(BigInt(run("insert into t values (9009535716950016)").lastInsertRowid), 9009535716950016n);
  run("begin");
  run("rollback");
  assert.is(Number(run("delete from t").changes), 1);
  file.close();
});

test("a statement that returns rows is a reader, including RETURNING", () => {
  withFile((file) => {
    file.exec("create table t (id integer primary key, at integer)");
    assert.is(file.prepare("insert into t (at) values (1)").reader, false);
    assert.equal(file.prepare("insert into t (at) values (?) returning id, at").all([7]), [{ id: 1, at: 7 }]);
    assert.is(Number(file.prepare("update t set at = at + 1").run([]).changes), 1);
  });
});

test("neither a stream that is left early nor close() leaves anything open", () => {
  const path = fresh();
  const file = new SqliteFile(path, 1000);
  file.exec("pragma journal_mode = WAL; create table t (id integer); insert into t values (1), (2), (3)");
  for (const row of file.prepare("select id from t order by id").iterate([])) {
    assert.equal(row, { id: 1 });
    break;
  }
  file.exec("drop table t"); // refused while a statement reads it
  file.prepare("select 1"); // made and never run
  file.close();
  file.close();
  assert.equal(descriptorsOf(path), []);
  assert.not.ok(readdirSync(folder).includes(`${made}.db-wal`), "the log is in the file");
});

test("the store syncs commits, has foreign keys and full text, and a fixed SQLite", async () => {
  const db = await openSqlite(fresh(), "FULL");
  const one = async (query: string) =>
    Object.values((await sql.raw(query).execute(db)).rows[0] as Record<string, unknown>)[0];
  try {
    assert.is(await one("pragma journal_mode"), "wal");
    assert.is(await one("pragma synchronous"), 2);
    assert.is(await one("pragma foreign_keys"), 1);
    assert.is(await one("pragma secure_delete"), 1);
    assert.is(await one("select sqlite_compileoption_used('ENABLE_FTS5')"), 1);
    const [major = 0, minor = 0, patch = 0] = String(await one("select sqlite_version()"))
      .split(".")
      .map(Number);
    assert.ok(
      major === 3 && minor * 1000 + patch >= 51_003,
      "fixed in 3.51.3, https://www.sqlite.org/wal.html",
    );
  } finally {
    await db.destroy();
  }
});

test("a file that is not a SQLite database is refused by name", async () => {
  const path = fresh();
  writeFileSync(path, "not a database, but long enough to have a head\n".repeat(40));
  const message = await openSqlite(path, "FULL").then(
    () => "opened",
    (error: Error) => error.message,
  );
  assert.is(message, `${path} is not an SQLite file.`);
});

test("the lock survives another connection's end; a closed descriptor is noticed", async () => {
  const path = fresh();
  const [one, two] = [await openSqlite(path, "FULL"), await openSqlite(path, "NORMAL")];
  try {
    if (holdsLock(path) === undefined) return console.log("SKIPPED: the kernel shows no locks here.");
    await two.destroy();
    assert.is(holdsLock(path), true);
    closeSync(openSync(path, "r"));
    assert.is(holdsLock(path), false);
    const refused = await openSqlite(path, "FULL").then(
      () => "opened",
      (error: Error) => error.message,
    );
    assert.is(
      refused,
      `The lock on ${path} was lost: another program that reads it could discard recent writes.`,
    );
  } finally {
    await one.destroy();
  }
});

test("a database without any query is closed as well", async () => {
  const path = fresh();
  await (await openSqlite(path, "FULL")).destroy();
  assert.equal(descriptorsOf(path), []);
  assert.is(statSync(path).mode & 0o777, 0o600);
});

test("only the account can read a database: new folder, new file, existing file", async () => {
  const [made, there] = [join(folder, "new", "studies.db"), fresh()];
  const modes = (...paths: string[]) => paths.map((path) => (statSync(path).mode & 0o777).toString(8));
  await (await openStore(made)).close();
  assert.equal(modes(join(folder, "new"), made), ["700", "600"]);
  writeFileSync(there, "", { mode: 0o644 });
  await (await openSqlite(there, "FULL")).destroy();
  assert.equal(modes(there), ["600"]);
});

test.after(() => rmSync(folder, { recursive: true, force: true }));
test.run();
