/** Permanently deleted data is gone from rows, from the audit log and from the database's files. */
import { existsSync, readFileSync } from "node:fs";
import { sql } from "kysely";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { signInAccount } from "../../src/studies/store/accounts.js";
import { approve, disapprove } from "../../src/studies/store/approvals.js";
import { deleteAccount, deleteAccountOf } from "../../src/studies/store/deletion.js";
import { addComment, deleteComment } from "../../src/studies/store/discussion.js";
import { saveDraft } from "../../src/studies/store/drafts.js";
import { migrate } from "../../src/studies/store/migrations.js";
import { openStore } from "../../src/studies/store/open.js";
import { publishDraft } from "../../src/studies/store/publish.js";
import type { Store } from "../../src/studies/store/store.js";
import { sha256Hex } from "../../src/studies/store/tokens.js";
import { startDatabases } from "./support/databases.js";
import { samplePackage } from "./support/packages.js";

const databases = await startDatabases();
test.after(() => databases.close());

const person = (store: Store, subject: string, email: string | null, login: string | null = null) =>
  signInAccount(store, { issuer: "https://id.example", subject, name: "Somebody", email, login });

/** Every text column of every row that identifies people. */
async function texts(store: Store): Promise<string> {
  const rows = await Promise.all(
    (["accounts", "approvals", "audit", "limits", "comments", "studies"] as const).map((table) =>
      store.db.selectFrom(table).selectAll().execute(),
    ),
  );
  return JSON.stringify(rows).toLowerCase();
}

for (const database of databases.all) {
  test(`${database.name}: no address of a deleted account remains, however it was approved`, async () => {
    const store = await openStore(database.fresh());
    // Approved in mixed case before the first sign-in.
    await approve(store, "agent", "Waiting@Example.org");
    const waiting = await person(store, "waiting", "waiting@example.org");
    // By the time the account is deleted, both its address and its login have changed.
    await approve(store, "publisher", "Former@example.org");
    await approve(store, "agent", "github:FormerLogin");
    await person(store, "former", "former@example.org", "formerlogin");
    const former = await person(store, "former", "present@example.org", "present");
    // The approval has also been revoked.
    await approve(store, "agent", "Left@example.org");
    await person(store, "left", "left@example.org");
    await disapprove(store, "agent", "LEFT@example.org");
    const left = await person(store, "left", "elsewhere@example.org");
    await deleteAccount(store, waiting.id);
    await deleteAccount(store, former.id);
    await deleteAccountOf(store, left);
    const all = await texts(store);
    for (const word of ["waiting", "former", "present", "left@", "elsewhere"]) assert.not.match(all, word);
    const kept = await store.db
      .selectFrom("audit")
      .select("target")
      .where("action", "=", "approval.add")
      .execute();
    assert.equal(kept.map(({ target }) => target).sort(), [waiting.id, former.id, former.id, left.id].sort());
    await store.close();
  });

  test(`${database.name}: an upgrade rewrites addresses in the existing audit log`, async () => {
    const location = database.fresh();
    const store = await openStore(location, { migrate: false });
    await migrate(store.db, store.dialect, "007-facets");
    const account = { issuer: "i", subject: "s", name: "S", handle: "s", created_at: 1, recent_drafts: "[]" };
    await store.db
      .insertInto("accounts")
      .values({ id: "a", email: "new@example.org", login: null, turn: 0, ...account })
      .execute();
    await store.db
      .insertInto("approvals")
      .values({ role: "agent", identity: "old@example.org", created_at: 1, account_id: "a" })
      .execute();
    const record = (id: string, action: string, target: string) => ({
      ...{ id, at: 1, actor: "operator", action, target, detail: "agent" },
    });
    await store.db
      .insertInto("audit")
      .values([
        record("1", "approval.add", "Old@Example.org"),
        record("2", "approval.add", "Waits@Example.org"),
        record("3", "comment.hide", "Not-An-Address"),
      ])
      .execute();
    await store.close();
    const upgraded = await openStore(location);
    const targets = await upgraded.db.selectFrom("audit").select("target").orderBy("id").execute();
    assert.equal(
      targets.map(({ target }) => target),
      ["a", "waits@example.org", "Not-An-Address"],
    );
    await upgraded.close();
  });
}

test("SQLite: deleted names and texts are removed from the file and its log", async () => {
  const location = (databases.all[0] as (typeof databases.all)[number]).fresh();
  const store = await openStore(location);
  const file = (path: string) => (existsSync(path) ? readFileSync(path, "latin1") : "");
  const files = () => file(location) + file(`${location}-wal`);
  const ada = await signInAccount(store, {
    ...{ issuer: "i", subject: "s-unmistakable", name: "Unmistakable Name", login: "login-unmistakable" },
    email: "address@unmistakable.example",
  });
  const credential = { tokenId: "t", accountId: ada.id, scopes: [] };
  const bytes = Buffer.from(JSON.stringify(samplePackage()));
  const draft = (await saveDraft(store, credential, bytes, "t", null)) as { id: string };
  await publishDraft(store, {
    ...{ accountId: ada.id, draftId: draft.id, replaces: null },
    reviewedSha256: sha256Hex(bytes),
  });
  const by = { accountId: ada.id, name: ada.name };
  const comment = (await addComment(store, by, draft.id, null, "An unmistakable comment")) as { id: string };
  assert.match(files(), "An unmistakable comment");
  await deleteComment(store, ada.id, comment.id);
  assert.not.match(files(), "An unmistakable comment");
  assert.match(files(), "Unmistakable Name");
  // While another connection reads, the log cannot be emptied; it is as soon as that has ended.
  const { SqliteFile } = await import("../../src/studies/store/sqlite-file.js");
  const reader = new SqliteFile(location, 0);
  reader.exec("begin");
  reader.prepare("select count(*) from accounts").all([]);
  await deleteAccount(store, ada.id);
  reader.exec("commit");
  reader.close();
  while (/nmistakable/.test(files())) await new Promise((resolve) => setTimeout(resolve, 20));
  // Nothing else was lost with the log.
  assert.is((await sql<{ n: number }>`select count(*) as n from studies`.execute(store.db)).rows[0]?.n, 1);
  await store.close();
});

test.run();
