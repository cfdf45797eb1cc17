import { type StudyPackage, studyLimits, uuidPattern } from "../../../contracts/studies/index.js";
import { addComment, depthOf, hasUpvoted, readComments, setUpvote } from "../../store/discussion.js";
import { findStudy, listVersions, readVersion } from "../../store/studies.js";
import { type Html, html } from "../html.js";
import { counted, csrfField, page, when } from "../layout.js";
import { readForm, requireSession, SiteError, seeOther, type Visit } from "../visit.js";
import { packageView, plain, prose } from "./package-view.js";

const uuid = new RegExp(uuidPattern);

export function isUuid(text: string): boolean {
  return uuid.test(text);
}

/** A path's id in lower case; not found where it is none. */
export function idOf(text: string | undefined): string {
  if (text === undefined || !isUuid(text)) throw new SiteError(404, "There is no such page.");
  return text.toLowerCase();
}

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
  const row = await findStudy(store, id);
  const version = row && (await readVersion(store, id, wantedVersion(visit)));
  if (row === undefined || version === undefined) throw new SiteError(404, "There is no such study.");
  const content = JSON.parse(version.package.toString("utf8")) as StudyPackage;
  const offsetText = new URLSearchParams(visit.ctx.querystring).get("comments") ?? "0";
  const offset = /^\d{1,5}$/.test(offsetText) ? Math.min(Number(offsetText), studyLimits.offset) : 0;
  const [versions, comments, upvoted] = await Promise.all([
    listVersions(store, id),
    readComments(store, id, offset, studyLimits.discussion_page),
    visit.session === null ? false : hasUpvoted(store, visit.session.account.id, id, row.version),
  ]);
  const query = version.version === row.version ? "" : `?version=${version.version}`;
  page(
    visit,
    content.title,
    html`<article><h1 dir="auto">${content.title}</h1>
<ul class="meta"><li>${row.author}</li><li>${when(version.published_at)}</li><li>version ${version.version}</li><li>${counted(content.entries.length, "entry", "entries")}</li></ul>
${query === "" ? null : html`<p class="notice">This is an older version. <a href="/studies/${id}">Read the current one.</a></p>`}
${upvoteForm(visit, id, row.upvotes, upvoted)}
${packageView(content, plain)}
<h2>Provenance</h2>
<dl class="facts"><dt>Model</dt><dd>${content.model.name}</dd>
${content.model.revision == null ? null : html`<dt>Revision</dt><dd>${content.model.revision}</dd>`}
<dt>Runtime</dt><dd>${content.model.runtime}</dd><dt>License</dt><dd>${content.license}</dd>
<dt>Published by</dt><dd>${row.author}, after review on this site</dd>
<dt>Package</dt><dd><a href="/studies/${id}/package.json${query}" download>Exact bytes as published</a> (${version.package.length} bytes)</dd>
<dt>SHA-256</dt><dd><code>${version.sha256}</code></dd>
${
  versions.length < 2
    ? null
    : html`<dt>Versions</dt><dd>${versions.map(
        (one) =>
          html`<a href="/studies/${id}?version=${one.version}">${one.version}</a> (${when(one.published_at)}) `,
      )}</dd>`
}</dl></article>
<section aria-labelledby="discussion"><h2 id="discussion">Discussion</h2>
${row.comment_count === 0 ? html`<p class="lead">Nobody has said anything yet.</p>` : null}
<ol class="comments">${comments.map((comment) => commentView(visit, id, comment))}</ol>
<div class="pages"><span>${offset > 0 ? html`<a href="?comments=${Math.max(0, offset - 50)}#discussion">← Earlier</a>` : null}</span>
<span>${offset + 50 < row.comment_count ? html`<a href="?comments=${offset + 50}#discussion">Later →</a>` : null}</span></div>
${visit.session === null ? html`<p><a href="/sign-in?return=/studies/${id}">Sign in</a> to comment or upvote.</p>` : commentForm(visit, id, null)}</section>`,
  );
}

function upvoteForm(visit: Visit, id: string, upvotes: number, upvoted: boolean): Html {
  if (visit.session === null) return html`<p class="meta">${counted(upvotes, "upvote")}</p>`;
  return html`<form method="post" action="/studies/${id}/upvote">${csrfField(visit)}
<input type="hidden" name="wanted" value="${upvoted ? "no" : "yes"}">
<button class="quiet" aria-pressed="${upvoted ? "true" : "false"}">${upvoted ? "▲ Upvoted" : "△ Upvote"} · ${upvotes}</button></form>`;
}

type CommentRow = Awaited<ReturnType<typeof readComments>>[number];

function commentView(visit: Visit, studyId: string, comment: CommentRow): Html {
  const depth = Math.min(depthOf(comment.thread), 5);
  return html`<li class="depth-${depth}" id="comment-${comment.id}"><ul class="meta"><li>${comment.author}</li><li>${when(comment.created_at)}</li></ul>
${prose(comment.body, plain)}
${visit.session === null ? null : html`<details><summary>Reply</summary>${commentForm(visit, studyId, comment.id)}</details>`}</li>`;
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
  const body = (form.get("body") ?? "").replace(/\r\n/g, "\n").trim();
  if (body === "" || [...body].length > studyLimits.comment) {
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
  if (!(await setUpvote(visit.service.store, account.id, id, form.get("wanted") !== "no"))) {
    throw new SiteError(404, "There is no such study.");
  }
  seeOther(visit.ctx, `/studies/${id}`);
}

/** A version's exact bytes. */
export async function downloadStudy(visit: Visit, idText: string | undefined): Promise<void> {
  const id = idOf(idText);
  const version = await readVersion(visit.service.store, id, wantedVersion(visit));
  if (version === undefined) throw new SiteError(404, "There is no such study.");
  sendPackage(visit, `${id}-v${version.version}`, version);
}

export function sendPackage(visit: Visit, name: string, stored: { sha256: string; package: Buffer }): void {
  const { ctx } = visit;
  ctx.set("Content-Type", "application/json; charset=utf-8");
  ctx.set("Content-Disposition", `attachment; filename="${name}.json"`);
  ctx.set("X-Content-SHA256", stored.sha256);
  ctx.body = stored.package;
}
