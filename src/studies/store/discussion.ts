import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { studyLimits } from "../../contracts/studies/index.js";
import { displayable } from "../text/display.js";
import { audit } from "./audit.js";
import { notify } from "./notifications.js";
import { countOf, isThere } from "./rows.js";
import { bumpGeneration, type Store, withAccount } from "./store.js";

/** A page of a study's comments in thread order: every comment directly above its replies, oldest first. */
export function readComments(store: Store, studyId: string, offset: number, limit: number) {
  return store.db
    .selectFrom("comments")
    .innerJoin("accounts", "accounts.id", "comments.account_id")
    .selectAll("comments")
    .select("accounts.handle")
    .where("study_id", "=", studyId)
    .orderBy("thread")
    .limit(limit)
    .offset(offset)
    .execute();
}

/** A comment's depth in the thread; 0 for a comment on the study. */
export function depthOf(thread: string): number {
  return thread.length / 6 - 1;
}

export type Commented = { outcome: "added"; id: string } | { outcome: "no_study" | "no_parent" | "too_deep" };

export function addComment(
  store: Store,
  author: { accountId: string; name: string },
  studyId: string,
  parentId: string | null,
  body: string,
): Promise<Commented> {
  return withAccount(store, author.accountId, async (trx, now): Promise<Commented> => {
    let above = "";
    let answered: string | null = null;
    if (parentId !== null) {
      const parent = await trx
        .selectFrom("comments")
        .select(["thread", "account_id"])
        .where("id", "=", parentId)
        .where("study_id", "=", studyId)
        .where("hidden", "is", null)
        .executeTakeFirst();
      if (parent === undefined) return { outcome: "no_parent" };
      if (depthOf(parent.thread) + 1 >= studyLimits.comment_depth) return { outcome: "too_deep" };
      above = parent.thread;
      answered = parent.account_id;
    }
    const study = await trx
      .updateTable("studies")
      .set({ comment_count: sql<number>`comment_count + 1` })
      .where("id", "=", studyId)
      .where("listed", "=", 1)
      .returning(["comment_count", "account_id"])
      .executeTakeFirst();
    if (study === undefined) return { outcome: "no_study" };
    const id = randomUUID();
    await trx
      .insertInto("comments")
      .values({
        id,
        study_id: studyId,
        parent_id: parentId,
        account_id: author.accountId,
        author: author.name,
        created_at: now,
        body: displayable(body),
        thread: above + study.comment_count.toString(36).padStart(6, "0"),
      })
      .execute();
    const about = { study_id: studyId, comment_id: id, actor_id: author.accountId };
    if (answered !== null) await notify(trx, now, answered, { kind: "reply", ...about });
    if (study.account_id !== answered)
      await notify(trx, now, study.account_id, { kind: "comment", ...about });
    await bumpGeneration(trx);
    await audit(trx, now, { actor: { accountId: author.accountId }, action: "comment.add", target: id });
    return { outcome: "added", id };
  });
}

/**
 * Edits an author's own comment shortly after posting; existing replies stay.
 * @returns its study; null if there is no such comment, or it can no longer be edited
 */
export function editComment(
  store: Store,
  accountId: string,
  id: string,
  body: string,
): Promise<string | null> {
  return withAccount(store, accountId, async (trx, now) => {
    const edited = await trx
      .updateTable("comments")
      .set({ body: displayable(body), edited_at: now })
      .where("id", "=", id)
      .where("account_id", "=", accountId)
      .where("hidden", "is", null)
      .where("created_at", ">", now - studyLimits.comment_edit_ms)
      .returning("study_id")
      .executeTakeFirst();
    if (edited === undefined) return null;
    await bumpGeneration(trx);
    await audit(trx, now, { actor: { accountId }, action: "comment.edit", target: id });
    return edited.study_id;
  });
}

/** Deletes the text of an author's own comment; its place in the thread stays. @returns its study; null if there is no such comment */
export async function deleteComment(store: Store, accountId: string, id: string): Promise<string | null> {
  const studyId = await withAccount(store, accountId, async (trx, now) => {
    const deleted = await trx
      .updateTable("comments")
      .set({ body: "", hidden: "deleted", reason: null })
      .where("id", "=", id)
      .where("account_id", "=", accountId)
      .where((eb) => eb.or([eb("hidden", "is", null), eb("hidden", "=", "hidden")]))
      .returning("study_id")
      .executeTakeFirst();
    if (deleted === undefined) return null;
    await bumpGeneration(trx);
    await audit(trx, now, { actor: { accountId }, action: "comment.delete", target: id });
    return deleted.study_id;
  });
  if (studyId !== null) store.forgetErased();
  return studyId;
}

export function findComment(store: Store, id: string) {
  return store.db.selectFrom("comments").selectAll().where("id", "=", id).executeTakeFirst();
}

/** The study of a comment, and how many comments come before it; null if there is no such comment. */
export async function placeOfComment(
  store: Store,
  id: string,
): Promise<{ studyId: string; before: number } | null> {
  const comment = await store.db
    .selectFrom("comments")
    .select(["study_id", "thread"])
    .where("id", "=", id)
    .executeTakeFirst();
  if (comment === undefined) return null;
  const { study_id, thread } = comment;
  const earlier = store.db
    .selectFrom("comments")
    .where("study_id", "=", study_id)
    .where("thread", "<", thread);
  return { studyId: study_id, before: await countOf(earlier) };
}

export type Voted = "counted" | "no_study" | "own";

/** Sets or removes an account's upvote for a study's current version. Authors cannot upvote their own studies. */
export function setUpvote(store: Store, accountId: string, studyId: string, wanted: boolean): Promise<Voted> {
  return withAccount(store, accountId, async (trx, now): Promise<Voted> => {
    // Lock the study's row, so that its version does not change while the vote is counted.
    const study = await trx
      .updateTable("studies")
      .set({ upvotes: sql<number>`upvotes` })
      .where("id", "=", studyId)
      .where("listed", "=", 1)
      .returning(["version", "account_id"])
      .executeTakeFirst();
    if (study === undefined) return "no_study";
    if (study.account_id === accountId) return "own";
    const key = { study_id: studyId, version: study.version, account_id: accountId };
    if (wanted) {
      await trx
        .insertInto("votes")
        .values({ ...key, created_at: now })
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    } else {
      await trx
        .deleteFrom("votes")
        .where("study_id", "=", key.study_id)
        .where("version", "=", key.version)
        .where("account_id", "=", key.account_id)
        .execute();
    }
    await trx
      .updateTable("studies")
      .set((eb) => ({
        upvotes: eb
          .selectFrom("votes")
          .select(eb.fn.countAll<number>().as("count"))
          .where("study_id", "=", studyId)
          .where("version", "=", study.version),
      }))
      .where("id", "=", studyId)
      .execute();
    await bumpGeneration(trx);
    const action = wanted ? "vote.give" : "vote.take";
    await audit(trx, now, { actor: { accountId }, action, target: studyId });
    return "counted";
  });
}

export function hasUpvoted(store: Store, accountId: string, studyId: string, version: number) {
  const votes = store.db.selectFrom("votes").select("created_at").where("study_id", "=", studyId);
  return isThere(votes.where("version", "=", version).where("account_id", "=", accountId));
}
