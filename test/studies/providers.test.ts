/** What providers are asked when people sign in, and what is made of their answers: without a database and a service. */
import { createHash, generateKeyPairSync } from "node:crypto";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { githubProvider } from "../../src/studies/auth/github.js";
import { oidcProvider } from "../../src/studies/auth/oidc.js";
import type { Provider, Secrets } from "../../src/studies/auth/providers.js";
import { type Asked, json, type OidcProvider, startOidc, startProvider } from "./support/providers.js";

const callback = "https://studies.example.org/sign-in/x/callback";
const fields = ({ body }: Asked) => Object.fromEntries(new URLSearchParams(body));
const challengeOf = (verifier: string) => createHash("sha256").update(verifier).digest("base64url");
const back = (secrets: Secrets, query = "code=x") =>
  new URL(`${callback}?${query}&state=${encodeURIComponent(secrets.state)}`);

/** Kind and sentence of what a sign-in ended with. */
async function refusal(work: Promise<unknown>): Promise<[string, string]> {
  const error = await work.then(
    () => new Error("It was let in."),
    (thrown: Error) => thrown,
  );
  return [error.name, error.message];
}

const notSays = "GitHub did not return your account; please try again.";

/** A GitHub that answers so, by path; the rest is as it should be. */
async function withGitHub<T>(
  answers: Record<string, { status?: number; body?: object | null; to?: string }>,
  use: (provider: Provider, asked: Asked[]) => Promise<T>,
): Promise<T> {
  const usual: Record<string, object> = {
    "/login/oauth/access_token": { access_token: "gho_x" },
    "/user": { id: 7, login: "Octo", name: "Eve" },
    "/user/emails": [{ email: "eve@example.org", primary: true, verified: true }],
  };
  const github = await startProvider((path, response) => {
    const { status = 200, body = usual[path] ?? {}, to } = answers[path] ?? {};
    if (to !== undefined) response.writeHead(307, { Location: to }).end();
    else json(response, body, status);
  });
  const { url, asked } = github;
  const provider = githubProvider({ clientId: "c", clientSecret: "s", url, apiUrl: url });
  return use(provider, asked).finally(() => github.close());
}

test("GitHub: sign-in redirects with all the callback needs, each parameter once", async () => {
  const github = githubProvider({ clientId: "id", clientSecret: "secret" });
  const { url, secrets } = await github.begin(callback);
  assert.is(url.origin + url.pathname, "https://github.com/login/oauth/authorize");
  assert.equal(Object.fromEntries(url.searchParams), {
    client_id: "id",
    redirect_uri: callback,
    scope: "read:user user:email",
    state: secrets.state,
    code_challenge: challengeOf(secrets.verifier),
    code_challenge_method: "S256",
  });
  // RFC 7636 asks for 43 characters at least: 256 bits.
  for (const secret of [secrets.state, secrets.verifier]) assert.match(secret, /^[\w-]{43}$/);
  const { secrets: others } = await github.begin(callback);
  assert.is(new Set([secrets.state, secrets.verifier, others.state, others.verifier]).size, 4);
});

test("GitHub: the token request repeats the sign-in's verifier and return address", async () => {
  await withGitHub({ "/user": { body: { id: 7, login: "Octo", name: "" } } }, async (github, asked) => {
    const { secrets } = await github.begin(callback);
    assert.equal(await github.finish(back(secrets), secrets), {
      ...{ issuer: "github", subject: "7", name: "Octo" },
      ...{ email: "eve@example.org", login: "Octo" },
    });
    const [token, ...others] = asked as [Asked, ...Asked[]];
    assert.equal(
      [token.line, token.authorization, token.type],
      ["POST /login/oauth/access_token", "", "application/x-www-form-urlencoded"],
    );
    assert.equal(fields(token), {
      ...{ client_id: "c", client_secret: "s", code: "x" },
      ...{ redirect_uri: callback, code_verifier: secrets.verifier },
    });
    assert.equal(
      others.map(({ line, authorization }) => [line, authorization]),
      [
        ["GET /user", "Bearer gho_x"],
        ["GET /user/emails", "Bearer gho_x"],
      ],
    );
  });
});

