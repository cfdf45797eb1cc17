import { type Kysely, type RawBuilder, sql } from "kysely";
import type { Database } from "./schema.js";

/** Versions of the public data. Read them before the data itself. */
export interface Counters {
  /** Changes with any public data; caches of an older generation are stale. */
  generation: number;
  /** Changes when a study is published, taken down or reinstated. */
  publication: number;
  /** Number of listed studies. */
  studies: number;
}

/** Columns to read the counters within another statement. */
export const counterColumns = [
  counter("generation").as("generation"),
  counter("published_at").as("publication"),
  counter("studies").as("studies"),
] as const;

function counter(name: string): RawBuilder<number> {
  return sql<number>`(select value from counters where name = ${sql.lit(name)})`;
}

export async function readCounters({ db }: { db: Kysely<Database> }): Promise<Counters> {
  return db.selectNoFrom(counterColumns).executeTakeFirstOrThrow();
}

export async function addToCounter(
  db: Kysely<Database>,
  name: "generation" | "studies",
  more: number,
): Promise<void> {
  const value = sql<number>`value + cast(${more} as bigint)`;
  await db.updateTable("counters").set({ value }).where("name", "=", name).execute();
}
