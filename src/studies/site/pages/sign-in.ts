import { studyLimits } from "../../../contracts/studies/index.js";
import { type Provider, type Secrets, SignInRefused } from "../../auth/providers.js";
import { signInAccount } from "../../store/accounts.js";
import { endSessions, startSession } from "../../store/sessions.js";
import { readNow } from "../../store/store.js";
import { sha256Hex } from "../../store/tokens.js";
import { html } from "../html.js";
import { page } from "../layout.js";
import { seal, unseal } from "../sealed.js";
import {
  countVisit,
  readAnyForm,
  SiteError,
  safeReturn,
  seeOther,
  sessionCookie,
  setCookie,
  signInCookie,
  type Visit,
} from "../visit.js";
import { suspendedPage } from "./appeals.js";

const signInSeconds = 600;

export function signIn(visit: Visit): void {
  const back = safeReturn(visit.service, new URLSearchParams(visit.ctx.querystring).get("return"));
  page(
    visit,
    "Sign in",
    html`<h1>Sign in</h1><p class="lead">You can read without an account. Sign in to comment, upvote, publish and give agents access.</p>
${visit.service.providers.length === 0 ? html`<p class="notice">Sign-in is not configured on this service.</p>` : null}
${visit.service.providers.map(
  ({
    key,
    label,
  }) => html`<form method="post" action="/sign-in/${key}"><input type="hidden" name="return" value="${back}">
<p><button>Sign in with ${label}</button></p></form>`,
)}`,
  );
}

function providerOf(visit: Visit, key: string): Provider {
  const provider = visit.service.providers.find((one) => one.key === key);
  if (provider === undefined) throw new SiteError(404, "There is no such page.");
  return provider;
}

function callbackOf(visit: Visit, provider: Provider): string {
  return `${visit.service.origin}/sign-in/${provider.key}/callback`;
}

/** Encrypted state that the browser carries, so that abandoned sign-ins leave nothing behind here. */
interface Away {
  provider: string;
  secrets: Secrets;
  back: string;
  at: number;
}

/** Redirects to the provider, with the state in an encrypted cookie. */
export async function postSignIn(visit: Visit, key: string): Promise<void> {
  const { ctx, service } = visit;
  const provider = providerOf(visit, key);
  const form = await readAnyForm(visit);
  await countVisit(visit, "sign-in");
  const { url, secrets } = await provider.begin(callbackOf(visit, provider)).catch((error) => {
    const line = `sign-in provider ${provider.key} is unreachable: ${(error as Error).name}`;
    service.log(line, line);
    throw new SiteError(503, `${provider.label} is not reachable right now. Please try again later.`);
  });
  const back = safeReturn(service, form.get("return"));
  const away: Away = {
    provider: provider.key,
    secrets,
    back: back.length <= 1000 ? back : "/",
    at: await readNow(service.store, service.store.db),
  };
  setCookie(ctx, signInCookie, await seal(service.store, away), signInSeconds);
  // A page with a meta refresh, because form-action in the content security policy also applies to redirects, and the
  // provider's addresses are not known in advance.
  page(
    visit,
    "Signing in",
    html`<h1>Continue to ${provider.label}</h1><p>If nothing happens, <a href="${url.href}">continue</a>.</p>`,
    { head: html`<meta http-equiv="refresh" content="0;url=${url.href}">` },
  );
}

/** Whether this sign-in is completed for the first time. */
async function comesBackFirst(visit: Visit, away: Away): Promise<boolean> {
  const { store } = visit.service;
  const row = { hash: sha256Hex(away.secrets.state), provider: away.provider, secrets: "" };
  const { numInsertedOrUpdatedRows } = await store.db
    .insertInto("sign_ins")
    .values({ ...row, created_at: store.dialect.now })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  return numInsertedOrUpdatedRows === 1n;
}

/** Handles the provider's callback: verifies it and starts a session. */
export async function signInCallback(visit: Visit, key: string): Promise<void> {
  const { ctx, service } = visit;
  const provider = providerOf(visit, key);
  const ticket = ctx.cookies.get(signInCookie);
  setCookie(ctx, signInCookie, "", 0);
  const now = await readNow(service.store, service.store.db);
  const away = ticket === undefined ? undefined : ((await unseal(service.store, ticket)) as Away | undefined);
  if (
    away === undefined ||
    away.provider !== provider.key ||
    Math.abs(now - away.at) > signInSeconds * 1000 ||
    !(await comesBackFirst(visit, away))
  ) {
    throw new SiteError(
      400,
      "This sign-in has expired or was started in another browser. Please start again.",
    );
  }
  const { back, secrets } = away;
  const callback = new URL(callbackOf(visit, provider));
  callback.search = ctx.search;
  const identity = await provider.finish(callback, secrets).catch((error) => {
    if (error instanceof SignInRefused) throw new SiteError(403, error.message);
    const line = `sign-in with ${provider.key} failed: ${(error as Error).name}`;
    service.log(line, line);
    throw new SiteError(503, `${provider.label} is not reachable right now. Please try again later.`);
  });
  const account = await signInAccount(service.store, identity);
  if (account.suspended_at !== null) {
    await suspendedPage(visit, account);
    return;
  }
  await countVisit({ ...visit, session: { id: "", account, isModerator: false, unread: 0 } }, "sign-in");
  if (visit.session !== null) {
    await endSessions(service.store, visit.session.account.id, { id: visit.session.id });
  }
  const secret = await startSession(service.store, account.id, ctx.get("User-Agent"));
  setCookie(ctx, sessionCookie, secret, studyLimits.session_days * 86_400);
  seeOther(ctx, back);
}