test("GitHub: an ambiguous identity is refused without further requests", async () => {
  const through = (answers: Parameters<typeof withGitHub>[0], query?: string) =>
    withGitHub(answers, async (github, asked) => {
      const { secrets } = await github.begin(callback);
      const found = await refusal(github.finish(back(secrets, query), secrets));
      return [...found, asked.length] as const;
    });
  const user = { id: 7, login: "Octo", name: "Eve" };
  for (const path of ["/user", "/user/emails"])
    assert.equal(
      await through({ [path]: { status: 403, body: path === "/user" ? user : [] } }),
      ["SignInRefused", notSays, path === "/user" ? 2 : 3],
      path,
    );
  for (const body of [{}, { access_token: 7 }, { error: "bad_verification_code" }])
    assert.equal(await through({ "/login/oauth/access_token": { body } }), [
      "SignInRefused",
      "GitHub refused the sign-in; please try again.",
      1,
    ]);
  assert.equal(await through({}, "error=access_denied"), [
    "SignInRefused",
    "GitHub denied the sign-in, or you cancelled it.",
    0,
  ]);
  // Secrets and tokens go nowhere else, whatever GitHub's address answers.
  for (const path of ["/login/oauth/access_token", "/user", "/user/emails"]) {
    const [name, , times] = await through({ [path]: { to: "/elsewhere" } });
    assert.equal([name, times], ["TypeError", ["/login/oauth/access_token", "/user"].indexOf(path) + 1 || 3]);
  }
});

/** @param use with the provider, and what it began a sign-in with */
async function withOidc<T>(
  claims: object,
  userInfo: object | null,
  use: (provider: Provider, begun: { away: URL; secrets: Secrets }, server: OidcProvider) => Promise<T>,
): Promise<T> {
  const server = await startOidc(claims, userInfo);
  try {
    const provider = oidcProvider({ issuer: server.url, clientId: "c", clientSecret: "s" });
    const { url: away, secrets } = await provider.begin(callback);
    server.nonce = away.searchParams.get("nonce");
    return await use(provider, { away, secrets }, server);
  } finally {
    server.close();
  }
}

test("OpenID: sign-in redirects with all the callback needs, and exchanges its code", async () => {
  await withOidc({ name: "Eve" }, null, async (provider, { away, secrets }, server) => {
    assert.is(away.origin + away.pathname, `${server.url}/authorize`);
    assert.equal(Object.fromEntries(away.searchParams), {
      ...{ client_id: "c", response_type: "code", redirect_uri: callback },
      ...{ scope: "openid profile email", state: secrets.state, nonce: secrets.nonce },
      ...{ code_challenge: challengeOf(secrets.verifier), code_challenge_method: "S256" },
    });
    const { url: again, secrets: others } = await provider.begin(callback);
    assert.is.not(again.searchParams.get("state"), secrets.state);
    const all = [secrets, others].flatMap(({ state, nonce, verifier }) => [state, nonce, verifier]);
    for (const secret of all) assert.match(secret, /^[\w-]{43}$/);
    assert.is(new Set(all).size, 6);
    assert.equal(await provider.finish(back(secrets), secrets), {
      ...{ issuer: server.url, subject: "7", name: "Eve", email: null, login: null },
    });
    const token = server.asked.find(({ line }) => line === "POST /token") as Asked;
    const { client_id: _, client_secret: __, ...sent } = fields(token);
    assert.equal(sent, {
      ...{ grant_type: "authorization_code", code: "x" },
      ...{ redirect_uri: callback, code_verifier: secrets.verifier },
    });
    // Looked up once, whatever the number of sign-ins.
    assert.is(server.asked.filter(({ line }) => line.includes("openid-configuration")).length, 1);
  });
});

