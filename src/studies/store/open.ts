import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type { Kysely } from "kysely";
import { UserError } from "../../contracts/user-error.js";
import type { Dialect } from "./dialect.js";
import { faultOf } from "./fault.js";
import { type Location, parseLocation } from "./location.js";
import { hasSchema, migrate } from "./migrations.js";
import { openPostgresql, postgresql } from "./postgresql.js";
import type { Database } from "./schema.js";
import { openSqlite, sqlite } from "./sqlite.js";
import { SqliteLog } from "./sqlite-log.js";
import type { Store } from "./store.js";
import { VersionedCache } from "./versioned-cache.js";
import { WordSets } from "./word-sets.js";

export interface StoreOptions {
  /** Overrides parts of the dialect; tests set their own clock. */
  dialect?: Partial<Dialect>;
  connections?: number;
  /** Whether to migrate the schema; default: true. */
  migrate?: boolean;
  /** Whether to create a missing database; default: true. */
  create?: boolean;
}

/**
 * Opens a database and migrates it.
 * @param given path of an SQLite file, or a `postgres://` URL
 * @throws UserError if it cannot be opened, or is missing and must not be created
 */
export async function openStore(given: string, options: StoreOptions = {}): Promise<Store> {
  const location = parseLocation(given);
  try {
    return await open(location, options);
  } catch (error) {
    const fault = faultOf(error);
    if (error instanceof UserError || fault?.ofDatabase !== true) throw error;
    throw new UserError(`Cannot open the ${location.name}: ${fault.text}.`);
  }
}

async function open(location: Location, options: StoreOptions): Promise<Store> {
  const connections = options.connections ?? 8;
  const create = options.create !== false;
  const missing = () =>
    new UserError(
      `The ${location.name} is not a studies database; select one with --config, --data or DATABASE_URL.`,
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
    orders: new VersionedCache(2),
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
