import { studyLimits } from "../../../contracts/studies/index.js";
import { deleteComment, findComment } from "../../store/discussion.js";
import {
  eraseComment,
  reinstate,
  remove,
  setCommentHidden,
  type Target,
  withdraw,
} from "../../store/moderation.js";
import { report } from "../../store/reports.js";
import type { Store } from "../../store/store.js";
import type { Gone, StudyRow } from "../../store/studies.js";
import { type Html, html } from "../html.js";
import { csrfField, reasonField, when } from "../layout.js";
import { revealed } from "../reveal.js";
import {
  countVisit,
  readForm,
  readModeratorForm,
  reasonOf,
  SiteError,
  seeOther,
  type Visit,
} from "../visit.js";
import { appealForm } from "./appeals.js";

/** Actions on studies and comments: withdraw, remove, reinstate, report. */

export function goneSentence({ standing }: Gone): string {
  return standing === "withdrawn" ? "This was withdrawn by its author." : "This was removed by a moderator.";
}

export function goneNotice(gone: Gone): Html {
  return html`<div class="notice" role="note"><p><strong>${goneSentence(gone)}</strong> ${when(gone.at)}</p><p dir="auto">${revealed(gone.reason)}</p></div>`;
}

type VersionRow = { version: number; standing: string };

/** Forms below a study, depending on the visitor's role. */
export function studyActions(visit: Visit, row: StudyRow, versions: VersionRow[]): Html | null {
  const { session } = visit;
  if (session === null) return null;
  const standing = versions.filter((one) => one.standing === "published");
  const removed = versions.filter((one) => one.standing === "removed");
  const mine = session.account.id === row.account_id;
  const choice = (
    name: string,
    ones: VersionRow[],
  ) => html`<div class="field"><label for="${name}-version">Scope</label>
<select id="${name}-version" name="version"><option value="">the whole study</option>${ones.map(
    ({ version }) => html`<option value="${version}">version ${version} only</option>`,
  )}</select></div>`;
  const form = (name: string, label: string, fields: Html, hint: string) =>
    html`<details><summary>${label}</summary><form class="card" method="post" action="/studies/${row.id}/${name}">${csrfField(visit)}${fields}
<p class="hint">${hint}</p><button class="danger">${label}</button></form></details>`;
  return html`<div class="actions">${mine && (row.standing === "removed" || removed.length > 0) ? appealForm(visit, row.id) : null}${
    mine && row.standing === "published" && standing.length > 0
      ? form(
          "withdraw",
          "Withdraw",
          html`${choice("withdraw", standing)}${reasonField("withdraw", "Reason (shown on the page)")}`,
          "This cannot be undone. Readers will see your reason. Existing copies are not affected.",
        )
      : null
  }${
    session.isModerator && row.standing === "published" && standing.length > 0
      ? form(
          "remove",
          "Remove",
          html`${choice("remove", standing)}${reasonField("remove", "Reason (shown on the page)")}`,
          "As a moderator. Readers will see your reason. You can reinstate it later.",
        )
      : null
  }${
    session.isModerator && (row.standing === "removed" || removed.length > 0)
      ? form("reinstate", "Reinstate", choice("reinstate", removed), "As a moderator. Makes it public again.")
      : null
  }${
    mine || row.listed === 0
      ? null
      : form(
          "report",
          "Report",
          reasonField("report", "What is wrong with this study?"),
          "Moderators will see your report and your name.",
        )
  }</div>`;
}

interface CommentRow {
  id: string;
  study_id: string;
  account_id: string;
  hidden: "deleted" | "hidden" | null;
  created_at: number;
  body: string;
}

/** The form to edit a comment, while its author still may. */
function editForm(visit: Visit, { id, created_at, hidden, body }: CommentRow): Html | null {
  if (hidden !== null || Date.now() >= created_at + studyLimits.comment_edit_ms) return null;
  return html`<details><summary>Edit</summary><form class="card" method="post" action="/comments/${id}/edit">${csrfField(visit)}
<div class="field"><label for="edit-${id}">Edit your comment (possible for ${studyLimits.comment_edit_ms / 60_000} minutes after posting)</label>
<textarea id="edit-${id}" name="body" required maxlength="${studyLimits.comment}">
${body}</textarea></div><button>Save</button></form></details>`;
}

