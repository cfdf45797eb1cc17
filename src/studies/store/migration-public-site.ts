import { type Kysely, type Migration, type RawBuilder, sql } from "kysely";
import { freeHandle } from "./handles.js";
import type { Database } from "./schema.js";

/** What a public site needs: handles, moderation, limits, and an audit log. */
export function publicSite(ordered: RawBuilder<unknown>): Migration {
  return {
    async up(db: Kysely<Database>) {
      const add = async (table: string, columns: Record<string, "text" | "bigint">) => {
        for (const [name, type] of Object.entries(columns))
          await db.schema.alterTable(table).addColumn(name, type).execute();
      };
      // Lists of what is one account's, one study's or still open come from an index in the order that they show.
      const inOrder = async (index: string, table: string, columns: string[]) => {
        await db.schema.dropIndex(index).ifExists().execute();
        await db.schema.createIndex(index).on(table).columns(columns).execute();
      };
      await add("accounts", { handle: "text", suspended_at: "bigint", suspension: "text" });
      await db.schema.createIndex("accounts_handle").on("accounts").column("handle").unique().execute();
      await db.schema.createIndex("accounts_email").on("accounts").column("email").execute();
      await db.schema.createIndex("accounts_login").on("accounts").column("login").execute();
      await db.schema.alterTable("approvals").addColumn("account_id", ordered).execute();
      await db.schema.createIndex("approvals_account").on("approvals").column("account_id").execute();
      for (const table of ["studies", "versions"]) {
        await db.schema
          .alterTable(table)
          .addColumn("standing", "text", (c) => c.notNull().defaultTo("published"))
          .execute();
        await add(table, { standing_at: "bigint", reason: "text" });
      }
      await db.schema
        .alterTable("studies")
        .addColumn("listed", "integer", (c) => c.notNull().defaultTo(1))
        .execute();
      await inOrder("studies_top", "studies", ["listed", "upvotes desc", "published_at desc"]);
      await inOrder("studies_newest", "studies", ["listed", "published_at desc"]);
      await inOrder("studies_account", "studies", ["account_id", "published_at desc"]);
      await inOrder("sessions_account", "sessions", ["account_id", "seen_at desc"]);
      await inOrder("tokens_account", "tokens", ["account_id", "created_at desc", "id"]);
      await inOrder("tokens_active", "tokens", ["account_id", "revoked_at", "expires_at"]);
      await db.schema.alterTable("versions").addColumn("draft_id", ordered).execute();
      await db.schema.createIndex("versions_draft").on("versions").column("draft_id").unique().execute();
      await add("comments", { hidden: "text", reason: "text" });
      await db.schema.createIndex("comments_account").on("comments").column("account_id").execute();
      await db.schema
        .createTable("reports")
        .addColumn("id", ordered, (c) => c.primaryKey())
        .addColumn("study_id", ordered, (c) => c.notNull().references("studies.id"))
        .addColumn("comment_id", ordered)
        .addColumn("account_id", ordered, (c) => c.notNull().references("accounts.id"))
        .addColumn("created_at", "bigint", (c) => c.notNull())
        .addColumn("reason", "text", (c) => c.notNull())
        .addColumn("closed_at", "bigint")
        .addColumn("outcome", "text")
        .execute();
      await db.schema
        .createIndex("reports_open")
        .on("reports")
        .columns(["created_at", "id"])
        .where(sql.ref("closed_at"), "is", null)
        .execute();
      await db.schema.createIndex("reports_study").on("reports").column("study_id").execute();
      await db.schema
        .createTable("audit")
        .addColumn("id", ordered, (c) => c.primaryKey())
        .addColumn("at", "bigint", (c) => c.notNull())
        .addColumn("actor", ordered, (c) => c.notNull())
        .addColumn("action", "text", (c) => c.notNull())
        .addColumn("target", ordered, (c) => c.notNull())
        .addColumn("detail", "text")
        .execute();
      await inOrder("audit_at", "audit", ["at", "id"]);
      await inOrder("audit_target", "audit", ["target", "at", "id"]);
      await db.schema
        .createTable("limits")
        .addColumn("key", ordered, (c) => c.primaryKey())
        .addColumn("recent", "text", (c) => c.notNull())
        .addColumn("touched_at", "bigint", (c) => c.notNull())
        .execute();
      await db.schema.createIndex("limits_touched").on("limits").column("touched_at").execute();
      await db.schema
        .createTable("secrets")
        .addColumn("name", "text", (c) => c.primaryKey())
        .addColumn("value", "text", (c) => c.notNull())
        .execute();
      // Sign-ins on their way: from now on the browser carries them.
      await db.deleteFrom("sign_ins").execute();
      await completePublicSite(db);
    },
  };
}

/** Fills in what rows of the schema before this one lack: after the migration, and when such a backup was restored. */
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
  // A study had the id of the draft that became its first version; of later ones nothing was kept.
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

/** Approvals named accounts by what they showed; each of those keeps what it had, and nobody else can come by it. */
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
