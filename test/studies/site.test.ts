import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { githubProvider } from "../../src/studies/auth/github.js";
import { readConfig } from "../../src/studies/config.js";
import { startDevelopment } from "../../src/studies/dev/start.js";
import { html } from "../../src/studies/site/html.js";
import { safeReturn } from "../../src/studies/site/visit.js";
import { startStudies } from "../../src/studies/start.js";
import { addComment } from "../../src/studies/store/discussion.js";
import { listDrafts } from "../../src/studies/store/drafts.js";
import { countAction } from "../../src/studies/store/limits.js";
import { publishDraft } from "../../src/studies/store/publish.js";
import { samplePackage } from "./support/packages.js";
import { type Answer, startService, type TestService } from "./support/service.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-site-"));
let service: TestService;
let ada: Awaited<ReturnType<TestService["account"]>>;
let ben: Awaited<ReturnType<TestService["account"]>>;

test.before(async () => {
  service = await startService(join(folder, "studies.db"));
  ada = await service.account("Ada");
  ben = await service.account("Ben", []);
});

test.after(async () => {
  await service.close();
  rmSync(folder, { recursive: true, force: true });
});

async function csrfOf(cookie: string): Promise<string> {
  const { text } = await service.call("/account", { headers: { Cookie: cookie } });
  return /name="csrf" value="([^"]+)"/.exec(text)?.[1] as string;
}

function post(path: string, cookie: string, form: Record<string, string>, headers = {}): Promise<Answer> {
  return service.call(path, {
    method: "POST",
    body: new URLSearchParams(form).toString(),
    headers: {
      "Content-Type": "application/x-www-form-urlencoded",
      Origin: service.running.origin,
      ...(cookie === "" ? {} : { Cookie: cookie }),
      ...headers,
    },
  });
}

async function draft(change = {}): Promise<{ id: string; sha256: string; token: string }> {
  const { token } = await service.token(ada.id);
  const body = JSON.stringify(samplePackage(change));
  const { json } = await service.api(token, "/api/v1/studies", { method: "POST", body });
  return { id: json.id, sha256: json.package_sha256, token };
}

test("templates escape text, and only markup stays markup", () => {
  const evil = `<a href="x" onclick='y'>&\0`;
  assert.is(html`<p title="${evil}">${[evil, html`<b>ok</b>`, null, 0]}</p>`.markup.includes(evil), false);
  assert.ok(html`${[html`<b>ok</b>`]}`.markup === "<b>ok</b>");
});

test("pages have security headers and load nothing from other hosts", async () => {
  for (const path of ["/", "/top", "/?q=%22%27%3Cscript%3E&page=99", "/sign-in", "/docs", "/nothing"]) {
    const answer = await service.call(path);
    assert.match(
      String(answer.headers["content-security-policy"]),
      /^default-src 'none'.*frame-ancestors 'none'/,
    );
    assert.is(answer.headers["x-content-type-options"], "nosniff");
    assert.not.match(answer.text, /<script|style=|onclick|javascript:/i);
    for (const [, address] of answer.text.matchAll(/(?:href|src|action)="(https?:[^"]*)"/g)) {
      assert.ok(address?.startsWith(service.running.origin), address);
    }
  }
  const css = await service.call(
    /href="(\/assets\/[^"]+)"/.exec((await service.call("/")).text)?.[1] as string,
  );
  assert.is(css.headers["content-type"], "text/css; charset=utf-8");
});

test("forms refuse other sites, wrong CSRF tokens and visitors without a session", async () => {
  const one = await draft();
  const id = randomUUID();
  const csrf = await csrfOf(ada.cookie);
  const foreign = await csrfOf(ben.cookie);
  const forms = [
    `/studies/${id}/comments`,
    `/studies/${id}/upvote`,
    "/agents",
    `/agents/${id}/revoke`,
    `/drafts/${one.id}/publish`,
    `/drafts/${one.id}/delete`,
    `/account/sessions/${id}/end`,
    "/account/sessions/end-others",
    "/sign-out",
  ];
  for (const path of forms) {
    const tries: [string, Promise<Answer>][] = [
      ["no field", post(path, ada.cookie, {})],
      ["another's field", post(path, ada.cookie, { csrf: foreign })],
      ["as many characters, more bytes", post(path, ada.cookie, { csrf: "é".repeat(csrf.length) })],
      ["another origin", post(path, ada.cookie, { csrf }, { Origin: "https://evil.example" })],
      ["null origin", post(path, ada.cookie, { csrf }, { Origin: "null" })],
      ["cross-site", post(path, ada.cookie, { csrf }, { "Sec-Fetch-Site": "cross-site" })],
      ["no session", post(path, "", { csrf })],
    ];
    for (const [name, answer] of tries) assert.is((await answer).status, 403, `${path}, ${name}`);
    assert.is((await service.call(path)).status, path === "/agents" ? 303 : 405);
  }
  assert.is((await post("/sign-in/oidc", "", {}, { Origin: "https://evil.example" })).status, 404);
  assert.is((await listDrafts(service.running.service.store, ada.id)).length, 1);
});

