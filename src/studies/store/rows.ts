import { type SelectQueryBuilder, sql, type UpdateResult } from "kysely";
import type { Database } from "./schema.js";

/** Number of rows of a query. */
export async function countOf<T extends keyof Database>(
  query: SelectQueryBuilder<Database, T, object>,
): Promise<number> {
  const { count } = await query
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Whether a query finds a row. */
export async function isThere(query: { executeTakeFirst(): Promise<unknown> }): Promise<boolean> {
  return (await query.executeTakeFirst()) !== undefined;
}

/** Runs an update of one row. Returns whether it matched. */
export async function changesRow(query: { executeTakeFirst(): Promise<UpdateResult> }): Promise<boolean> {
  return (await query.executeTakeFirst()).numUpdatedRows === 1n;
}

/** A position in a log: time and id, because several rows may have the same millisecond. */
export interface Place {
  at: number;
  id: string;
}

export function isBefore(table: "audit" | "notifications", { at, id }: Place) {
  const row = sql`${sql.ref(`${table}.at`)}, ${sql.ref(`${table}.id`)}`;
  return sql<boolean>`(${row}) < (cast(${at} as bigint), ${id})`;
}
