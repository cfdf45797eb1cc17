import {
  blockLabels,
  hiddenCharacters,
  labelledBlocks,
  type StudyPackage,
  studyLimits,
} from "../../../contracts/studies/index.js";
import { hasUpvoted, readComments, setUpvote } from "../../store/discussion.js";
import { measuredModel } from "../../store/measurements.js";
import { setSeen } from "../../store/notifications.js";
import { originalsOf, reproductionsOf } from "../../store/reproductions.js";
import { listVersions, type StudyRow } from "../../store/studies.js";
import { bibtex, type Citable } from "../../text/cite.js";
import { firstCharacters } from "../../text/display.js";
import { absolute, modelPath, studyPath } from "../address.js";
import { type Html, html } from "../html.js";
import { authorLink, counted, csrfField, page, signature, when } from "../layout.js";
import { codeBlock } from "../markdown/render.js";
import { Outline } from "../outline.js";
import { Pace } from "../pace.js";
import { Reveal, revealed } from "../reveal.js";
import { countVisit, readForm, SiteError, seeOther, type Visit } from "../visit.js";
import { abstractView, contentsView, isLong } from "./abstract.js";
import { goneNotice, studyActions } from "./actions.js";
import { citableOf, citeForms } from "./cite.js";
import { discussionView, quoteOf } from "./discussion.js";
import { findShown, findVersion, maySeeGone } from "./find-study.js";
import { commentTexts, packageView } from "./package-view.js";

/** A published study with its discussion. */
export async function study(visit: Visit, id: string, segment?: string): Promise<void> {
  const { store } = visit.service;
  const found = await findVersion(visit, id, segment);
  const { row, version, gone } = found;
  if (gone !== null && !maySeeGone(visit, row)) {
    page(
      visit,
      "No longer available",
      html`<h1>No longer available</h1>${goneNotice(gone)}<p><a href="/">Back to studies</a></p>`,
      {
        status: 410,
      },
    );
    return;
  }
  const content = JSON.parse(version.package.toString("utf8")) as StudyPackage;
  const offsetText = new URLSearchParams(visit.ctx.querystring).get("comments") ?? "0";
  const offset = /^\d{1,5}$/.test(offsetText) ? Math.min(Number(offsetText), studyLimits.offset) : 0;
  const older = version.version !== row.version;
  const [versions, comments, reproductions, originals, measured, upvoted] = await Promise.all([
    listVersions(store, id),
    readComments(store, id, offset, studyLimits.discussion_page),
    reproductionsOf(store, id),
    originalsOf(store, { id, version: version.version }),
    older ? undefined : measuredModel(store, row.published_at),
    visit.session === null ? false : hasUpvoted(store, visit.session.account.id, id, row.version),
  ]);
  const path = studyPath(id, version.version);
  const reveal = new Reveal();
  const { show } = reveal;
  const source = new URLSearchParams(visit.ctx.querystring).get("view") === "source";
  const outline = new Outline();
  const links = { permanent: path, quote: visit.session !== null && row.listed === 1 };
  const view = { shown: show, pace: new Pace(), source, outline, links };
  const readable = await packageView(content, view);
  const abstract = await abstractView(content, view);
  const quote = quoteOf(visit, { row, content, version: version.version }, comments);
  if (visit.session?.unread)
    visit.session.unread -= await setSeen(store, visit.session.account.id, { studyId: id });
  const citable = citableOf(visit, found, content);
  const discussed = await discussionView(visit, row, { comments, offset, quote, texts: commentTexts(view) });
  page(
    visit,
    content.title,
    html`<article class="study${isLong(content) ? " long" : ""}"><header><h1 dir="auto">${show(content.title)}</h1>
<ul class="meta"><li>${authorLink(row)}</li><li>${when(version.published_at)}</li><li>version ${version.version}</li><li>${counted(content.entries.length, "entry", "entries")}</li></ul>
${gone === null ? null : goneNotice(gone)}${reveal.notice()}${
  older
    ? html`<p class="notice">This is version ${version.version}; the current version is ${row.version}. <a href="/studies/${id}">Read the current version</a> or <a href="/studies/${id}/changes?from=${version.version}&amp;to=${row.version}">see what changed</a>.</p>`
    : null
}
${upvoteForm(visit, row, upvoted)}</header>
${abstract}${contentsView(content, studyPath(id, older ? version.version : undefined), { source, outline, reproductions: reproductions.length })}
<div class="body">${originalsNotice(originals)}${measuredNotice(measured)}${readable}
${reproductionsView(reproductions)}<h2 id="provenance">Provenance</h2>
<dl class="facts"><dt>Model</dt><dd>${show(content.model.name)}</dd>
${content.model.revision == null ? null : html`<dt>Revision</dt><dd>${show(content.model.revision)}</dd>`}
<dt>Runtime</dt><dd>${show(content.model.runtime)}</dd><dt>License</dt><dd>${content.license}</dd>
<dt>Published by</dt><dd>${signature(row.author, row.handle)}, after review on the website</dd>
<dt>Package</dt><dd><a href="${path}/package.json" download>Exact bytes as published</a> (${version.package.length} bytes)</dd>
<dt>SHA-256</dt><dd><code>${version.sha256}</code></dd>
<dt>Permalink</dt><dd><a href="${path}">${absolute(visit.service, path)}</a></dd>
<dt>Cite</dt><dd>${citeForms.map(({ ending, name }) => html`<a href="${path}/cite.${ending}" download>${name}</a> `)}<details><summary>Copy BibTeX</summary>${codeBlock(bibtex(citable), "", revealed)}</details></dd>
${
  gone === null && labelledBlocks(content, blockLabels.request).length > 0
    ? html`<dt>Reproduce</dt><dd><details><summary>On your own machine</summary>${codeBlock(`tapline reproduce ${citable.address}`, "", revealed)}<p class="hint">Lists what it would run and asks before running it.</p></details></dd>
`
    : null
}<dt>Versions</dt><dd><ul class="plain">${versions.map(
      (one) =>
        html`<li><a href="${studyPath(id, one.version)}">version ${one.version}</a>, ${when(one.published_at)}${one.standing === "published" ? null : `, ${one.standing}`}${
          one.version > 1 && one.standing === "published"
            ? html`, <a href="/studies/${id}/changes?to=${one.version}">changes</a>`
            : null
        }</li>`,
    )}</ul></dd></dl>${studyActions(visit, row, versions)}</div></article>
${discussed}`,
    { head: head(visit, citable, content.question, gone !== null), code: true },
  );
}

