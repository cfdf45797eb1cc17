import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { type Kysely, sql, type Transaction } from "kysely";
import type { Dialect } from "./dialect.js";
import { Kept } from "./kept.js";
import { migrate } from "./migrations.js";
import { openPostgresql, postgresql } from "./postgresql.js";
import type { Database } from "./schema.js";
import { openSqlite, sqlite } from "./sqlite.js";
import { WordSets } from "./word-sets.js";

/** The service's database. */
export interface Store {
  /** Commits are on disk before they are acknowledged. */
  db: Kysely<Database>;
  /** The same database for counters and activity: a commit survives the process, not a loss of power. */
  quick: Kysely<Database>;
  dialect: Dialect;
  /** Which studies have which common words. */
  wordSets: WordSets;
  /** Publication times of all studies by upvotes and by comments, by the number of the public state. */
  orders: Kept<Float64Array>;
  /** Idempotent. */
  close(): Promise<void>;
}

export interface StoreOptions {
  /** Replaces parts of the dialect; tests bring a clock of their own. */
  dialect?: Partial<Dialect>;
  connections?: number;
  /** Whether to bring the schema up to date; true unless told otherwise. */
  migrate?: boolean;
}

/**
 * Opens the database that a location names, and brings it up to date.
 * @param location path of an SQLite file, or a `postgres://` URL
 */
export async function openStore(location: string, options: StoreOptions = {}): Promise<Store> {
  const isPostgresql = /^postgres(ql)?:\/\//.test(location);
  if (!isPostgresql) mkdirSync(dirname(location), { recursive: true, mode: 0o700 });
  const connections = options.connections ?? 8;
  const db = isPostgresql ? openPostgresql(location, true, connections) : await openSqlite(location, "FULL");
  const dialect = { ...(isPostgresql ? postgresql : sqlite), ...options.dialect };
  let quick: Kysely<Database> | undefined;
  try {
    if (options.migrate !== false) await migrate(db, dialect);
    quick = isPostgresql
      ? openPostgresql(location, false, connections)
      : await openSqlite(location, "NORMAL");
  } catch (error) {
    await db.destroy();
    throw error;
  }
  const wordSets = new WordSets(db, dialect.search);
  let closed: Promise<void> | undefined;
  return {
    db,
    quick,
    dialect,
    wordSets,
    orders: new Kept(2),
    close() {
      closed ??= wordSets.close().then(async () => {
        await Promise.all([db.destroy(), quick.destroy()]);
      });
      return closed;
    },
  };
}

/** The database's clock, in Unix milliseconds. */
export async function readNow(store: Pick<Store, "dialect">, db: Kysely<Database>): Promise<number> {
  return (await sql<{ now: number }>`select ${store.dialect.now} as now`.execute(db)).rows[0]?.now as number;
}

/** What an account may not do any more: it is suspended, or was deleted. */
export class AccountSuspended extends Error {
  override name = "AccountSuspended";
}

/**
 * Runs a transaction that has an account to itself: others that need the same account wait. The first statement
 * writes, which is also what makes concurrent writers of one SQLite file queue instead of failing.
 * @throws AccountSuspended so that whatever a suspended account had under way does not happen
 */
export function withAccount<T>(
  store: Store,
  accountId: string,
  work: (trx: Transaction<Database>, now: number) => Promise<T>,
): Promise<T> {
  return store.db.transaction().execute(async (trx) => {
    const turn = sql<number>`turn + 1`;
    const { numUpdatedRows } = await trx
      .updateTable("accounts")
      .set({ turn })
      .where("id", "=", accountId)
      .where("suspended_at", "is", null)
      .where("deleted_at", "is", null)
      .executeTakeFirst();
    if (numUpdatedRows !== 1n) throw new AccountSuspended();
    return work(trx, await readNow(store, trx));
  });
}

/** Tells caches in every process that what the public sees has changed. */
export async function bumpGeneration(db: Kysely<Database>): Promise<void> {
  await db
    .updateTable("counters")
    .set({ value: sql<number>`value + 1` })
    .where("name", "=", "generation")
    .execute();
}
