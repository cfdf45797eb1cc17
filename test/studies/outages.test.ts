/** A service whose database accepts no writes: its responses, and what an outage leaves in the log. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { backUp } from "../../src/studies/backup.js";
import { summarizing, toStandardError } from "../../src/studies/log.js";
import { logFault } from "../../src/studies/service.js";
import { readAudit } from "../../src/studies/store/audit.js";
import { startDatabases } from "./support/databases.js";
import { samplePackage } from "./support/packages.js";
import { startService, type TestService } from "./support/service.js";

const databases = await startDatabases();
const folder = mkdtempSync(join(tmpdir(), "tapline-outages-"));
const small = mkdtempSync(join(tmpdir(), "tapline-small-"));
const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=8m", "tapline", small]).status === 0;

/** Until the readiness is that; it is remembered for a moment. */
async function readiness(service: TestService, reads: string, writes: string) {
  for (;;) {
    const { status, json } = await service.call("/readyz");
    if (json.reads === reads && json.writes === writes) return [status, json.status];
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

for (const database of databases.all) {
  test(`${database.name}: readiness distinguishes reads from writes`, async () => {
    const service = await startService(database.fresh());
    const { quick } = service.running.service.store;
    assert.equal(await readiness(service, "ok", "ok"), [200, "ok"]);
    // A server in recovery, a disk that was mounted again without writes: SQLite's connection is one, a pool has many.
    const limits = sql.raw("alter table limits rename to elsewhere");
    if (database.name === "sqlite") await sql`pragma query_only = on`.execute(quick);
    else await limits.execute(quick);
    assert.equal(await readiness(service, "ok", "failed"), [503, "unavailable"]);
    assert.is((await service.call("/readyz/reads")).status, 200);
    assert.is((await service.call("/")).status, 200);
    assert.match(
      service.log[0] as string,
      database.name === "sqlite"
        ? "the database does not accept writes: SQLite 8, attempt to write a readonly database"
        : "the database does not accept writes: PostgreSQL 42P01",
    );
    assert.is(service.log.length, 1, "once, however often it is asked");
    await service.close();
  });
}

(mounted ? test : test.skip)(
  "on a full disk reads still answer, logs name the disk and backups are complete",
  async () => {
    const service = await startService(join(small, "data", "studies.db"));
    try {
      const { store } = service.running.service;
      const ada = await service.account("Ada");
      const { token } = await service.token(ada.id);
      const save = () =>
        service.api(token, "/api/v1/studies", { method: "POST", body: JSON.stringify(samplePackage()) });
      assert.is((await save()).status, 201);
      const audited = (await readAudit(store, { limit: 100 })).length;
      const ballast = join(small, "ballast");
      const fill = () => {
        const { bavail, bsize } = statfsSync(small);
        try {
          writeFileSync(ballast, Buffer.alloc(Number(bavail) * Number(bsize) + 1));
        } catch (error) {
          assert.is((error as NodeJS.ErrnoException).code, "ENOSPC");
        }
      };
      fill();
      // The log has room left in pages that it may write over: until that is used up.
      while ((await save()).status === 201)
        await store.db
          .updateTable("accounts")
          .set({ recent_drafts: "[]" })
          .execute()
          .catch(() => {});
      assert.equal(await readiness(service, "ok", "failed"), [503, "unavailable"]);
      assert.is((await service.call("/readyz/reads")).status, 200);
      assert.is((await service.call("/drafts", { headers: { Cookie: ada.cookie } })).status, 200);
      assert.ok(
        service.log.some((line) => line.includes("SQLite 13, database or disk is full")),
        service.log.join("\n"),
      );
      const path = join(folder, "daily.gz");
      const { rows, unrecorded } = await backUp(store, path);
      assert.ok(rows > 0 && existsSync(path));
      assert.is(unrecorded, "SQLite 13, database or disk is full");
      rmSync(ballast);
      assert.equal(await readiness(service, "ok", "ok"), [200, "ok"]);
      assert.is((await readAudit(store, { limit: 100 })).length, audited);
      assert.is((await backUp(store, path)).unrecorded, null);
    } finally {
      await service.close();
    }
  },
);

test("an outage is logged in a few lines with the number of affected requests", () => {
  const lines: string[] = [];
  const { log, summarize } = summarizing((line) => lines.push(line));
  const refused = () => Object.assign(new Error("secret"), { code: "ECONNREFUSED" });
  for (let request = 1; request <= 500; request += 1) logFault({ log }, `r${request}`, refused());
  assert.is(lines.length, 1);
  assert.match(lines[0] as string, /^request r1 failed: Error ECONNREFUSED at /);
  summarize();
  assert.is(lines.length, 2);
  assert.match(lines[1] as string, /^repeated 499 more times; latest: request r500 failed: Error ECON/);
  logFault({ log }, "r501", refused());
  summarize();
  assert.match(lines[2] as string, /^repeated 1 more time; latest: request r501 failed/);
  summarize();
  assert.equal(lines.slice(3), ["stopped after 501 times: ECONNREFUSED"]);
  summarize();
  assert.is(lines.length, 4);
  // The next one is news again; other faults and lines without a kind are not held back.
  logFault({ log }, "r502", refused());
  logFault({ log }, "r503", new TypeError("secret"));
  for (let times = 0; times < 2; times += 1) log("reloaded the TLS certificate");
  assert.is(lines.length, 8);
  assert.not.match(lines.join("\n"), "secret");
  // A fault that occurs once is not announced to be over.
  summarize();
  assert.is(lines.length, 8);
});

test("lines on standard error start with the time", () => {
  const { write } = process.stderr;
  const written: string[] = [];
  process.stderr.write = ((text: string) => written.push(text) > 0) as typeof write;
  try {
    toStandardError("something failed");
  } finally {
    process.stderr.write = write;
  }
  assert.match(written.join(""), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z something failed\n$/);
});

test.after(async () => {
  await databases.close();
  if (mounted) spawnSync("umount", ["-l", small]);
  for (const place of [small, folder]) rmSync(place, { recursive: true, force: true });
});
test.run();
