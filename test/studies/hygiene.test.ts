/** Secrets and research text stay where they belong: not in logs, activity, or other columns of the database. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { sql } from "kysely";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { publishDraft } from "../../src/studies/store/publish.js";
import { startDatabases } from "./support/databases.js";
import { samplePackage } from "./support/packages.js";
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
  test(`${database.name}: tokens, sessions and prompts are found only where they belong`, async () => {
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

test.after(() => databases.close());
test.run();
