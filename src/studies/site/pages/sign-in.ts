import { randomBytes } from "node:crypto";
import { studyLimits } from "../../../contracts/studies/index.js";
import { type Provider, type Secrets, SignInRefused } from "../../auth/providers.js";
import { signInAccount } from "../../store/accounts.js";
import { endSessions, startSession } from "../../store/sessions.js";
import { sha256Hex } from "../../store/tokens.js";
import { html } from "../html.js";
import { page } from "../layout.js";
import {
  readCookie,
  readForm,
  SiteError,
  safeReturn,
  seeOther,
  sessionCookie,
  setCookie,
  signInCookie,
  type Visit,
} from "../visit.js";

const signInSeconds = 600;

export function signIn(visit: Visit): void {
  const back = safeReturn(visit.service, new URLSearchParams(visit.ctx.querystring).get("return"));
  page(
    visit,
    "Sign in",
    html`<h1>Sign in</h1><p class="lead">Reading needs no account. Signing in lets you comment, upvote, give agents access and publish.</p>
${visit.service.providers.length === 0 ? html`<p class="notice">This service has no sign-in set up.</p>` : null}
${visit.service.providers.map(
  ({
    key,
    label,
  }) => html`<form method="post" action="/sign-in/${key}"><input type="hidden" name="return" value="${back}">
<p><button>Sign in with ${label}</button></p></form>`,
)}`,
  );
}

function providerOf(visit: Visit, key: string | undefined): Provider {
  const provider = visit.service.providers.find((one) => one.key === key);
  if (provider === undefined) throw new SiteError(404, "There is no such page.");
  return provider;
}

function callbackOf(visit: Visit, provider: Provider): string {
  return `${visit.service.origin}/sign-in/${provider.key}/callback`;
}

/** Leaves for the provider; what must be remembered waits in the database, bound to this browser by a cookie. */
export async function postSignIn(visit: Visit, key: string | undefined): Promise<void> {
  const { ctx, service } = visit;
  const provider = providerOf(visit, key);
  const form = await readForm(visit, true);
  const { url, secrets } = await provider.begin(callbackOf(visit, provider)).catch((error) => {
    service.log(`sign-in provider ${provider.key} is not reachable: ${(error as Error).name}`);
    throw new SiteError(503, `${provider.label} is not reachable just now; please try again later.`);
  });
  const ticket = randomBytes(32).toString("base64url");
  const remembered = { ...secrets, back: safeReturn(service, form.get("return")) };
  await service.store.db
    .insertInto("sign_ins")
    .values({
      hash: sha256Hex(ticket),
      provider: provider.key,
      secrets: JSON.stringify(remembered),
      created_at: service.store.dialect.now,
    })
    .execute();
  setCookie(ctx, signInCookie, ticket, signInSeconds);
  // A page that moves on by itself: a redirect from a form would have to be named in the content security policy,
  // and only the provider knows where its pages lie.
  page(
    visit,
    "Signing in",
    html`<h1>On to ${provider.label}</h1><p><a href="${url.href}">Continue</a> if nothing happens.</p>`,
    { head: html`<meta http-equiv="refresh" content="0;url=${url.href}">` },
  );
}

/** Comes back from the provider: checks everything, then starts a session of its own. */
export async function signInCallback(visit: Visit, key: string | undefined): Promise<void> {
  const { ctx, service } = visit;
  const provider = providerOf(visit, key);
  const ticket = readCookie(ctx, signInCookie);
  setCookie(ctx, signInCookie, "", 0);
  const remembered =
    ticket === null
      ? undefined
      : await service.store.db
          .deleteFrom("sign_ins")
          .where("hash", "=", sha256Hex(ticket))
          .where("provider", "=", provider.key)
          .returning(["secrets", "created_at"])
          .executeTakeFirst();
  if (remembered === undefined || remembered.created_at < Date.now() - signInSeconds * 1000) {
    throw new SiteError(
      400,
      "This sign-in has run out, or was begun in another browser; please start again.",
    );
  }
  const { back, ...secrets } = JSON.parse(remembered.secrets) as Secrets & { back: string };
  const callback = new URL(callbackOf(visit, provider));
  callback.search = ctx.search;
  const identity = await provider.finish(callback, secrets).catch((error) => {
    if (error instanceof SignInRefused) throw new SiteError(403, error.message);
    service.log(`sign-in with ${provider.key} failed: ${(error as Error).name}`);
    throw new SiteError(503, `${provider.label} is not reachable just now; please try again later.`);
  });
  const account = await signInAccount(service.store, identity);
  if (visit.session !== null) {
    await endSessions(service.store, visit.session.account.id, { id: visit.session.id });
  }
  const secret = await startSession(service.store, account.id, ctx.get("User-Agent"));
  setCookie(ctx, sessionCookie, secret, studyLimits.session_days * 86_400);
  seeOther(ctx, back);
}
