import { endSessions, listSessions } from "../../store/sessions.js";
import { html } from "../html.js";
import { csrfField, page, when } from "../layout.js";
import { revealed } from "../reveal.js";
import { readForm, requireSession, seeOther, sessionCookie, setCookie, type Visit } from "../visit.js";

/** The account and its sessions. */
export async function account(visit: Visit): Promise<void> {
  const { account: person, id } = requireSession(visit);
  const sessions = await listSessions(visit.service.store, person.id);
  page(
    visit,
    "Account",
    html`<h1>${revealed(person.name)}</h1>
<dl class="facts"><dt>Handle</dt><dd>@${person.handle} <span class="hint">(unique; never changes)</span></dd><dt>Signed in with</dt><dd>${person.issuer}</dd>${person.email === null ? null : html`<dt>Email</dt><dd>${person.email}</dd>`}
<dt>Account id</dt><dd><code>${person.id}</code></dd></dl>
<form method="post" action="/sign-out">${csrfField(visit)}<button>Sign out</button></form>
<h2>Sessions</h2><p class="hint">Active sessions. End any you don't recognize.</p>
<ul class="feed">${sessions.map(
      (session) => html`<li><h3>${session.id === id ? "This browser" : "Another browser"}</h3>
<p class="hint">${session.agent === "" ? "unknown browser" : session.agent}</p>
<ul class="meta"><li>since ${when(session.created_at)}</li><li>last seen ${when(session.seen_at)}</li><li>expires ${when(session.expires_at)}</li></ul>
${session.id === id ? null : html`<form class="inline" method="post" action="/account/sessions/${session.id}/end">${csrfField(visit)}<button class="danger">End</button></form>`}</li>`,
    )}</ul>
${sessions.length < 2 ? null : html`<form method="post" action="/account/sessions/end-others">${csrfField(visit)}<button class="danger">End all other sessions</button></form>`}
<h2 id="data">Your data</h2><p>One archive (tar) with everything you wrote here and everything stored about you: JSON files, and packages byte for byte.</p>
<div class="actions"><form class="inline" method="post" action="/account/export">${csrfField(visit)}<button class="quiet">Download my data</button></form>
<a class="button danger" href="/account/delete">Delete this account …</a></div>`,
  );
}

export async function postEndSession(visit: Visit, id: string): Promise<void> {
  const { account: person } = await readForm(visit);
  await endSessions(visit.service.store, person.id, { id: id });
  seeOther(visit.ctx, "/account");
}

export async function postEndOthers(visit: Visit): Promise<void> {
  const { account: person, id } = await readForm(visit);
  await endSessions(visit.service.store, person.id, { except: id });
  seeOther(visit.ctx, "/account");
}

export async function postSignOut(visit: Visit): Promise<void> {
  const { account: person, id } = await readForm(visit);
  await endSessions(visit.service.store, person.id, { id });
  setCookie(visit.ctx, sessionCookie, "", 0);
  seeOther(visit.ctx, "/");
}
