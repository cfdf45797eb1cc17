import { randomUUID } from "node:crypto";
import type { Kysely, Transaction } from "kysely";
import { type Actor, audit } from "./audit.js";
import { closing, dismiss } from "./reports.js";
import type { Database } from "./schema.js";
import { AccountSuspended, lockAccount, readNow, type Store } from "./store.js";

/** An appeal's subject: a removed study, or with null the account's suspension. */
export interface Appealed {
  studyId: string | null;
}

export type Appeal = "sent" | "already" | "missing";

/** Sends an appeal to moderators: one per suspension, and one per removal of a study. */
export function appeal(
  store: Store,
  accountId: string,
  { studyId }: Appealed,
  body: string,
): Promise<Appeal> {
  return store.db.transaction().execute(async (trx): Promise<Appeal> => {
    // Like withAccount, but suspended accounts may appeal their suspension.
    const account = await lockAccount(trx, accountId);
    if (account === undefined) throw new AccountSuspended();
    if (studyId !== null && account.suspended_at !== null) throw new AccountSuspended();
    const since = studyId === null ? account.suspended_at : await removedSince(trx, accountId, studyId);
    if (since === null) return "missing";
    const sent = await trx
      .selectFrom("appeals")
      .select("id")
      .where("account_id", "=", accountId)
      .where("study_id", studyId === null ? "is" : "=", studyId)
      .where((eb) => eb.or([eb("closed_at", "is", null), eb("created_at", ">=", since)]))
      .limit(1)
      .executeTakeFirst();
    if (sent !== undefined) return "already";
    const now = await readNow(store, trx);
    const id = randomUUID();
    await trx
      .insertInto("appeals")
      .values({ id, account_id: accountId, study_id: studyId, created_at: now, body })
      .execute();
    await audit(trx, now, { actor: { accountId }, action: "appeal.add", target: id });
    return "sent";
  });
}

/** When a study of an account, or the last of its removed versions, was removed; null if none is. */
async function removedSince(trx: Transaction<Database>, accountId: string, studyId: string) {
  const study = await trx
    .selectFrom("studies")
    .select(["standing", "standing_at"])
    .where("id", "=", studyId)
    .where("account_id", "=", accountId)
    .executeTakeFirst();
  if (study === undefined) return null;
  const { last } = await trx
    .selectFrom("versions")
    .select((eb) => eb.fn.max("standing_at").as("last"))
    .where("study_id", "=", studyId)
    .where("standing", "=", "removed")
    .executeTakeFirstOrThrow();
  const times = [study.standing === "removed" ? study.standing_at : null, last].filter((at) => at !== null);
  return times.length === 0 ? null : Math.max(...times);
}

/** Open appeals, oldest first. */
export function openAppeals(store: Store, limit = 100) {
  return store.db
    .selectFrom("appeals")
    .innerJoin("accounts", "accounts.id", "appeals.account_id")
    .leftJoin("studies", "studies.id", "appeals.study_id")
    .select([
      "appeals.id",
      "appeals.study_id",
      "appeals.created_at",
      "appeals.body",
      "accounts.handle",
      "studies.title",
    ])
    .where("appeals.closed_at", "is", null)
    .orderBy("appeals.created_at")
    .orderBy("appeals.id")
    .limit(limit)
    .execute();
}

/** Dismisses an appeal. Returns whether it was open. */
export function dismissAppeal(store: Store, actor: Actor, id: string): Promise<boolean> {
  return dismiss(store, actor, "appeals", id);
}

/** Closes the appeals that were just granted. */
export async function grantAppeals(
  trx: Kysely<Database>,
  now: number,
  about: { accountId: string } | { studyId: string },
): Promise<void> {
  const open = closing(trx, "appeals", now, "acted");
  await ("studyId" in about
    ? open.where("study_id", "=", about.studyId)
    : open.where("account_id", "=", about.accountId).where("study_id", "is", null)
  ).execute();
}
