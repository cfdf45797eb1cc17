import type { Account } from "../../store/accounts.js";
import { appeal, dismissAppeal, type openAppeals } from "../../store/appeals.js";
import { readNow } from "../../store/store.js";
import { type Html, html } from "../html.js";
import { counted, csrfField, page, reasonField, when } from "../layout.js";
import { Reveal, revealed } from "../reveal.js";
import { seal, unseal } from "../sealed.js";
import {
  countVisit,
  readAnyForm,
  readForm,
  readModeratorForm,
  reasonOf,
  SiteError,
  seeOther,
  type Visit,
} from "../visit.js";

/** How long the form on the suspension page stays valid. */
const ticketMs = 3_600_000;

const hint =
  "You can send one message. Moderators will see it and your name. It is deleted with your account.";

/** The appeal form, for the author of a removed study or version. */
export function appealForm(visit: Visit, studyId: string): Html {
  return html`<details><summary>Appeal</summary><form class="card" method="post" action="/studies/${studyId}/appeal">${csrfField(visit)}
${reasonField("appeal", "Why should it be reinstated?")}<p class="hint">${hint}</p><button>Send to moderators</button></form></details>`;
}

export async function postAppealStudy(visit: Visit, id: string): Promise<void> {
  const { form, account } = await readForm(visit);
  const body = reasonOf(form);
  await countVisit(visit, "appeal");
  answerAppeal(visit, await appeal(visit.service.store, account.id, { studyId: id }, body));
}

interface Ticket {
  /** Id of the account that just signed in. */
  appeal: string;
  at: number;
}

/** Shown instead of starting a session after someone signs in to a suspended account. */
export async function suspendedPage(visit: Visit, account: Account): Promise<void> {
  const { store } = visit.service;
  const ticket: Ticket = { appeal: account.id, at: await readNow(store, store.db) };
  page(
    visit,
    "Account suspended",
    html`<h1>Account suspended</h1><p>This account is suspended${
      account.suspension ? html`: ${revealed(account.suspension)}` : null
    }. The operator of this service can send you your data and delete the account.</p>
<form class="card" method="post" action="/appeal"><input type="hidden" name="ticket" value="${await seal(store, ticket)}">
${reasonField("appeal", "Why should it be reinstated?")}<p class="hint">${hint}</p><button>Send to moderators</button></form>`,
    { status: 403 },
  );
}

/** Suspended people have no session, so the encrypted ticket identifies the sender. */
export async function postAppeal(visit: Visit): Promise<void> {
  const { store } = visit.service;
  const form = await readAnyForm(visit);
  const ticket = (await unseal(store, form.get("ticket") ?? "")) as Partial<Ticket> | undefined;
  const now = await readNow(store, store.db);
  if (
    typeof ticket?.appeal !== "string" ||
    typeof ticket.at !== "number" ||
    Math.abs(now - ticket.at) > ticketMs
  )
    throw new SiteError(403, "This form has expired or belongs to someone else. Sign in again.");
  const body = reasonOf(form);
  const account = await store.db
    .selectFrom("accounts")
    .selectAll()
    .where("id", "=", ticket.appeal)
    .executeTakeFirst();
  if (account === undefined) throw new SiteError(404, "Account not found.");
  await countVisit({ ...visit, session: { id: "", account, isModerator: false, unread: 0 } }, "appeal");
  answerAppeal(visit, await appeal(store, account.id, { studyId: null }, body));
}

function answerAppeal(visit: Visit, outcome: Awaited<ReturnType<typeof appeal>>): void {
  if (outcome === "missing") throw new SiteError(409, "There is nothing to appeal.");
  if (outcome === "already") throw new SiteError(409, "You have already sent an appeal about this.");
  page(
    visit,
    "Message sent",
    html`<h1>Message sent</h1><p>The moderators will read it. You will not get a reply here, but they may reverse the suspension or removal.</p>`,
  );
}

/** The open appeals, for moderators. */
export function appealList(visit: Visit, appeals: Awaited<ReturnType<typeof openAppeals>>): Html {
  const { show } = new Reveal();
  return html`<h2>${counted(appeals.length, "open appeal")}</h2>
<ul class="feed">${appeals.map(
    (one) => html`<li id="appeal-${one.id}"><h3 dir="auto">${
      one.study_id === null
        ? "Suspension"
        : html`<a href="/studies/${one.study_id}">Removal: ${show(one.title ?? "")}</a>`
    }</h3>
<ul class="meta"><li>by <a href="/moderation/account?handle=${one.handle}">@${one.handle}</a></li><li>${when(one.created_at)}</li></ul>
<blockquote class="text" dir="auto">${show(one.body)}</blockquote>
<form class="inline" method="post" action="/appeals/${one.id}/dismiss">${csrfField(visit)}<button class="quiet">Dismiss</button></form></li>`,
  )}</ul>`;
}

export async function postDismissAppeal(visit: Visit, id: string): Promise<void> {
  const { actor } = await readModeratorForm(visit);
  if (!(await dismissAppeal(visit.service.store, actor, id)))
    throw new SiteError(409, "This appeal is already closed.");
  seeOther(visit.ctx, "/moderation");
}
