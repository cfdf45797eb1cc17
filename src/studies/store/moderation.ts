import { sql, type Transaction } from "kysely";
import type { StudyPackage } from "../../contracts/studies/index.js";
import { type Account, isApproved } from "./accounts.js";
import { grantAppeals } from "./appeals.js";
import { revokeAll } from "./approvals.js";
import { type Actor, asModerator, audit } from "./audit.js";
import { addToCounter } from "./counters.js";
import { forgetMeasurements, storeMeasurements } from "./measurements.js";
import { notify } from "./notifications.js";
import { nextPublication, summaryOf } from "./publish.js";
import { closing } from "./reports.js";
import { changesRow } from "./rows.js";
import type { Database, Standing } from "./schema.js";
import { searchEntry } from "./search-entry.js";
import { bumpGeneration, type Store, withAccount } from "./store.js";

/** A study or version to take down or reinstate. */
export interface Target {
  studyId: string;
  /** One version; null for the whole study. */
  version: number | null;
}

export type Changed = "changed" | "missing" | "already";

/** Withdraws one's own study or version, permanently. */
export function withdraw(store: Store, accountId: string, target: Target, reason: string): Promise<Changed> {
  return withAccount(store, accountId, (trx, now) =>
    changeStanding(store, trx, now, { accountId }, target, "withdrawn", reason, accountId),
  );
}

/** Removes a study or version, as a moderator; what its author withdrew stays withdrawn. */
export function remove(store: Store, actor: Actor, target: Target, reason: string): Promise<Changed> {
  return asModerator(store, actor, async (trx, now) => {
    const changed = await changeStanding(store, trx, now, actor, target, "removed", reason);
    if (changed === "changed") await closeReports(trx, now, { studyId: target.studyId });
    return changed;
  });
}

/** Reverses a removal. */
export function reinstate(store: Store, actor: Actor, target: Target): Promise<Changed> {
  return asModerator(store, actor, async (trx, now) => {
    const changed = await changeStanding(store, trx, now, actor, target, "published", null);
    if (changed === "changed") await grantAppeals(trx, now, { studyId: target.studyId });
    return changed;
  });
}

const actions = {
  withdrawn: "study.withdraw",
  removed: "study.remove",
  published: "study.reinstate",
} as const;

async function changeStanding(
  store: Store,
  trx: Transaction<Database>,
  now: number,
  actor: Actor,
  { studyId, version }: Target,
  standing: Standing,
  reason: string | null,
  owner?: string,
): Promise<Changed> {
  // Serialize with publications, so that lists, counts and search change one after the other.
  await nextPublication(store, trx);
  const study = await trx
    .selectFrom("studies")
    .select(["id", "account_id"])
    .where("id", "=", studyId)
    .$if(owner !== undefined, (query) => query.where("account_id", "=", owner as string))
    .executeTakeFirst();
  if (study === undefined) return "missing";
  const from: Standing = standing === "published" ? "removed" : "published";
  const change = { standing, standing_at: standing === "published" ? null : now, reason };
  const whole = trx.updateTable("studies").set(change).where("standing", "=", from);
  const one = trx.updateTable("versions").set(change).where("standing", "=", from);
  const changed = await changesRow(
    version === null
      ? whole.where("id", "=", studyId)
      : one.where("study_id", "=", studyId).where("version", "=", version),
  );
  if (!changed) return "already";
  await updateListing(store, trx, studyId);
  await bumpGeneration(trx);
  const what = version === null ? null : `version ${version}`;
  if (standing !== "withdrawn") {
    const kind = standing === "removed" ? "removed" : "reinstated";
    await notify(trx, now, study.account_id, { kind, study_id: studyId, actor_id: moderatorOf(actor) });
  }
  const detail = [what, reason].filter((part) => part !== null).join(": ");
  await audit(trx, now, { actor, action: actions[standing], target: studyId, detail: detail || null });
  return "changed";
}

/** The moderator's account id; null for the operator. */
function moderatorOf(actor: Actor): string | null {
  return actor === "operator" ? null : actor.accountId;
}

/** Makes the newest published version the current one, or removes the study from lists and search. */
async function updateListing(store: Store, trx: Transaction<Database>, studyId: string): Promise<void> {
  const study = await trx
    .selectFrom("studies")
    .selectAll()
    .where("id", "=", studyId)
    .executeTakeFirstOrThrow();
  const version =
    study.standing === "published"
      ? await trx
          .selectFrom("versions")
          .select(["version", "published_at", "package"])
          .where("study_id", "=", studyId)
          .where("standing", "=", "published")
          .orderBy("version", "desc")
          .limit(1)
          .executeTakeFirst()
      : undefined;
  if (study.listed === 1) {
    await store.dialect.search.remove(trx, study.published_at);
    await forgetMeasurements(trx, study.published_at);
  }
  if (version === undefined) {
    await trx.updateTable("studies").set({ listed: 0 }).where("id", "=", studyId).execute();
  } else {
    const content = JSON.parse(version.package.toString("utf8")) as StudyPackage;
    await trx
      .updateTable("studies")
      .set({
        listed: 1,
        version: version.version,
        published_at: version.published_at,
        ...summaryOf(content),
        upvotes: sql<number>`(select count(*) from votes
          where votes.study_id = studies.id and votes.version = ${version.version})`,
      })
      .where("id", "=", studyId)
      .execute();
    const entry = { publishedAt: version.published_at, entry: searchEntry(content) };
    await store.dialect.search.add(trx, [entry]);
    await storeMeasurements(trx, { ...version, account_id: study.account_id });
  }
  await addToCounter(trx, "studies", (version === undefined ? 0 : 1) - study.listed);
}

