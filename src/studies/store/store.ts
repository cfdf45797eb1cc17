import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { type Kysely, sql, type Transaction } from "kysely";
import { UserError } from "../../contracts/user-error.js";
import { addToCounter } from "./counters.js";
import type { Dialect } from "./dialect.js";
import { faultOf } from "./fault.js";
import { Kept } from "./kept.js";
import { type Location, parseLocation } from "./location.js";
import { hasSchema, migrate } from "./migrations.js";
import { openPostgresql, postgresql } from "./postgresql.js";
import type { Database } from "./schema.js";
import { openSqlite, sqlite } from "./sqlite.js";
import { SqliteLog } from "./sqlite-log.js";
import { WordSets } from "./word-sets.js";

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

export interface StoreOptions {
  /** Replaces parts of the dialect; tests bring a clock of their own. */
  dialect?: Partial<Dialect>;
  connections?: number;
  /** Whether to bring the schema up to date; true unless told otherwise. */
  migrate?: boolean;
  /** Whether to create a database where there is none; true unless told otherwise. */
  create?: boolean;
}

/**
 * Opens the database that a location names, and brings it up to date.
 * @param given path of an SQLite file, or a `postgres://` URL
 * @throws UserError where it cannot be opened, or is not there and must not be created
 */
export async function openStore(given: string, options: StoreOptions = {}): Promise<Store> {
  const location = parseLocation(given);
  try {
    return await open(location, options);
  } catch (error) {
    const fault = faultOf(error);
    if (error instanceof UserError || fault?.ofDatabase !== true) throw error;
    throw new UserError(`The ${location.name} cannot be opened: ${fault.text}.`);
  }
}

async function open(location: Location, options: StoreOptions): Promise<Store> {
  const connections = options.connections ?? 8;
  const create = options.create !== false;
  const missing = () =>
    new UserError(
      `There is no studies database in the ${location.name}; name it with --config, --data or DATABASE_URL.`,
    );
  const connect = async (durable: boolean) => {
    if (location.kind === "postgresql") return openPostgresql(location.url, durable, connections);
    if (create) mkdirSync(dirname(location.path), { recursive: true, mode: 0o700 });
    else if (!existsSync(location.path)) throw missing();
    return openSqlite(location.path, durable ? "FULL" : "NORMAL", create ? null : missing);
  };
  const db = await connect(true);
  const dialect = { ...(location.kind === "postgresql" ? postgresql : sqlite), ...options.dialect };
  let quick: Kysely<Database> | undefined;
  try {
    if (!create && !(await hasSchema(db))) throw missing();
    if (options.migrate !== false) await migrate(db, dialect);
    quick = await connect(false);
  } catch (error) {
    await db.destroy();
    throw error;
  }
  const wordSets = new WordSets(db, dialect.search);
  const log = location.kind === "sqlite" ? new SqliteLog(location.path) : null;
  let closed: Promise<void> | undefined;
  return {
    db,
    quick,
    dialect,
    name: location.name,
    wordSets,
    orders: new Kept(2),
    forgetErased: () => log?.empty(),
    close() {
      log?.close();
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
