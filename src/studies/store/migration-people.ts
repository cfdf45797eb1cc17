import { type Kysely, type Migration, type RawBuilder, sql } from "kysely";
import type { Database } from "./schema.js";

/** What people are told of and what leaves with them: notifications, private feeds, accounts that were deleted. */
export function people(ordered: RawBuilder<unknown>): Migration {
  return {
    async up(db: Kysely<Database>) {
      await db.schema.alterTable("accounts").addColumn("feed_hash", "text").execute();
      await db.schema.alterTable("accounts").addColumn("deleted_at", "bigint").execute();
      await db.schema.createIndex("accounts_feed").on("accounts").column("feed_hash").unique().execute();
      await db.schema
        .createTable("retired_handles")
        .addColumn("hash", "text", (c) => c.primaryKey())
        .addColumn("retired_at", "bigint", (c) => c.notNull())
        .execute();
      await db.schema
        .createTable("notifications")
        .addColumn("id", ordered, (c) => c.primaryKey())
        .addColumn("account_id", ordered, (c) => c.notNull().references("accounts.id"))
        .addColumn("at", "bigint", (c) => c.notNull())
        .addColumn("kind", "text", (c) => c.notNull())
        .addColumn("study_id", ordered)
        .addColumn("comment_id", ordered)
        .addColumn("by_study_id", ordered)
        .addColumn("draft_id", ordered)
        .addColumn("actor_id", ordered)
        .addColumn("read_at", "bigint")
        .execute();
      await db.schema
        .createIndex("notifications_account")
        .on("notifications")
        .columns(["account_id", "at desc", "id desc"])
        .execute();
      await db.schema
        .createIndex("notifications_unread")
        .on("notifications")
        .columns(["account_id"])
        .where(sql.ref("read_at"), "is", null)
        .execute();
      await db.schema.createIndex("notifications_at").on("notifications").column("at").execute();
      // What an account wrote is read in the order of an index, however much it is.
      await db.schema.dropIndex("drafts_account").ifExists().execute();
      await db.schema
        .createIndex("drafts_account")
        .on("drafts")
        .columns(["account_id", "created_at", "id"])
        .execute();
      await db.schema.dropIndex("comments_account").ifExists().execute();
      await db.schema.createIndex("comments_account").on("comments").columns(["account_id", "id"]).execute();
      await db.schema
        .createIndex("votes_account")
        .on("votes")
        .columns(["account_id", "study_id", "version"])
        .execute();
      await db.schema.createIndex("reports_account").on("reports").columns(["account_id", "id"]).execute();
      await db.schema.createIndex("audit_actor").on("audit").columns(["actor", "at", "id"]).execute();
    },
  };
}
