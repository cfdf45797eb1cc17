/**
 * Every list that has an order and an end comes from an index in that order: none sorts all that an account, a study
 * or the whole site has, to show the first few. Asked of the databases' planners, so that it holds at any size.
 */
import { CompiledQuery, type KyselyPlugin, type RootOperationNode, sql } from "kysely";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { indexStudies } from "../../src/studies/backup.js";
import { personalFiles } from "../../src/studies/personal/export.js";
import { signInAccount } from "../../src/studies/store/accounts.js";
import { ActivityLog } from "../../src/studies/store/activity.js";
import { readAudit } from "../../src/studies/store/audit.js";
import { readComments } from "../../src/studies/store/discussion.js";
import { listDrafts } from "../../src/studies/store/drafts.js";
import { listForms } from "../../src/studies/store/measurements.js";
import { readNotifications } from "../../src/studies/store/notifications.js";
import { openStore } from "../../src/studies/store/open.js";
import { openReports } from "../../src/studies/store/reports.js";
import { listSessions } from "../../src/studies/store/sessions.js";
import type { Store } from "../../src/studies/store/store.js";
import {
  listStudies,
  listVersions,
  ownStudies,
  readVersion,
  topStudies,
} from "../../src/studies/store/studies.js";
import { listTokens } from "../../src/studies/store/tokens.js";
import { startDatabases } from "./support/databases.js";

const databases = await startDatabases();
const id = "00000000-0000-4000-8000-000000000000";

const lists: Record<string, (store: Store) => Promise<unknown>> = {
  "newest studies": (store) => listStudies(store, "", 20, 40),
  "top studies": (store) => topStudies(store, 20, 40),
  "an account's studies": (store) => ownStudies(store, id),
  "measured forms of a model": (store) => listForms(store, "a".repeat(64), 20, 40),
  "an account's drafts": (store) => listDrafts(store, id),
  "an account's tokens": (store) => listTokens(store, id),
  "an account's sessions": (store) => listSessions(store, id),
  "a token's activity": (store) => new ActivityLog(store).list(id),
  "a study's versions": (store) => listVersions(store, id),
  "a study's newest version": (store) => readVersion(store, id),
  "a study's comments": (store) => readComments(store, id, 50, 50),
  "open reports": (store) => openReports(store),
  "an account's notifications": (store) => readNotifications(store, id, { limit: 50 }),
  "an account's notifications from a place": (store) =>
    readNotifications(store, id, { limit: 50, before: { at: 5, id } }),
  "all that an account wrote": async (store) => {
    await signInAccount(store, { issuer: "t", subject: "a", name: "A", email: null, login: null });
    const { id: account } = await store.db.selectFrom("accounts").select("id").executeTakeFirstOrThrow();
    for await (const _file of personalFiles(store, account));
  },
  "the audit log": (store) => readAudit(store, { limit: 50 }),
  "the audit log from a place": (store) => readAudit(store, { limit: 50, before: { at: 5, id } }),
  "the audit log of a target": (store) => readAudit(store, { target: id, limit: 50 }),
  "the audit log of a target from a place": (store) =>
    readAudit(store, { target: id, limit: 50, before: { at: 5, id } }),
  "studies in the order of the index": (store) =>
    indexStudies(
      { ...store, dialect: { ...store.dialect, search: { ...store.dialect.search, fill: drain } } },
      store.db,
    ),
};

async function drain(_db: unknown, batches: AsyncIterable<unknown>): Promise<void> {
  for await (const _batch of batches);
}

/** The plans of the queries that a list makes and that have an order, each as one text. */
async function plansOf(store: Store, list: (store: Store) => Promise<unknown>): Promise<string[]> {
  const seen: RootOperationNode[] = [];
  const plugin: KyselyPlugin = {
    transformQuery({ node }) {
      seen.push(node);
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  await list({ ...store, db: store.db.withPlugin(plugin) });
  const executor = store.db.getExecutor();
  const plans: string[] = [];
  for (const node of seen) {
    const query = executor.compileQuery(node, { queryId: "plan" });
    if (!/ order by /.test(query.sql)) continue;
    assert.match(query.sql, / limit /, query.sql);
    const explain = store.dialect.name === "sqlite" ? "explain query plan" : "explain (costs off)";
    plans.push(
      await store.db.connection().execute(async (connection) => {
        if (store.dialect.name === "postgresql") {
          // Small tables are scanned; what matters is whether there is an index once they are larger.
          for (const setting of [
            "enable_seqscan",
            "enable_bitmapscan",
            "enable_sort",
            "enable_incremental_sort",
          ])
            await sql`set ${sql.raw(setting)} = off`.execute(connection);
        }
        const { rows } = await connection.executeQuery(
          CompiledQuery.raw(`${explain} ${query.sql}`, [...query.parameters]),
        );
        return rows.map((row) => Object.values(row as object).join(" ")).join("\n");
      }),
    );
  }
  return plans;
}

for (const database of databases.all) {
  test(`${database.name}: lists are read in index order without sorting`, async () => {
    const store = await openStore(database.fresh());
    try {
      for (const [name, list] of Object.entries(lists)) {
        const plans = await plansOf(store, list);
        assert.ok(plans.length > 0, `${name}: no query with an order`);
        for (const plan of plans) assert.not.match(plan, /temp b-tree|\bsort\b/i, `${name}:\n${plan}`);
      }
    } finally {
      await store.close();
    }
  });
}

test.after(() => databases.close());
test.run();
