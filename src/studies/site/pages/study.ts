import { type StudyPackage, studyLimits } from "../../../contracts/studies/index.js";
import { addComment, depthOf, hasUpvoted, readComments, setUpvote } from "../../store/discussion.js";
import { findStudy, goneOf, listVersions, readVersion, type StudyRow } from "../../store/studies.js";
import { isBlank } from "../../text/blank.js";
import { type Html, html } from "../html.js";
import { counted, csrfField, page, signature, when } from "../layout.js";
import { Pace } from "../pace.js";
import { Reveal, revealed } from "../reveal.js";
import { countVisit, idOf, readForm, requireSession, SiteError, seeOther, type Visit } from "../visit.js";
import { commentActions, goneNotice, goneSentence, studyActions } from "./actions.js";
import { packageView, prose, type Shown } from "./package-view.js";

function wantedVersion(visit: Visit): number | undefined {
  const text = new URLSearchParams(visit.ctx.querystring).get("version");
  if (text === null) return undefined;
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new SiteError(404, "There is no such version.");
  return Number(text);
}

/** A published study with its discussion. */
export async function study(visit: Visit, idText: string | undefined): Promise<void> {
  const { store } = visit.service;
  const id = idOf(idText);
  const { row, version, gone } = await find(visit, id);
  if (gone !== null && !maySeeGone(visit, row)) {
    page(
      visit,
      "No longer here",
      html`<h1>No longer here</h1>${goneNotice(gone)}<p><a href="/">To the studies</a></p>`,
      {
        status: 410,
      },
    );
    return;
  }
  const content = JSON.parse(version.package.toString("utf8")) as StudyPackage;
  const offsetText = new URLSearchParams(visit.ctx.querystring).get("comments") ?? "0";
  const offset = /^\d{1,5}$/.test(offsetText) ? Math.min(Number(offsetText), studyLimits.offset) : 0;
  const [versions, comments, upvoted] = await Promise.all([
    listVersions(store, id),
    readComments(store, id, offset, studyLimits.discussion_page),
    visit.session === null ? false : hasUpvoted(store, visit.session.account.id, id, row.version),
  ]);
  const query = version.version === row.version ? "" : `?version=${version.version}`;
  const reveal = new Reveal();
  const { show } = reveal;
  const readable = await packageView(content, show, new Pace());
  const said = comments.map((comment) => commentView(visit, row, comment, show));
  page(
    visit,
    content.title,
    html`<article><h1 dir="auto">${show(content.title)}</h1>
<ul class="meta"><li>${signature(row.author, row.handle)}</li><li>${when(version.published_at)}</li><li>version ${version.version}</li><li>${counted(content.entries.length, "entry", "entries")}</li></ul>
${gone === null ? null : goneNotice(gone)}${reveal.notice()}${query === "" ? null : html`<p class="notice">This is an older version. <a href="/studies/${id}">Read the current one.</a></p>`}
${upvoteForm(visit, row, upvoted)}
${readable}
<h2>Provenance</h2>
<dl class="facts"><dt>Model</dt><dd>${show(content.model.name)}</dd>
${content.model.revision == null ? null : html`<dt>Revision</dt><dd>${show(content.model.revision)}</dd>`}
<dt>Runtime</dt><dd>${show(content.model.runtime)}</dd><dt>License</dt><dd>${content.license}</dd>
<dt>Published by</dt><dd>${signature(row.author, row.handle)}, after review on this site</dd>
<dt>Package</dt><dd><a href="/studies/${id}/package.json${query}" download>Exact bytes as published</a> (${version.package.length} bytes)</dd>
<dt>SHA-256</dt><dd><code>${version.sha256}</code></dd>
${
  versions.length < 2
    ? null
    : html`<dt>Versions</dt><dd>${versions.map(
        (one) =>
          html`<a href="/studies/${id}?version=${one.version}">${one.version}</a> (${when(one.published_at)}${one.standing === "published" ? null : `, ${one.standing}`}) `,
      )}</dd>`
}</dl>${studyActions(visit, row, versions)}</article>
<section aria-labelledby="discussion"><h2 id="discussion">Discussion</h2>
${row.comment_count === 0 ? html`<p class="lead">Nobody has said anything yet.</p>` : null}
<ol class="comments">${said}</ol>
<div class="pages"><span>${offset > 0 ? html`<a href="?comments=${Math.max(0, offset - 50)}#discussion">← Earlier</a>` : null}</span>
<span>${offset + 50 < row.comment_count ? html`<a href="?comments=${offset + 50}#discussion">Later →</a>` : null}</span></div>
${
  visit.session === null
    ? html`<p><a href="/sign-in?return=/studies/${id}">Sign in</a> to comment or upvote.</p>`
    : row.listed === 1
      ? commentForm(visit, id, null)
      : null
}</section>`,
  );
}

/** A study and one of its versions, and whether that is gone. */
async function find(visit: Visit, id: string) {
  const { store } = visit.service;
  const row = await findStudy(store, id);
  const version = row && (await readVersion(store, id, wantedVersion(visit) ?? row.version));
  if (row === undefined || version === undefined) throw new SiteError(404, "There is no such study.");
  return { row, version, gone: await goneOf(store, row, version.version) };
}

