import { type SelectQueryBuilder, sql, type UpdateResult } from "kysely";
import type { Database } from "./schema.js";

/** How many rows a query finds. */
export async function countOf<T extends keyof Database>(
  query: SelectQueryBuilder<Database, T, object>,
): Promise<number> {
  const { count } = await query
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Whether a query finds anything. */
export async function isThere(query: { executeTakeFirst(): Promise<unknown> }): Promise<boolean> {
  return (await query.executeTakeFirst()) !== undefined;
}

/** Runs an update of one row. Whether the row was there, in the state that the update asks for. */
export async function changesRow(query: { executeTakeFirst(): Promise<UpdateResult> }): Promise<boolean> {
  return (await query.executeTakeFirst()).numUpdatedRows === 1n;
}

/** Several rows of a log may be of one millisecond: a place in it is time and id. */
export interface Place {
  at: number;
  id: string;
}

export function isBefore(table: "audit" | "notifications", { at, id }: Place) {
  const row = sql`${sql.ref(`${table}.at`)}, ${sql.ref(`${table}.id`)}`;
  return sql<boolean>`(${row}) < (cast(${at} as bigint), ${id})`;
}
