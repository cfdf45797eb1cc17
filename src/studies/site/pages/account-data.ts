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
 * Everything that the person wrote, as an archive that is read while it is sent. It is not compressed: it mixes what
 * only they may know with what others could make them write.
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
    // The answer has begun: an archive without its end is all that can still say so.
    ctx.res.destroy();
  });
  ctx.set("Content-Type", "application/x-tar");
  ctx.set("Content-Disposition", `attachment; filename="tapline-studies-${account.handle}.tar"`);
  ctx.body = archive;
}

/** What goes with the account and what stays, before anything is done. */
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
<p class="lead">At once, and for good. Nobody can take it back.</p>
<h2>What goes</h2><ul><li>your name, address and how you sign in, and your handle @${account.handle}: nobody is given it again</li>
<li>${counted(drafts, "draft")}, ${counted(tokens, "token")} and what they did, your sessions</li>
<li>your notifications and your private feed</li><li>what you may do: who signs in again begins anew, and has to be approved anew</li></ul>
<h2>What stays, under “${deletedName}”</h2><ul><li>${counted(studies, "study", "studies")} that you published, with all versions: others may have cited, repeated or copied them. Withdraw before what should not stay readable.</li>
<li>${counted(comments, "comment")}: delete before what should not stay.</li><li>${counted(votes, "upvote")}, as a number</li>
<li>${counted(reports, "report")} to moderators that ${reports === 1 ? "is" : "are"} not settled, and for 365 days the log of what was done, by id</li>
<li>what is in backups, until those are replaced</li></ul>
<p>You can <a href="/account#data">download your data</a> first.</p>
<form class="card" method="post" action="/account/delete">${csrfField(visit)}<div class="field"><label for="handle">Your handle, to say that you mean it</label>
<input type="text" id="handle" name="handle" required autocomplete="off" placeholder="@${account.handle}"></div>
<button class="danger">Delete my account for good</button></form>`,
  );
}

export async function postLeave(visit: Visit): Promise<void> {
  const { form, account } = await readForm(visit);
  const typed = (form.get("handle") ?? "").trim().replace(/^@/, "").toLowerCase();
  if (typed !== account.handle) {
    throw new SiteError(400, "That is not your handle, so nothing was deleted.");
  }
  await deleteAccount(visit.service.store, account.id);
  setCookie(visit.ctx, sessionCookie, "", 0);
  visit.session = null;
  page(
    visit,
    "Account deleted",
    html`<h1>Your account is deleted</h1><p>What you published stays under “${deletedName}”.</p><p><a href="/">To the studies</a></p>`,
  );
}
