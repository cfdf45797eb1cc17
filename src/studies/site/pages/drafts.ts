import { hiddenCharacters, type StudyPackage } from "../../../contracts/studies/index.js";
import { isApproved } from "../../store/accounts.js";
import { deleteDraft, listDrafts, readOwnDraft } from "../../store/drafts.js";
import { setSeen } from "../../store/notifications.js";
import { publishDraft, StudyGone } from "../../store/publish.js";
import { findBecome, findStudy, ownStudies, readVersion, type StudyRow } from "../../store/studies.js";
import { type HiddenRun, splitHidden } from "../../text/hidden.js";
import { findSecrets, type LikelySecret } from "../../text/secrets.js";
import { strings } from "../../text/walk.js";
import { studyPath } from "../address.js";
import { type Html, html } from "../html.js";
import { counted, csrfField, page, when } from "../layout.js";
import { Pace } from "../pace.js";
import { Reveal, revealed, type Shown } from "../reveal.js";
import { isUuid, readForm, requireSession, SiteError, seeOther, type Visit } from "../visit.js";
import { differenceView } from "./difference.js";
import { packageView } from "./package-view.js";
import { sendPackage } from "./study.js";

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
<p class="lead">Drafts saved by your agents. Only you can see them; nothing is public until you publish it.</p>
${waiting.length === 0 ? html`<p>No drafts yet. An agent with the scope <code>drafts:write</code> can save one.</p>` : null}
<ul class="feed">${waiting.map(
      (draft) => html`<li><h2 dir="auto"><a href="/drafts/${draft.id}">${revealed(draft.title)}</a></h2>
<ul class="meta"><li>${when(draft.created_at)}</li><li>saved with ${draft.tokenName ?? "a deleted token"}</li></ul></li>`,
    )}</ul>
<h2>Published by you</h2>${published.length === 0 ? html`<p>Nothing yet.</p>` : null}
<ul class="feed">${published.map(
      (row) => html`<li><h3 dir="auto"><a href="/studies/${row.id}">${revealed(row.title)}</a>${
        row.listed === 1
          ? null
          : html` <span class="badge revoked">${row.standing === "removed" ? "removed" : "withdrawn"}</span>`
      }</h3>
<ul class="meta"><li>${when(row.published_at)}</li><li>version ${row.version}</li><li>${counted(row.upvotes, "upvote")}</li></ul></li>`,
    )}</ul>`,
  );
}

async function ownDraft(visit: Visit, id: string) {
  const draft = await readOwnDraft(visit.service.store, requireSession(visit).account.id, id);
  if (draft === undefined) {
    throw new SiteError(404, "You have no such draft. If you just published it, find it under My drafts.");
  }
  return draft;
}

/** A draft as it would be published: warnings, differences, rendered view, exact JSON. */
export async function review(visit: Visit, id: string): Promise<void> {
  const { account } = requireSession(visit);
  const { store } = visit.service;
  const become = await findBecome(store, id);
  if (become?.account_id === account.id) {
    const version = become.version === become.current ? undefined : become.version;
    seeOther(visit.ctx, studyPath(become.study_id, version));
    return;
  }
  const draft = await ownDraft(visit, id);
  if (visit.session?.unread) visit.session.unread -= await setSeen(store, account.id, { draftId: draft.id });
  const text = draft.package.toString("utf8");
  const content = JSON.parse(text) as StudyPackage;
  const [publisher, own] = await Promise.all([
    isApproved(store, account, "publisher"),
    ownStudies(store, account.id),
  ]);
  const published = own.filter(({ listed }) => listed === 1);
  const chosen = new URLSearchParams(visit.ctx.querystring).get("replaces");
  const replaced = await ownStudy(visit, chosen);
  const former = replaced && (await readVersion(store, replaced.id));
  const pace = new Pace();
  const reveal = new Reveal();
  const { show } = reveal;
  const notices = [await hiddenNotice(content, pace), await secretsNotice(content, pace)];
  const difference =
    former === undefined
      ? null
      : html`<h2 id="difference">Difference from version ${former.version}</h2>${await differenceView(
          JSON.parse(former.package.toString("utf8")),
          content,
          show,
          pace,
        )}`;
  const readable = await packageView(content, { shown: show, pace, source: false });
  const exact = await exactView(text, show, pace);
  page(
    visit,
    `Review: ${content.title}`,
    html`<p class="meta">Private draft, saved ${when(draft.created_at)}</p><h1 dir="auto">${show(content.title)}</h1>
