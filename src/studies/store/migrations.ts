import { type Kysely, type Migration, Migrator, sql } from "kysely";
import type { Dialect } from "./dialect.js";
import { appeals } from "./migration-appeals.js";
import { auditTargets } from "./migration-audit-targets.js";
import { people } from "./migration-people.js";
import { publicSite } from "./migration-public-site.js";
import { withoutTimeout } from "./postgresql.js";
import { completeFilters } from "./publish.js";
import { findReproductions } from "./reproductions.js";
import type { Database } from "./schema.js";

/**
 * Brings a database to the newest schema, forward only. Several processes may start at once: one migrates, the
 * others wait.
 * @param upTo name of the last migration to apply; the newest unless told otherwise
 */
export async function migrate(db: Kysely<Database>, dialect: Dialect, upTo?: string): Promise<void> {
  // On PostgreSQL kysely locks and opens a transaction by itself; on SQLite it leaves both to us.
  if (dialect.name === "postgresql")
    return withoutTimeout(db, (connection) => run(connection, dialect, upTo));
  await db.connection().execute(async (connection) => {
    await sql`begin immediate`.execute(connection);
    try {
      await run(connection, dialect, upTo);
      await sql`commit`.execute(connection);
    } catch (error) {
      // SQLite may have rolled it back by itself; the error that tells why is the first one.
      await sql`rollback`.execute(connection).catch(() => {});
      throw error;
    }
  });
}

/** Whether a database was ever brought to a schema of ours. */
export async function hasSchema(db: Kysely<Database>): Promise<boolean> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true });
  return ["kysely_migration", "accounts"].every((name) => tables.some((table) => table.name === name));
}

async function run(db: Kysely<Database>, dialect: Dialect, upTo: string | undefined): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations(dialect) } });
  const { error } = upTo === undefined ? await migrator.migrateToLatest() : await migrator.migrateTo(upTo);
  if (error !== undefined) throw error;
}

