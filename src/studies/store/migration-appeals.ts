import { type Kysely, type Migration, type RawBuilder, sql } from "kysely";
import type { Database } from "./schema.js";

/** Messages to moderators from people whom they suspended and authors whose studies they removed. */
export function appeals(ordered: RawBuilder<unknown>): Migration {
  return {
    async up(db: Kysely<Database>) {
      await db.schema
        .createTable("appeals")
        .addColumn("id", ordered, (c) => c.primaryKey())
        .addColumn("account_id", ordered, (c) => c.notNull().references("accounts.id"))
        .addColumn("study_id", ordered, (c) => c.references("studies.id"))
        .addColumn("created_at", "bigint", (c) => c.notNull())
        .addColumn("body", "text", (c) => c.notNull())
        .addColumn("closed_at", "bigint")
        .addColumn("outcome", "text")
        .execute();
      await db.schema.createIndex("appeals_account").on("appeals").columns(["account_id", "id"]).execute();
      await db.schema.createIndex("appeals_study").on("appeals").column("study_id").execute();
      await db.schema
        .createIndex("appeals_open")
        .on("appeals")
        .columns(["created_at", "id"])
        .where(sql.ref("closed_at"), "is", null)
        .execute();
    },
  };
}
