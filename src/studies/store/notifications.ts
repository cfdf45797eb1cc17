import { randomUUID } from "node:crypto";
import type { Kysely, Selectable } from "kysely";
import { audit } from "./audit.js";
import { changesRow, isBefore, isThere, type Place } from "./rows.js";
import type { Database } from "./schema.js";
import { type Store, withAccount } from "./store.js";

/** An event, by ids only: its text is read when it is shown, so it disappears with the object. */
export type NewNotification = Pick<Row, "kind"> &
  Partial<Pick<Row, "study_id" | "comment_id" | "by_study_id" | "draft_id" | "actor_id">>;
type Row = Selectable<Database["notifications"]>;

/** Notifies an account in the event's transaction. No one is notified of their own actions; deleted accounts get nothing. */
export async function notify(
  trx: Kysely<Database>,
  now: number,
  accountId: string,
  event: NewNotification,
): Promise<void> {
  if (event.actor_id === accountId) return;
  const reader = trx.selectFrom("accounts").select("id").where("id", "=", accountId);
  if (!(await isThere(reader.where("deleted_at", "is", null)))) return;
  await trx
    .insertInto("notifications")
    .values({
      id: randomUUID(),
      account_id: accountId,
      at: now,
      study_id: null,
      comment_id: null,
      by_study_id: null,
      draft_id: null,
      actor_id: null,
      read_at: null,
      ...event,
    })
    .execute();
}

/** Removes the notification of a draft that was published or deleted. */
export async function forgetDraft(trx: Kysely<Database>, accountId: string, draftId: string): Promise<void> {
  await trx
    .deleteFrom("notifications")
    .where("account_id", "=", accountId)
    .where("draft_id", "=", draftId)
    .execute();
}

/** An account's notifications, newest first, with current titles and texts. */
export function readNotifications(
  store: Pick<Store, "db">,
  accountId: string,
  { before, limit }: { before?: Place | undefined; limit: number },
) {
  return store.db
    .selectFrom("notifications")
    .leftJoin("studies", "studies.id", "notifications.study_id")
    .leftJoin("studies as other", "other.id", "notifications.by_study_id")
    .leftJoin("reproductions", (join) =>
      join
        .onRef("reproductions.study_id", "=", "other.id")
        .onRef("reproductions.version", "=", "other.version")
        .onRef("reproductions.original_id", "=", "studies.id"),
    )
    .leftJoin("comments", "comments.id", "notifications.comment_id")
    .leftJoin("accounts as actor", "actor.id", "notifications.actor_id")
    .leftJoin("drafts", "drafts.id", "notifications.draft_id")
    .select([
      "notifications.id",
      "notifications.at",
      "notifications.kind",
      "notifications.read_at",
      "notifications.study_id",
      "notifications.comment_id",
      "notifications.by_study_id",
      "notifications.draft_id",
      "studies.title",
      "studies.listed",
      "studies.account_id as studyAccount",
      "studies.reason as studyReason",
      "other.title as otherTitle",
      "other.listed as otherListed",
      "reproductions.outcome",
      "comments.body",
      "comments.hidden",
      "comments.reason as commentReason",
      "actor.name as actorName",
      "actor.handle as actorHandle",
      "drafts.title as draftTitle",
    ])
    .where("notifications.account_id", "=", accountId)
    .$if(before !== undefined, (query) => query.where(isBefore("notifications", before as Place)))
    .orderBy("notifications.at", "desc")
    .orderBy("notifications.id", "desc")
    .limit(limit)
    .execute();
}

export type NotificationRow = Awaited<ReturnType<typeof readNotifications>>[number];

/** Marks a notification as read or unread. Returns whether the account has it. */
export function setRead(store: Store, accountId: string, id: string, read: boolean): Promise<boolean> {
  const update = store.quick.updateTable("notifications").set({ read_at: read ? store.dialect.now : null });
  return changesRow(update.where("id", "=", id).where("account_id", "=", accountId));
}

/** Marks all notifications up to a time as read. */
export async function setAllRead(store: Store, accountId: string, until: number): Promise<void> {
  await unread(store, accountId).where("at", "<=", until).execute();
}

/** Marks the notifications about a study or draft as read. @returns how many */
export async function setSeen(
  store: Store,
  accountId: string,
  what: { studyId: string } | { draftId: string },
): Promise<number> {
  const all = unread(store, accountId);
  const { numUpdatedRows } = await ("draftId" in what
    ? all.where("draft_id", "=", what.draftId)
    : all.where((eb) => eb.or([eb("study_id", "=", what.studyId), eb("by_study_id", "=", what.studyId)]))
  ).executeTakeFirst();
  return Number(numUpdatedRows);
}

function unread(store: Store, accountId: string) {
  return store.quick
    .updateTable("notifications")
    .set({ read_at: store.dialect.now })
    .where("account_id", "=", accountId)
    .where("read_at", "is", null);
}

/** The active account with this feed secret. @param hash of the secret */
export function findFeed({ db }: Pick<Store, "db">, hash: string) {
  return db
    .selectFrom("accounts")
    .select(["id", "name"])
    .where("feed_hash", "=", hash)
    .where("suspended_at", "is", null)
    .where("deleted_at", "is", null)
    .executeTakeFirst();
}

/** Sets the secret of an account's private feed, or deletes the feed. @param hash of the secret */
export async function setFeed(store: Store, accountId: string, hash: string | null): Promise<void> {
  await withAccount(store, accountId, async (trx, now) => {
    await trx.updateTable("accounts").set({ feed_hash: hash }).where("id", "=", accountId).execute();
    const action = hash === null ? "feed.end" : "feed.create";
    await audit(trx, now, { actor: { accountId }, action, target: accountId });
  });
}

/** Whether an account has a private feed. */
export function hasFeed({ db }: Pick<Store, "db">, accountId: string): Promise<boolean> {
  return isThere(
    db.selectFrom("accounts").select("id").where("id", "=", accountId).where("feed_hash", "is not", null),
  );
}
