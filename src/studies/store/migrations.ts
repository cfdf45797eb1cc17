import { type Kysely, type Migration, Migrator, sql } from "kysely";
import type { Dialect } from "./dialect.js";
import { findMeasurements } from "./measurements.js";
import { completePublicSite, targetAudit } from "./migrated-rows.js";
import { withoutTimeout } from "./postgresql.js";
import { completeFilters } from "./publish.js";
import { findReproductions } from "./reproductions.js";
import type { Database } from "./schema.js";

/**
 * Migrates a database to the newest schema, forward only. If several processes start at the same time, one migrates and
 * the others wait.
 * @param upTo name of the last migration to apply; default: the newest
 */
export async function migrate(db: Kysely<Database>, dialect: Dialect, upTo?: string): Promise<void> {
  // On PostgreSQL kysely locks and opens a transaction; on SQLite it does neither.
  if (dialect.name === "postgresql")
    return withoutTimeout(db, (connection) => run(connection, dialect, upTo));
  await db.connection().execute(async (connection) => {
    await sql`begin immediate`.execute(connection);
    try {
      await run(connection, dialect, upTo);
      await sql`commit`.execute(connection);
    } catch (error) {
      // SQLite may already have rolled back; the first error is the cause.
      await sql`rollback`.execute(connection).catch(() => {});
      throw error;
    }
  });
}

/** Whether a database has this service's schema. */
export async function hasSchema(db: Kysely<Database>): Promise<boolean> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true });
  return ["kysely_migration", "accounts"].every((name) => tables.some((table) => table.name === name));
}

async function run(db: Kysely<Database>, dialect: Dialect, upTo: string | undefined): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations(dialect) } });
  const { error } = upTo === undefined ? await migrator.migrateToLatest() : await migrator.migrateTo(upTo);
  if (error !== undefined) throw error;
}

/** A migration of schema statements only. */
function defining(statements: string): Migration {
  return { up: (db: Kysely<Database>) => define(db, statements) };
}

/** Runs schema statements one by one. */
async function define(db: Kysely<Database>, statements: string): Promise<void> {
  for (const statement of statements.split(";")) await sql.raw(statement).execute(db);
}

