import type { StudyPackage } from "../../../contracts/studies/index.js";
import { isApproved } from "../../store/accounts.js";
import { deleteDraft, listDrafts, readOwnDraft } from "../../store/drafts.js";
import { publishDraft } from "../../store/publish.js";
import { findStudy, ownStudies, readVersion, type StudyRow } from "../../store/studies.js";
import { differences } from "../../text/differences.js";
import { type HiddenCharacter, splitHidden } from "../../text/hidden.js";
import { findSecrets } from "../../text/secrets.js";
import { strings } from "../../text/walk.js";
import { type Html, html } from "../html.js";
import { counted, csrfField, page, when } from "../layout.js";
import { readForm, requireSession, SiteError, seeOther, type Visit } from "../visit.js";
import { packageView, revealed } from "./package-view.js";
import { idOf, isUuid, sendPackage } from "./study.js";

/** The signed-in person's drafts and published studies. */
export async function drafts(visit: Visit): Promise<void> {
  const { account } = requireSession(visit);
  const { store } = visit.service;
  const [waiting, published] = await Promise.all([
    listDrafts(store, account.id),
    ownStudies(store, account.id),
  ]);
  page(
    visit,
    "My drafts",
    html`<h1>My drafts</h1>
<p class="lead">Drafts come from your agents. Nobody else can read them; nothing is published until you do it.</p>
${waiting.length === 0 ? html`<p>No draft is waiting. An agent with the scope <code>drafts:write</code> can save one.</p>` : null}
<ul class="feed">${waiting.map(
      (draft) => html`<li><h2 dir="auto"><a href="/drafts/${draft.id}">${draft.title}</a></h2>
<ul class="meta"><li>${when(draft.created_at)}</li><li>saved with ${draft.tokenName ?? "a deleted token"}</li></ul></li>`,
    )}</ul>
<h2>Published by you</h2>${published.length === 0 ? html`<p>Nothing yet.</p>` : null}
<ul class="feed">${published.map(
      (row) => html`<li><h3 dir="auto"><a href="/studies/${row.id}">${row.title}</a></h3>
<ul class="meta"><li>${when(row.published_at)}</li><li>version ${row.version}</li><li>${counted(row.upvotes, "upvote")}</li></ul></li>`,
    )}</ul>`,
  );
}

async function ownDraft(visit: Visit, idText: string | undefined) {
  const draft = await readOwnDraft(visit.service.store, requireSession(visit).account.id, idOf(idText));
  if (draft === undefined) {
    throw new SiteError(
      404,
      "There is no such draft of yours; if you have just published it, it is under My drafts.",
    );
  }
  return draft;
}

/** A draft as it would be published: what to look at twice, the readable view, the exact JSON, the difference. */
export async function review(visit: Visit, idText: string | undefined): Promise<void> {
  const { account } = requireSession(visit);
  const { store } = visit.service;
  const draft = await ownDraft(visit, idText);
  const text = draft.package.toString("utf8");
  const content = JSON.parse(text) as StudyPackage;
  const [publisher, published] = await Promise.all([
    isApproved(store, account, "publisher"),
    ownStudies(store, account.id),
  ]);
  const chosen = new URLSearchParams(visit.ctx.querystring).get("replaces");
  const replaced = await ownStudy(visit, chosen);
  const former = replaced && (await readVersion(store, replaced.id));
  page(
    visit,
    `Review: ${content.title}`,
    html`<p class="meta">Private draft, saved ${when(draft.created_at)}</p><h1 dir="auto">${revealed(content.title)}</h1>
<dl class="facts"><dt>License</dt><dd>${content.license}</dd><dt>Model</dt><dd>${revealed(content.model.name)}</dd>
<dt>Runtime</dt><dd>${revealed(content.model.runtime)}</dd><dt>Size</dt><dd>${draft.package.length} bytes, ${counted(content.entries.length, "entry", "entries")}</dd>
<dt>SHA-256</dt><dd><code>${draft.sha256}</code></dd><dt>Download</dt><dd><a href="/drafts/${draft.id}/package.json" download>Exact bytes</a></dd></dl>
${hiddenNotice(content)}${secretsNotice(content)}
<p class="toc"><a href="#readable">Readable view</a> · <a href="#json">Exact JSON</a>${former ? html` · <a href="#difference">Difference</a>` : null} · <a href="#publish">Publish or delete</a></p>
${former === undefined ? null : differenceView(JSON.parse(former.package.toString("utf8")), content, former.version)}
<div id="readable">${packageView(content, revealed)}</div>
<h2 id="json">Exact JSON</h2><p class="hint">The bytes that will be published, unchanged; hidden characters are shown as labels.</p>
<pre tabindex="0" role="region" aria-label="Exact JSON">${revealed(text)}</pre>
<h2 id="publish">Publish</h2>
${
  published.length === 0
    ? null
    : html`<form class="card" action="/drafts/${draft.id}"><div class="field"><label for="replaces">Publish as</label>
<select id="replaces" name="replaces"><option value="">a new study</option>${published.map(
        (row) =>
          html`<option value="${row.id}"${row.id === replaced?.id ? html` selected` : null}>version ${row.version + 1} of “${row.title}”</option>`,
      )}</select></div><button class="quiet">Choose and show the difference</button></form>`
}
${publisher ? publishForm(visit, draft, replaced ?? null) : html`<p class="notice">Publishing is open to approved accounts during the beta, and yours is not among them yet. The draft stays here.</p>`}
<form method="post" action="/drafts/${draft.id}/delete">${csrfField(visit)}<button class="danger">Delete this draft</button></form>`,
  );
}