/** Forms below a comment, depending on the visitor's role. */
export function commentActions(visit: Visit, comment: CommentRow): Html | null {
  const { session } = visit;
  if (session === null || comment.hidden === "deleted") return null;
  const mine = session.account.id === comment.account_id;
  const button = (name: string, label: string) =>
    html`<form class="inline" method="post" action="/comments/${comment.id}/${name}">${csrfField(visit)}<button class="quiet">${label}</button></form>`;
  const form = (name: string, label: string, question: string) =>
    html`<details><summary>${label}</summary><form class="card" method="post" action="/comments/${comment.id}/${name}">${csrfField(visit)}${reasonField(`${name}-${comment.id}`, question)}<button class="danger">${label}</button></form></details>`;
  const shown = comment.hidden === null;
  return html`${mine ? editForm(visit, comment) : null}${mine ? button("delete", "Delete") : shown ? form("report", "Report", "What is wrong with this comment?") : null}${
    session.isModerator
      ? html`${shown ? form("hide", "Hide", "Reason (shown to readers)") : button("show", "Show again")}${form("erase", "Erase", "Reason (shown to readers)")}`
      : null
  }`;
}

function targetOf(studyId: string, form: URLSearchParams): Target {
  const text = form.get("version") ?? "";
  if (text === "") return { studyId, version: null };
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new SiteError(400, "Version not found.");
  return { studyId, version: Number(text) };
}

function settled(visit: Visit, studyId: string, changed: "changed" | "missing" | "already"): void {
  if (changed === "missing") throw new SiteError(404, "You have no such study.");
  if (changed === "already") throw new SiteError(409, "Already done, or no such version.");
  seeOther(visit.ctx, `/studies/${studyId}`);
}

export async function postWithdraw(visit: Visit, id: string): Promise<void> {
  const { form, account } = await readForm(visit);
  const reason = reasonOf(form);
  settled(visit, id, await withdraw(visit.service.store, account.id, targetOf(id, form), reason));
}

export async function postRemove(visit: Visit, id: string): Promise<void> {
  const { form, actor } = await readModeratorForm(visit);
  const reason = reasonOf(form);
  settled(visit, id, await remove(visit.service.store, actor, targetOf(id, form), reason));
}

export async function postReinstate(visit: Visit, id: string): Promise<void> {
  const { form, actor } = await readModeratorForm(visit);
  settled(visit, id, await reinstate(visit.service.store, actor, targetOf(id, form)));
}

export async function postReport(visit: Visit, id: string): Promise<void> {
  await sendReport(visit, { studyId: id, commentId: null });
}

export async function postReportComment(visit: Visit, id: string): Promise<void> {
  const comment = await findComment(visit.service.store, id);
  await sendReport(visit, { studyId: comment?.study_id ?? id, commentId: id });
}

async function sendReport(
  visit: Visit,
  target: { studyId: string; commentId: string | null },
): Promise<void> {
  const { form, account } = await readForm(visit);
  await countVisit(visit, "report");
  const reason = reasonOf(form);
  if ((await report(visit.service.store, account.id, target, reason)) === "missing") {
    throw new SiteError(404, "The reported study or comment no longer exists.");
  }
  backTo(visit, target.studyId, target.commentId);
}

/** Redirects to a study's page, at a comment. */
function backTo(visit: Visit, studyId: string, commentId: string | null): void {
  seeOther(visit.ctx, `/studies/${studyId}${commentId === null ? "" : `#comment-${commentId}`}`);
}

export async function postDeleteComment(visit: Visit, id: string): Promise<void> {
  const { account } = await readForm(visit);
  const study = await deleteComment(visit.service.store, account.id, id);
  if (study === null) throw new SiteError(404, "You have no such comment.");
  backTo(visit, study, id);
}

type Sent = Awaited<ReturnType<typeof readModeratorForm>>;

/** A handler for a moderator's action on a comment. */
function moderated(change: (store: Store, id: string, sent: Sent) => Promise<string | null>) {
  return async (visit: Visit, id: string): Promise<void> => {
    const study = await change(visit.service.store, id, await readModeratorForm(visit));
    if (study === null) throw new SiteError(409, "Already done, or no such comment.");
    backTo(visit, study, id);
  };
}

export const postHideComment = moderated((store, id, { actor, form }) =>
  setCommentHidden(store, actor, id, reasonOf(form)),
);
export const postShowComment = moderated((store, id, { actor }) => setCommentHidden(store, actor, id, null));
export const postEraseComment = moderated((store, id, { actor, form }) =>
  eraseComment(store, actor, id, reasonOf(form)),
);
