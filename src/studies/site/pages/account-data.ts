import { Readable } from "node:stream";
import { personalFiles } from "../../personal/export.js";
import { tar } from "../../personal/tar.js";
import { logFault } from "../../service.js";
import { audit } from "../../store/audit.js";
import { deleteAccount, deletedName, whatLeaves } from "../../store/deletion.js";
import { withAccount } from "../../store/store.js";
import { html } from "../html.js";
import { counted, csrfField, page } from "../layout.js";
import {
  countVisit,
  readForm,
  requireSession,
  SiteError,
  sessionCookie,
  setCookie,
  type Visit,
} from "../visit.js";

/**
 * Streams an archive of everything the person wrote. It is not compressed, because it mixes private data with text
 * that others could have chosen.
 */
export async function postExport(visit: Visit): Promise<void> {
  const { account } = await readForm(visit);
  await countVisit(visit, "export");
  const { ctx, service } = visit;
  const accountId = account.id;
  const now = await withAccount(service.store, accountId, async (trx, at) => {
    await audit(trx, at, { actor: { accountId }, action: "account.export", target: accountId });
    return at;
  });
  await service.activity.flush();
  const archive = Readable.from(tar(personalFiles(service.store, accountId), now));
  archive.once("error", (error) => {
    logFault(service, "export", error);
    // The response has started, so only a truncated archive can signal the failure.
    ctx.res.destroy();
  });
  ctx.set("Content-Type", "application/x-tar");
  ctx.set("Content-Disposition", `attachment; filename="tapline-studies-${account.handle}.tar"`);
  ctx.body = archive;
}

/** Asks for confirmation and shows what is deleted and what stays. */
export async function leave(visit: Visit): Promise<void> {
  const { account } = requireSession(visit);
  const { studies, comments, votes, drafts, tokens, reports } = await whatLeaves(
    visit.service.store,
    account.id,
  );
  page(
    visit,
    "Delete this account",
    html`<p class="meta"><a href="/account">Account</a></p><h1>Delete this account</h1>
<p class="lead">This is immediate and cannot be undone.</p>
<h2>What is deleted</h2><ul><li>your name, email address, sign-in method, and your handle @${account.handle}, which is never assigned again</li>
<li>${counted(drafts, "draft")}, ${counted(tokens, "token")} with their activity, and your sessions</li>
<li>your notifications and your private feed</li><li>your permissions: if you sign in again, you start from scratch and need new approval</li></ul>
<h2>What stays, under “${deletedName}”</h2><ul><li>${counted(studies, "study", "studies")} that you published, with all versions: others may have cited, reproduced or copied them. Withdraw what should not stay readable first.</li>
<li>${counted(comments, "comment")}: delete what should not stay first.</li><li>${counted(votes, "upvote")}, as a number</li>
<li>${counted(reports, "report")} to moderators that ${reports === 1 ? "is" : "are"} still open, and for 365 days the log of actions, by id</li>
<li>copies in backups, until those are replaced</li></ul>
<p>You can <a href="/account#data">download your data</a> first.</p>
<form class="card" method="post" action="/account/delete">${csrfField(visit)}<div class="field"><label for="handle">Type your handle to confirm</label>
<input type="text" id="handle" name="handle" required autocomplete="off" placeholder="@${account.handle}"></div>
<button class="danger">Permanently delete my account</button></form>`,
  );
}

export async function postLeave(visit: Visit): Promise<void> {
  const { form, account } = await readForm(visit);
  const typed = (form.get("handle") ?? "").trim().replace(/^@/, "").toLowerCase();
  if (typed !== account.handle) {
    throw new SiteError(400, "This is not your handle, so nothing was deleted.");
  }
  await deleteAccount(visit.service.store, account.id);
  setCookie(visit.ctx, sessionCookie, "", 0);
  visit.session = null;
  page(
    visit,
    "Account deleted",
    html`<h1>Your account is deleted</h1><p>Your published studies and comments stay, under “${deletedName}”.</p><p><a href="/">Back to studies</a></p>`,
  );
}