<dl class="facts"><dt>License</dt><dd>${content.license}</dd><dt>Model</dt><dd>${show(content.model.name)}</dd>
<dt>Runtime</dt><dd>${show(content.model.runtime)}</dd><dt>Size</dt><dd>${draft.package.length} bytes, ${counted(content.entries.length, "entry", "entries")}</dd>
<dt>SHA-256</dt><dd><code>${draft.sha256}</code></dd><dt>Download</dt><dd><a href="/drafts/${draft.id}/package.json" download>Exact bytes</a></dd></dl>
${notices}${reveal.notice()}
<p class="toc"><a href="#readable">Rendered view</a> · <a href="#json">Exact JSON</a>${former ? html` · <a href="#difference">Difference</a>` : null} · <a href="#publish">Publish or delete</a></p>
${difference}
<div id="readable">${readable}</div>
<h2 id="json">Exact JSON</h2><p class="hint">The exact bytes that will be published. Hidden characters are shown as labels.</p>
${exact}
<h2 id="publish">Publish</h2>
${
  published.length === 0
    ? null
    : html`<form class="card" action="/drafts/${draft.id}"><div class="field"><label for="replaces">Publish as</label>
<select id="replaces" name="replaces"><option value="">a new study</option>${published.map(
        (row) =>
          html`<option value="${row.id}"${row.id === replaced?.id ? html` selected` : null}>version ${row.version + 1} of “${row.title.replace(hiddenCharacters, "")}”</option>`,
      )}</select></div><button class="quiet">Select and show differences</button></form>`
}
${publisher ? publishForm(visit, draft, replaced ?? null) : html`<p class="notice">During the beta, only approved accounts can publish. Yours is not approved yet. The draft stays here.</p>`}
<form method="post" action="/drafts/${draft.id}/delete">${csrfField(visit)}<button class="danger">Delete this draft</button></form>`,
  );
}

/** A listed study of the signed-in person. */
async function ownStudy(visit: Visit, id: string | null): Promise<StudyRow | undefined> {
  const study = id === null || !isUuid(id) ? undefined : await findStudy(visit.service.store, id);
  return study?.listed === 1 && study.account_id === requireSession(visit).account.id ? study : undefined;
}

function publishForm(
  visit: Visit,
  draft: { id: string; sha256: string },
  replaced: { id: string; title: string } | null,
): Html {
  return html`<form class="card" method="post" action="/drafts/${draft.id}/publish">${csrfField(visit)}
