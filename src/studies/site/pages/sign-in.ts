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

/** What a browser carries, sealed, while it is away: nothing is kept of sign-ins that never come back. */
interface Away {
  provider: string;
  secrets: Secrets;
  back: string;
  at: number;
}

/** Leaves for the provider; what must be remembered goes along in a sealed cookie. */
export async function postSignIn(visit: Visit, key: string | undefined): Promise<void> {
  const { ctx, service } = visit;
  const provider = providerOf(visit, key);
  const form = await readAnyForm(visit);
  await countVisit(visit, "sign-in");
  const { url, secrets } = await provider.begin(callbackOf(visit, provider)).catch((error) => {
    const line = `sign-in provider ${provider.key} is not reachable: ${(error as Error).name}`;
    service.log(line, line);
    throw new SiteError(503, `${provider.label} is not reachable just now; please try again later.`);
  });
  const back = safeReturn(service, form.get("return"));
  const away: Away = {
    provider: provider.key,
    secrets,
    back: back.length <= 1000 ? back : "/",
    at: await readNow(service.store, service.store.db),
  };
  setCookie(ctx, signInCookie, await seal(service.store, away), signInSeconds);
  // A page that moves on by itself: a redirect from a form would have to be named in the content security policy,
  // and only the provider knows where its pages lie.
  page(
    visit,
    "Signing in",
    html`<h1>On to ${provider.label}</h1><p><a href="${url.href}">Continue</a> if nothing happens.</p>`,
    { head: html`<meta http-equiv="refresh" content="0;url=${url.href}">` },
  );
}

/** Whether nobody came back with this sign-in before. */
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

/** Comes back from the provider: checks everything, then starts a session of its own. */
export async function signInCallback(visit: Visit, key: string | undefined): Promise<void> {
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
      "This sign-in has run out, or was begun in another browser; please start again.",
    );
  }
  const { back, secrets } = away;
  const callback = new URL(callbackOf(visit, provider));
  callback.search = ctx.search;
  const identity = await provider.finish(callback, secrets).catch((error) => {
    if (error instanceof SignInRefused) throw new SiteError(403, error.message);
    const line = `sign-in with ${provider.key} failed: ${(error as Error).name}`;
    service.log(line, line);
    throw new SiteError(503, `${provider.label} is not reachable just now; please try again later.`);
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
