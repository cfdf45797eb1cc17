import { hiddenCharacters, type StudyPackage, studyLimits } from "../../../contracts/studies/index.js";
import {
  addComment,
  depthOf,
  editComment,
  hasUpvoted,
  readComments,
  setUpvote,
} from "../../store/discussion.js";
import { originalsOf, reproductionsOf } from "../../store/reproductions.js";
import { findStudy, listVersions, type StudyRow } from "../../store/studies.js";
import { isBlank } from "../../text/blank.js";
import type { Citable } from "../../text/cite.js";
import { firstCharacters } from "../../text/display.js";
import { absolute, studyPath } from "../address.js";
import { type Html, html } from "../html.js";
import { authorLink, counted, csrfField, page, signature, when } from "../layout.js";
import { Pace } from "../pace.js";
import { Reveal, revealed } from "../reveal.js";
import { countVisit, idOf, readForm, requireSession, SiteError, seeOther, type Visit } from "../visit.js";
import { commentActions, goneNotice, studyActions } from "./actions.js";
import { citableOf, citeForms } from "./cite.js";
import { findShown, findVersion, maySeeGone } from "./find-study.js";
import { commentTexts, packageView } from "./package-view.js";

/** A published study with its discussion. */
export async function study(visit: Visit, idText: string | undefined, segment?: string): Promise<void> {
  const { store } = visit.service;
  const found = await findVersion(visit, idText, segment);
  const { row, version, gone } = found;
  const { id } = row;
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
  const [versions, comments, reproductions, originals, upvoted] = await Promise.all([
    listVersions(store, id),
    readComments(store, id, offset, studyLimits.discussion_page),
    reproductionsOf(store, id),
    originalsOf(store, { id, version: version.version }),
    visit.session === null ? false : hasUpvoted(store, visit.session.account.id, id, row.version),
  ]);
  const path = studyPath(id, version.version);
  const older = version.version !== row.version;
  const reveal = new Reveal();
  const { show } = reveal;
  const source = new URLSearchParams(visit.ctx.querystring).get("view") === "source";
  const view = { shown: show, pace: new Pace(), source };
  const readable = await packageView(content, view);
  const said: Html[] = [];
  const text = commentTexts(view);
  for (const comment of comments) said.push(await commentView(visit, row, comment, text));
  page(
    visit,
    content.title,
    html`<article><h1 dir="auto">${show(content.title)}</h1>
<ul class="meta"><li>${authorLink(row)}</li><li>${when(version.published_at)}</li><li>version ${version.version}</li><li>${counted(content.entries.length, "entry", "entries")}</li></ul>
${gone === null ? null : goneNotice(gone)}${reveal.notice()}${
  older
    ? html`<p class="notice">This is version ${version.version}; the current one is ${row.version}. <a href="/studies/${id}">Read the current one</a> or <a href="/studies/${id}/changes?from=${version.version}&amp;to=${row.version}">what changed</a>.</p>`
    : null
}
${upvoteForm(visit, row, upvoted)}
${contents(content, studyPath(id, older ? version.version : undefined), { source, reproductions: reproductions.length })}
${originalsNotice(originals)}${readable}
${reproductionsView(reproductions)}<h2 id="provenance">Provenance</h2>
<dl class="facts"><dt>Model</dt><dd>${show(content.model.name)}</dd>
${content.model.revision == null ? null : html`<dt>Revision</dt><dd>${show(content.model.revision)}</dd>`}
<dt>Runtime</dt><dd>${show(content.model.runtime)}</dd><dt>License</dt><dd>${content.license}</dd>
<dt>Published by</dt><dd>${signature(row.author, row.handle)}, after review on this site</dd>
<dt>Package</dt><dd><a href="${path}/package.json" download>Exact bytes as published</a> (${version.package.length} bytes)</dd>
<dt>SHA-256</dt><dd><code>${version.sha256}</code></dd>
<dt>Permanent address</dt><dd><a href="${path}">${absolute(visit.service, path)}</a></dd>
<dt>Cite</dt><dd>${citeForms.map(({ ending, name }) => html`<a href="${path}/cite.${ending}" download>${name}</a> `)}</dd>
<dt>Versions</dt><dd><ul class="plain">${versions.map(
      (one) =>
        html`<li><a href="${studyPath(id, one.version)}">version ${one.version}</a>, ${when(one.published_at)}${one.standing === "published" ? null : `, ${one.standing}`}${
          one.version > 1 && one.standing === "published"
            ? html`, <a href="/studies/${id}/changes?to=${one.version}">changes</a>`
            : null
        }</li>`,
    )}</ul></dd></dl>${studyActions(visit, row, versions)}</article>
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
    { head: head(visit, citableOf(visit, found, content), content.question, gone !== null), code: true },
  );
}

const outcomeNames = { held: "held", partly: "held partly", failed: "failed" } as const;

/** What this study repeats. */
function originalsNotice(originals: Awaited<ReturnType<typeof originalsOf>>): Html | null {
  if (originals.length === 0) return null;
  return html`<div class="notice good" role="note"><p>This repeats ${originals.map(
    ({ id, title, original_version, outcome }, at) =>
      html`${at > 0 ? "; " : null}<a href="${studyPath(id, original_version)}">${revealed(title)}</a>, version ${original_version}: ${outcomeNames[outcome]}`,
  )}.</p></div>`;
}

/** Who has repeated this study. */
function reproductionsView(found: Awaited<ReturnType<typeof reproductionsOf>>): Html | null {
  if (found.length === 0) return null;
  return html`<h2 id="reproductions">Reproductions (${found.length})</h2><ul class="feed">${found.map(
    (
      one,
    ) => html`<li><h3 dir="auto"><span class="badge outcome-${one.outcome}">${outcomeNames[one.outcome]}</span> <a href="${studyPath(one.id)}">${revealed(one.title)}</a></h3>
${one.differed === null ? null : html`<p dir="auto">${revealed(one.differed)}</p>`}<ul class="meta"><li>${authorLink(one)}</li><li>${when(one.published_at)}</li><li>of version ${one.original_version}</li></ul></li>`,
  )}</ul>
`;
}

/** Where what stands on a long page, and the way to the text as it was written, and back. */
function contents(
  content: StudyPackage,
  path: string,
  { source, reproductions }: { source: boolean; reproductions: number },
): Html {
  const sections = [
    ["question", "Question", content.question],
    ["hypothesis", "Hypothesis", content.hypothesis],
    ["method", "Method", content.method],
    ["finding", "Finding", content.finding],
    ["limitations", "Limitations", content.limitations],
    ["left-out", "Left out", content.omissions.join("")],
    ["entries", `Entries (${content.entries.length})`, "x"],
    ["reproductions", `Reproductions (${reproductions})`, reproductions === 0 ? "" : "x"],
    ["provenance", "Provenance", "x"],
    ["discussion", "Discussion", "x"],
  ] as const;
  return html`<nav class="toc" aria-label="On this page"><ul>${sections
    .filter(([, , text]) => text !== "")
    .map(([id, name]) => html`<li><a href="#${id}">${name}</a></li>`)}<li>${
    source
      ? html`Exact text; <a href="${path}">read it set</a>`
      : html`<a href="${path}?view=source">Exact text</a>`
  }</li></ul></nav>`;
}

/** What reference managers, and sites that show a link to this one, read in the page. */
function head(visit: Visit, study: Citable, question: string, gone: boolean): Html {
  const plain = (text: string) => text.replace(hiddenCharacters, "");
  const meta = (name: string, content: string) => html`<meta name="${name}" content="${plain(content)}">`;
  const open = (name: string, content: string) => html`<meta property="${name}" content="${plain(content)}">`;
  const description = firstCharacters(question, studyLimits.summary_question);
  if (gone) return html`<meta name="robots" content="noindex">`;
  return html`<link rel="canonical" href="${study.address}">
${meta("description", description)}${meta("citation_title", study.title)}${meta("citation_author", study.author)}${meta("citation_publication_date", new Date(study.publishedAt).toISOString().slice(0, 10).replaceAll("-", "/"))}${meta("citation_public_url", study.address)}
${open("og:type", "article")}${open("og:site_name", "tapline studies")}${open("og:title", study.title)}${open("og:description", description)}${open("og:url", study.address)}${
  visit.ctx.querystring === "" ? null : html`<meta name="robots" content="noindex">`
}`;
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

async function commentView(
  visit: Visit,
  study: StudyRow,
  comment: CommentRow,
  shown: (text: string) => Promise<Html>,
): Promise<Html> {
  const depth = Math.min(depthOf(comment.thread), 5);
  const seen = comment.hidden === null || (comment.hidden === "hidden" && visit.session?.isModerator);
  const reply = html`<details><summary>Reply</summary>${commentForm(visit, study.id, comment.id)}</details>`;
  const open = comment.hidden === null && study.listed === 1;
  return html`<li class="depth-${depth}" id="comment-${comment.id}"><ul class="meta"><li>${signature(comment.author, comment.handle)}</li><li><a class="permanent" href="#comment-${comment.id}" title="Link to this comment">${when(comment.created_at)}</a></li>${
    comment.edited_at === null || comment.hidden !== null
      ? null
      : html`<li>changed ${when(comment.edited_at)}</li>`
  }</ul>
${comment.hidden === null ? null : html`<p class="gone">${hiddenSentence(comment)}</p>`}${seen ? await shown(comment.body) : null}
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

/** A comment that a form gives. */
function commentOf(form: URLSearchParams): string {
  const body = (form.get("body") ?? "").replace(/\r\n/g, "\n").trim();
  if (isBlank(body) || [...body].length > studyLimits.comment) {
    throw new SiteError(400, `A comment has 1 to ${studyLimits.comment} characters.`);
  }
  return body;
}

export async function postEditComment(visit: Visit, idText: string | undefined): Promise<void> {
  const id = idOf(idText);
  const form = await readForm(visit);
  const { account } = requireSession(visit);
  await countVisit(visit, "comment");
  const study = await editComment(visit.service.store, account.id, id, commentOf(form));
  if (study === null) {
    throw new SiteError(
      409,
      "There is no comment of yours that could still be changed; a reply can correct it.",
    );
  }
  seeOther(visit.ctx, `/studies/${study}#comment-${id}`);
}

export async function postComment(visit: Visit, idText: string | undefined): Promise<void> {
  const id = idOf(idText);
  const form = await readForm(visit);
  const { account } = requireSession(visit);
  await countVisit(visit, "comment");
  const body = commentOf(form);
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
export async function downloadStudy(
  visit: Visit,
  idText: string | undefined,
  segment?: string,
): Promise<void> {
  const { row, version } = await findShown(visit, idText, segment);
  visit.ctx.set("X-Study-Version", String(version.version));
  sendPackage(visit, `${row.id}-v${version.version}`, version);
}

export function sendPackage(visit: Visit, name: string, stored: { sha256: string; package: Buffer }): void {
  const { ctx } = visit;
  ctx.set("Content-Type", "application/json; charset=utf-8");
  ctx.set("Content-Disposition", `attachment; filename="${name}.json"`);
  ctx.set("X-Content-SHA256", stored.sha256);
  ctx.body = stored.package;
}
