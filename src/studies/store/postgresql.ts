import { Kysely, PostgresDialect, type RawBuilder, sql } from "kysely";
import pg from "pg";
import { type Dialect, type Match, type Search, type Tier, tiers } from "./dialect.js";
import type { Database } from "./schema.js";

const int8 = 20;

/**
 * Opens a pool of connections to PostgreSQL.
 * @param durable whether a commit waits until it is on disk
 */
export function openPostgresql(url: string, durable: boolean, connections: number): Kysely<Database> {
  const pool = new pg.Pool({
    connectionString: url,
    max: connections,
    connectionTimeoutMillis: 5000,
    application_name: "tapline studies",
    options: `-c synchronous_commit=${durable ? "on" : "off"} -c statement_timeout=20000 -c client_encoding=UTF8`,
    types: {
      // Every bigint of ours is a time or a count, well below 2^53.
      getTypeParser: ((id: number, format: "text") =>
        id === int8 ? Number : pg.types.getTypeParser(id, format)) as typeof pg.types.getTypeParser,
    },
  });
  // A connection that breaks is replaced on next use, and what it was doing fails on its own. Without listeners,
  // in the pool and on connections that are lent out, it would end the process.
  pool.on("error", () => {});
  pool.on("connect", (connection) => connection.on("error", () => {}));
  return new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });
}

export const postgresql: Dialect = {
  name: "postgresql",
  now: sql<number>`floor(extract(epoch from clock_timestamp()) * 1000)::bigint`,
  entries: (column) =>
    sql`(select value::bigint as value from jsonb_array_elements_text(${sql.ref(column)}::jsonb)) as entries`,
  collect: (query) => sql<string>`(select coalesce(json_agg(value)::text, '[]') from (${query}) as kept)`,
  async createSearch(db) {
    await sql`create table search (
      published_at bigint primary key, title tsvector not null, head tsvector not null, body tsvector not null
    )`.execute(db);
    for (const column of ["title", "head", "body"]) {
      // Reads are many and publications few: nothing waits in a list that each search would have to go through.
      await sql`create index ${sql.ref(`search_${column}`)} on search using gin (${sql.ref(column)})
        with (fastupdate = off)`.execute(db);
    }
  },
  search: vectors(),
};

function vectors(): Search {
  return {
    async add(db, publishedAt, { title, head, body }) {
      await sql`insert into search (published_at, title, head, body) values (${publishedAt},
        array_to_tsvector(${title}::text[]), array_to_tsvector(${[...title, ...head]}::text[]),
        array_to_tsvector(${[...title, ...head, ...body]}::text[]))`.execute(db);
    },
    async remove(db, publishedAt) {
      await sql`delete from search where published_at = ${publishedAt}`.execute(db);
    },
    async some(db, words, limit) {
      // The row limit stands inside: common words stop early, rare ones come from the index.
      const [title, head, body] = tiers.map((tier) => inside(tier, words));
      const query = sql<Match>`select published_at as "publishedAt",
        case when ${title} then 0 when ${head} then 1 else 2 end as tier from search where ${body} limit ${limit}`;
      return (await query.execute(db)).rows;
    },
    async count(db, words, tier) {
      const query = sql<{ count: number }>`select count(*) as count from search where ${match(words, tier)}`;
      return (await query.execute(db)).rows[0]?.count ?? 0;
    },
    async find(db, words, tier, limit, offset) {
      const query = sql<{ published_at: number }>`select published_at from search where ${match(words, tier)}
        order by published_at desc limit ${limit} offset ${offset}`;
      return (await query.execute(db)).rows.map(({ published_at }) => published_at);
    },
  };
}

function match(words: string[], tier: Tier): RawBuilder<boolean> {
  if (tier === "title") return inside("title", words);
  const better = tier === "head" ? "title" : "head";
  return sql<boolean>`${inside(tier, words)} and not ${inside(better, words)}`;
}

/** Whether a column, which holds the words of the better ones too, has all words. */
function inside(column: Tier, words: string[]): RawBuilder<boolean> {
  // Words hold letters and digits only, so quoting them is enough.
  const all = words.map((word, index) => `'${word}'${index === words.length - 1 ? ":*" : ""}`).join(" & ");
  return sql<boolean>`${sql.ref(column)} @@ ${all}::tsquery`;
}
