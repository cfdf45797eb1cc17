import { accountsNamed } from "../../store/accounts.js";
import { openAppeals } from "../../store/appeals.js";
import { readAudit } from "../../store/audit.js";
import { suspend, unsuspend } from "../../store/moderation.js";
import { dismissReport, openReports } from "../../store/reports.js";
import { ownStudies } from "../../store/studies.js";
import { firstCharacters } from "../../text/display.js";
import { html } from "../html.js";
import { counted, csrfField, page, reasonField, signature, when } from "../layout.js";
import { Reveal, revealed } from "../reveal.js";
import {
  beforeOf,
  readModeratorForm,
  reasonOf,
  requireModerator,
  SiteError,
  seeOther,
  type Visit,
} from "../visit.js";
import { appealList } from "./appeals.js";

const shownOfComment = 500;
const pageSize = 100;

/** Open appeals and reports. */
export async function moderation(visit: Visit): Promise<void> {
  requireModerator(visit);
  const [reports, appeals] = await Promise.all([
    openReports(visit.service.store),
    openAppeals(visit.service.store),
  ]);
  const { show } = new Reveal();
  page(
    visit,
    "Moderation",
    html`<h1>Moderation</h1>
<p class="lead">Open appeals and reports, oldest first. Act on a study or comment on its own page; that closes its reports.</p>
<p><a href="/moderation/log">Log of all actions</a></p>
<form class="search" action="/moderation/account"><label class="visually-hidden" for="handle">Handle</label>
<input type="text" id="handle" name="handle" placeholder="@handle of an account" required><button class="quiet">Account</button></form>
${appeals.length === 0 ? null : appealList(visit, appeals)}<h2>${counted(reports.length, "open report")}</h2>${reports.length === 0 ? html`<p>Nothing to review.</p>` : null}
<ul class="feed">${reports.map(
      (one) => html`<li id="report-${one.id}"><h3 dir="auto"><a href="/studies/${one.study_id}${
        one.comment_id === null ? "" : `#comment-${one.comment_id}`
      }">${one.comment_id === null ? "Study" : "Comment on"}: ${show(one.title)}</a></h3>
<ul class="meta"><li>by ${accountLink(one.comment_id === null ? one.author : one.speaker)}</li>
<li>reported by ${accountLink(one.reporter)}</li><li>${when(one.created_at)}</li></ul>
${one.body === null ? null : html`<blockquote class="text" dir="auto">${show(firstCharacters(one.body, shownOfComment))}${one.body.length > shownOfComment ? "…" : ""}</blockquote>`}
<p dir="auto"><strong>Reported:</strong> ${show(one.reason)}</p>
<form class="inline" method="post" action="/reports/${one.id}/dismiss">${csrfField(visit)}<button class="quiet">Dismiss</button></form></li>`,
    )}</ul>`,
  );
}

function accountLink(handle: string | null) {
  return handle === null
    ? "a deleted account"
    : html`<a href="/moderation/account?handle=${handle}">@${handle}</a>`;
}

/** An account as moderators see it, without address and tokens. */
export async function moderatedAccount(visit: Visit): Promise<void> {
  requireModerator(visit);
  const { store } = visit.service;
  const handle = new URLSearchParams(visit.ctx.querystring).get("handle") ?? "";
  const [person] = await accountsNamed(store.db, `@${handle.replace(/^@/, "")}`);
  if (person === undefined) throw new SiteError(404, "No account has this handle.");
  const [studies, log] = await Promise.all([
    ownStudies(store, person.id),
    readAudit(store, { target: person.id, limit: pageSize }),
  ]);
  const suspended = person.suspended_at !== null;
  page(
    visit,
    `@${person.handle}`,
    html`<p class="meta"><a href="/moderation">Moderation</a></p><h1>${signature(person.name, person.handle)}</h1>
<dl class="facts"><dt>Signs in with</dt><dd>${person.issuer}</dd><dt>Since</dt><dd>${when(person.created_at)}</dd>
<dt>Account id</dt><dd><code>${person.id}</code></dd>${
      person.suspended_at === null
        ? null
        : html`<dt>Suspended</dt><dd>${when(person.suspended_at)}: ${revealed(person.suspension ?? "")}</dd>`
    }</dl>
<form class="card" method="post" action="/accounts/${person.id}/${suspended ? "reinstate" : "suspend"}">${csrfField(visit)}
${suspended ? html`<p>The account may sign in again, but must create new tokens.</p>` : reasonField("suspend", "Reason (shown at sign-in)")}
<button class="danger">${suspended ? "Reinstate" : "Suspend"}</button></form>
<h2>Published</h2>${studies.length === 0 ? html`<p>None.</p>` : null}<ul>${studies.map(
      (row) =>
        html`<li><a href="/studies/${row.id}">${revealed(row.title)}</a>${row.listed === 1 ? null : " (taken down)"}</li>`,
    )}</ul>
<h2>Actions on this account</h2>${logTable(log)}`,
  );
}

/** The log of actions by people and operators. */
export async function moderationLog(visit: Visit): Promise<void> {
  requireModerator(visit);
  const log = await readAudit(visit.service.store, { before: beforeOf(visit), limit: pageSize });
  page(
    visit,
    "Log",
    html`<p class="meta"><a href="/moderation">Moderation</a></p><h1>Log</h1>
<p class="lead">Actions by people and operators, newest first: action, id and reason only, never content.</p>
${logTable(log)}${log.length < pageSize ? null : html`<p><a href="?before=${log.at(-1)?.at}-${log.at(-1)?.id}">Earlier</a></p>`}`,
  );
}

function logTable(log: Awaited<ReturnType<typeof readAudit>>) {
  return html`<div class="scroll" role="region" aria-label="Log" tabindex="0"><table><thead><tr><th scope="col">When</th><th scope="col">Who</th><th scope="col">Action</th><th scope="col">Target</th><th scope="col">Details</th></tr></thead>
<tbody>${log.map(
    (one) =>
      html`<tr><td class="whole">${when(one.at)}</td><td>${one.handle === null ? one.actor : `@${one.handle}`}</td><td>${one.action}</td><td><code>${revealed(one.target)}</code></td><td class="detail">${revealed(one.detail ?? "")}</td></tr>`,
  )}</tbody></table></div>`;
}

export async function postDismiss(visit: Visit, id: string): Promise<void> {
  const { actor } = await readModeratorForm(visit);
  if (!(await dismissReport(visit.service.store, actor, id))) {
    throw new SiteError(409, "This report does not exist or is already closed.");
  }
  seeOther(visit.ctx, "/moderation");
}

export async function postSuspend(visit: Visit, id: string): Promise<void> {
  const { form, actor } = await readModeratorForm(visit);
  const changed = await suspend(visit.service.store, actor, { id }, reasonOf(form));
  if (changed === "moderator") throw new SiteError(403, "Only the operator can suspend moderators.");
  await toAccount(visit, id, changed);
}

export async function postUnsuspend(visit: Visit, id: string): Promise<void> {
  const { actor } = await readModeratorForm(visit);
  await toAccount(visit, id, await unsuspend(visit.service.store, actor, { id }));
}

async function toAccount(visit: Visit, id: string, changed: string): Promise<void> {
  if (changed !== "changed") throw new SiteError(409, "Already done, or no such account.");
  const [person] = await accountsNamed(visit.service.store.db, id);
  seeOther(visit.ctx, `/moderation/account?handle=${person?.handle ?? ""}`);
}
