import { sql } from "kysely";
import { studyLimits } from "../../contracts/studies/index.js";
import { longestWindowMs } from "./limits.js";
import { readNow, type Store } from "./store.js";

const dayMs = 86_400_000;

/** Retention in milliseconds, counted from a column. */
const retention = [
  ["sessions", "expires_at", 0],
  ["sign_ins", "created_at", 600_000],
  ["replays", "created_at", studyLimits.idempotency_ms],
  ["limits", "touched_at", longestWindowMs],
  ["audit", "at", studyLimits.audit_days * dayMs],
  ["appeals", "closed_at", studyLimits.audit_days * dayMs],
  ["activity", "at", studyLimits.activity_days * dayMs],
  ["notifications", "at", studyLimits.notification_days * dayMs],
] as const;

/** Deletes rows past their retention. */
export async function cleanUp(store: Store): Promise<void> {
  const now = await readNow(store, store.db);
  for (const [table, column, ms] of retention) {
    const old = sql`delete from ${sql.table(table)} where ${sql.ref(column)} <= cast(${now - ms} as bigint)`;
    await old.execute(store.db);
  }
  store.forgetErased();
}
