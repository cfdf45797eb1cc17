import { randomUUID } from "node:crypto";
import type { Kysely, Transaction } from "kysely";
import { isApproved } from "./accounts.js";
import { isBefore, type Place } from "./rows.js";
import type { Database } from "./schema.js";
import { readNow, type Store, withAccount } from "./store.js";

/** Who acts: a signed-in person, or the operator on the command line. */
export type Actor = { accountId: string } | "operator";

/** Names of actions in the audit log. */
export type AuditAction =
  | `account.${"delete" | "export" | "reinstate" | "suspend"}`
  | `appeal.${"add" | "dismiss"}`
  | `approval.${"add" | "remove"}`
  | `comment.${"add" | "delete" | "edit" | "erase" | "hide" | "show"}`
  | `feed.${"create" | "end"}`
  | `report.${"add" | "dismiss"}`
  | `study.${"publish" | "reinstate" | "remove" | "withdraw"}`
  | `token.${"create" | "revoke"}`
  | `vote.${"give" | "take"}`
  | "backup"
  | "draft.delete"
  | "restore"
  | "session.end"
  | "sign-in";

export interface AuditEntry {
  actor: Actor;
  action: AuditAction;
  /** Id of the affected object. */
  target: string;
  detail?: string | null;
}

/** Writes an audit record in the same transaction as the action. */
export async function audit(
  trx: Kysely<Database>,
  now: number,
  { actor, action, target, detail }: AuditEntry,
): Promise<void> {
  await trx
    .insertInto("audit")
    .values({
      id: randomUUID(),
      at: now,
      actor: actor === "operator" ? actor : actor.accountId,
      action,
      target,
      detail: detail ?? null,
    })
    .execute();
}

/** The newest records, optionally of one target or before a position. */
export function readAudit(
  store: Store,
  options: { target?: string; before?: Place | undefined; limit: number },
) {
  const { target, before, limit } = options;
  return store.db
    .selectFrom("audit")
    .leftJoin("accounts", "accounts.id", "audit.actor")
    .select([
      "audit.id",
      "audit.at",
      "audit.actor",
      "audit.action",
      "audit.target",
      "audit.detail",
      "accounts.handle",
    ])
    .$if(target !== undefined, (query) => query.where("audit.target", "=", target as string))
    .$if(before !== undefined, (query) => query.where(isBefore("audit", before as Place)))
    .orderBy("audit.at", "desc")
    .orderBy("audit.id", "desc")
    .limit(limit)
    .execute();
}

/** An action that only moderators and operators may perform. */
export class NotModerator extends Error {
  override name = "NotModerator";
}

/**
 * Runs a transaction for an actor. The moderator role is checked while the account is locked, so that revoking it takes
 * effect even on actions in progress.
 */
export function asModerator<T>(
  store: Store,
  actor: Actor,
  work: (trx: Transaction<Database>, now: number) => Promise<T>,
): Promise<T> {
  if (actor === "operator") return asOperator(store, work);
  return withAccount(store, actor.accountId, async (trx, now) => {
    if (!(await isApproved({ db: trx }, { id: actor.accountId }, "moderator"))) throw new NotModerator();
    return work(trx, now);
  });
}

/** Runs a transaction from the command line. Its first statement writes, so that writers of one SQLite file queue. */
export function asOperator<T>(
  store: Store,
  work: (trx: Transaction<Database>, now: number) => Promise<T>,
): Promise<T> {
  return store.db.transaction().execute(async (trx) => {
    await trx.updateTable("counters").set({ value: 0 }).where("name", "=", "nothing").execute();
    return work(trx, await readNow(store, trx));
  });
}