test("moderator actions are 404 for everyone else, whatever the form holds", async () => {
  const csrf = await csrfOf(ben.cookie);
  const id = randomUUID();
  // A form that none of them accepts: moderators would get an error about its fields.
  for (const path of [
    ...["remove", "reinstate"].map((action) => `/studies/${id}/${action}`),
    ...["hide", "show", "erase"].map((action) => `/comments/${id}/${action}`),
    ...["suspend", "reinstate"].map((action) => `/accounts/${id}/${action}`),
    `/reports/${id}/dismiss`,
  ]) {
    const refused = await post(path, ben.cookie, { csrf, reason: "", version: "no number" });
    assert.is(refused.status, 404, path);
    assert.match(refused.text, "Page not found.", path);
  }
  // Of an account that there is: a moderator would be shown it.
  for (const path of ["/moderation", "/moderation/log", "/moderation/account?handle=ada"]) {
    const refused = await service.call(path, { headers: { Cookie: ben.cookie } });
    assert.is(refused.status, 404, path);
    assert.match(refused.text, "Page not found.", path);
    const nobody = await service.call(path);
    assert.is(nobody.status, 303, path);
    assert.match(String(nobody.headers.location), /^\/sign-in\?/, path);
  }
});

test("users cannot reach another's drafts, tokens or sessions", async () => {
  const one = await draft();
  const csrf = await csrfOf(ben.cookie);
  for (const path of [`/drafts/${one.id}`, `/drafts/${one.id}/package.json`]) {
    assert.is((await service.call(path, { headers: { Cookie: ben.cookie } })).status, 404);
    assert.is((await service.call(path)).status, 303);
  }
  assert.is((await post(`/drafts/${one.id}/delete`, ben.cookie, { csrf })).status, 404);
  const publish = { csrf, reviewed: "yes", sha256: one.sha256, replaces: "" };
  assert.is((await post(`/drafts/${one.id}/publish`, ben.cookie, publish)).status, 403, "not a publisher");
  assert.is(
    (await post("/agents", ben.cookie, { csrf, name: "x", days: "1", scope: "public:read" })).status,
    403,
  );
  const other = await service.token(ada.id);
  assert.is((await post(`/agents/${other.id}/revoke`, ben.cookie, { csrf })).status, 303);
  assert.is((await service.api(other.token, "/api/v1/studies")).status, 200, "not revoked by another");
  assert.is((await service.call(`/agents/${other.id}`, { headers: { Cookie: ben.cookie } })).status, 404);
});

test("publishing needs the review, the reviewed bytes, and one's own study to replace", async () => {
  const one = await draft({ title: "Publish me" });
  const csrf = await csrfOf(ada.cookie);
  const form = { csrf, reviewed: "yes", sha256: one.sha256, replaces: "" };
  const path = `/drafts/${one.id}/publish`;
  assert.is((await post(path, ada.cookie, { ...form, reviewed: "" })).status, 400);
  assert.is((await post(path, ada.cookie, { ...form, sha256: "0".repeat(64) })).status, 409);
  assert.is((await post(path, ada.cookie, { ...form, replaces: randomUUID() })).status, 404);
  const done = await post(path, ada.cookie, form);
  assert.equal([done.status, done.headers.location], [303, `/studies/${one.id}`]);
  assert.is((await post(path, ada.cookie, form)).status, 404, "a second time there is nothing to publish");
  const bytes = await service.call(`/studies/${one.id}/package.json`);
  assert.is(bytes.headers["x-content-sha256"], one.sha256);
  assert.match(String(bytes.headers["content-disposition"]), /^attachment/);
});

