import { type Kysely, sql } from "kysely";
import { normalized } from "./accounts.js";
import { freeHandle } from "./handles.js";
import type { Database } from "./schema.js";

/** Completes rows of the previous schema: after the migration, and after restoring an old backup. */
export async function completePublicSite(db: Kysely<Database>): Promise<void> {
  const unnamed = await db
    .selectFrom("accounts")
    .select(["id", "name", "login"])
    .where("handle", "is", null)
    .orderBy("created_at")
    .orderBy("id")
    .execute();
  for (const { id, name, login } of unnamed) {
    const handle = await freeHandle(db, login ?? name);
    await db.updateTable("accounts").set({ handle }).where("id", "=", id).execute();
  }
  await bindApprovals(db);
  // A study's id is that of the draft that became its first version; for later versions it was not stored.
  await db
    .updateTable("versions")
    .set({ draft_id: sql.ref<string>("study_id") })
    .where("version", "=", 1)
    .where("draft_id", "is", null)
    .execute();
  await db
    .deleteFrom("votes")
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom("studies")
          .select("studies.id")
          .whereRef("studies.id", "=", "votes.study_id")
          .whereRef("studies.account_id", "=", "votes.account_id"),
      ),
    )
    .execute();
  await db
    .updateTable("studies")
    .set({
      upvotes: sql<number>`(select count(*) from votes
        where votes.study_id = studies.id and votes.version = studies.version)`,
    })
    .where("upvotes", ">", 0)
    .execute();
}

/** Binds approvals by name to the accounts that have that name, so that no one else can obtain them. */
async function bindApprovals(db: Kysely<Database>): Promise<void> {
  const approvals = await db.selectFrom("approvals").selectAll().where("account_id", "is", null).execute();
  for (const { role, identity, created_at } of approvals) {
    const named = await db
      .selectFrom("accounts")
      .select("id")
      .where((eb) =>
        eb.or([
          eb("id", "=", identity),
          eb("email", "=", identity),
          eb(sql`'github:' || login`, "=", identity),
          eb(sql`issuer || '#' || subject`, "=", identity),
        ]),
      )
      .orderBy("created_at")
      .orderBy("id")
      .execute();
    for (const [place, { id }] of named.entries()) {
      if (place === 0) {
        await db
          .updateTable("approvals")
          .set({ account_id: id })
          .where("role", "=", role)
          .where("identity", "=", identity)
          .execute();
      } else {
        await db
          .insertInto("approvals")
          .values({ role, identity: id, created_at, account_id: id })
          .onConflict((conflict) => conflict.doNothing())
          .execute();
      }
    }
  }
}

/**
 * Approvals used to be logged as the operator typed them. Replaces names by account ids, so that no address stays in the
 * log when the account is deleted.
 */
export async function targetAudit(db: Kysely<Database>): Promise<void> {
  const owners = new Map<string, string>();
  for (const { identity, account_id } of await db
    .selectFrom("approvals")
    .select(["identity", "account_id"])
    .execute()) {
    if (account_id !== null) owners.set(identity, account_id);
  }
  const records = await db
    .selectFrom("audit")
    .select(["id", "target"])
    .where("action", "in", ["approval.add", "approval.remove"])
    .execute();
  for (const { id, target } of records) {
    const named = normalized(target);
    const now = owners.get(named) ?? named;
    if (now !== target) await db.updateTable("audit").set({ target: now }).where("id", "=", id).execute();
  }
}
