/** Signing in: what providers may report of a user, how long things last, and what a session leaves behind. */
import type { ServerResponse } from "node:http";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { githubProvider } from "../../src/studies/auth/github.js";
import { oidcProvider } from "../../src/studies/auth/oidc.js";
import type { Provider } from "../../src/studies/auth/providers.js";
import { isApproved, signInAccount } from "../../src/studies/store/accounts.js";
import { approve } from "../../src/studies/store/approvals.js";
import { openStore } from "../../src/studies/store/open.js";
import { findSession, startSession } from "../../src/studies/store/sessions.js";
import { cleanUp } from "../../src/studies/store/upkeep.js";
import { testClock } from "./support/clock.js";
import { startDatabases } from "./support/databases.js";
import { json, startOidc, startProvider } from "./support/providers.js";
import { startService } from "./support/service.js";

const databases = await startDatabases();
test.after(() => databases.close());

const callback = "https://studies.example.org/sign-in/x/callback";

/** A server of a provider for one test. */
async function provider<T>(
  answer: (path: string, response: ServerResponse) => void,
  use: (url: string) => Promise<T>,
): Promise<T> {
  const server = await startProvider(answer);
  return use(server.url).finally(() => server.close());
}

/** Who the person is, as an OpenID provider with these claims leads the service to believe. */
async function throughOidc(claims: object) {
  const server = await startOidc(claims);
  try {
    const oidc = oidcProvider({ issuer: server.url, clientId: "c", clientSecret: "s" });
    const { url: away, secrets } = await oidc.begin(callback);
    server.nonce = away.searchParams.get("nonce");
    return await oidc.finish(new URL(`${callback}?code=x&state=${secrets.state}`), secrets);
  } finally {
    server.close();
  }
}

test("OpenID: an address that the provider has not verified belongs to no user", async () => {
  const about = { name: "Eve", email: "ada@example.org" };
  const verified = await throughOidc({ ...about, email_verified: true });
  assert.equal([verified.subject, verified.email], ["7", "ada@example.org"]);
  for (const email_verified of [false, undefined, null, "true", "false", 1]) {
    assert.is((await throughOidc({ ...about, email_verified })).email, null, String(email_verified));
  }
});

test("OpenID: a token for another sign-in, service or time is refused", async () => {
  const now = Math.floor(Date.now() / 1000);
  for (const claims of [
    { nonce: "n".repeat(43) },
    { iss: "https://issuer.example" },
    { aud: "another" },
    { exp: now - 3600, iat: now - 7200 },
  ]) {
    const refused = await throughOidc(claims).catch((error: Error) => error);
    assert.is((refused as Error).name, "SignInRefused", JSON.stringify(claims));
  }
});

test("GitHub: only the primary address counts, and only if it is verified", async () => {
  const through = (emails: object[], user: object = { id: 7, login: "Octo", name: "Eve" }) =>
    provider(
      (path, response) =>
        json(
          response,
          path === "/login/oauth/access_token" ? { access_token: "gho_x" } : path === "/user" ? user : emails,
        ),
      async (url) => {
        const github = githubProvider({ clientId: "c", clientSecret: "s", url, apiUrl: url });
        const { secrets } = await github.begin(callback);
        return github.finish(new URL(`${callback}?code=x&state=${secrets.state}`), secrets);
      },
    );
  const [own, ada] = ["eve@example.org", "ada@example.org"];
  for (const [emails, expected] of [
    [[{ email: ada, primary: true, verified: false }], null],
    [
      [
        { email: ada, primary: true, verified: false },
        { email: own, primary: false, verified: true },
      ],
      null,
    ],
    [
      [
        { email: ada, primary: false, verified: true },
        { email: own, primary: true, verified: true },
      ],
      own,
    ],
    [[], null],
  ] as const) {
    const found = await through([...emails]);
    assert.is(found.email, expected, JSON.stringify(emails));
  }
  for (const user of [{}, { id: "7", login: "Octo" }, { id: 7 }, { login: "Octo" }, { id: 7, login: null }]) {
    const refused = await through([], user).catch((error: Error) => error);
    assert.is((refused as Error).name, "SignInRefused", JSON.stringify(user));
  }
});

test("OpenID without TLS works only on this machine", async () => {
  const begin = (issuer: string) =>
    oidcProvider({ issuer, clientId: "c", clientSecret: "s" })
      .begin(callback)
      .then(
        () => "began",
        (error: { code?: string; cause?: { code?: string } }) => error.code ?? error.cause?.code,
      );
  // Refused before anything is looked up.
  assert.is(await begin("http://id.invalid"), "OAUTH_HTTP_REQUEST_FORBIDDEN");
  assert.is.not(await begin("http://127.0.0.1:1"), "OAUTH_HTTP_REQUEST_FORBIDDEN");
  assert.is(
    oidcProvider({ issuer: "https://id.example:8", clientId: "c", clientSecret: "s" }).label,
    "id.example:8",
  );
});

