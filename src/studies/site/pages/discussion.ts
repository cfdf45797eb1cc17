import { type StudyPackage, studyLimits } from "../../../contracts/studies/index.js";
import {
  addComment,
  depthOf,
  editComment,
  placeOfComment,
  type readComments,
} from "../../store/discussion.js";
import type { StudyRow } from "../../store/studies.js";
import { isBlank } from "../../text/blank.js";
import { quotation } from "../../text/quote.js";
import { absolute, commentPath, studyPath } from "../address.js";
import { type Html, html } from "../html.js";
import { csrfField, signature, when } from "../layout.js";
import { revealed } from "../reveal.js";
import { countVisit, idOf, isUuid, readForm, SiteError, seeOther, type Visit } from "../visit.js";
import { commentActions } from "./actions.js";

type CommentRow = Awaited<ReturnType<typeof readComments>>[number];

/** A quotation of an entry or comment to start a reply with. */
export interface Quote {
  /** The comment to reply to; null for a comment on the study itself. */
  parent: string | null;
  text: string;
}

/** The quotation that `?quote=comment-ID` or `?quote=entry-ID` asks for, if the visitor may comment. */
export function quoteOf(
  visit: Visit,
  { row, content, version }: { row: StudyRow; content: StudyPackage; version: number },
  comments: readonly CommentRow[],
): Quote | null {
  const asked = new URLSearchParams(visit.ctx.querystring).get("quote") ?? "";
  const [, kind, named = ""] = /^(comment|entry)-(.+)$/.exec(asked) ?? [];
  if (visit.session === null || row.listed === 0 || !isUuid(named)) return null;
  const id = named.toLowerCase();
  if (kind === "comment") {
    const comment = comments.find((one) => one.id === id && one.hidden === null);
    if (comment === undefined) return null;
    const source = { name: `${comment.author} wrote`, address: absolute(visit.service, commentPath(id)) };
    return { parent: id, text: quotation(comment.body, source) };
  }
  const entry = content.entries.find((one) => one.id.toLowerCase() === id);
  const text = entry?.answer || entry?.note || entry?.prompt || entry?.title;
  if (entry === undefined || !text) return null;
  const address = `${absolute(visit.service, studyPath(row.id, version))}#entry-${entry.id}`;
  const name = entry.title === "" ? `An entry of version ${version}` : `${entry.title}, version ${version}`;
  return { parent: null, text: quotation(text, { name, address }) };
}

interface Discussion {
  comments: readonly CommentRow[];
  /** Number of comments before these. */
  offset: number;
  quote: Quote | null;
  /** Renders comment texts. */
  texts: (text: string) => Promise<Html>;
}

/** A page of a study's discussion. */
export async function discussionView(visit: Visit, row: StudyRow, shown: Discussion): Promise<Html> {
  const { comments, offset, quote } = shown;
  const items: Html[] = [];
  for (const comment of comments) items.push(await commentView(visit, row, comment, shown));
  const size = studyLimits.discussion_page;
  return html`<section aria-labelledby="discussion"><h2 id="discussion">Discussion</h2>
${row.comment_count === 0 ? html`<p class="lead">No comments yet.</p>` : null}
<ol class="comments">${items}</ol>
<div class="pages"><span>${offset > 0 ? html`<a href="?comments=${Math.max(0, offset - size)}#discussion">← Earlier</a>` : null}</span>
<span>${offset + size < row.comment_count ? html`<a href="?comments=${offset + size}#discussion">Later →</a>` : null}</span></div>
${
  visit.session === null
    ? html`<p><a href="/sign-in?return=/studies/${row.id}">Sign in</a> to comment or upvote.</p>`
    : row.listed === 1
      ? commentForm(visit, row.id, null, quote?.parent === null ? quote.text : "")
      : null
}</section>`;
}

