import { type Scope, scopes, studyLimits } from "../../../contracts/studies/index.js";
import { isApproved } from "../../store/accounts.js";
import { createToken, listTokens, revokeToken, type TokenView } from "../../store/tokens.js";
import { isBlank } from "../../text/blank.js";
import { displayable } from "../../text/display.js";
import { type Html, html } from "../html.js";
import { counted, csrfField, page, when } from "../layout.js";
import { readForm, requireSession, SiteError, seeOther, type Visit } from "../visit.js";

/** Agent access: the account's tokens, and a form to create one. */
export async function agents(
  visit: Visit,
  created: { token: string; name: string } | null = null,
): Promise<void> {
  const { account } = requireSession(visit);
  const { store } = visit.service;
  await visit.service.activity.flush();
  const [tokens, approved] = await Promise.all([
    listTokens(store, account.id),
    isApproved(store, account, "agent"),
  ]);
  const active = tokens.filter(({ state }) => state === "active");
  const ended = tokens.filter(({ state }) => state !== "active");
  page(
    visit,
    "Agent access",
    html`<h1>Agent access</h1>
<p class="lead">A token lets a program read published studies and, if you allow it, save private drafts for you to review.
No token can publish, comment, vote or manage tokens.</p>
${created === null ? null : createdNotice(created)}
${active.length === 0 ? html`<p>You have no active tokens.</p>` : html`<ul class="feed">${active.map((token) => tokenItem(visit, token))}</ul>`}
<h2>Create a token</h2>
${
  approved
    ? active.length >= studyLimits.active_tokens
      ? html`<p class="notice">You have ${active.length} active tokens, which is the limit. Revoke one first.</p>`
      : createForm(visit)
    : html`<p class="notice">During the beta, only approved accounts can create tokens. Yours is not approved yet.</p>`
}
${ended.length === 0 ? null : html`<h2>Expired and revoked</h2><ul class="feed">${ended.map((token) => tokenItem(visit, token))}</ul>`}`,
  );
}

function createdNotice({ token, name }: { token: string; name: string }): Html {
  return html`<div class="notice good" role="status"><p><strong>Token “${name}” created.</strong> Copy it now: you won't be able to see it again.</p>
<pre class="secret" id="new-token" tabindex="0" role="region" aria-label="New token">${token}</pre></div>`;
}

function tokenItem(visit: Visit, token: TokenView): Html {
  return html`<li><h2><a href="/agents/${token.id}">${token.name}</a> <span class="badge ${token.state}">${token.state}</span></h2>
<ul class="meta"><li><code>${token.prefix}…${token.last4}</code></li><li>${token.scopes.join(", ")}</li>
<li>${token.state === "expired" ? "expired" : "expires"} ${when(token.expires_at)}</li>
<li>${token.last_used_at === null ? "never used" : html`last used ${when(token.last_used_at)}`}</li></ul>
${token.state === "active" ? revokeForm(visit, token) : null}</li>`;
}

function revokeForm(visit: Visit, token: TokenView): Html {
  return html`<form class="inline" method="post" action="/agents/${token.id}/revoke">${csrfField(visit)}
<button class="danger">Revoke<span class="visually-hidden"> ${token.name}</span></button></form>`;
}

function createForm(visit: Visit): Html {
  return html`<form class="card" method="post" action="/agents">${csrfField(visit)}
<div class="field"><label for="name">Name</label><input type="text" id="name" name="name" required maxlength="${studyLimits.token_name}" placeholder="What the token is for">
</div><div class="field"><label for="days">Expires after (days, 1 to ${studyLimits.token_days})</label>
<input type="number" id="days" name="days" required min="1" max="${studyLimits.token_days}" value="${studyLimits.token_days}"></div>
<fieldset><legend>Scopes</legend>
<div class="field"><label class="choice"><input type="checkbox" name="scope" value="public:read" checked> <code>public:read</code>: read published studies and discussions</label></div>
<div class="field"><label class="choice"><input type="checkbox" name="scope" value="drafts:write"> <code>drafts:write</code>: save private drafts, up to ${studyLimits.drafts} per day</label></div></fieldset>
<button>Create token</button></form>`;
}

export async function postToken(visit: Visit): Promise<void> {
  const { form, account } = await readForm(visit);
  const { store } = visit.service;
  if (!(await isApproved(store, account, "agent"))) {
    throw new SiteError(
      403,
      "During the beta, only approved accounts can create tokens. Yours is not approved.",
    );
  }
  const name = displayable(form.get("name") ?? "").trim();
  if (isBlank(name) || [...name].length > studyLimits.token_name) {
    throw new SiteError(400, `A token name must have 1 to ${studyLimits.token_name} characters.`);
  }
  const daysText = form.get("days") ?? "";
  const days = /^\d{1,2}$/.test(daysText) ? Number(daysText) : 0;
  if (days < 1 || days > studyLimits.token_days) {
    throw new SiteError(400, `A token must expire after 1 to ${studyLimits.token_days} days.`);
  }
  const wanted = form.getAll("scope");
  if (wanted.length === 0 || !wanted.every((scope) => (scopes as readonly string[]).includes(scope))) {
    throw new SiteError(400, `Choose at least one scope: ${scopes.join(", ")}.`);
  }
  const request = { name, days, scopes: wanted as Scope[] };
  const created = await createToken(store, account.id, request, { approved: true });
  if (created === null) {
    throw new SiteError(400, `You have ${studyLimits.active_tokens} active tokens, which is the limit.`);
  }
  await agents(visit, { token: created.token, name });
}

/** One token and its activity. */
export async function agent(visit: Visit, id: string): Promise<void> {
  const { account } = requireSession(visit);
  const token = (await listTokens(visit.service.store, account.id)).find((one) => one.id === id);
  if (token === undefined) throw new SiteError(404, "You have no such token.");
  const records = await visit.service.activity.list(id);
  page(
    visit,
    token.name,
    html`<p class="meta"><a href="/agents">Agent access</a></p><h1>${token.name} <span class="badge ${token.state}">${token.state}</span></h1>
<dl class="facts"><dt>Token</dt><dd><code>${token.prefix}…${token.last4}</code></dd><dt>Scopes</dt><dd>${token.scopes.join(", ")}</dd>
<dt>Created</dt><dd>${when(token.created_at)}</dd><dt>Expires</dt><dd>${when(token.expires_at)}</dd>
<dt>Last used</dt><dd>${token.last_used_at === null ? "never" : when(token.last_used_at)}</dd></dl>
${token.state === "active" ? revokeForm(visit, token) : null}
<h2>Activity</h2><p class="hint">The last ${counted(records.length, "request")}, stored for ${studyLimits.activity_days} days: action, status and id only, never content.</p>
<div class="scroll" role="region" aria-label="Activity" tabindex="0"><table><thead><tr><th scope="col">When</th><th scope="col">Action</th><th scope="col">Status</th><th scope="col">Study or draft</th></tr></thead>
<tbody>${records.map(
      (record) =>
        html`<tr><td>${when(record.at)}</td><td>${record.action}</td><td>${record.status}</td><td><code>${record.resource ?? "–"}</code></td></tr>`,
    )}</tbody></table></div>`,
  );
}

export async function postRevoke(visit: Visit, id: string): Promise<void> {
  const { account } = await readForm(visit);
  await revokeToken(visit.service.store, account.id, id);
  seeOther(visit.ctx, "/agents");
}
