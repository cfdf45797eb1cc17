import { type Kysely, sql, type Transaction } from "kysely";
import { addToCounter } from "./counters.js";
import type { Dialect } from "./dialect.js";
import type { Database } from "./schema.js";
import type { VersionedCache } from "./versioned-cache.js";
import type { WordSets } from "./word-sets.js";

/** The service's database. */
export interface Store {
  /** Commits are synced to disk before they are acknowledged. */
  db: Kysely<Database>;
  /** The same database for counters and activity: commits survive a crash of the process but not a power failure. */
  quick: Kysely<Database>;
  dialect: Dialect;
  /** The database's name in messages, without a password. */
  name: string;
  /** Studies by common word. */
  wordSets: WordSets;
  /** Publication times of all studies, ordered by upvotes and by comments, cached by generation. */
  orders: VersionedCache<Float64Array>;
  /** Call after permanently erasing data, so that none of it remains in the database's log. */
  forgetErased(): void;
  /** Idempotent. */
  close(): Promise<void>;
}

/** The database's clock, in Unix milliseconds. */
export async function readNow(store: Pick<Store, "dialect">, db: Kysely<Database>): Promise<number> {
  return (await sql<{ now: number }>`select ${store.dialect.now} as now`.execute(db)).rows[0]?.now as number;
}

/** The account is suspended or deleted. */
export class AccountSuspended extends Error {
  override name = "AccountSuspended";
}

/**
 * Runs a transaction that locks an account. Its first statement writes, so that concurrent writers of one SQLite file
 * queue instead of failing.
 * @throws AccountSuspended if the account is suspended or deleted, even if an action was in progress
 */
export function withAccount<T>(
  store: Store,
  accountId: string,
  work: (trx: Transaction<Database>, now: number) => Promise<T>,
): Promise<T> {
  return store.db.transaction().execute(async (trx) => {
    if ((await lockAccount(trx, accountId))?.suspended_at !== null) throw new AccountSuspended();
    return work(trx, await readNow(store, trx));
  });
}

/** Locks an account until the transaction ends, even a suspended one. @returns undefined if it is deleted */
export function lockAccount(trx: Transaction<Database>, accountId: string) {
  return trx
    .updateTable("accounts")
    .set({ turn: sql<number>`turn + 1` })
    .where("id", "=", accountId)
    .where("deleted_at", "is", null)
    .returning("suspended_at")
    .executeTakeFirst();
}

/** Invalidates the caches of public data in every process. */
export async function bumpGeneration(db: Kysely<Database>): Promise<void> {
  await addToCounter(db, "generation", 1);
}
