/** Sign-in, sessions and what goes with them, page by page: no network, no provider's server, a clock of the test's. */
import { createHash, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Provider, SignInRefused } from "../../src/studies/auth/providers.js";
import { type Identity, signInAccount } from "../../src/studies/store/accounts.js";
import { approve } from "../../src/studies/store/approvals.js";
import { suspend } from "../../src/studies/store/moderation.js";
import { notify } from "../../src/studies/store/notifications.js";
import { openStore } from "../../src/studies/store/open.js";
import { endSessions, findSession, listSessions, startSession } from "../../src/studies/store/sessions.js";
import type { Store } from "../../src/studies/store/store.js";
import { testClock } from "./support/clock.js";
import { type Got, serviceOf, visitor } from "./support/visits.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-sign-in-"));
const clock = testClock();
let store: Store;
test.before(async () => {
  store = await openStore(join(folder, "studies.db"), { dialect: clock.dialect });
});
// Limits reached in one test do not carry over to the next.
test.before.each(() => {
  clock.ms += 86_400_000;
});
test.after(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const [signInCookie, sessionCookie] = ["__Host-tapline-signin", "__Host-tapline-session"];
const guarded = "; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=";
const runOut = "This sign-in has expired or was started in another browser. Please start again.";
const person = (subject: string, more: Partial<Identity> = {}): Identity => ({
  ...{ issuer: "test", subject, name: subject, email: null, login: null },
  ...more,
});
const secretIn = (cookie = "") => cookie.slice(0, cookie.indexOf(";"));
const said = ({ text }: Got) => /<h1>[^<]*<\/h1><p>([^<]*)</.exec(text)?.[1] ?? "";

/** A service whose providers admit users named by the test, and record what they received. */
function signingIn() {
  const told = { callbacks: [] as string[], begun: [] as string[], states: 0 };
  const who: { finish: () => Identity; begin: () => void } = {
    finish: () => person("ada"),
    begin: () => {},
  };
  const provider = (key: Provider["key"], label: string): Provider => ({
    key,
    label,
    async begin(callback) {
      who.begin();
      told.begun.push(callback);
      told.states += 1;
      const secrets = { state: randomUUID(), nonce: "", verifier: `v${told.states}` };
      return { url: new URL(`https://${key}.example/?a=1&s=${told.states}`), secrets };
    },
    async finish(callback, { verifier }) {
      told.callbacks.push(`${callback.href} ${verifier}`);
      return who.finish();
    },
  });
  const service = serviceOf(store, { providers: [provider("oidc", "Us"), provider("github", "GitHub")] });
  const ask = visitor(service);
  const leave = (way = "oidc", form: Record<string, string> = {}, more: Parameters<typeof ask>[1] = {}) =>
    ask(`/sign-in/${way}`, { form, ...more });
  const comeBack = (ticket: Got, way = "oidc", more: Parameters<typeof ask>[1] = {}) =>
    ask(`/sign-in/${way}/callback?code=a%20b&state=s`, {
      ...more,
      cookies: { [signInCookie]: secretIn(ticket.cookies[signInCookie]), ...more.cookies },
    });
  return { ask, leave, comeBack, told, who, service };
}

test("leaving for a provider sets only a sealed ticket that lasts ten minutes", async () => {
  const { ask, leave, told } = signingIn();
  const choice = (await ask("/sign-in?return=/drafts%3Fa=1")).text;
  assert.equal(
    [...choice.matchAll(/action="\/sign-in\/([a-z]+)".*?value="([^"]*)".*?<button>([^<]*)</gs)].map((found) =>
      found.slice(1),
    ),
    [
      ["oidc", "/drafts?a=1", "Sign in with Us"],
      ["github", "/drafts?a=1", "Sign in with GitHub"],
    ],
  );
  const away = await leave("github", { return: "/drafts" }, { headers: { Host: "evil.example" } });
  assert.equal([away.status, Object.keys(away.cookies)], [200, [signInCookie]]);
  assert.match(away.cookies[signInCookie] ?? "", new RegExp(`^[\\w-]{100,}${guarded}600$`));
  for (const secret of ["state", "verifier", "drafts"])
    assert.not.ok(
      Buffer.from(secretIn(away.cookies[signInCookie]), "base64url").toString("latin1").includes(secret),
    );
  assert.match(away.text, '<meta http-equiv="refresh" content="0;url=https://github.example/?a=1&amp;s=1">');
  assert.equal(told.begun, ["https://studies.example.org/sign-in/github/callback"]);
  assert.equal(
    [(await leave("other")).status, (await ask("/sign-in/other/callback")).status, told.states],
    [404, 404, 1],
  );
});

