import { Kysely, PostgresDialect, type RawBuilder, sql } from "kysely";
import pg from "pg";
import { type Dialect, type Match, type Search, type Streamable, type Tier, tiers } from "./dialect.js";
import { preparing } from "./postgresql-statements.js";
import { numbersOf, readTimes } from "./reading.js";
import type { Database } from "./schema.js";

const int8 = 20;

/**
 * Opens a pool of connections to PostgreSQL.
 * @param durable whether commits wait until they are on disk
 */
export function openPostgresql(url: string, durable: boolean, connections: number): Kysely<Database> {
  const pool = new pg.Pool({
    connectionString: url,
    max: connections,
    connectionTimeoutMillis: 5000,
    application_name: "tapline studies",
    options: [
      `synchronous_commit=${durable ? "on" : "off"}`,
      "statement_timeout=20000",
      "client_encoding=UTF8",
      // Parameters hold research text, which the server must not log with failed statements.
      "log_parameter_max_length_on_error=0",
    ]
      .map((setting) => `-c ${setting}`)
      .join(" "),
    types: {
      // Every bigint here is a time or a count, well below 2^53.
      getTypeParser: ((id: number, format: "text") =>
        id === int8 ? Number : pg.types.getTypeParser(id, format)) as typeof pg.types.getTypeParser,
    },
  });
  // A broken connection is replaced on next use, and its query rejects. Without error listeners, on the pool and on
  // connections in use, it would crash the process.
  pool.on("error", () => {});
  pool.on("connect", (connection) => connection.on("error", () => {}));
  return new Kysely<Database>({ dialect: new PostgresDialect({ pool: preparing(pool) }) });
}

/** Runs long work, such as migrations, on one connection without statement timeout. */
export function withoutTimeout<T>(
  db: Kysely<Database>,
  work: (connection: Kysely<Database>) => Promise<T>,
): Promise<T> {
  return db.connection().execute(async (connection) => {
    await sql`set statement_timeout = 0`.execute(connection);
    try {
      return await work(connection);
    } finally {
      await sql`reset statement_timeout`.execute(connection);
    }
  });
}

export const postgresql: Dialect = {
  name: "postgresql",
  now: sql<number>`floor(extract(epoch from clock_timestamp()) * 1000)::bigint`,
  entries: (column) =>
    sql`(select value::bigint as value from jsonb_array_elements_text(${sql.ref(column)}::jsonb)) as entries`,
  collect: (query) => sql<string>`(select coalesce(json_agg(value)::text, '[]') from (${query}) as entries)`,
  async *read<T>(db: Kysely<Database>, query: Streamable<T>) {
    await sql`declare reading no scroll cursor for ${query}`.execute(db);
    for (;;) {
      const { rows } = await sql<T>`fetch 100 from reading`.execute(db);
      if (rows.length === 0) break;
      yield* rows;
    }
    await sql`close reading`.execute(db);
  },
  async createSearch(db) {
    await sql`create table search (
      published_at bigint primary key, title tsvector not null, head tsvector not null, body tsvector not null
    )`.execute(db);
    await createVectorIndexes(db);
  },
  search: vectors(),
};

async function createVectorIndexes(db: Kysely<Database>): Promise<void> {
  for (const tier of tiers) {
    // Reads are frequent and publications rare, so avoid the pending list that every search would have to scan.
    await sql`create index ${sql.ref(`search_${tier}`)} on search using gin (${sql.ref(tier)})
      with (fastupdate = off)`.execute(db);
  }
}

function vectors(): Search {
  return {
    async add(db, studies) {
      const rows = studies.map(
        ({ publishedAt, entry: { title, head, body } }) =>
          sql`(${publishedAt}::bigint, array_to_tsvector(${title}::text[]),
            array_to_tsvector(${[...title, ...head]}::text[]),
            array_to_tsvector(${[...title, ...head, ...body]}::text[]))`,
      );
      await sql`insert into search (published_at, title, head, body) values ${sql.join(rows)}`.execute(db);
    },
    async fill(db, batches) {
      for (const tier of tiers) await sql`drop index ${sql.ref(`search_${tier}`)}`.execute(db);
      for await (const batch of batches) await this.add(db, batch);
      await sql`set local maintenance_work_mem = '256MB'`.execute(db);
      await sql`set local statement_timeout = 0`.execute(db);
      await createVectorIndexes(db);
    },
    async remove(db, publishedAt) {
      await sql`delete from search where published_at = ${publishedAt}`.execute(db);
    },
    async few(db, words, most) {
      // A materialized query is planned for all its rows, so rare words use the text index whatever the estimates; and it
      // runs only as far as it is read, so common words stop early.
      const [title, head, body] = tiers.map((tier) => inside(tier, words));
      const query = sql<Match>`with found as materialized (select * from search where ${body})
        select published_at as "publishedAt", case when ${title} then 0 when ${head} then 1 else 2 end as tier
        from found limit ${most + 1}`;
      const { rows } = await query.execute(db);
      return rows.length > most ? null : rows;
    },
    async having(db, word, beginning, tier) {
      const one = `'${word}'${beginning ? ":*" : ""}`;
      // Force the text index even for common words: a sequential scan would unpack every vector.
      return db.transaction().execute(async (trx) => {
        await sql`set local enable_seqscan = off`.execute(trx);
        return readTimes(
          trx,
          sql`select string_agg(published_at::text, ',') from search where ${sql.ref(tier)} @@ ${one}::tsquery`,
        );
      });
    },
    async times(db, conditions = []) {
      const wanted = sql.join([sql`studies.listed = 1`, ...conditions], sql` and `);
      return readTimes(db, sql`select string_agg(published_at::text, ',') from studies where ${wanted}`);
    },
    async ordered(db, by) {
      const { rows } = await sql<{ list: string | null }>`
        select string_agg(published_at::text, ',' order by ${sql.ref(by)} desc, published_at desc) as list
        from studies where listed = 1`.execute(db);
      return numbersOf(rows[0]?.list ?? null);
    },
    async common(db, { moreThan, most }, pace) {
      // From the planner's statistics; empty until the table is first analyzed.
      const query = sql<{ word: string }>`select word from (
          select unnest(most_common_elems::text::text[]) as word, unnest(most_common_elem_freqs) as frequency
          from pg_stats where schemaname = current_schema() and tablename = 'search' and attname = 'body'
        ) as frequent
        where word is not null
          and frequency * (select reltuples from pg_class where oid = 'search'::regclass) > ${moreThan}::float
        order by frequency desc limit ${most}`;
      const { rows } = await pace(() => query.execute(db));
      return rows.map(({ word }) => word);
    },
  };
}

/** Whether a column (which includes the words of better tiers) has all words. */
function inside(column: Tier, words: string[]): RawBuilder<boolean> {
  // Words contain only letters and digits, so quoting is enough.
  const all = words.map((word, index) => `'${word}'${index === words.length - 1 ? ":*" : ""}`).join(" & ");
  return sql<boolean>`${sql.ref(column)} @@ ${all}::tsquery`;
}