function migrations(dialect: Dialect): Record<string, Migration> {
  const bytes = dialect.name === "sqlite" ? "blob" : "bytea";
  // Threads and ids sort by code unit, whatever the database's locale.
  const ordered = dialect.name === "sqlite" ? "text" : 'text collate "C"';
  const account = `account_id ${ordered} not null references accounts (id)`;
  const study = `study_id ${ordered} not null references studies (id)`;
  return {
    "001-studies": {
      async up(db: Kysely<Database>) {
        await define(
          db,
          `
          create table accounts (
            id ${ordered} primary key, issuer text not null, subject text not null, name text not null,
            email text, login text, created_at bigint not null, recent_drafts text not null default '[]',
            turn bigint not null default 0, constraint accounts_identity unique (issuer, subject)
          );
          create table approvals (
            role text not null, identity text not null, created_at bigint not null,
            constraint approvals_key primary key (role, identity)
          );
          create table sessions (
            id ${ordered} primary key, hash text not null unique, ${account}, created_at bigint not null,
            seen_at bigint not null, expires_at bigint not null, agent text not null
          );
          create table sign_ins (
            hash text primary key, provider text not null, secrets text not null, created_at bigint not null
          );
          create table tokens (
            id ${ordered} primary key, ${account}, name text not null, hash text not null unique,
            prefix text not null, last4 text not null, scopes text not null, created_at bigint not null,
            expires_at bigint not null, revoked_at bigint, last_used_at bigint, recent text not null default '[]'
          );
          create index tokens_account on tokens (account_id);
          create table activity (
            token_id ${ordered} not null, at bigint not null, action text not null, status integer not null,
            resource text
          );
          create index activity_token on activity (token_id, at);
          create index activity_at on activity (at);
          create table drafts (
            id ${ordered} primary key, ${account}, token_id ${ordered} not null, title text not null,
            created_at bigint not null, sha256 text not null, package ${bytes} not null
          );
          create index drafts_account on drafts (account_id, created_at);
          create table replays (
            token_id ${ordered} not null, key text not null, body_sha256 text not null, answer text not null,
            created_at bigint not null, constraint replays_key primary key (token_id, key)
          );
          create table studies (
            id ${ordered} primary key, ${account}, author text not null, version integer not null,
            title text not null, question text not null, model text not null, license text not null,
            entry_count integer not null, created_at bigint not null, published_at bigint not null unique,
            upvotes integer not null default 0, comment_count integer not null default 0
          );
          create index studies_top on studies (upvotes desc, published_at desc);
          create index studies_account on studies (account_id);
          create table versions (
            ${study}, version integer not null, created_at bigint not null, published_at bigint not null,
            sha256 text not null, package ${bytes} not null,
            constraint versions_key primary key (study_id, version)
          );
          create table comments (
            id ${ordered} primary key, ${study}, parent_id ${ordered}, ${account}, author text not null,
            created_at bigint not null, body text not null, thread ${ordered} not null,
            constraint comments_thread unique (study_id, thread)
          );
          create table votes (
            ${study}, version integer not null, ${account}, created_at bigint not null,
            constraint votes_key primary key (study_id, version, account_id)
          );
          create table counters (name text primary key, value bigint not null);
          insert into counters (name, value) values ('published_at', 0), ('generation', 0), ('studies', 0)`,
        );
        await dialect.createSearch(db);
      },
    },
    "002-session-index": defining(`
      create index sessions_account on sessions (account_id);
      create index replays_created on replays (created_at)`),
    // For a public site: handles, moderation, limits, and an audit log.
    "003-public-site": {
      async up(db: Kysely<Database>) {
        await define(
          db,
          `
          alter table accounts add column handle text;
          alter table accounts add column suspended_at bigint;
          alter table accounts add column suspension text;
          create unique index accounts_handle on accounts (handle);
          create index accounts_email on accounts (email);
          create index accounts_login on accounts (login);
          alter table approvals add column account_id ${ordered};
          create index approvals_account on approvals (account_id);
          alter table studies add column standing text not null default 'published';
          alter table studies add column standing_at bigint;
          alter table studies add column reason text;
          alter table versions add column standing text not null default 'published';
          alter table versions add column standing_at bigint;
          alter table versions add column reason text;
          alter table studies add column listed integer not null default 1;
          alter table versions add column draft_id ${ordered};
          create unique index versions_draft on versions (draft_id);
          alter table comments add column hidden text;
          alter table comments add column reason text;
          create index comments_account on comments (account_id);
          create table reports (
            id ${ordered} primary key, ${study}, comment_id ${ordered}, ${account}, created_at bigint not null,
            reason text not null, closed_at bigint, outcome text
          );
          create index reports_open on reports (created_at, id) where closed_at is null;
          create index reports_study on reports (study_id);
          create table audit (
            id ${ordered} primary key, at bigint not null, actor ${ordered} not null, action text not null,
            target ${ordered} not null, detail text
          );
          create table limits (key ${ordered} primary key, recent text not null, touched_at bigint not null);
          create index limits_touched on limits (touched_at);
          create table secrets (name text primary key, value text not null);
          -- Lists by account, by study or by state are read from an index in display order.
          drop index if exists studies_top;
          create index studies_top on studies (listed, upvotes desc, published_at desc);
          create index studies_newest on studies (listed, published_at desc);
          drop index if exists studies_account;
          create index studies_account on studies (account_id, published_at desc);
          drop index if exists sessions_account;
          create index sessions_account on sessions (account_id, seen_at desc);
          drop index if exists tokens_account;
          create index tokens_account on tokens (account_id, created_at desc, id);
          create index tokens_active on tokens (account_id, revoked_at, expires_at);
          create index audit_at on audit (at, id);
          create index audit_target on audit (target, at, id);
          -- Pending sign-ins are now carried by the browser.
          delete from sign_ins`,
        );
        await completePublicSite(db);
      },
    },
    "004-reading": {
      async up(db: Kysely<Database>) {
        // Versions are processed in order of publication.
        await define(
          db,
          `
          alter table studies add column model_name text not null default '';
          alter table studies add column methods text not null default '';
          create table reproductions (
            ${study}, version integer not null, original_id ${ordered} not null references studies (id),
            original_version integer not null, outcome text not null, differed text,
            constraint reproductions_key primary key (study_id, version, original_id)
          );
          create index reproductions_original on reproductions (original_id);
          create index versions_published on versions (published_at)`,
        );
        await findReproductions(db);
        await completeFilters(db);
      },
    },
    "005-comment-edits": defining("alter table comments add column edited_at bigint"),
    // Notifications, private feeds, and deleted accounts.
    "006-people": defining(`
      alter table accounts add column feed_hash text;
      alter table accounts add column deleted_at bigint;
      create unique index accounts_feed on accounts (feed_hash);
      create table retired_handles (hash text primary key, retired_at bigint not null);
      create table notifications (
        id ${ordered} primary key, ${account}, at bigint not null, kind text not null, study_id ${ordered},
        comment_id ${ordered}, by_study_id ${ordered}, draft_id ${ordered}, actor_id ${ordered}, read_at bigint
      );
      create index notifications_account on notifications (account_id, at desc, id desc);
      create index notifications_unread on notifications (account_id) where read_at is null;
      create index notifications_at on notifications (at);
      -- An account's data is read in index order, however much it is.
      drop index if exists drafts_account;
      create index drafts_account on drafts (account_id, created_at, id);
      drop index if exists comments_account;
      create index comments_account on comments (account_id, id);
      create index votes_account on votes (account_id, study_id, version);
      create index reports_account on reports (account_id, id);
      create index audit_actor on audit (actor, at, id)`),
    // A covering index for facet counts, which read all studies; rows are ten times as wide.
    "007-facets": defining(`
      create index studies_facets on studies
        (listed, published_at, license, methods, model_name, account_id)`),
    "008-audit-targets": { up: targetAudit },
    // Appeals against suspensions and removals.
    "009-appeals": defining(`
      create table appeals (
        id ${ordered} primary key, ${account}, study_id ${ordered} references studies (id),
        created_at bigint not null, body text not null, closed_at bigint, outcome text
      );
      create index appeals_account on appeals (account_id, id);
      create index appeals_study on appeals (study_id);
      create index appeals_open on appeals (created_at, id) where closed_at is null`),
    "010-measurements": {
      async up(db: Kysely<Database>) {
        await define(
          db,
          `
          create table measured_models (
            published_at bigint primary key, ${account}, model ${ordered} not null, file text not null,
            bytes bigint not null, bits double precision not null, texts ${ordered} not null,
            result ${ordered} not null
          );
          create index measured_models_model on measured_models (model, published_at, account_id);
          create index measured_models_result on measured_models (result, published_at);
          create table measured_forms (
            published_at bigint not null, place integer not null, ${account}, model ${ordered} not null,
            form ${ordered} not null, bytes bigint not null, figures text not null,
            constraint measured_forms_key primary key (published_at, place)
          );
          create index measured_forms_list on measured_forms
            (model, bytes desc, form, published_at desc, place);
          create index measured_forms_form on measured_forms (model, form, account_id, published_at, place)`,
        );
        await findMeasurements(db);
      },
    },
  };
}
