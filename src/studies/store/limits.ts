import { sql } from "kysely";
import { siteLimits } from "../../contracts/studies/index.js";
import type { Store } from "./store.js";
import { admitted, hasRoom, type Window, windowState } from "./window.js";

export type LimitedAction = keyof typeof siteLimits;

/** The longest window; rows not touched for that long can be deleted. */
export const longestWindowMs = Math.max(...Object.values(siteLimits).map(({ window_ms }) => window_ms));

/**
 * Counts an action by account and by address, exactly across processes, with an upsert under the row's lock.
 * @returns seconds to wait; 0 if within limits
 */
export async function countAction(
  store: Store,
  action: LimitedAction,
  from: { accountId: string | null; address: string },
): Promise<number> {
  const { account, address, window_ms } = siteLimits[action];
  const counted: [string, number][] = [[`${action} address ${from.address}`, address]];
  if (from.accountId !== null) counted.push([`${action} account ${from.accountId}`, account]);
  let wait = 0;
  for (const [key, most] of counted) {
    wait = Math.max(wait, await countOne(store, key, { column: "limits.recent", most, lengthMs: window_ms }));
  }
  return wait;
}

async function countOne(store: Store, key: string, window: Window): Promise<number> {
  const { dialect, quick } = store;
  const row = await quick
    .insertInto("limits")
    .values({
      key,
      recent: dialect.collect(sql`select ${dialect.now} as value`),
      touched_at: dialect.now,
    })
    .onConflict((conflict) =>
      conflict
        .column("key")
        .doUpdateSet({ recent: admitted(dialect, window), touched_at: dialect.now })
        .where(hasRoom(dialect, window)),
    )
    .returning("key")
    .executeTakeFirst();
  if (row !== undefined) return 0;
  const full = await quick
    .selectFrom("limits")
    .select(["recent", dialect.now.as("now")])
    .where("key", "=", key)
    .executeTakeFirst();
  // An entry may have expired since; then waiting a second is enough.
  return Math.max(1, full === undefined ? 1 : windowState(window, full.recent, full.now).resetSeconds);
}
