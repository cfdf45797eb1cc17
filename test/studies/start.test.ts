/**
 * The running service: what its configuration allows, what it limits, what it does at start, by the hour and by the
 * minute, and how it ends.
 */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Providers } from "../../src/studies/auth/providers.js";
import { readConfig } from "../../src/studies/config.js";
import { developmentCertificate } from "../../src/studies/dev/certificate.js";
import { type RunningStudies, type StudiesOptions, startStudies } from "../../src/studies/start.js";
import { signInAccount } from "../../src/studies/store/accounts.js";
import { openStore } from "../../src/studies/store/open.js";
import { readNow } from "../../src/studies/store/store.js";
import { createToken } from "../../src/studies/store/tokens.js";
import { saying } from "../support/saying.js";
import { withTime } from "../support/with-time.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-start-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));
let databases = 0;
const fresh = () => join(folder, `${++databases}.db`);

const options = (change: Partial<StudiesOptions>): StudiesOptions => ({
  ...{ origin: "https://studies.example.org:0", host: "127.0.0.1", port: 0, database: fresh(), tls: null },
  ...{ trustedProxies: ["127.0.0.1"], disableFile: join(folder, "off"), providers: () => [] },
  ...change,
});

interface Made {
  options: Record<string, unknown>;
  server: http.Server;
}

/**
 * Starts a service whose timers the test triggers. @returns the calls by their milliseconds, and those that are left
 */
async function watched(of: StudiesOptions) {
  const clocks = new Map<number, () => void>();
  const left = new Set<object>();
  const servers: Made[] = [];
  const real = { http: http.createServer, https: https.createServer };
  const noted = (work: () => void, ms: number) => {
    const clock = { unref: () => clock };
    clocks.set(ms, work);
    left.add(clock);
    return clock;
  };
  const cleared = { clearInterval: (clock: object) => left.delete(clock) };
  const remembering =
    <T extends (...words: never[]) => http.Server>(make: T) =>
    (...words: Parameters<T>) => {
      const server = make(...words);
      servers.push({ options: (words as unknown[])[0] as Record<string, unknown>, server });
      return server;
    };
  http.createServer = remembering(real.http as never) as unknown as typeof http.createServer;
  https.createServer = remembering(real.https as never) as unknown as typeof https.createServer;
  syncBuiltinESMExports();
  let running: RunningStudies;
  try {
    running = await withTime({ setInterval: noted, ...cleared }, () => startStudies(of));
  } finally {
    http.createServer = real.http;
    https.createServer = real.https;
    syncBuiltinESMExports();
  }
  const close = () => withTime(cleared, () => running.close());
  return { running, clocks, left, servers, close };
}

/** Waits until a background action has happened. */
async function until(there: () => Promise<boolean>): Promise<void> {
  while (!(await there())) await new Promise((resolve) => setImmediate(resolve));
}

test("expired rows are deleted at start and every hour, until the service ends", async () => {
  const database = fresh();
  const store = await openStore(database);
  const { id } = await signInAccount(store, {
    issuer: "i",
    subject: "s",
    name: "Ada",
    email: null,
    login: null,
  });
  const now = await readNow(store, store.db);
  const add = (name: string) =>
    store.db
      .insertInto("sessions")
      .values({
        id: name,
        hash: name,
        account_id: id,
        created_at: 0,
        seen_at: 0,
        expires_at: name === "on" ? now + 1e9 : now,
        agent: "",
      })
      .execute();
  const ids = async () =>
    (await store.db.selectFrom("sessions").select("id").execute()).map((row) => row.id).sort();
  await add("over");
  await add("on");
  const { running, clocks, left, close } = await watched(options({ database }));
  try {
    assert.equal(await ids(), ["on"]);
    assert.equal(
      [...clocks.keys()].sort((a, b) => a - b),
      [60_000, 3_600_000],
    );
    await add("over too");
    clocks.get(3_600_000)?.();
    await until(async () => !(await ids()).includes("over too"));
    assert.equal(await ids(), ["on"]);
    // What tokens did is written down before the end, though its moment has not come.
    const token = await createToken(store, id, { name: "t", days: 1, scopes: ["public:read"] });
    running.service.activity.record(token?.id as string, "studies.list", 200, null);
    assert.is(left.size, 2);
  } finally {
    await close();
  }
  assert.is(left.size, 0);
  assert.equal(
    (await store.db.selectFrom("activity").select("action").execute()).map(({ action }) => action),
    ["studies.list"],
  );
  await store.close();
  assert.not.ok(
    await readNow(running.service.store, running.service.store.db).then(
      () => true,
      () => false,
    ),
    "its database is closed",
  );
  assert.not.ok(
    await readNow(running.service.store, running.service.store.quick).then(
      () => true,
      () => false,
    ),
  );
  await running.close();
});

