import { randomUUID } from "node:crypto";
import type { Kysely } from "kysely";
import { type Actor, asModerator, audit } from "./audit.js";
import { changesRow } from "./rows.js";
import type { Database } from "./schema.js";
import { type Store, withAccount } from "./store.js";

export interface Reported {
  studyId: string;
  /** Null to report the study itself. */
  commentId: string | null;
}

/** Reports a study or comment to moderators. An account has at most one open report per object. */
export function report(
  store: Store,
  accountId: string,
  { studyId, commentId }: Reported,
  reason: string,
): Promise<"reported" | "missing"> {
  return withAccount(store, accountId, async (trx, now) => {
    const found =
      commentId === null
        ? await trx
            .selectFrom("studies")
            .select("id")
            .where("id", "=", studyId)
            .where("listed", "=", 1)
            .executeTakeFirst()
        : await trx
            .selectFrom("comments")
            .select("id")
            .where("id", "=", commentId)
            .where("study_id", "=", studyId)
            .where("hidden", "is", null)
            .executeTakeFirst();
    if (found === undefined) return "missing";
    const open = await trx
      .updateTable("reports")
      .set({ reason })
      .where("account_id", "=", accountId)
      .where("study_id", "=", studyId)
      .where("comment_id", commentId === null ? "is" : "=", commentId)
      .where("closed_at", "is", null)
      .returning("id")
      .executeTakeFirst();
    const id = open?.id ?? randomUUID();
    if (open === undefined) {
      await trx
        .insertInto("reports")
        .values({
          id,
          study_id: studyId,
          comment_id: commentId,
          account_id: accountId,
          created_at: now,
          reason,
          closed_at: null,
          outcome: null,
        })
        .execute();
    }
    await audit(trx, now, { actor: { accountId }, action: "report.add", target: id });
    return "reported";
  });
}

/** Open reports, oldest first. */
export function openReports(store: Store, limit = 100) {
  return store.db
    .selectFrom("reports")
    .innerJoin("studies", "studies.id", "reports.study_id")
    .innerJoin("accounts as reporter", "reporter.id", "reports.account_id")
    .innerJoin("accounts as author", "author.id", "studies.account_id")
    .leftJoin("comments", "comments.id", "reports.comment_id")
    .leftJoin("accounts as speaker", "speaker.id", "comments.account_id")
    .select([
      "reports.id",
      "reports.study_id",
      "reports.comment_id",
      "reports.created_at",
      "reports.reason",
      "reporter.handle as reporter",
      "studies.title",
      "author.handle as author",
      "comments.body",
      "speaker.handle as speaker",
    ])
    .where("reports.closed_at", "is", null)
    .orderBy("reports.created_at")
    .orderBy("reports.id")
    .limit(limit)
    .execute();
}

/** Dismisses a report. Returns whether it was open. */
export function dismissReport(store: Store, actor: Actor, id: string): Promise<boolean> {
  return dismiss(store, actor, "reports", id);
}

/** Updates open reports or appeals with an outcome. */
export function closing(
  trx: Kysely<Database>,
  table: "reports" | "appeals",
  now: number,
  outcome: "acted" | "dismissed",
) {
  return trx.updateTable(table).set({ closed_at: now, outcome }).where("closed_at", "is", null);
}

export function dismiss(
  store: Store,
  actor: Actor,
  table: "reports" | "appeals",
  id: string,
): Promise<boolean> {
  return asModerator(store, actor, async (trx, now) => {
    const dismissed = await changesRow(closing(trx, table, now, "dismissed").where("id", "=", id));
    const action = table === "reports" ? "report.dismiss" : "appeal.dismiss";
    if (dismissed) await audit(trx, now, { actor, action, target: id });
    return dismissed;
  });
}
