/** What upkeep deletes, to the millisecond, and what it leaves. */
import { randomUUID } from "node:crypto";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { signInAccount } from "../../src/studies/store/accounts.js";
import { openStore } from "../../src/studies/store/open.js";
import { createToken } from "../../src/studies/store/tokens.js";
import { cleanUp } from "../../src/studies/store/upkeep.js";
import { testClock } from "./support/clock.js";
import { startDatabases } from "./support/databases.js";

const databases = await startDatabases();
test.after(() => databases.close());

const [minute, day] = [60_000, 86_400_000];
/** How long rows are kept after their timestamp, as docs/studies.md states. */
const kept = {
  sessions: 0, // the time is their end
  sign_ins: 10 * minute,
  replays: day,
  limits: day,
  audit: 365 * day,
  activity: 30 * day,
  notifications: 180 * day,
};
type Table = keyof typeof kept;

for (const database of databases.all) {
  test(`${database.name}: each table's rows are deleted when they expire, not before`, async () => {
    const clock = testClock();
    const store = await openStore(database.fresh(), { dialect: clock.dialect });
    try {
      const person = { issuer: "test", subject: "a", name: "Ada", email: null, login: null };
      const { id: account_id } = await signInAccount(store, person);
      const made = await createToken(store, account_id, { name: "t", days: 1, scopes: ["public:read"] });
      const token_id = (made as { id: string }).id;
      await store.db.deleteFrom("audit").execute();
      const insert = (table: Table, at: number) => {
        const id = randomUUID();
        const rows = {
          sessions: { id, hash: id, account_id, created_at: 0, seen_at: 0, expires_at: at, agent: "" },
          sign_ins: { hash: id, provider: "oidc", secrets: "", created_at: at },
          replays: { token_id, key: id, body_sha256: "", answer: "", created_at: at },
          limits: { key: id, recent: "[]", touched_at: at },
          audit: { id, at, actor: "operator", action: "backup", target: "x", detail: null },
          activity: { token_id, at, action: "studies.list", status: 200, resource: null },
          notifications: { id, account_id, at, kind: "draft", draft_id: id, read_at: null },
        };
        return store.db
          .insertInto(table)
          .values(rows[table] as never)
          .execute();
      };
      const times = async (table: Table) => {
        const column = {
          sessions: "expires_at",
          limits: "touched_at",
          audit: "at",
          activity: "at",
          notifications: "at",
        };
        const name = (column as Record<string, string>)[table] ?? "created_at";
        const rows = await store.db
          .selectFrom(table)
          .select(name as never)
          .execute();
        return rows
          .map((row) => clock.ms - Number((row as Record<string, number>)[name]))
          .sort((a, b) => a - b);
      };
      for (const [table, ms] of Object.entries(kept) as [Table, number][]) {
        for (const age of [ms, ms - 1, ms + day]) await insert(table, clock.ms - age);
      }
      await cleanUp(store);
      for (const [table, ms] of Object.entries(kept) as [Table, number][]) {
        assert.equal(await times(table), [ms - 1], table);
      }
      // Rows whose owner exists are never cleaned up.
      assert.is((await store.db.selectFrom("accounts").selectAll().execute()).length, 1);
      assert.is((await store.db.selectFrom("tokens").selectAll().execute()).length, 1);
    } finally {
      await store.close();
    }
  });
}

test.run();