const outcomeNames = { held: "held", partly: "held partly", failed: "failed" } as const;

/** The studies that this one reproduces. */
function originalsNotice(originals: Awaited<ReturnType<typeof originalsOf>>): Html | null {
  if (originals.length === 0) return null;
  return html`<div class="notice good" role="note"><p>This reproduces ${originals.map(
    ({ id, title, original_version, outcome }, at) =>
      html`${at > 0 ? "; " : null}<a href="${studyPath(id, original_version)}">${revealed(title)}</a>, version ${original_version}: ${outcomeNames[outcome]}`,
  )}.</p></div>`;
}

/** The page of the model whose forms this study measures. */
function measuredNotice(model: string | undefined): Html | null {
  if (model === undefined) return null;
  return html`<p class="notice good">This study measures forms of one model. <a href="${modelPath(model)}">See all measurements of this model</a>.</p>`;
}

/** Reproductions of this study. */
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

/** Metadata for reference managers and link previews. */
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

export async function postUpvote(visit: Visit, id: string): Promise<void> {
  const { form, account } = await readForm(visit);
  await countVisit(visit, "vote");
  const voted = await setUpvote(visit.service.store, account.id, id, form.get("wanted") !== "no");
  if (voted === "no_study") throw new SiteError(404, "Study not found.");
  if (voted === "own") throw new SiteError(403, "You cannot upvote your own study.");
  seeOther(visit.ctx, `/studies/${id}`);
}

/** Downloads the exact bytes of a version. */
export async function downloadStudy(visit: Visit, id: string, segment?: string): Promise<void> {
  const { row, version } = await findShown(visit, id, segment);
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
