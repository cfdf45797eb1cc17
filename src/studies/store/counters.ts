import { type Kysely, type RawBuilder, sql } from "kysely";
import type { Database } from "./schema.js";

/** Numbers that every change of what the public sees moves. Read before the data that they are about. */
export interface Counters {
  /** Of the public state: what was made of an older one is stale. */
  generation: number;
  /** Of the newest publication, or taking down or back. */
  publication: number;
  /** Studies that are listed. */
  studies: number;
}

/** Columns for a statement that reads them together with something else. */
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