test("returning from a provider starts a 14-day session, stored as a hash", async () => {
  const { leave, comeBack, told, service } = signingIn();
  const agent = "B".repeat(250);
  const back = await comeBack(await leave("oidc", { return: "/agents?x=1" }), "oidc", {
    headers: { "User-Agent": agent, Host: "evil.example" },
  });
  assert.equal([back.status, back.location], [303, "/agents?x=1"]);
  assert.equal(told.callbacks, ["https://studies.example.org/sign-in/oidc/callback?code=a%20b&state=s v1"]);
  assert.is(back.cookies[signInCookie], guarded + 0);
  const secret = secretIn(back.cookies[sessionCookie]);
  assert.match(secret, /^[\w-]{43}$/);
  assert.is(back.cookies[sessionCookie], `${secret}${guarded}${14 * 86_400}`);
  const rows = await store.db.selectFrom("sessions").selectAll().execute();
  assert.is(rows.length, 1);
  const { id: _, account_id, ...row } = rows[0] as (typeof rows)[number];
  assert.equal(row, {
    hash: createHash("sha256").update(secret).digest("hex"),
    ...{ created_at: clock.ms, seen_at: clock.ms, expires_at: clock.ms + 14 * 86_400_000 },
    agent: "B".repeat(200),
  });
  const written = await store.db
    .selectFrom("audit")
    .select(["actor", "action"])
    .where("actor", "=", account_id)
    .execute();
  assert.equal(written, [{ actor: account_id, action: "sign-in" }]);
  assert.equal(service.lines, []);
});

test("a ticket works only with its provider; return addresses are short local paths", async () => {
  const { leave, comeBack, told, ask } = signingIn();
  const ticket = await leave("oidc");
  const elsewhere = await comeBack(ticket, "github");
  assert.equal([elsewhere.status, said(elsewhere)], [400, runOut]);
  assert.is(elsewhere.cookies[signInCookie], guarded + 0, "the ticket is taken away");
  assert.not.ok(sessionCookie in elsewhere.cookies);
  assert.equal(told.callbacks, []);
  for (const cookies of [{}, { [signInCookie]: "" }, { [signInCookie]: "AAAA" }])
    assert.equal(said(await ask("/sign-in/oidc/callback?code=x", { cookies })), runOut);
  const path = (length: number) => `/${"a".repeat(length - 1)}`;
  for (const [given, back] of [
    [path(1000), path(1000)],
    [path(1001), "/"],
    ["https://evil.example/", "/"],
    ["//evil.example", "/"],
    ["", "/"],
  ] as const)
    assert.is((await comeBack(await leave("oidc", { return: given }))).location, back, given.slice(0, 30));
  assert.is((await comeBack(await leave())).location, "/");
});

test("a refused sign-in says why and by whom; a down provider is not a refusal", async () => {
  const { leave, comeBack, who, service } = signingIn();
  const sessions = async () => (await store.db.selectFrom("sessions").select("id").execute()).length;
  const before = await sessions();
  who.finish = () => {
    throw new SignInRefused("The provider said <no>.");
  };
  const refused = await comeBack(await leave());
  assert.equal([refused.status, said(refused)], [403, "The provider said &lt;no&gt;."]);
  assert.equal(service.lines, []);
  who.finish = () => {
    throw new TypeError("secret words");
  };
  const away = await comeBack(await leave());
  const later = (label: string) => `${label} is not reachable right now. Please try again later.`;
  assert.equal([away.status, said(away)], [503, later("Us")]);
  who.begin = () => {
    throw new RangeError("secret words");
  };
  const unreachable = await leave("github");
  assert.equal([unreachable.status, said(unreachable), unreachable.cookies], [503, later("GitHub"), {}]);
  assert.equal(service.lines, [
    "sign-in with oidc failed: TypeError",
    "sign-in provider github is unreachable: RangeError",
  ]);
  assert.is(await sessions(), before);
});