test("a study taken down during review is not replaced; the draft stays", async () => {
  const { store } = service.running.service;
  const study = await draft({ title: "First" });
  const reviewed = (one: { id: string; sha256: string }) => ({
    accountId: ada.id,
    draftId: one.id,
    reviewedSha256: one.sha256,
  });
  await publishDraft(store, { ...reviewed(study), replaces: null });
  const next = await draft({ title: "Second" });
  const csrf = await csrfOf(ada.cookie);
  // Between the page's look and the publication: the author withdraws it in another window.
  const { db } = store;
  const form = { csrf, reviewed: "yes", sha256: next.sha256, replaces: study.id };
  const taken = () => db.updateTable("studies").set({ listed: 0 }).where("id", "=", study.id).execute();
  const begin = db.transaction.bind(db);
  let meanwhile = false;
  db.transaction = () => {
    const transaction = begin();
    const execute = transaction.execute.bind(transaction);
    transaction.execute = async (work) => {
      if (!meanwhile) {
        meanwhile = true;
        await taken();
      }
      return execute(work);
    };
    return transaction;
  };
  let answer: Answer;
  try {
    answer = await post(`/drafts/${next.id}/publish`, ada.cookie, form);
  } finally {
    db.transaction = begin;
  }
  assert.ok(meanwhile);
  assert.equal(
    [answer.status, /has been withdrawn or removed\. Your draft was not changed/.test(answer.text)],
    [409, true],
  );
  assert.is((await service.call(`/drafts/${next.id}`, { headers: { Cookie: ada.cookie } })).status, 200);
});

test("rate-limited users see how long to wait", async () => {
  const eve = await service.account("Eve", []);
  const csrf = await csrfOf(eve.cookie);
  const { store } = service.running.service;
  const from = { accountId: eve.id, address: "192.0.2.77" };
  for (let count = 0; count < 20; count++) assert.is(await countAction(store, "report", from), 0);
  const one = await draft();
  await publishDraft(store, {
    accountId: ada.id,
    draftId: one.id,
    reviewedSha256: one.sha256,
    replaces: null,
  });
  const refused = await post(`/studies/${one.id}/report`, eve.cookie, { csrf, reason: "again" });
  assert.is(refused.status, 429);
  const seconds = Number(refused.headers["retry-after"]);
  assert.ok(seconds > 86_000 && seconds <= 86_400, String(seconds));
  assert.match(refused.text, "Please try again in 1440 minutes");
});

test("comments are escaped, threaded and bounded", async () => {
  const one = await draft();
  await publishDraft(service.running.service.store, {
    accountId: ada.id,
    draftId: one.id,
    reviewedSha256: one.sha256,
    replaces: null,
  });
  const csrf = await csrfOf(ben.cookie);
  const say = (form: object) => post(`/studies/${one.id}/comments`, ben.cookie, { csrf, ...form });
  assert.is((await say({ body: " \n " })).status, 400);
  assert.is((await say({ body: "x".repeat(10_001) })).status, 400);
  assert.is((await say({ body: "x", parent: randomUUID() })).status, 404);
  assert.is((await say({ body: "😀".repeat(10_000) })).status, 303);
  const said = await say({ body: "<script>alert(1)</script>\r\nsecond line" });
  const id = /#comment-(.+)$/.exec(String(said.headers.location))?.[1] as string;
  assert.is((await say({ body: "an answer", parent: id })).status, 303);
  const page = await service.call(`/studies/${one.id}`);
  assert.not.ok(page.text.includes("<script>"));
  assert.ok(page.text.includes("&lt;script&gt;alert(1)&lt;/script&gt;\nsecond line"));
  assert.ok(page.text.includes('class="depth-1"'));
  let parent = id;
  const { store } = service.running.service;
  for (let depth = 1; depth < 32; depth += 1) {
    const added = await addComment(store, { accountId: ada.id, name: "Ada" }, one.id, parent, "deeper");
    parent = (added as { id: string }).id;
  }
  assert.is((await say({ body: "too deep", parent })).status, 400);
});

