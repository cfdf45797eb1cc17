import { createReadStream, createWriteStream, existsSync, renameSync, rmSync } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { type Kysely, sql } from "kysely";
import type { StudyPackage } from "../contracts/studies/index.js";
import { UserError } from "../contracts/user-error.js";
import { searchEntry } from "./store/publish.js";
import type { Database } from "./store/schema.js";
import type { Store } from "./store/store.js";

/** In an order in which every row finds what it refers to. Sessions and sign-ins are left to end. */
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
  ["activity", ["token_id", "at"]],
  ["counters", ["name"]],
] as const satisfies [keyof Database, string[]][];

const format = "tapline studies backup 1";
const batchSize = 50;

/**
 * Writes everything but sessions to a compressed file of JSON lines, from one snapshot of the database. The file
 * can be restored into either kind of database.
 */
export async function backUp(store: Store, path: string): Promise<number> {
  const partial = `${path}.partial`;
  let rows = 0;
  async function* rowLines(db: Kysely<Database>): AsyncGenerator<string> {
    yield `${JSON.stringify({ format })}\n`;
    for (const [table, keys] of tables) {
      const order = sql.join(keys.map((key) => sql.ref(key)));
      for (let offset = 0; ; offset += batchSize) {
        const found = await sql<Record<string, unknown>>`select * from ${sql.table(table)} order by ${order}
          limit ${batchSize} offset ${offset}`.execute(db);
        for (const row of found.rows) {
          rows += 1;
          yield `${JSON.stringify({ table, row }, encodeBytes)}\n`;
        }
        if (found.rows.length < batchSize) break;
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
          createWriteStream(partial, { mode: 0o600, flush: true }),
        ),
      );
    renameSync(partial, path);
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  }
  return rows;
}

/** Fills an empty database from a backup, all or nothing. */
export async function restore(store: Store, path: string): Promise<number> {
  if (!existsSync(path)) throw new UserError(`There is no file ${path}.`);
  const whole = { rows: 0, ended: false };
  await store.db.transaction().execute(async (trx) => {
    // Writes first, so that a service on the same file waits.
    await trx.deleteFrom("counters").execute();
    const someone = await trx.selectFrom("accounts").select("id").limit(1).executeTakeFirst();
    if (someone !== undefined) throw new UserError("The database is not empty; restore into a new one.");
    let first = true;
    const insert = async (source: AsyncIterable<Buffer>) => {
      for await (const line of lines(source)) {
        const entry = JSON.parse(line, decodeBytes);
        if (first) {
          if (entry.format !== format) throw new UserError(`${path} is not a backup of the studies service.`);
          first = false;
        } else if (entry.end !== undefined) {
          whole.ended = entry.end === whole.rows;
        } else {
          await trx.insertInto(entry.table).values(entry.row).execute();
          whole.rows += 1;
        }
      }
    };
    await pipeline(createReadStream(path), createGunzip(), insert).catch((error) => {
      if (error instanceof UserError) throw error;
      throw new UserError(`${path} is damaged (${(error as Error).message}); nothing was restored.`);
    });
    if (!whole.ended) throw new UserError(`${path} is cut off; nothing was restored.`);
    await index(store, trx);
  });
  await gatherStatistics(store);
  return whole.rows;
}

/**
 * After rows came in bulk. PostgreSQL would notice by itself within minutes, and read whole tables for rare words until
 * then; SQLite's plans do not depend on statistics here.
 */
export async function gatherStatistics(store: Store): Promise<void> {
  if (store.dialect.name === "postgresql") await sql`vacuum analyze`.execute(store.db);
}

async function index(store: Store, trx: Kysely<Database>): Promise<void> {
  const studies = await trx.selectFrom("studies").select(["id", "version", "published_at"]).execute();
  for (const { id, version, published_at } of studies) {
    const { package: bytes } = await trx
      .selectFrom("versions")
      .select("package")
      .where("study_id", "=", id)
      .where("version", "=", version)
      .executeTakeFirstOrThrow();
    await store.dialect.search.add(
      trx,
      published_at,
      searchEntry(JSON.parse(bytes.toString()) as StudyPackage),
    );
  }
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
