/** Secrets and research text stay where they belong: not in logs, activity, or other columns of the database. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { sql } from "kysely";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { logFault } from "../../src/studies/service.js";
import { publishDraft } from "../../src/studies/store/publish.js";
import { startDatabases } from "./support/databases.js";
import { samplePackage } from "./support/packages.js";
import { startPostgres } from "./support/postgres.js";
import { startService } from "./support/service.js";

const databases = await startDatabases();
const marker = "MARKERxq7";

/** Every cell of every table that holds a text, as table.column. */
async function cellsWith(service: Awaited<ReturnType<typeof startService>>, text: string): Promise<string[]> {
  const { db } = service.running.service.store;
  const found = new Set<string>();
  for (const { name } of await db.introspection.getTables()) {
    const { rows } = await sql<Record<string, unknown>>`select * from ${sql.table(name)}`.execute(db);
    for (const row of rows) {
      for (const [column, value] of Object.entries(row)) {
        const shown = Buffer.isBuffer(value) ? value.toString("latin1") : String(value);
        if (shown.toLowerCase().includes(text.toLowerCase())) found.add(`${name}.${column}`);
      }
    }
  }
  return [...found].sort();
}

for (const database of databases.all) {
  test(`${database.name}: tokens, sessions and prompts are stored only where they belong`, async () => {
    const location = database.fresh();
    const service = await startService(location);
    const { store } = service.running.service;
    const ada = await service.account("Ada");
    const { token } = await service.token(ada.id);
    const session = ada.cookie.split("=")[1] as string;
    const study = samplePackage();
    const body = JSON.stringify({ ...study, entries: [{ ...study.entries[0], prompt: `${marker} prompt` }] });
    const save = () =>
      service.api(token, "/api/v1/studies", { method: "POST", body, headers: { "Idempotency-Key": "k1" } });
    const saved = (await save()).json;
    await service.api(token, `/api/v1/studies?q=${marker}`);
    await service.api(token, `/api/v1/studies/${marker}?${marker}=${marker}`);
    await service.api(token, "/api/v1/studies", {
      method: "POST",
      body: body.replace("{", `{"${marker}":1,`),
    });
    const reviewed = { accountId: ada.id, reviewedSha256: saved.package_sha256, replaces: null };
    await publishDraft(store, { ...reviewed, draftId: saved.id });
    await service.call(`/?q=${marker}`, { headers: { Cookie: `${ada.cookie}; other=${marker}` } });
    await service.running.service.activity.flush();
    try {
      assert.equal(await cellsWith(service, marker), ["versions.package"]);
      assert.equal(await cellsWith(service, token), []);
      assert.equal(await cellsWith(service, session), []);
      // Faults of the database in the middle of everything: the log names them without quoting anything.
      await store.db.schema.alterTable("studies").renameTo("studies_away").execute();
      const failed = await service.api(token, `/api/v1/studies?q=refusal&limit=7`);
      assert.is(`${failed.status} ${failed.json.code}`, "503 unavailable");
      assert.is(
        (await service.call(`/studies/${saved.id}`, { headers: { Cookie: ada.cookie } })).status,
        503,
      );
      await store.db.schema.alterTable("studies_away").renameTo("studies").execute();
      const log = service.log.join("\n");
      assert.is(service.log.length, 2, log);
      assert.ok(service.log[0]?.includes(failed.json.request_id), "the line can be found by the answer's id");
      for (const secret of [marker, token, session]) assert.not.ok(log.includes(secret));
    } finally {
      await service.close();
    }
    if (database.name === "sqlite") {
      for (const name of readdirSync(dirname(location))) {
        const bytes = readFileSync(join(dirname(location), name));
        for (const secret of [token, session]) assert.not.ok(bytes.includes(secret), name);
      }
    }
  });
}

test("postgresql: the server's log of failed statements contains no parameters", async () => {
  let log = "";
  const secrets = [marker, marker.toLowerCase(), Buffer.from(marker).toString("hex")];
  // A server that is set to log as much of a failure as it can.
  const cluster = await startPostgres({
    settings: [
      "log_min_error_statement=error",
      "log_error_verbosity=verbose",
      "log_parameter_max_length_on_error=-1",
    ],
    log: (text) => {
      log += text;
    },
  });
  if (cluster === null) return console.log("SKIPPED: PostgreSQL is not installed (Debian: postgresql).");
  const service = await startService(cluster.url("loud"));
  try {
    const { store } = service.running.service;
    const ada = await service.account("Ada");
    const { token } = await service.token(ada.id);
    secrets.push(token, ada.cookie.split("=")[1] as string);
    const body = JSON.stringify(samplePackage({ title: `${marker} title`, finding: `${marker} finding` }));
    const send = () => service.api(token, "/api/v1/studies", { method: "POST", body });
    for (const table of ["drafts", "search", "tokens"]) {
      await sql`alter table ${sql.table(table)} rename to away`.execute(store.db);
      const answers = [
        await send(),
        await service.api(token, `/api/v1/studies?q=${marker}+${table}`),
        await service.call(`/drafts?q=${marker}`, { headers: { Cookie: ada.cookie } }),
      ];
      assert.ok(
        answers.some(({ status }) => status === 503),
        `without ${table}: ${answers.map(({ status }) => status)}`,
      );
      await sql`alter table away rename to ${sql.table(table)}`.execute(store.db);
    }
    assert.is((await send()).status, 201);
  } finally {
    await service.close();
    await cluster.stop();
  }
  assert.match(log, /ERROR: .*"drafts" does not exist/);
  assert.match(log, /STATEMENT: /);
  for (const secret of secrets) assert.not.ok(log.includes(secret), secret);
});

test("a fault's log line holds its stack locations but never its message", () => {
  const lines: string[] = [];
  const error = new Error(`first\n    at ${marker} (line 2)\n    at ${marker}`);
  logFault({ log: (line) => lines.push(line) }, "id", error);
  logFault({ log: (line) => lines.push(line) }, "id", `    at ${marker}`);
  logFault({ log: (line) => lines.push(line) }, "id", Object.assign(new Error(marker), { message: "other" }));
  assert.match(lines[0] as string, /^request id failed: Error {2}at .*hygiene\.test/);
  for (const line of lines) assert.not.ok(line.includes(marker), line);
});

test.after(() => databases.close());
test.run();