test("a suspended user gets the reason and no session; a reinstated user gets one", async () => {
  const { leave, comeBack, who } = signingIn();
  who.finish = () => person("sue");
  const sue = await signInAccount(store, person("sue"));
  await suspend(store, "operator", sue, "Spam & worse.");
  const refused = await comeBack(await leave());
  const end = "The operator of this service can send you your data and delete the account.";
  assert.equal(
    [refused.status, said(refused)],
    [403, `This account is suspended: Spam &amp; worse.. ${end}`],
  );
  assert.not.ok(sessionCookie in refused.cookies);
  await store.db.updateTable("accounts").set({ suspension: "" }).where("id", "=", sue.id).execute();
  assert.is(said(await comeBack(await leave())), `This account is suspended. ${end}`);
  assert.equal(await listSessions(store, sue.id), []);
  await store.db.updateTable("accounts").set({ suspended_at: null }).where("id", "=", sue.id).execute();
  assert.is((await comeBack(await leave())).status, 303);
});

test("an address may start 60 sign-ins in ten minutes, an account 30 from anywhere", async () => {
  const { leave, comeBack, who, told } = signingIn();
  const address = "198.51.100.7";
  for (let count = 0; count < 60; count += 1) assert.is((await leave("oidc", {}, { address })).status, 200);
  const refused = await leave("oidc", {}, { address });
  assert.equal([refused.status, refused.header("Retry-After"), told.states], [429, "600", 60]);
  who.finish = () => person("busy");
  const back = async (count: number) =>
    comeBack(await leave("oidc", {}, { address: `10.0.0.${count}` }), "oidc", { address: `10.0.1.${count}` });
  for (let count = 0; count < 30; count += 1) assert.is((await back(count)).status, 303);
  const over = await back(31);
  assert.equal([over.status, sessionCookie in over.cookies], [429, false]);
  who.finish = () => person("another");
  assert.is((await back(31)).status, 303);
});

/** Sessions of a new user, as secrets. */
async function sessionsOf(subject: string, agents: string[]) {
  const { id } = await signInAccount(store, person(subject));
  const secrets: string[] = [];
  for (const agent of agents) {
    clock.ms += 1;
    secrets.push(await startSession(store, id, agent));
  }
  return { id, secrets };
}
const isIn = async (secret: string) => (await findSession(store, secret)) !== null;

test("only the owner ends sessions: one, all others, or the current one", async () => {
  const { ask } = signingIn();
  const ada = await sessionsOf("ada's", ["one", "two", "three"]);
  const ben = await sessionsOf("ben's", ["his", "his other"]);
  const [own, , third] = ada.secrets as [string, string, string];
  const state = () => Promise.all([...ada.secrets, ...ben.secrets].map(isIn));
  const csrfOf = async (secret: string) =>
    /name="csrf" value="([^"]+)"/.exec(
      (await ask("/account", { cookies: { [sessionCookie]: secret } })).text,
    )?.[1] as string;
  const csrf = await csrfOf(own);
  const post = (path: string, word = csrf) =>
    ask(path, { form: { csrf: word }, cookies: { [sessionCookie]: own } });
  // Each session has its own token for its forms, which another's page does not contain.
  for (const word of ["", await csrfOf(ben.secrets[0] as string), await csrfOf(third)])
    assert.is((await post("/sign-out", word)).status, 403);
  const idOf = async (secret: string) => (await findSession(store, secret))?.id as string;
  const his = await idOf(ben.secrets[0] as string);
  assert.is((await post(`/account/sessions/${his}/end`)).location, "/account");
  assert.equal(await state(), [true, true, true, true, true], "another's is not hers to end");
  const ids = [await idOf(own), await idOf(ada.secrets[1] as string), await idOf(third)] as const;
  assert.is((await post(`/account/sessions/${ids[2]}/end`)).status, 303);
  assert.equal(await state(), [true, true, false, true, true]);
  assert.is((await post("/account/sessions/end-others")).status, 303);
  assert.equal(await state(), [true, false, false, true, true]);
  const out = await post("/sign-out");
  assert.equal([out.status, out.location, out.cookies], [303, "/", { [sessionCookie]: guarded + 0 }]);
  assert.equal(await state(), [false, false, false, true, true]);
  const written = await store.db
    .selectFrom("audit")
    .select("target")
    .where("actor", "=", ada.id)
    .where("action", "=", "session.end")
    .execute();
  assert.equal(written.map(({ target }) => target).sort(), [...ids].sort(), "each once, and none of his");
});

