import type { SelectQueryBuilder, UpdateResult } from "kysely";
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

/** Runs an update of one row. Whether the row was there, in the state that the update asks for. */
export async function changesRow(query: { executeTakeFirst(): Promise<UpdateResult> }): Promise<boolean> {
  return (await query.executeTakeFirst()).numUpdatedRows === 1n;
}