async function commentView(
  visit: Visit,
  study: StudyRow,
  comment: CommentRow,
  { offset, quote, texts }: Discussion,
): Promise<Html> {
  const { id } = comment;
  const depth = Math.min(depthOf(comment.thread), 5);
  const seen = comment.hidden === null || (comment.hidden === "hidden" && visit.session?.isModerator);
  const open = comment.hidden === null && study.listed === 1;
  const quoted = quote?.parent === id ? quote.text : null;
  const reply = html`<details${quoted === null ? null : html` open`}><summary>Reply</summary>${commentForm(visit, study.id, id, quoted ?? "")}</details><a class="quote" rel="nofollow" href="?comments=${offset}&amp;quote=comment-${id}#body-${id}">Quote</a>`;
  return html`<li class="depth-${depth}" id="comment-${id}"><ul class="meta"><li>${signature(comment.author, comment.handle)}</li><li><a class="permanent" href="${commentPath(id)}" title="Link to this comment">${when(comment.created_at)}</a></li>${
    comment.edited_at === null || comment.hidden !== null
      ? null
      : html`<li>edited ${when(comment.edited_at)}</li>`
  }</ul>
${comment.hidden === null ? null : html`<p class="gone">${hiddenSentence(comment)}</p>`}${seen ? await texts(comment.body) : null}
${visit.session === null ? null : html`<div class="actions">${open ? reply : null}${commentActions(visit, comment)}</div>`}</li>`;
}

function hiddenSentence({ hidden, reason }: CommentRow): Html {
  if (hidden === "hidden") return html`Hidden by a moderator: ${revealed(reason ?? "")}`;
  return reason === null ? html`Deleted by its author.` : html`Deleted by a moderator: ${revealed(reason)}`;
}

function commentForm(visit: Visit, studyId: string, parent: string | null, text: string): Html {
  const field = `body-${parent ?? "new"}`;
  return html`<form method="post" action="/studies/${studyId}/comments">${csrfField(visit)}
${parent === null ? null : html`<input type="hidden" name="parent" value="${parent}">`}
<div class="field"><label for="${field}">${parent === null ? "Your comment" : "Your reply"}</label>
<textarea id="${field}" name="body" required maxlength="${studyLimits.comment}">
${text}</textarea></div>
<button>${parent === null ? "Comment" : "Reply"}</button></form>`;
}

/** The comment text from a form. */
function commentOf(form: URLSearchParams): string {
  const body = (form.get("body") ?? "").replace(/\r\n/g, "\n").trim();
  if (isBlank(body) || [...body].length > studyLimits.comment) {
    throw new SiteError(400, `A comment must have 1 to ${studyLimits.comment} characters.`);
  }
  return body;
}

/** A comment's permalink: redirects to its page of the discussion. */
export async function comment(visit: Visit, id: string): Promise<void> {
  await toComment(visit, id);
}

async function toComment(visit: Visit, id: string): Promise<void> {
  const place = await placeOfComment(visit.service.store, id);
  if (place === null) throw new SiteError(404, "Comment not found.");
  const size = studyLimits.discussion_page;
  const offset = Math.min(Math.floor(place.before / size) * size, studyLimits.offset);
  seeOther(visit.ctx, `/studies/${place.studyId}${offset > 0 ? `?comments=${offset}` : ""}#comment-${id}`);
}

export async function postEditComment(visit: Visit, id: string): Promise<void> {
  const { form, account } = await readForm(visit);
  await countVisit(visit, "comment");
  const study = await editComment(visit.service.store, account.id, id, commentOf(form));
  if (study === null) {
    throw new SiteError(409, "This comment can no longer be edited. You can post a correction as a reply.");
  }
  await toComment(visit, id);
}

export async function postComment(visit: Visit, id: string): Promise<void> {
  const { form, account } = await readForm(visit);
  await countVisit(visit, "comment");
  const body = commentOf(form);
  const parent = form.get("parent") === null ? null : idOf(form.get("parent") as string);
  const author = { accountId: account.id, name: account.name };
  const added = await addComment(visit.service.store, author, id, parent, body);
  if (added.outcome === "too_deep") throw new SiteError(400, "This thread has reached the maximum depth.");
  if (added.outcome !== "added")
    throw new SiteError(404, "The study or comment you are replying to no longer exists.");
  await toComment(visit, added.id);
}