test("OpenID: identity comes from the user-info endpoint, without one from the token", async () => {
  const found = (claims: object, userInfo: object | null) =>
    withOidc(claims, userInfo, async (provider, { secrets }, server) => {
      const { name, email } = await provider.finish(back(secrets), secrets);
      const asked = server.asked.find(({ line }) => line === "GET /about")?.authorization ?? null;
      return [name, email, asked];
    });
  const [all, told] = [
    { name: "Eve", preferred_username: "eve7", nickname: "e" },
    { sub: "7", email: "eve@example.org", email_verified: true },
  ];
  assert.equal(await found({}, { ...told, ...all }), ["Eve", "eve@example.org", "Bearer a"]);
  assert.equal(await found(all, told), ["Eve", "eve@example.org", "Bearer a"]);
  assert.equal(await found({ name: "Old" }, { ...told, name: "New" }), ["New", told.email, "Bearer a"]);
  assert.equal(await found({ ...all, name: "" }, null), ["eve7", null, null]);
  assert.equal(await found({ name: 7, nickname: "e" }, null), ["e", null, null]);
  assert.equal(await found({ ...told, preferred_username: "" }, null), ["Unnamed", told.email, null]);
  // An address that only the token calls verified is not the one that the provider returns now.
  const moved = { sub: "7", email: "ada@example.org", email_verified: false };
  assert.equal(await found(told, moved), ["Unnamed", null, "Bearer a"]);
  assert.equal(await found({ email: "", email_verified: true }, null), ["Unnamed", null, null]);
});

test("OpenID: failures are attributed to the user, the provider or neither", async () => {
  const through = (
    change: (server: OidcProvider) => void,
    { query = "code=x", told = null as object | null } = {},
  ) =>
    withOidc({}, told, async (provider, { secrets }, server) => {
      change(server);
      return refusal(provider.finish(back(secrets, query), secrets));
    });
  const nothing = () => {};
  const checks = ["SignInRefused", "The provider's response failed validation; please try again."];
  assert.equal(await through(nothing, { query: "error=access_denied" }), [
    "SignInRefused",
    "The provider denied the sign-in, or you cancelled it.",
  ]);
  const wrongCode = (server: OidcProvider) => {
    server.instead["/token"] = (response) => json(response, { error: "invalid_grant" }, 400);
  };
  assert.equal(await through(wrongCode), checks);
  assert.equal(await through(nothing, { told: { sub: "8", name: "Ada" } }), checks, "reported someone else");
  assert.equal(await through(nothing, { query: "code=x&state=y" }), checks, "two states");
  const gone = (server: OidcProvider) => {
    server.instead["/token"] = (response) => void response.destroy();
  };
  const [name] = await through(gone);
  assert.is(name, "TypeError", "nobody was refused: it is not reachable");
});

test("OpenID: an ID token with a wrong or missing signature is refused", async () => {
  const through = (change: (server: OidcProvider) => void) =>
    withOidc({}, null, async (provider, { secrets }, server) => {
      change(server);
      return refusal(provider.finish(back(secrets), secrets));
    });
  const checks = ["SignInRefused", "The provider's response failed validation; please try again."];
  const other = generateKeyPairSync("rsa", { modulusLength: 2048 });
  assert.equal(
    await through((server) => {
      server.signedWith = other.privateKey;
    }),
    checks,
  );
  // Everything else in it is right.
  const unsigned = (server: OidcProvider) => {
    const now = Math.floor(Date.now() / 1000);
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const claims = { iss: server.url, aud: "c", sub: "7", iat: now, exp: now + 60, nonce: server.nonce };
    server.instead["/token"] = (response) =>
      json(response, {
        ...{ access_token: "a", token_type: "Bearer" },
        id_token: `${part({ alg: "none" })}.${part(claims)}.`,
      });
  };
  assert.equal(await through(unsigned), checks);
});

test("OpenID: a provider that was down at first is asked again", async () => {
  const server = await startOidc({});
  try {
    const path = "/.well-known/openid-configuration";
    server.instead[path] = (response) => json(response, {}, 503);
    const provider = oidcProvider({ issuer: server.url, clientId: "c", clientSecret: "s" });
    const [first] = await refusal(provider.begin(callback));
    assert.is.not(first, "SignInRefused");
    delete server.instead[path];
    assert.is((await provider.begin(callback)).url.pathname, "/authorize");
  } finally {
    server.close();
  }
});

test.run();