test("a token is shown once; names, days and scopes are checked", async () => {
  const gil = await service.account("Gil");
  const csrf = await csrfOf(gil.cookie);
  const form = { csrf, name: "n".repeat(100), days: "30", scope: "public:read" };
  for (const wrong of [
    { name: " " },
    { name: "x".repeat(101) },
    { days: "31" },
    { days: "0" },
    { days: "1.5" },
    { scope: "admin" },
  ]) {
    assert.is((await post("/agents", gil.cookie, { ...form, ...wrong })).status, 400, JSON.stringify(wrong));
  }
  const made = await post("/agents", gil.cookie, form);
  const token = /tpl_\w{49}/.exec(made.text)?.[0] as string;
  assert.is((await service.api(token, "/api/v1/studies")).status, 200);
  assert.is(made.headers["cache-control"], "no-store");
  assert.is((await post("/agents", gil.cookie, { ...form, days: "1" })).status, 200);
  assert.not.ok((await service.call("/agents", { headers: { Cookie: gil.cookie } })).text.includes(token));
});

test("a return address stays on this site", () => {
  const site = { origin: "https://studies.example.org" };
  for (const address of [
    null,
    "",
    "drafts",
    "//evil.example",
    "https://evil.example",
    "/\\evil.example",
    "javascript:alert(1)",
    "/..//evil.example",
    "/.//evil.example",
    "/a/%2e%2e//evil.example",
    "/a\\..\\..//evil.example",
    "/drafts\r\nSet-Cookie: a=b",
    "/\t/evil.example",
  ]) {
    assert.is(safeReturn(site, address), "/", String(address));
  }
  assert.is(safeReturn(site, "/drafts/1?replaces=2"), "/drafts/1?replaces=2");
});

test("after a named proxy, plain HTTP is refused, never redirected", async () => {
  const running = await startStudies({
    origin: "https://studies.example.org",
    host: "127.0.0.1",
    port: 0,
    database: join(folder, "proxied.db"),
    tls: null,
    trustedProxies: ["127.0.0.1"],
    disableFile: join(folder, "off"),
    providers: () => [],
  });
  const ask = (path: string, headers = {}) =>
    new Promise<{ status?: number; headers: object }>((resolve, reject) => {
      request({ host: "127.0.0.1", port: running.port, path, headers }, (incoming) => {
        incoming
          .resume()
          .on("end", () => resolve({ status: incoming.statusCode, headers: incoming.headers }));
      })
        .on("error", reject)
        .end();
    });
  try {
    for (const path of ["/", "/api/v1/studies"]) {
      const plain = await ask(path);
      assert.is(plain.status, 403);
      assert.not.ok("location" in plain.headers);
      assert.is((await ask(path, { "X-Forwarded-Proto": "http" })).status, 403);
    }
    assert.is((await ask("/", { "X-Forwarded-Proto": "https", Host: "evil.example" })).status, 200);
    assert.is((await ask("/api/v1/studies", { "X-Forwarded-Proto": "https" })).status, 401);
    assert.is((await ask("/healthz")).status, 200);
    // Browsers that came once never come by plain HTTP again.
    for (const path of ["/", "/nothing"]) {
      const { headers } = await ask(path, { "X-Forwarded-Proto": "https" });
      const told = (headers as Record<string, string>)["strict-transport-security"] ?? "";
      assert.ok(Number(/^max-age=(\d+)/.exec(told)?.[1]) >= 180 * 86_400, `${path}: ${told}`);
    }
  } finally {
    await running.close();
  }
});

test("proxy headers are trusted from named proxies alone", async () => {
  const running = await startStudies({
    origin: "https://studies.example.org",
    host: "127.0.0.1",
    port: 0,
    database: join(folder, "elsewhere.db"),
    tls: null,
    trustedProxies: ["192.0.2.1"],
    disableFile: join(folder, "off"),
    providers: () => [],
  });
  try {
    for (const path of ["/", "/sign-in", "/api/v1/studies"]) {
      const headers = { "X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.1" };
      const status = await new Promise((resolve, reject) => {
        request({ host: "127.0.0.1", port: running.port, path, headers }, (incoming) => {
          incoming.resume().on("end", () => resolve(incoming.statusCode));
        })
          .on("error", reject)
          .end();
      });
      assert.is(status, 403, path);
    }
  } finally {
    await running.close();
  }
});

