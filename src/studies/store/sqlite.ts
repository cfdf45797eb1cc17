import { chmodSync, closeSync, openSync, realpathSync } from "node:fs";
import { Kysely, type RawBuilder, sql } from "kysely";
import { UserError } from "../../contracts/user-error.js";
import { type Dialect, type Match, type Search, type Tier, tiers } from "./dialect.js";
import { numbersOf, readTimes } from "./reading.js";
import type { Database } from "./schema.js";
import { SqliteFile } from "./sqlite-file.js";
import { holdsLock } from "./sqlite-lock.js";
import { SqliteTurnsDialect } from "./sqlite-turns.js";

/** SQLITE_NOTADB, https://www.sqlite.org/rescode.html */
const notADatabase = 26;

/**
 * Opens an SQLite file, readable only by this user, in WAL mode with every commit synced. Several processes may open the
 * same file; writers take turns.
 * @param missing creates the error for a file without our tables, which is left unchanged; null to create them
 */
export async function openSqlite(
  path: string,
  synchronous: "FULL" | "NORMAL",
  missing: (() => Error) | null = null,
): Promise<Kysely<Database>> {
  if (missing === null) createPrivate(path);
  const file = new SqliteFile(path, 10_000);
  try {
    if (missing !== null && !isOurs(file)) throw missing();
    chmodSync(path, 0o600);
    file.exec("pragma journal_mode = WAL");
    file.exec(`pragma synchronous = ${synchronous}`);
    file.exec("pragma foreign_keys = ON");
    file.exec("pragma secure_delete = ON");
    // Counters and activity need only a small cache.
    file.exec(`pragma cache_size = ${synchronous === "FULL" ? -32000 : -4000}`);
    const db = new Kysely<Database>({
      dialect: new SqliteTurnsDialect(file, realpathSync(path)),
    });
    // kysely closes a file only after a query; the first query also takes the lock, which then lasts.
    await sql`select count(*) from sqlite_schema`.execute(db);
    if (holdsLock(path) === false)
      throw new Error(
        `The lock on ${path} was lost: another program that reads it could discard recent writes.`,
      );
    return db;
  } catch (error) {
    file.close();
    if ((error as { errcode?: number }).errcode === notADatabase)
      throw new UserError(`${path} is not an SQLite file.`);
    throw error;
  }
}

/** Whether a file has this service's tables. Does not write. */
function isOurs(file: SqliteFile): boolean {
  const ours = "select 1 as one from sqlite_schema where name in ('kysely_migration', 'accounts')";
  return file.prepare(ours).all([]).length === 2;
}

/**
 * Creates the file if missing, because SQLite would make it readable for others. An existing file is not opened: closing
 * it would release the locks of all connections of this process.
 */
function createPrivate(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

export const sqlite: Dialect = {
  name: "sqlite",
  now: sql<number>`cast(unixepoch('subsec') * 1000 as integer)`,
  entries: (column) => sql`json_each(${sql.ref(column)})`,
  collect: (query) => sql<string>`(select json_group_array(value) from (${query}))`,
  read: (_db, query) => query.stream(),
  async createSearch(db) {
    // Words are already folded and separated by spaces, so every non-ASCII character is part of a word.
    await sql`create virtual table search using fts5(
      title, head, body, tokenize = 'ascii', detail = 'column', prefix = '1 2 3',
      content = '', contentless_delete = 1
    )`.execute(db);
  },
  search: fts5(),
};

function fts5(): Search {
  return {
    async add(db, studies) {
      const rows = studies.map(
        ({ publishedAt, entry: { title, head, body } }) =>
          sql`(${publishedAt}, ${title.join(" ")}, ${head.join(" ")}, ${body.join(" ")})`,
      );
      await sql`insert into search (rowid, title, head, body) values ${sql.join(rows)}`.execute(db);
    },
    async fill(db, batches) {
      for await (const batch of batches) await this.add(db, batch);
      // Merge the segments of the batches into one.
      await sql`insert into search (search) values ('optimize')`.execute(db);
    },
    async remove(db, publishedAt) {
      await sql`delete from search where rowid = ${publishedAt}`.execute(db);
    },
    async few(db, words, most) {
      // Separating tiers reads all matches, so first check that there are few.
      const first = sql`select rowid from search where search match ${expression("body", words)} limit ${most + 1}`;
      const { rows } = await sql<{ count: number }>`select count(*) as count from (${first})`.execute(db);
      if ((rows[0]?.count ?? 0) > most) return null;
      const parts = tiers.map(
        (tier, place) =>
          sql`select rowid as "publishedAt", ${sql.lit(place)} as tier from search where ${match(words, tier)}`,
      );
      return (await sql<Match>`${sql.join(parts, sql` union all `)}`.execute(db)).rows;
    },
    async having(db, word, beginning, tier) {
      const one = `"${word}"${beginning ? "*" : ""}`;
      return readTimes(
        db,
        sql`select group_concat(rowid) from search where search match ${expressionOf(tier, one)}`,
      );
    },
    async times(db, conditions = []) {
      const wanted = sql.join([sql`studies.listed = 1`, ...conditions], sql` and `);
      const all = sql`select published_at from studies where ${wanted} order by published_at`;
      return readTimes(db, sql`select group_concat(published_at) from (${all})`);
    },
    async ordered(db, by) {
      const all = sql`select published_at from studies where listed = 1
        order by ${sql.ref(by)} desc, published_at desc`;
      const { rows } = await sql<{ list: string | null }>`
        select group_concat(published_at) as list from (${all})`.execute(db);
      return numbersOf(rows[0]?.list ?? null);
    },
    async common(db, { moreThan, most }, pace) {
      await sql`create virtual table if not exists temp.vocabulary using fts5vocab(main, search, row)`.execute(
        db,
      );
      const found: { word: string; studies: number }[] = [];
      // In parts, ordered by word, because reading the whole vocabulary takes too long.
      for (let last = ""; ; ) {
        const part = sql<{ word: string; studies: number }>`select term as word, doc as studies
          from temp.vocabulary where term > ${last} order by term limit ${vocabularyPart}`;
        const { rows } = await pace(() => part.execute(db));
        found.push(...rows.filter(({ studies }) => studies > moreThan));
        last = rows.at(-1)?.word ?? "";
        if (rows.length < vocabularyPart) break;
      }
      return found
        .sort((a, b) => b.studies - a.studies)
        .slice(0, most)
        .map(({ word }) => word);
    },
  };
}

/** Words counted per step; at 100,000 studies about 8 ms for the most common ones. */
const vocabularyPart = 500;

/** Matches of one tier alone. */
function match(words: string[], tier: Tier): RawBuilder<boolean> {
  const better = { title: null, head: expression("title", words), body: expression("head", words) }[tier];
  const all = expression(tier, words);
  return sql<boolean>`search match ${better === null ? all : `${all} NOT ${better}`}`;
}

function expression(tier: Tier, words: string[]): string {
  const all = words.map((word, index) => `"${word}"${index === words.length - 1 ? "*" : ""}`).join(" AND ");
  return expressionOf(tier, all);
}

function expressionOf(tier: Tier, all: string): string {
  return { title: `({title} : (${all}))`, head: `({title head} : (${all}))`, body: `(${all})` }[tier];
}