/** Moderators' actions on comments: allowed states, and the change. */
const commentChanges = {
  "comment.hide": { from: [null], to: { hidden: "hidden" } },
  "comment.show": { from: ["hidden"], to: { hidden: null } },
  "comment.erase": { from: [null, "hidden"], to: { hidden: "deleted", body: "" } },
} as const;

/** @returns the comment's study; null if there is no such comment in an allowed state */
function changeComment(
  store: Store,
  actor: Actor,
  id: string,
  action: keyof typeof commentChanges,
  reason: string | null,
): Promise<string | null> {
  const { from, to } = commentChanges[action];
  return asModerator(store, actor, async (trx, now) => {
    const changed = await trx
      .updateTable("comments")
      .set({ ...to, reason })
      .where("id", "=", id)
      .where((eb) => eb.or(from.map((state) => eb("hidden", state === null ? "is" : "=", state))))
      .returning(["study_id", "account_id"])
      .executeTakeFirst();
    if (changed === undefined) return null;
    const { study_id, account_id } = changed;
    if (action !== "comment.show") {
      await closeReports(trx, now, { commentId: id });
      // The author is notified because readers no longer see it. The comment itself shows the reason.
      const actor_id = moderatorOf(actor);
      await notify(trx, now, account_id, { kind: "hidden", study_id, comment_id: id, actor_id });
    }
    await bumpGeneration(trx);
    await audit(trx, now, { actor, action, target: id, detail: reason });
    return study_id;
  });
}

/** Hides a comment from readers, or shows it again. */
export function setCommentHidden(
  store: Store,
  actor: Actor,
  id: string,
  reason: string | null,
): Promise<string | null> {
  return changeComment(store, actor, id, reason === null ? "comment.show" : "comment.hide", reason);
}

/** Permanently erases a comment's text. */
export async function eraseComment(
  store: Store,
  actor: Actor,
  id: string,
  reason: string,
): Promise<string | null> {
  const studyId = await changeComment(store, actor, id, "comment.erase", reason);
  if (studyId !== null) store.forgetErased();
  return studyId;
}

async function closeReports(
  trx: Transaction<Database>,
  now: number,
  target: { studyId: string } | { commentId: string },
): Promise<void> {
  const open = closing(trx, "reports", now, "acted");
  await ("studyId" in target
    ? open.where("study_id", "=", target.studyId).where("comment_id", "is", null)
    : open.where("comment_id", "=", target.commentId)
  ).execute();
}

/**
 * Suspends an account: revokes its tokens, ends its sessions, and blocks its actions in progress. Only the operator can
 * suspend moderators.
 */
export function suspend(
  store: Store,
  actor: Actor,
  account: Pick<Account, "id">,
  reason: string,
): Promise<Changed | "moderator"> {
  return asModerator(store, actor, async (trx, now): Promise<Changed | "moderator"> => {
    if (actor !== "operator" && (await isApproved({ db: trx }, account, "moderator"))) return "moderator";
    const standing = trx
      .updateTable("accounts")
      .where("id", "=", account.id)
      .where("suspended_at", "is", null);
    if (!(await changesRow(standing.set({ suspended_at: now, suspension: reason })))) return "already";
    await revokeAll(trx, account.id, now);
    await trx.deleteFrom("sessions").where("account_id", "=", account.id).execute();
    await audit(trx, now, { actor, action: "account.suspend", target: account.id, detail: reason });
    return "changed";
  });
}

/** Lifts a suspension. The account must create new tokens. */
export function unsuspend(store: Store, actor: Actor, account: Pick<Account, "id">): Promise<Changed> {
  return asModerator(store, actor, async (trx, now): Promise<Changed> => {
    const gone = trx
      .updateTable("accounts")
      .where("id", "=", account.id)
      .where("suspended_at", "is not", null);
    if (!(await changesRow(gone.set({ suspended_at: null, suspension: null })))) return "already";
    await audit(trx, now, { actor, action: "account.reinstate", target: account.id });
    await grantAppeals(trx, now, { accountId: account.id });
    return "changed";
  });
}