/** Admits every callback as the user that `who` names. */
function letsIn(who: { subject: string }): Provider {
  return {
    key: "oidc",
    label: "Test",
    begin: async () => ({
      url: new URL("https://provider.example/"),
      secrets: { state: `${Math.random()}`, nonce: "", verifier: "" },
    }),
    finish: async () => ({
      issuer: "test",
      subject: who.subject,
      name: who.subject,
      email: null,
      login: null,
    }),
  };
}

for (const database of databases.all) {
  test(`${database.name}: a sign-in lasts ten minutes, a session 14 days or until the next`, async () => {
    const clock = testClock();
    const who = { subject: "Ada" };
    const service = await startService(database.fresh(), {
      store: { dialect: clock.dialect },
      providers: async () => [letsIn(who)],
    });
    const { store } = service.running.service;
    const cookieOf = (answer: { headers: object }, name: string) => {
      const set = ((answer.headers as Record<string, string[]>)["set-cookie"] ?? []).join("\n");
      return new RegExp(`${name}=([^;]*)`).exec(set)?.[1] ?? "";
    };
    /** @returns the cookie of the sign-in that was begun */
    const leave = async (cookie = "") => {
      const answer = await service.call("/sign-in/oidc", {
        method: "POST",
        body: "",
        headers: {
          "Content-Type": "application/x-www-form-urlencoded",
          Origin: service.running.origin,
          ...(cookie === "" ? {} : { Cookie: cookie }),
        },
      });
      assert.is(answer.status, 200);
      return cookieOf(answer, "__Host-tapline-signin");
    };
    const comeBack = (ticket: string, session = "") =>
      service.call("/sign-in/oidc/callback?code=x", {
        headers: { Cookie: `__Host-tapline-signin=${ticket}; __Host-tapline-session=${session}` },
      });
    const isIn = async (session: string) =>
      (await service.call("/drafts", { headers: { Cookie: `__Host-tapline-session=${session}` } })).status ===
      200;
    try {
      const [late, soon] = [await leave(), await leave()];
      clock.ms += 600_000;
      const back = await comeBack(soon);
      assert.is(back.status, 303);
      const first = cookieOf(back, "__Host-tapline-session");
      assert.ok(await isIn(first));
      assert.is((await comeBack(soon)).status, 400, "nobody comes back twice");
      clock.ms += 1;
      assert.is((await comeBack(late)).status, 400, "a moment beyond ten minutes");

      // A new sign-in in the same browser leaves no earlier session behind, whoever signs in.
      who.subject = "Ben";
      const second = cookieOf(await comeBack(await leave(), first), "__Host-tapline-session");
      assert.ok(second.length > 40 && second !== first);
      assert.equal([await isIn(first), await isIn(second)], [false, true]);

      const days = 86_400_000;
      const begun = clock.ms;
      clock.ms = begun + 14 * days - 1;
      assert.ok(await isIn(second), "seen a moment ago, and yet it ends at its time");
      clock.ms = begun + 14 * days;
      assert.not(await isIn(second));

      // Upkeep takes what has ended, and nothing else.
      const { id } = await service.account("Cleo");
      const fresh = await startSession(store, id, "test");
      await cleanUp(store);
      const left = await store.db.selectFrom("sessions").select("account_id").execute();
      assert.equal(
        left.map(({ account_id }) => account_id),
        [id, id],
      );
      assert.ok(await findSession(store, fresh));
      assert.equal(await store.db.selectFrom("sign_ins").selectAll().execute(), []);
    } finally {
      await service.close();
    }
  });

  test(`${database.name}: an approval stays with its account when the name changes hands`, async () => {
    const store = await openStore(database.fresh());
    try {
      const identity = { issuer: "test", subject: "a", name: "Ada", email: "ada@example.org", login: null };
      const ada = await signInAccount(store, identity);
      for (const role of ["publisher", "moderator", "agent", "publisher"] as const) {
        await approve(store, role, "ada@example.org");
      }
      for (const role of ["publisher", "moderator", "agent"] as const) {
        assert.ok(await isApproved(store, ada, role), role);
      }
      // Her address now belongs to someone else and is approved again.
      await signInAccount(store, { ...identity, email: "new@example.org" });
      const ben = await signInAccount(store, { ...identity, subject: "b", name: "Ben" });
      await approve(store, "publisher", "ada@example.org");
      assert.equal(
        [await isApproved(store, ada, "publisher"), await isApproved(store, ben, "publisher")],
        [true, false],
      );
    } finally {
      await store.close();
    }
  });
}

test.run();