function migrations(dialect: Dialect): Record<string, Migration> {
  const bytes = dialect.name === "sqlite" ? sql`blob` : sql`bytea`;
  // Threads and ids sort by code unit, whatever the database's locale.
  const ordered = dialect.name === "sqlite" ? sql`text` : sql`text collate "C"`;
  return {
    "001-studies": {
      async up(db: Kysely<Database>) {
        await db.schema
          .createTable("accounts")
          .addColumn("id", ordered, (c) => c.primaryKey())
          .addColumn("issuer", "text", (c) => c.notNull())
          .addColumn("subject", "text", (c) => c.notNull())
          .addColumn("name", "text", (c) => c.notNull())
          .addColumn("email", "text")
          .addColumn("login", "text")
          .addColumn("created_at", "bigint", (c) => c.notNull())
          .addColumn("recent_drafts", "text", (c) => c.notNull().defaultTo("[]"))
          .addColumn("turn", "bigint", (c) => c.notNull().defaultTo(0))
          .addUniqueConstraint("accounts_identity", ["issuer", "subject"])
          .execute();
        await db.schema
          .createTable("approvals")
          .addColumn("role", "text", (c) => c.notNull())
          .addColumn("identity", "text", (c) => c.notNull())
          .addColumn("created_at", "bigint", (c) => c.notNull())
          .addPrimaryKeyConstraint("approvals_key", ["role", "identity"])
          .execute();
        await db.schema
          .createTable("sessions")
          .addColumn("id", ordered, (c) => c.primaryKey())
          .addColumn("hash", "text", (c) => c.notNull().unique())
          .addColumn("account_id", ordered, (c) => c.notNull().references("accounts.id"))
          .addColumn("created_at", "bigint", (c) => c.notNull())
          .addColumn("seen_at", "bigint", (c) => c.notNull())
          .addColumn("expires_at", "bigint", (c) => c.notNull())
          .addColumn("agent", "text", (c) => c.notNull())
          .execute();
        await db.schema
          .createTable("sign_ins")
          .addColumn("hash", "text", (c) => c.primaryKey())
          .addColumn("provider", "text", (c) => c.notNull())
          .addColumn("secrets", "text", (c) => c.notNull())
          .addColumn("created_at", "bigint", (c) => c.notNull())
          .execute();
        await db.schema
          .createTable("tokens")
          .addColumn("id", ordered, (c) => c.primaryKey())
          .addColumn("account_id", ordered, (c) => c.notNull().references("accounts.id"))
          .addColumn("name", "text", (c) => c.notNull())
          .addColumn("hash", "text", (c) => c.notNull().unique())
          .addColumn("prefix", "text", (c) => c.notNull())
          .addColumn("last4", "text", (c) => c.notNull())
          .addColumn("scopes", "text", (c) => c.notNull())
          .addColumn("created_at", "bigint", (c) => c.notNull())
          .addColumn("expires_at", "bigint", (c) => c.notNull())
          .addColumn("revoked_at", "bigint")
          .addColumn("last_used_at", "bigint")
          .addColumn("recent", "text", (c) => c.notNull().defaultTo("[]"))
          .execute();
        await db.schema.createIndex("tokens_account").on("tokens").column("account_id").execute();
        await db.schema
          .createTable("activity")
          .addColumn("token_id", ordered, (c) => c.notNull())
          .addColumn("at", "bigint", (c) => c.notNull())
          .addColumn("action", "text", (c) => c.notNull())
          .addColumn("status", "integer", (c) => c.notNull())
          .addColumn("resource", "text")
          .execute();
        await db.schema.createIndex("activity_token").on("activity").columns(["token_id", "at"]).execute();
        await db.schema.createIndex("activity_at").on("activity").column("at").execute();
        await db.schema
          .createTable("drafts")
          .addColumn("id", ordered, (c) => c.primaryKey())
          .addColumn("account_id", ordered, (c) => c.notNull().references("accounts.id"))
          .addColumn("token_id", ordered, (c) => c.notNull())
          .addColumn("title", "text", (c) => c.notNull())
          .addColumn("created_at", "bigint", (c) => c.notNull())
          .addColumn("sha256", "text", (c) => c.notNull())
          .addColumn("package", bytes, (c) => c.notNull())
          .execute();
        await db.schema
          .createIndex("drafts_account")
          .on("drafts")
          .columns(["account_id", "created_at"])
          .execute();
        await db.schema
          .createTable("replays")
          .addColumn("token_id", ordered, (c) => c.notNull())
          .addColumn("key", "text", (c) => c.notNull())
          .addColumn("body_sha256", "text", (c) => c.notNull())
          .addColumn("answer", "text", (c) => c.notNull())
          .addColumn("created_at", "bigint", (c) => c.notNull())
          .addPrimaryKeyConstraint("replays_key", ["token_id", "key"])
          .execute();
        await db.schema
          .createTable("studies")
          .addColumn("id", ordered, (c) => c.primaryKey())
          .addColumn("account_id", ordered, (c) => c.notNull().references("accounts.id"))
          .addColumn("author", "text", (c) => c.notNull())
          .addColumn("version", "integer", (c) => c.notNull())
          .addColumn("title", "text", (c) => c.notNull())
          .addColumn("question", "text", (c) => c.notNull())
          .addColumn("model", "text", (c) => c.notNull())
          .addColumn("license", "text", (c) => c.notNull())
          .addColumn("entry_count", "integer", (c) => c.notNull())
          .addColumn("created_at", "bigint", (c) => c.notNull())
          .addColumn("published_at", "bigint", (c) => c.notNull().unique())
          .addColumn("upvotes", "integer", (c) => c.notNull().defaultTo(0))
          .addColumn("comment_count", "integer", (c) => c.notNull().defaultTo(0))
          .execute();
        await db.schema
          .createIndex("studies_top")
          .on("studies")
          .columns(["upvotes desc", "published_at desc"])
          .execute();
        await db.schema.createIndex("studies_account").on("studies").column("account_id").execute();
        await db.schema
          .createTable("versions")
          .addColumn("study_id", ordered, (c) => c.notNull().references("studies.id"))
          .addColumn("version", "integer", (c) => c.notNull())
          .addColumn("created_at", "bigint", (c) => c.notNull())
          .addColumn("published_at", "bigint", (c) => c.notNull())
          .addColumn("sha256", "text", (c) => c.notNull())
          .addColumn("package", bytes, (c) => c.notNull())
          .addPrimaryKeyConstraint("versions_key", ["study_id", "version"])
          .execute();
        await db.schema
          .createTable("comments")
          .addColumn("id", ordered, (c) => c.primaryKey())
          .addColumn("study_id", ordered, (c) => c.notNull().references("studies.id"))
          .addColumn("parent_id", ordered)
          .addColumn("account_id", ordered, (c) => c.notNull().references("accounts.id"))
          .addColumn("author", "text", (c) => c.notNull())
          .addColumn("created_at", "bigint", (c) => c.notNull())
          .addColumn("body", "text", (c) => c.notNull())
          .addColumn("thread", ordered, (c) => c.notNull())
          .addUniqueConstraint("comments_thread", ["study_id", "thread"])
          .execute();
        await db.schema
          .createTable("votes")
          .addColumn("study_id", ordered, (c) => c.notNull().references("studies.id"))
          .addColumn("version", "integer", (c) => c.notNull())
          .addColumn("account_id", ordered, (c) => c.notNull().references("accounts.id"))
          .addColumn("created_at", "bigint", (c) => c.notNull())
          .addPrimaryKeyConstraint("votes_key", ["study_id", "version", "account_id"])
          .execute();
        await db.schema
          .createTable("counters")
          .addColumn("name", "text", (c) => c.primaryKey())
          .addColumn("value", "bigint", (c) => c.notNull())
          .execute();
        await db
          .insertInto("counters")
          .values([
            { name: "published_at", value: 0 },
            { name: "generation", value: 0 },
            { name: "studies", value: 0 },
          ])
          .execute();
        await dialect.createSearch(db);
      },
    },
    "002-session-index": {
      async up(db: Kysely<Database>) {
        await db.schema.createIndex("sessions_account").on("sessions").column("account_id").execute();
        await db.schema.createIndex("replays_created").on("replays").column("created_at").execute();
      },
    },
    "003-public-site": publicSite(ordered),
    "004-reading": {
      async up(db: Kysely<Database>) {
        for (const column of ["model_name", "methods"]) {
          await db.schema
            .alterTable("studies")
            .addColumn(column, "text", (c) => c.notNull().defaultTo(""))
            .execute();
        }
        await db.schema
          .createTable("reproductions")
          .addColumn("study_id", ordered, (c) => c.notNull().references("studies.id"))
          .addColumn("version", "integer", (c) => c.notNull())
          .addColumn("original_id", ordered, (c) => c.notNull().references("studies.id"))
          .addColumn("original_version", "integer", (c) => c.notNull())
          .addColumn("outcome", "text", (c) => c.notNull())
          .addColumn("differed", "text")
          .addPrimaryKeyConstraint("reproductions_key", ["study_id", "version", "original_id"])
          .execute();
        await db.schema
          .createIndex("reproductions_original")
          .on("reproductions")
          .column("original_id")
          .execute();
        // Versions are gone through in the order in which they were published.
        await db.schema.createIndex("versions_published").on("versions").column("published_at").execute();
        await findReproductions(db);
        await completeFilters(db);
      },
    },
    "005-comment-edits": {
      async up(db: Kysely<Database>) {
        await db.schema.alterTable("comments").addColumn("edited_at", "bigint").execute();
      },
    },
    "006-people": people(ordered),
    "007-facets": {
      async up(db: Kysely<Database>) {
        // What facets are counted by is read of all studies: from here, and not from rows ten times as wide.
        await db.schema
          .createIndex("studies_facets")
          .on("studies")
          .columns(["listed", "published_at", "license", "methods", "model_name", "account_id"])
          .execute();
      },
    },
    "008-audit-targets": auditTargets,
    "009-appeals": appeals(ordered),
  };
}