/** A study of the signed-in person by its id. */
async function ownStudy(visit: Visit, id: string | null): Promise<StudyRow | undefined> {
  const study = id === null || !isUuid(id) ? undefined : await findStudy(visit.service.store, id);
  return study?.account_id === requireSession(visit).account.id ? study : undefined;
}

function publishForm(
  visit: Visit,
  draft: { id: string; sha256: string },
  replaced: { id: string; title: string } | null,
): Html {
  return html`<form class="card" method="post" action="/drafts/${draft.id}/publish">${csrfField(visit)}
<input type="hidden" name="sha256" value="${draft.sha256}"><input type="hidden" name="replaces" value="${replaced?.id ?? ""}">
<p>${replaced === null ? "This becomes a new public study." : html`This becomes the next version of “${replaced.title}”.`}
A published version is permanent: it cannot be changed or taken back here.</p>
<div class="field"><label class="choice"><input type="checkbox" name="reviewed" value="yes" required> I have read what is published, and I may publish it under its license.</label></div>
<button>Publish</button></form>`;
}

function hiddenNotice(content: StudyPackage): Html | null {
  const found = new Map<string, { character: HiddenCharacter; count: number; first: string }>();
  for (const [pointer, text] of strings(content)) {
    for (const part of splitHidden(text)) {
      if (typeof part === "string") continue;
      const known = found.get(part.code);
      if (known === undefined) found.set(part.code, { character: part, count: 1, first: pointer });
      else known.count += 1;
    }
  }
  if (found.size === 0) return null;
  return html`<div class="notice" role="note"><p><strong>Hidden or direction-changing characters.</strong> Readers do not see these; they are shown as labels below.</p>
<ul>${[...found.values()].map(
    ({ character, count, first }) =>
      html`<li>${character.code} ${character.name}, ${counted(count, "time")}, first at <code>${first}</code></li>`,
  )}</ul></div>`;
}

function secretsNotice(content: StudyPackage): Html | null {
  const found = findSecrets(content);
  if (found.length === 0) return null;
  return html`<div class="notice" role="note"><p><strong>Look at these twice.</strong> They look secret or personal:</p>
<ul>${found.map(({ kind, pointer, start }) => html`<li>${kind} at <code>${pointer}</code>: ${revealed(start)}…</li>`)}</ul></div>`;
}

function differenceView(before: StudyPackage, after: StudyPackage, version: number): Html {
  const found = differences(before, after);
  return html`<h2 id="difference">Difference from version ${version}</h2>
${found.length === 0 ? html`<p>The content is the same.</p>` : null}${found.map(
  (one) => html`<p class="hint"><code>${revealed(one.place)}</code></p>
${one.before === null ? null : html`<del>${revealed(one.before)}</del>`}${one.after === null ? null : html`<ins>${revealed(one.after)}</ins>`}`,
)}`;
}

export async function postPublish(visit: Visit, idText: string | undefined): Promise<void> {
  const form = await readForm(visit);
  const { account } = requireSession(visit);
  const { store } = visit.service;
  if (!(await isApproved(store, account, "publisher"))) {
    throw new SiteError(
      403,
      "Publishing is open to approved accounts during the beta, and yours is not among them.",
    );
  }
  if (form.get("reviewed") !== "yes") throw new SiteError(400, "Say that you have read what is published.");
  const draft = await ownDraft(visit, idText);
  const replaces = form.get("replaces") || null;
  if (replaces !== null && (await ownStudy(visit, replaces)) === undefined) {
    throw new SiteError(404, "The study to replace is not one of yours.");
  }
  const published = await publishDraft(store, {
    accountId: account.id,
    draftId: draft.id,
    reviewedSha256: form.get("sha256") ?? "",
    replaces,
  });
  if (published.outcome === "gone")
    throw new SiteError(409, "The draft is no longer what you reviewed; look again.");
  seeOther(visit.ctx, `/studies/${published.id}`);
}

export async function postDelete(visit: Visit, idText: string | undefined): Promise<void> {
  await readForm(visit);
  const { account } = requireSession(visit);
  if (!(await deleteDraft(visit.service.store, account.id, idOf(idText)))) {
    throw new SiteError(404, "There is no such draft of yours.");
  }
  seeOther(visit.ctx, "/drafts");
}

export async function downloadDraft(visit: Visit, idText: string | undefined): Promise<void> {
  const draft = await ownDraft(visit, idText);
  sendPackage(visit, `draft-${draft.id}`, draft);
}
