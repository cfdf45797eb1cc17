import { randomUUID } from "node:crypto";
import {
  closeSync,
  createReadStream,
  createWriteStream,
  existsSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
} from "node:fs";
import { basename, dirname } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { type Insertable, type Kysely, sql } from "kysely";
import { UserError } from "../contracts/user-error.js";
import { asOperator, audit } from "./store/audit.js";
import type { IndexedStudy } from "./store/dialect.js";
import { faultOf } from "./store/fault.js";
import { findMeasurements } from "./store/measurements.js";
import { completePublicSite } from "./store/migrated-rows.js";
import { withoutTimeout } from "./store/postgresql.js";
import { completeFilters } from "./store/publish.js";
import { findReproductions } from "./store/reproductions.js";
import { isThere } from "./store/rows.js";
import type { Database } from "./store/schema.js";
import { indexed, listedBatches } from "./store/search-entry.js";
import { readNow, type Store } from "./store/store.js";

/** In foreign-key order. Excluded: sessions, sign-ins, limits and keys. */
const tables = [
  ["accounts", ["id"]],
  ["approvals", ["role", "identity"]],
  ["tokens", ["id"]],
  ["drafts", ["id"]],
  ["replays", ["token_id", "key"]],
  ["studies", ["id"]],
  ["versions", ["study_id", "version"]],
  ["comments", ["id"]],
  ["votes", ["study_id", "version", "account_id"]],
  ["reports", ["id"]],
  ["appeals", ["id"]],
  ["notifications", ["id"]],
  ["retired_handles", ["hash"]],
  ["audit", ["id"]],
  ["activity", ["token_id", "at"]],
  ["counters", ["name"]],
] as const satisfies [keyof Database, string[]][];

const format = "tapline studies backup 2";
/** From the release before handles and moderation; restoring fills in the missing columns. */
const formerFormat = "tapline studies backup 1";
const batchSize = 500;
/** Bytes of packages after which a batch of rows is inserted. */
const batchBytes = 4_000_000;

/** Size of a backup. */
export interface BackedUp {
  rows: number;
  studies: number;
}

/**
 * Writes everything except sessions to a gzipped JSON Lines file, from one snapshot of the database. It can be
 * restored into SQLite or PostgreSQL.
 * @returns what was written; `unrecorded` is why the audit log lacks the backup, or null
 */
export async function backUp(store: Store, path: string): Promise<BackedUp & { unrecorded: string | null }> {
  // The wrong database may have been given; the last good backup must survive that.
  if (existsSync(path) && !(await isThere(store.db.selectFrom("accounts").select("id").limit(1)))) {
    throw new UserError(`The ${store.name} has no accounts, so ${path} was not replaced.`);
  }
  // A fresh random name, so that no existing file or link is overwritten.
  const partial = `${path}.${randomUUID()}.partial`;
  let rows = 0;
  let studies = 0;
  async function* rowLines(db: Kysely<Database>): AsyncGenerator<string> {
    yield `${JSON.stringify({ format })}\n`;
    for (const [table, keys] of tables) {
      const all = db
        .selectFrom(table)
        .selectAll()
        .orderBy(sql.join(keys.map((key) => sql.ref(key))));
      for await (const row of store.dialect.read(db, all)) {
        rows += 1;
        if (table === "studies") studies += 1;
        yield `${JSON.stringify({ table, row }, encodeBytes)}\n`;
      }
    }
    yield `${JSON.stringify({ end: rows })}\n`;
  }
  try {
    await store.db
      .transaction()
      .setIsolationLevel(store.dialect.name === "postgresql" ? "repeatable read" : "serializable")
      .execute((trx) =>
        pipeline(
          Readable.from(rowLines(trx)),
          createGzip(),
          createWriteStream(partial, { flags: "wx", mode: 0o600, flush: true }),
        ),
      );
    renameSync(partial, path);
    syncFolder(dirname(path));
  } catch (error) {
    try {
      rmSync(partial);
    } catch {} // it may not exist
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (syscall === undefined) throw error;
    throw new UserError(`Cannot write the backup to ${path} (${code}); the partial file was removed.`);
  }
  // The backup is complete even if the database accepts no writes, for example on a full disk.
  const unrecorded = await asOperator(store, (trx, now) =>
    audit(trx, now, { actor: "operator", action: "backup", target: basename(path) }),
  ).then(
    () => null,
    (error) => {
      const fault = faultOf(error);
      if (fault === null) throw error;
      return fault.text;
    },
  );
  return { rows, studies, unrecorded };
}

/** @throws UserError if the file does not exist */
export function checkExists(path: string): void {
  if (!existsSync(path)) throw new UserError(`${path} does not exist.`);
}