test("the certificate is checked every minute; after a proxy there is none", async () => {
  const tls = await developmentCertificate();
  let looks = 0;
  const log: string[] = [];
  const renewedTls = () => {
    looks += 1;
    if (looks === 2) throw Object.assign(new Error("secret path"), { code: "ENOENT" });
    return tls;
  };
  const { running, clocks, servers, close } = await watched(
    options({ tls, trustedProxies: null, renewedTls, log: (line) => log.push(line) }),
  );
  try {
    assert.is(looks, 0);
    for (let times = 0; times < 3; times += 1) clocks.get(60_000)?.();
    assert.equal([looks, log], [3, ["the TLS certificate is unusable: ENOENT"]]);
    assert.is(running.origin, `https://studies.example.org:${running.port}`);
    const [{ options: given, server } = {} as Made] = servers;
    const { cert: _, key: __, ...bounds } = given;
    assert.equal(bounds, {
      requestTimeout: 60_000,
      headersTimeout: 15_000,
      keepAliveTimeout: 30_000,
      minVersion: "TLSv1.2",
    });
    assert.is(server.maxHeadersCount, 100);
  } finally {
    await close();
  }
  const plain = await watched(options({}));
  try {
    assert.equal(
      plain.servers.map((made) => made.options),
      [{ requestTimeout: 60_000, headersTimeout: 15_000, keepAliveTimeout: 30_000 }],
    );
    plain.clocks.get(60_000)?.();
  } finally {
    await plain.close();
  }
});

test("a failed start leaves neither port nor database open", async () => {
  const { running, close } = await watched(options({}));
  const database = fresh();
  let asked = 0;
  const failing = (change: Partial<StudiesOptions>) =>
    startStudies(options({ database, ...change })).then(
      () => "started",
      (error: Error) => `${error.name}: ${error.message}`,
    );
  assert.match(await failing({ port: running.port }), /^UserError: .*in use/);
  assert.is(
    await failing({ tls: { cert: "x", key: "y" } }),
    "UserError: The TLS certificate or its key is unusable (ERR_OSSL_PEM_NO_START_LINE).",
  );
  const providers = (origin: string) => {
    asked = Number(new URL(origin).port);
    throw new Error("no provider");
  };
  assert.is(await failing({ providers }), "Error: no provider");
  assert.is(
    await fetch(`http://127.0.0.1:${asked}/healthz`).then(
      () => "answers",
      () => "gone",
    ),
    "gone",
  );
  // Its file can be locked as a whole, which is impossible while another process has it open.
  const { SqliteFile } = await import("../../src/studies/store/sqlite-file.js");
  const file = new SqliteFile(database, 0);
  file.exec("pragma locking_mode = exclusive; begin exclusive; commit");
  file.close();
  await close();
});

