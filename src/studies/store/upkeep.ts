import { studyLimits } from "../../contracts/studies/index.js";
import { longestWindowMs } from "./limits.js";
import { forgetOldNotifications } from "./notifications.js";
import { readNow, type Store } from "./store.js";

/** Deletes what has had its time: ended sessions, sign-ins that came back, old replays, limits, activity, audit and notifications. */
export async function cleanUp(store: Store): Promise<void> {
  const now = await readNow(store, store.db);
  await store.db.deleteFrom("sessions").where("expires_at", "<=", now).execute();
  await store.db
    .deleteFrom("sign_ins")
    .where("created_at", "<=", now - 600_000)
    .execute();
  await store.db
    .deleteFrom("replays")
    .where("created_at", "<=", now - studyLimits.idempotency_ms)
    .execute();
  await store.db
    .deleteFrom("limits")
    .where("touched_at", "<=", now - longestWindowMs)
    .execute();
  await store.db
    .deleteFrom("audit")
    .where("at", "<=", now - studyLimits.audit_days * 86_400_000)
    .execute();
  await store.db
    .deleteFrom("appeals")
    .where("closed_at", "<=", now - studyLimits.audit_days * 86_400_000)
    .execute();
  await store.db
    .deleteFrom("activity")
    .where("at", "<=", now - studyLimits.activity_days * 86_400_000)
    .execute();
  await forgetOldNotifications(store, studyLimits.notification_days);
  store.forgetErased();
}