/** What is gone stays readable to who published it and to moderators. */
function maySeeGone({ session }: Visit, row: StudyRow): boolean {
  return session !== null && (session.isModerator || session.account.id === row.account_id);
}

function upvoteForm(visit: Visit, { id, upvotes, account_id, listed }: StudyRow, upvoted: boolean): Html {
  if (visit.session === null || visit.session.account.id === account_id || listed === 0) {
    return html`<p class="meta">${counted(upvotes, "upvote")}</p>`;
  }
  return html`<form method="post" action="/studies/${id}/upvote">${csrfField(visit)}
<input type="hidden" name="wanted" value="${upvoted ? "no" : "yes"}">
<button class="quiet" aria-pressed="${upvoted ? "true" : "false"}">${upvoted ? "▲ Upvoted" : "△ Upvote"} · ${upvotes}</button></form>`;
}

type CommentRow = Awaited<ReturnType<typeof readComments>>[number];

function commentView(visit: Visit, study: StudyRow, comment: CommentRow, shown: Shown): Html {
  const depth = Math.min(depthOf(comment.thread), 5);
  const seen = comment.hidden === null || (comment.hidden === "hidden" && visit.session?.isModerator);
  const reply = html`<details><summary>Reply</summary>${commentForm(visit, study.id, comment.id)}</details>`;
  const open = comment.hidden === null && study.listed === 1;
  return html`<li class="depth-${depth}" id="comment-${comment.id}"><ul class="meta"><li>${signature(comment.author, comment.handle)}</li><li>${when(comment.created_at)}</li></ul>
${comment.hidden === null ? null : html`<p class="gone">${hiddenSentence(comment)}</p>`}${seen ? prose(comment.body, shown) : null}
${visit.session === null ? null : html`<div class="actions">${open ? reply : null}${commentActions(visit, comment)}</div>`}</li>`;
}

function hiddenSentence({ hidden, reason }: CommentRow): Html {
  if (hidden === "hidden") return html`Hidden by a moderator: ${revealed(reason ?? "")}`;
  return reason === null ? html`Deleted by its author.` : html`Deleted by a moderator: ${revealed(reason)}`;
}

function commentForm(visit: Visit, studyId: string, parent: string | null): Html {
  const field = `body-${parent ?? "new"}`;
  return html`<form method="post" action="/studies/${studyId}/comments">${csrfField(visit)}
${parent === null ? null : html`<input type="hidden" name="parent" value="${parent}">`}
<div class="field"><label for="${field}">${parent === null ? "Your comment" : "Your reply"}</label>
<textarea id="${field}" name="body" required maxlength="${studyLimits.comment}"></textarea></div>
<button>${parent === null ? "Comment" : "Reply"}</button></form>`;
}

export async function postComment(visit: Visit, idText: string | undefined): Promise<void> {
  const id = idOf(idText);
  const form = await readForm(visit);
  const { account } = requireSession(visit);
  await countVisit(visit, "comment");
  const body = (form.get("body") ?? "").replace(/\r\n/g, "\n").trim();
  if (isBlank(body) || [...body].length > studyLimits.comment) {
    throw new SiteError(400, `A comment has 1 to ${studyLimits.comment} characters.`);
  }
  const parent = form.get("parent") === null ? null : idOf(form.get("parent") as string);
  const author = { accountId: account.id, name: account.name };
  const added = await addComment(visit.service.store, author, id, parent, body);
  if (added.outcome === "too_deep") throw new SiteError(400, "This thread is as deep as it can get.");
  if (added.outcome !== "added") throw new SiteError(404, "What you answer to is not there.");
  const row = await findStudy(visit.service.store, id);
  const last = Math.max(0, (row?.comment_count ?? 1) - 1);
  const offset = Math.floor(last / studyLimits.discussion_page) * studyLimits.discussion_page;
  const where = parent === null && offset > 0 ? `?comments=${offset}` : "";
  seeOther(visit.ctx, `/studies/${id}${where}#comment-${added.id}`);
}

export async function postUpvote(visit: Visit, idText: string | undefined): Promise<void> {
  const id = idOf(idText);
  const form = await readForm(visit);
  const { account } = requireSession(visit);
  await countVisit(visit, "vote");
  const voted = await setUpvote(visit.service.store, account.id, id, form.get("wanted") !== "no");
  if (voted === "no_study") throw new SiteError(404, "There is no such study.");
  if (voted === "own") throw new SiteError(403, "Authors do not vote for their own studies.");
  seeOther(visit.ctx, `/studies/${id}`);
}

/** A version's exact bytes. */
export async function downloadStudy(visit: Visit, idText: string | undefined): Promise<void> {
  const id = idOf(idText);
  const { row, version, gone } = await find(visit, id);
  if (gone !== null && !maySeeGone(visit, row)) throw new SiteError(410, goneSentence(gone));
  sendPackage(visit, `${id}-v${version.version}`, version);
}

export function sendPackage(visit: Visit, name: string, stored: { sha256: string; package: Buffer }): void {
  const { ctx } = visit;
  ctx.set("Content-Type", "application/json; charset=utf-8");
  ctx.set("Content-Disposition", `attachment; filename="${name}.json"`);
  ctx.set("X-Content-SHA256", stored.sha256);
  ctx.body = stored.package;
}