test("configuration faults are one sentence each", () => {
  const file = join(folder, "faults.json");
  const refused = (text: string, env: Record<string, string> = {}) => {
    writeFileSync(file, text);
    try {
      readConfig(file, env);
    } catch (error) {
      return `${(error as Error).name}: ${(error as Error).message}`;
    }
    return "accepted";
  };
  const behind = { origin: "https://s.example", trusted_proxies: ["::1"] };
  const config = (change: object, env: Record<string, string> = {}) =>
    refused(JSON.stringify({ ...behind, ...change }), env);
  const oidc = (issuer: string) => config({ oidc: { issuer, client_id: "c" } });
  assert.is(config({}), "accepted");
  assert.match(refused("{"), `UserError: The configuration ${file} is invalid: `);
  assert.is(
    oidc("login.example"),
    "UserError: oidc.issuer must be a URL such as https://login.example.org, got login.example.",
  );
  assert.is(
    oidc("http://login.example"),
    "UserError: oidc.issuer must use https, or http on this machine, got http://login.example.",
  );
  assert.is(oidc("http://127.0.0.1:9"), "accepted");
  for (const contact of ["nobody", "ftp://x", "http://x.example", "a b@c"])
    assert.is(
      config({ security_contact: contact }),
      `UserError: security_contact must be an email address, or an https: or mailto: URL, got ${contact}.`,
    );
  for (const token of ["", "short", "with blanks in between it"])
    assert.is(
      config({}, { TAPLINE_METRICS_TOKEN: token }),
      `UserError: TAPLINE_METRICS_TOKEN must be at least 16 visible ASCII characters, got ${token.length} characters.`,
    );
  assert.is(config({}, { DATABASE_URL: "" }).slice(0, 34), "UserError: DATABASE_URL is empty; ");
  const missing = join(folder, "none.json");
  assert.throws(() => readConfig(missing, {}), saying(`Cannot read the configuration ${missing} (ENOENT).`));
  assert.throws(() => readConfig(folder, {}), saying(`Cannot read the configuration ${folder} (EISDIR).`));
  writeFileSync(file, JSON.stringify({ ...behind, security_contact: "sec@s.example" }));
  const read = readConfig(file, { TAPLINE_METRICS_TOKEN: "0123456789abcdef" });
  assert.equal([read.securityContact, read.metricsToken], ["mailto:sec@s.example", "0123456789abcdef"]);
});

test("a host that does not resolve is reported in one sentence", async () => {
  const error = await startStudies(options({ host: "no-such-host.invalid" })).catch((thrown) => thrown);
  assert.is(error.name, "UserError", error.stack);
  assert.match(error.message, "Cannot listen on no-such-host.invalid (");
});

test("a configuration sets listening address, trusted proxies and sign-in providers", () => {
  const file = join(folder, "studies.json");
  const read = (config: object, env: Record<string, string> = {}) => {
    writeFileSync(file, JSON.stringify({ origin: "https://s.example/", ...config }));
    return readConfig(file, env);
  };
  writeFileSync(join(folder, "cert.pem"), "C");
  writeFileSync(join(folder, "key.pem"), "K");
  const own = read({ tls: { certificate: "cert.pem", key: "key.pem" } });
  assert.equal(
    [own.origin, own.host, own.port, own.tls, own.trustedProxies, own.renewedTls?.()],
    ["https://s.example", "::", 8990, { cert: "C", key: "K" }, null, { cert: "C", key: "K" }],
  );
  assert.equal([own.database, own.disableFile], [join(folder, "studies.db"), join(folder, "api-disabled")]);
  const behind = read({ trusted_proxies: ["::1", "10.0.0.1"], disable_file: "off" });
  assert.equal(
    [behind.host, behind.tls, behind.renewedTls, behind.trustedProxies, behind.disableFile],
    ["127.0.0.1", null, undefined, ["::1", "10.0.0.1"], join(folder, "off")],
  );
  const proxies = { trusted_proxies: ["::1"] };
  assert.equal(
    [read({ ...proxies, host: "0.0.0.0", port: 1 }).host, read({ ...proxies, port: 1 }).port],
    ["0.0.0.0", 1],
  );
  for (const origin of ["s.example", "http://s.example", "https://s.example/a", "https://s.example//"])
    assert.throws(() => read({ ...proxies, origin }), /^origin must be /);
  const [oidc, github] = [{ issuer: "https://id.example", client_id: "o", label: "Us" }, { client_id: "g" }];
  const secrets = { TAPLINE_OIDC_CLIENT_SECRET: "x", TAPLINE_GITHUB_CLIENT_SECRET: "y" };
  const keys = (config: object, env: Record<string, string>) =>
    (read({ ...proxies, ...config }, env).providers("") as Providers).map(
      ({ key, label }) => `${key} ${label}`,
    );
  assert.equal(keys({ oidc, github }, secrets), ["oidc Us", "github GitHub"]);
  assert.equal(
    [keys({ oidc }, secrets), keys({ github }, secrets), keys({}, {})],
    [["oidc Us"], ["github GitHub"], []],
  );
  assert.throws(
    () => keys({ oidc }, {}),
    saying("The environment variable TAPLINE_OIDC_CLIENT_SECRET is not set."),
  );
  assert.throws(
    () => keys({ github }, { TAPLINE_GITHUB_CLIENT_SECRET: "" }),
    saying("The environment variable TAPLINE_GITHUB_CLIENT_SECRET is not set."),
  );
});

test.run();