<input type="hidden" name="sha256" value="${draft.sha256}"><input type="hidden" name="replaces" value="${replaced?.id ?? ""}">
<p>${replaced === null ? "This becomes a new public study." : html`This becomes the next version of “${revealed(replaced.title)}”.`}
A published version cannot be changed. You can withdraw it later, with a reason shown on its page, but readers may have copies.</p>
<div class="field"><label class="choice"><input type="checkbox" name="reviewed" value="yes" required> I have read this draft and have the right to publish it under its license.</label></div>
<button>Publish</button></form>`;
}

/** The exact text of the package, cut at a size limit. */
async function exactView(text: string, shown: Shown, pace: Pace): Promise<Html> {
  const parts: Html[] = [];
  let left = mostExact;
  let at = 0;
  for (; at < text.length && left > 0; ) {
    let end = at + 20_000;
    // Do not split a surrogate pair.
    if (/[\uDC00-\uDFFF]/.test(text[end] ?? "")) end += 1;
    await pace.turn();
    const part = shown(text.slice(at, end));
    parts.push(part);
    left -= part.markup.length;
    at = end;
  }
  return html`<pre tabindex="0" role="region" aria-label="Exact JSON">${parts}</pre>${
    at < text.length
      ? html`<p class="notice">${text.length - at} more characters are not shown, to limit the page size. The download is complete.</p>`
      : null
  }`;
}

const mostExact = 3_000_000;

/** Most character codes listed in the notice. */
const mostCodes = 50;

async function hiddenNotice(content: StudyPackage, pace: Pace): Promise<Html | null> {
  const found = new Map<string, { character: HiddenRun; count: number; first: string }>();
  for (const [pointer, text] of strings(content)) {
    await pace.turn();
    for (const part of splitHidden(text)) {
      if (typeof part === "string") continue;
      const known = found.get(part.code);
      if (known === undefined) found.set(part.code, { character: part, count: part.count, first: pointer });
      else known.count += part.count;
    }
  }
  if (found.size === 0) return null;
  return html`<div class="notice" role="note"><p><strong>Hidden or direction-changing characters.</strong> Readers cannot see them; below they are shown as labels.</p>
<ul>${[...found.values()]
    .slice(0, mostCodes)
    .map(
      ({ character, count, first }) =>
        html`<li>${character.code} ${character.name}, ${counted(count, "time")}, first at <code>${first}</code></li>`,
    )}${found.size > mostCodes ? html`<li>and ${found.size - mostCodes} other characters</li>` : null}</ul></div>`;
}

async function secretsNotice(content: StudyPackage, pace: Pace): Promise<Html | null> {
  const found: LikelySecret[] = [];
  for (const [pointer, text] of strings(content)) {
    if (found.length >= 100) break;
    await pace.turn();
    found.push(...findSecrets(text, pointer));
  }
  if (found.length === 0) return null;
  return html`<div class="notice" role="note"><p><strong>Double-check these.</strong> They look like secrets or personal data:</p>
<ul>${found.map(({ kind, pointer, start }) => html`<li>${kind} at <code>${pointer}</code>: ${revealed(start)}…</li>`)}</ul></div>`;
}

export async function postPublish(visit: Visit, id: string): Promise<void> {
  const { form, account } = await readForm(visit);
  const { store } = visit.service;
  if (!(await isApproved(store, account, "publisher"))) {
    throw new SiteError(403, "During the beta, only approved accounts can publish. Yours is not approved.");
  }
  if (form.get("reviewed") !== "yes") throw new SiteError(400, "Confirm that you have read the draft.");
  const draft = await ownDraft(visit, id);
  const replaces = form.get("replaces") || null;
  if (replaces !== null && (await ownStudy(visit, replaces)) === undefined) {
    throw new SiteError(404, "You can only replace your own studies.");
  }
  const published = await publishDraft(store, {
    accountId: account.id,
    draftId: draft.id,
    reviewedSha256: form.get("sha256") ?? "",
    replaces,
  }).catch((error) => {
    if (error instanceof StudyGone) {
      throw new SiteError(
        409,
        "The study to replace has been withdrawn or removed. Your draft was not changed.",
      );
    }
    throw error;
  });
  if (published.outcome === "gone")
    throw new SiteError(409, "The draft has changed since you reviewed it. Please review it again.");
  seeOther(visit.ctx, `/studies/${published.id}`);
}

export async function postDelete(visit: Visit, id: string): Promise<void> {
  const { account } = await readForm(visit);
  if (!(await deleteDraft(visit.service.store, account.id, id))) {
    throw new SiteError(404, "You have no such draft.");
  }
  seeOther(visit.ctx, "/drafts");
}

export async function downloadDraft(visit: Visit, id: string): Promise<void> {
  const draft = await ownDraft(visit, id);
  sendPackage(visit, `draft-${draft.id}`, draft);
}
