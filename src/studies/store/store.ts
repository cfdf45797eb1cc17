import { type Kysely, sql, type Transaction } from "kysely";
import { addToCounter } from "./counters.js";
import type { Dialect } from "./dialect.js";
import type { Kept } from "./kept.js";
import type { Database } from "./schema.js";
import type { WordSets } from "./word-sets.js";

/** The service's database. */
export interface Store {
  /** Commits are on disk before they are acknowledged. */
  db: Kysely<Database>;
  /** The same database for counters and activity: a commit survives the process, not a loss of power. */
  quick: Kysely<Database>;
  dialect: Dialect;
  /** What messages call the database; without a password. */
  name: string;
  /** Which studies have which common words. */
  wordSets: WordSets;
  /** Publication times of all studies by upvotes and by comments, by the number of the public state. */
  orders: Kept<Float64Array>;
  /** To be called after something was erased for good: nothing of it stays in the database's log. */
  forgetErased(): void;
  /** Idempotent. */
  close(): Promise<void>;
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
    if ((await holdAccount(trx, accountId))?.suspended_at !== null) throw new AccountSuspended();
    return work(trx, await readNow(store, trx));
  });
}

/** Takes an account until the transaction ends, a suspended one, too. @returns undefined where it is deleted */
export function holdAccount(trx: Transaction<Database>, accountId: string) {
  return trx
    .updateTable("accounts")
    .set({ turn: sql<number>`turn + 1` })
    .where("id", "=", accountId)
    .where("deleted_at", "is", null)
    .returning("suspended_at")
    .executeTakeFirst();
}

/** Tells caches in every process that what the public sees has changed. */
export async function bumpGeneration(db: Kysely<Database>): Promise<void> {
  await addToCounter(db, "generation", 1);
}