/** Fills an empty database from a backup, in one transaction. */
export async function restore(store: Store, path: string): Promise<BackedUp> {
  checkExists(path);
  const whole = { rows: 0, studies: 0, ended: false };
  await store.db.transaction().execute(async (trx) => {
    // Write first, so that a service using the same file waits.
    await trx.deleteFrom("counters").execute();
    for (const [table] of tables) {
      if (await isThere(trx.selectFrom(table).select(sql.lit(1).as("one")).limit(1)))
        throw new UserError(`The database is not empty (it has ${table}); restore into a new one.`);
    }
    let first = true;
    let former = false;
    let waiting: Waiting | null = null;
    const write = async () => {
      if (waiting === null) return;
      await trx
        .insertInto(waiting.table)
        .values(waiting.rows as Insertable<Database["accounts"]>[])
        .execute();
      waiting = null;
    };
    const insert = async (source: AsyncIterable<Buffer>) => {
      for await (const line of lines(source)) {
        const entry = JSON.parse(line, decodeBytes);
        if (first) {
          former = entry.format === formerFormat;
          if (entry.format !== format && !former)
            throw new UserError(`${path} is not a backup of the studies service.`);
          first = false;
        } else if (entry.end !== undefined) {
          whole.ended = entry.end === whole.rows;
        } else {
          if (!tables.some(([table]) => table === entry.table))
            throw new Error(`unknown table ${entry.table}`);
          if (waiting !== null && isFull(waiting, entry.table)) await write();
          waiting ??= { table: entry.table, rows: [], bytes: 0 };
          waiting.rows.push(entry.row);
          waiting.bytes += line.length;
          whole.rows += 1;
          if (entry.table === "studies") whole.studies += 1;
        }
      }
      await write();
    };
    let fault: unknown;
    const noted = (source: AsyncIterable<Buffer>) =>
      insert(source).catch((error) => {
        fault = error;
        throw error;
      });
    const file = createReadStream(path);
    let unreadable: NodeJS.ErrnoException | undefined;
    file.on("error", (error) => {
      unreadable = error;
    });
    await pipeline(file, createGunzip(), noted).catch((error) => {
      // When the consumer throws, the pipeline reports only that it was closed prematurely.
      const cause = fault ?? error;
      if (cause instanceof UserError) throw cause;
      if (unreadable !== undefined) throw new UserError(`Cannot read ${path} (${unreadable.code}).`);
      const refused = faultOf(cause);
      if (refused?.ofDatabase)
        throw new UserError(
          `The ${store.name} cannot store ${path} (${refused.text}); nothing was restored.`,
        );
      throw new UserError(`${path} is damaged (${(cause as Error).message}); nothing was restored.`);
    });
    if (!whole.ended) throw new UserError(`${path} is truncated; nothing was restored.`);
    if (former) await completePublicSite(trx);
    await indexStudies(store, trx);
    await findReproductions(trx);
    await findMeasurements(trx);
    await completeFilters(trx);
    await audit(trx, await readNow(store, trx), {
      actor: "operator",
      action: "restore",
      target: basename(path),
    });
  });
  await gatherStatistics(store);
  return { rows: whole.rows, studies: whole.studies };
}

/** Makes a rename durable. Platforms that cannot sync folders do not need to. */
function syncFolder(path: string): void {
  try {
    const folder = openSync(path, "r");
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  } catch {}
}

interface Waiting {
  table: keyof Database;
  rows: object[];
  bytes: number;
}

function isFull(waiting: Waiting, next: string): boolean {
  return waiting.table !== next || waiting.rows.length === batchSize || waiting.bytes >= batchBytes;
}

/**
 * Updates planner statistics after a bulk load. PostgreSQL would do so only within minutes and scan whole tables for
 * rare words until then; SQLite's plans here do not depend on statistics.
 */
export async function gatherStatistics(store: Store): Promise<void> {
  if (store.dialect.name !== "postgresql") return;
  await withoutTimeout(store.db, (connection) => sql`vacuum analyze`.execute(connection));
}

/** Fills the empty full-text index with the current versions. */
export async function indexStudies(store: Store, trx: Kysely<Database>): Promise<void> {
  async function* batches(): AsyncGenerator<IndexedStudy[]> {
    for await (const found of listedBatches(trx)) yield found.map(indexed);
  }
  await store.dialect.search.fill(trx, batches());
}

function encodeBytes(this: Record<string, unknown>, key: string, value: unknown): unknown {
  const bytes = this[key];
  return Buffer.isBuffer(bytes) ? { base64: bytes.toString("base64") } : value;
}

function decodeBytes(_key: string, value: unknown): unknown {
  const { base64 } = (value ?? {}) as { base64?: unknown };
  return typeof base64 === "string" ? Buffer.from(base64, "base64") : value;
}

async function* lines(source: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of source) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = parts.pop() as string;
    yield* parts;
  }
}