test("a session shows when it was last used, to the minute, and never extends itself", async () => {
  const { id, secrets } = await sessionsOf("seen", ["first", "second\0", "third"]);
  const [first, second, third] = secrets as [string, string, string];
  const begun = clock.ms;
  const listed = async () =>
    (await listSessions(store, id)).map(({ agent, seen_at, expires_at }) => [
      agent,
      seen_at - begun,
      expires_at - begun,
    ]);
  const days = 14 * 86_400_000;
  assert.equal(await listed(), [
    ["third", 0, days],
    ["second\ufffd", -1, days - 1],
    ["first", -2, days - 2],
  ]);
  clock.ms = begun + 59_999;
  for (const secret of [first, second]) assert.ok(await isIn(secret));
  // The first one was seen 60.001 seconds ago, the second a minute.
  assert.equal(await listed(), [
    ["first", 59_999, days - 2],
    ["third", 0, days],
    ["second\ufffd", -1, days - 1],
  ]);
  clock.ms = begun + days - 1;
  assert.equal([await isIn(first), await isIn(second), await isIn(third)], [false, false, true]);
  assert.equal(
    (await listed()).map(([agent]) => agent),
    ["third"],
    "what has ended is not listed, though nothing cleared it away",
  );
});

test("a session knows its own account's role and unread notifications only", async () => {
  const [mod, other] = [await sessionsOf("mod", ["m"]), await sessionsOf("publisher", ["p"])];
  for (const role of ["agent", "publisher"] as const) await approve(store, role, other.id);
  await approve(store, "moderator", mod.id);
  const told = { kind: "draft", draft_id: "none" } as const;
  for (let count = 0; count < 3; count += 1) await notify(store.db, clock.ms, other.id, told);
  const first = store.db.selectFrom("notifications").select("id").where("account_id", "=", other.id).limit(1);
  await store.db.updateTable("notifications").set({ read_at: 1 }).where("id", "in", first).execute();
  const of = async (secret: string | undefined) => {
    const found = await findSession(store, secret as string);
    return found && [found.account.id, found.isModerator, found.unread];
  };
  assert.equal(await of(mod.secrets[0]), [mod.id, true, 0]);
  assert.equal(await of(other.secrets[0]), [other.id, false, 2]);
  // Suspended and deleted accounts have no valid sessions, even if a row is still there.
  for (const column of ["suspended_at", "deleted_at"] as const) {
    const set = (value: number | null) =>
      store.db
        .updateTable("accounts")
        .set({ [column]: value })
        .where("id", "=", mod.id)
        .execute();
    await set(1);
    assert.is(await of(mod.secrets[0]), null, column);
    await set(null);
    assert.ok(await of(mod.secrets[0]));
  }
  await endSessions(store, mod.id, { except: "none" });
  assert.equal([await of(mod.secrets[0]), (await of(other.secrets[0]))?.[0]], [null, other.id]);
});

test("signing in again keeps account and handle and updates the provider's data", async () => {
  const first = await signInAccount(store, person("gil", { name: "Gil", email: "Gil@Example.org" }));
  await approve(store, "publisher", "gil@new.example");
  await approve(store, "agent", "github:gil");
  const again = await signInAccount(
    store,
    person("gil", { name: " Gilda\0 ", email: "gil@new.example", login: "Gil" }),
  );
  assert.equal(again, { ...first, name: "Gilda\ufffd", email: "gil@new.example", login: "gil" });
  assert.is(first.email, "gil@example.org");
  const roles = async (id: string) =>
    (await store.db.selectFrom("approvals").select("role").where("account_id", "=", id).execute())
      .map(({ role }) => role)
      .sort();
  assert.equal(await roles(first.id), ["agent", "publisher"], "what waited for these names");
  const bare = await signInAccount(store, person("gil", { name: " \u200b " }));
  assert.equal([bare.name, bare.email, bare.login], ["Unnamed", null, null]);
  assert.equal(await roles(first.id), ["agent", "publisher"]);
  // The same name at another provider is a different user.
  const other = await signInAccount(store, person("gil", { issuer: "other", name: "x".repeat(101) }));
  assert.equal([other.id === first.id, other.name], [false, "x".repeat(100)]);
  assert.equal(await roles(other.id), []);
});

test.run();