test("only approved publishers publish; an agent's approval does not suffice", async () => {
  const cleo = await service.account("Cleo", ["agent"]);
  const { token } = await service.token(cleo.id);
  const body = JSON.stringify(samplePackage({ title: "Not yet" }));
  const { json } = await service.api(token, "/api/v1/studies", { method: "POST", body });
  const page = await service.call(`/drafts/${json.id}`, { headers: { Cookie: cleo.cookie } });
  assert.match(page.text, "Yours is not approved yet");
  const csrf = await csrfOf(cleo.cookie);
  const form = { csrf, reviewed: "yes", sha256: json.package_sha256, replaces: "" };
  assert.is((await post(`/drafts/${json.id}/publish`, cleo.cookie, form)).status, 403);
  assert.is((await service.call(`/studies/${json.id}`)).status, 404);
});

test("GitHub: state and code are checked, the verified primary address is used", async () => {
  const seen: string[] = [];
  const github = createServer((incoming, outgoing) => {
    seen.push(`${incoming.method} ${incoming.url}`);
    outgoing.setHeader("Content-Type", "application/json");
    if (incoming.url === "/login/oauth/access_token") outgoing.end('{"access_token":"gho_x"}');
    else if (incoming.url === "/user") outgoing.end('{"id":7,"login":"Octo","name":null}');
    else {
      outgoing.end(
        '[{"email":"a@b.c","primary":false,"verified":true},{"email":"me@b.c","primary":true,"verified":true}]',
      );
    }
  });
  await new Promise<void>((resolve) => github.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(github.address() as AddressInfo).port}`;
  const provider = githubProvider({ clientId: "c", clientSecret: "s", url, apiUrl: url });
  const callback = "https://studies.example.org/sign-in/github/callback";
  const { url: away, secrets } = await provider.begin(callback);
  assert.is(away.searchParams.get("redirect_uri"), callback);
  assert.is(away.searchParams.get("code_challenge_method"), "S256");
  const back = (query: string) => provider.finish(new URL(`${callback}?${query}`), secrets);
  for (const query of [
    "code=x&state=wrong",
    `state=${secrets.state}`,
    `error=access_denied&state=${secrets.state}`,
  ]) {
    await back(query).then(
      () => assert.unreachable(query),
      (error) => assert.is(error.name, "SignInRefused"),
    );
  }
  assert.equal(seen, []);
  assert.equal(await back(`code=x&state=${secrets.state}`), {
    issuer: "github",
    subject: "7",
    name: "Octo",
    email: "me@b.c",
    login: "Octo",
  });
  github.close();
  github.closeAllConnections();
});

test("--dev refuses production; configuration errors are one sentence", async () => {
  await startDevelopment({ folder, port: 0, seedData: false, env: { NODE_ENV: "production" } }).then(
    () => assert.unreachable(),
    (error) => assert.match(error.message, /NODE_ENV is production/),
  );
  const file = join(folder, "config.json");
  const tls = { certificate: "c.pem", key: "k.pem" };
  const wrong: [object, RegExp][] = [
    [{ origin: "http://x.example", tls }, /must be https/],
    [{ origin: "https://x.example/path", tls }, /must be https/],
    [{ origin: "https://x.example" }, /either tls/],
    [{ origin: "https://x.example", tls, trusted_proxies: ["::1"] }, /not both/],
    [{ origin: "https://x.example", trusted_proxies: ["10.0.0.0/8"] }, /must be IP addresses/],
    [{ origin: "https://x.example", tls }, /Cannot read .* \(ENOENT\)/],
    [{ origin: "https://x.example", tls, typo: 1 }, /typo/],
  ];
  for (const [config, message] of wrong) {
    writeFileSync(file, JSON.stringify(config));
    assert.throws(
      () => readConfig(file, {}),
      (error: Error) => error.name === "UserError" && message.test(error.message),
    );
  }
  writeFileSync(
    file,
    JSON.stringify({ origin: "https://x.example", trusted_proxies: ["10.0.0.1"], database: "a.db" }),
  );
  const config = readConfig(file, {});
  assert.equal([config.database, config.port, config.tls], [join(folder, "a.db"), 8990, null]);
  assert.is(readConfig(file, { DATABASE_URL: "postgres://h/d" }).database, "postgres://h/d");
});

test("no internal error occurred", () => {
  assert.equal(service.log, []);
});

test.run();
