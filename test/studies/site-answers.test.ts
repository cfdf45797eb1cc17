/** Responses of the whole website: pages that are public, and errors. On SQLite. */
import { randomBytes, randomUUID } from "node:crypto";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { join } from "node:path";
import Koa, { type Context } from "koa";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Service } from "../../src/studies/service.js";
import { site as makeSite, routes } from "../../src/studies/site/middleware.js";
import { answerPublic, isPublic } from "../../src/studies/site/public-pages.js";
import { NeedsSignIn, SiteError, type Visit } from "../../src/studies/site/visit.js";
import { NotModerator } from "../../src/studies/store/audit.js";
import { openStore } from "../../src/studies/store/open.js";
import { AccountSuspended, bumpGeneration } from "../../src/studies/store/store.js";
import { VersionedCache } from "../../src/studies/store/versioned-cache.js";
import { aroundStore, folder, store } from "./support/one-store.js";
import { origin, reader, sessionOf, type Who } from "./support/visitors.js";

aroundStore();

/** A request over HTTPS, as the website sees it. */
function contextOf(method: string, url: string, headers: Record<string, string> = {}): Context {
  const request = new IncomingMessage(Object.assign(new Socket(), { encrypted: true }));
  Object.assign(request, { method, url });
  for (const [name, value] of Object.entries(headers)) request.headers[name.toLowerCase()] = value;
  return new Koa().createContext(request, new ServerResponse(request)) as Context;
}

test("public pages: requested without a cookie, by GET", () => {
  const open = (method: string, path: string, who: Who = null, headers = {}) =>
    isPublic({ ctx: contextOf(method, path, headers), session: sessionOf(who) } as unknown as Visit);
  for (const path of [
    "/",
    "/top",
    "/reproduced?x=1",
    "/docs",
    "/robots.txt",
    "/sitemap-1.xml",
    "/feed.atom",
    "/studies/x",
    "/authors/x",
    "/models",
    "/models/x",
  ]) {
    assert.equal([open("GET", path), open("HEAD", path)], [true, true], path);
    assert.equal(
      [open("POST", path), open("GET", path, reader), open("GET", path, null, { Cookie: "" })],
      [false, false, false],
      path,
    );
  }
  for (const path of [
    "/topics",
    "/modelsx",
    "/drafts",
    "/account",
    "/sign-in",
    "/comments/x",
    "/notifications/feed/x.atom",
  ])
    assert.not.ok(open("GET", path), path);
});

test("a public page is rendered once until something changes, and cached unless large", async () => {
  const service = { store, pages: new VersionedCache(5) } as unknown as Service;
  let made = 0;
  const ask = async (body: string | Buffer, path = "/docs?a=1", status = 200, headers = {}) => {
    const ctx = contextOf("GET", path, headers);
    await answerPublic({ ctx, service } as unknown as Visit, { a: (value) => value }, async () => {
      made += 1;
      ctx.status = status;
      ctx.set({ "Content-Type": "text/x-own", "X-Study-Version": "7", "X-Other": "y" });
      ctx.body = body;
    });
    return ctx;
  };
  const first = await ask("one");
  const second = await ask("two");
  assert.equal([String(first.body), String(second.body), made], ["one", "one", 1]);
  assert.equal(
    [
      second.status,
      second.response.get("Content-Type"),
      second.response.get("X-Study-Version"),
      second.response.get("X-Other"),
    ],
    [200, "text/x-own", "7", undefined],
  );
  assert.is(second.response.get("Cache-Control"), "no-cache");
  assert.match(String(second.response.get("Vary")), "Cookie");
  assert.is(String((await ask("other", "/docs?a=2")).body), "other");
  assert.is(made, 2);
  await bumpGeneration(store.db);
  assert.is(String((await ask("new")).body), "new");
  const etag = (await ask("new")).response.get("ETag");
  assert.is((await ask("new", "/docs?a=1", 200, { "If-None-Match": etag })).status, 304);
  // Removed pages answer with their status and have no ETag.
  const gone = await ask("gone", "/studies/x", 410);
  assert.equal([gone.status, String(gone.body), gone.response.get("ETag")], [410, "gone", undefined]);
  // Bytes that do not compress, and more of them than are cached.
  made = 0;
  const noise = (length: number) => randomBytes(length);
  const large = noise(130_000);
  await ask(large, "/top");
  assert.equal((await ask(large, "/top")).body, large);
  assert.is(made, 2);
  await ask(noise(120_000), "/reproduced");
  await ask(noise(120_000), "/reproduced");
  assert.is(made, 3);
});

test("page errors are reported by kind, and only real faults are logged", async () => {
  const log: string[] = [];
  const serviceOf = (change: object = {}) =>
    ({
      store,
      origin,
      trustedProxies: null,
      providers: [],
      pages: new VersionedCache(5),
      log: (line: string) => log.push(line),
      ...change,
    }) as unknown as Service;
  let fault: unknown;
  const fail = () => Promise.reject(fault);
  routes.push(["GET", "/fault", fail], ["POST", "/fault", fail]);
  const site = makeSite(serviceOf());
  routes.splice(-2);
  const nowhere = () => assert.unreachable();
  const ask = async (method: string, path: string, by = site) => {
    const ctx = contextOf(method, path);
    await by(ctx as never, nowhere as never);
    return ctx;
  };
  const failing = async (error: unknown) => {
    fault = error;
    const ctx = await ask("GET", "/fault");
    const { body } = ctx;
    return [
      ctx.status,
      /<h1>([^<]*)<\/h1>/.exec(String(body))?.[1],
      /<\/h1><p>([^<]*)</.exec(String(body))?.[1],
      ctx.response.get("Retry-After"),
    ];
  };
  const nothing = [404, "Not found", "Page not found.", undefined];
  assert.equal(await failing(new NotModerator()), nothing);
  const suspended =
    "This account is suspended or deleted, so nothing was changed. Sign in again to see why and to appeal.";
  assert.equal(await failing(new AccountSuspended()), [403, "Not allowed", suspended, undefined]);
  assert.equal(await failing(new SiteError(429, "Slowly.", 7)), [429, "Too many requests", "Slowly.", "7"]);
  assert.equal(await failing(new SiteError(410, "Gone.")), [410, "No longer available", "Gone.", undefined]);
  assert.equal(await failing(new SiteError(503, "Later.")), [
    503,
    "Temporarily unavailable",
    "Later.",
    undefined,
  ]);
  const away = await (async () => {
    fault = new NeedsSignIn();
    return ask("GET", "/fault");
  })();
  assert.equal([away.status, away.response.get("Location")], [303, "/sign-in?return=%2Ffault"]);
  assert.equal(log, []);
  const unavailable = [
    503,
    "Temporarily unavailable",
    "The service cannot handle the request right now. Please try again soon.",
    undefined,
  ];
  assert.equal(await failing(Object.assign(new Error("gone"), { code: "ECONNRESET" })), unavailable);
  assert.equal(log, [], "a client that left is not a fault");
  assert.equal(await failing(new Error("broken")), unavailable);
  assert.is(log.length, 1);

  assert.is((await ask("GET", "/nothing")).status, 404);
  // Paths count as they stand: by case, to their end, undecoded; a part that has a shape is there in that shape alone.
  const [none, there] = [randomUUID(), "/sign-in"];
  for (const [path, status] of [
    [there, 200],
    ["/Sign-in", 404],
    ["/sign-in/", 404],
    ["/%73ign-in", 404],
    [`/studies/${none}`, 405],
    [`/studies/${none}/v/1`, 405],
    [`/studies/${none}/v/1a`, 404],
    [`/studies/${none}/v/1/cite.bib`, 405],
    [`/studies/${none}/v/1/cite.B`, 404],
    ["/authors/a_b-c", 405],
    ["/authors/a%20b", 404],
    ["/sitemap-1.xml", 405],
    ["/sitemap-0.xml", 404],
    ["/sitemap-10000.xml", 404],
    ["/notifications/feed/a_-.atom", 405],
    ["/notifications/feed/a.b.atom", 404],
  ] as const) {
    assert.is((await ask(path.toLowerCase().startsWith(there) ? "GET" : "PUT", path)).status, status, path);
  }
  assert.is((await ask("GET", "/sitemap-1a.xml")).status, 404);
  assert.match(String((await ask("GET", `/studies/%3${none.slice(1)}`)).body), "Page not found.");
  const wrong = await ask("DELETE", "/agents");
  assert.equal([wrong.status, wrong.response.get("Allow")], [405, "GET, POST"]);
  assert.match(String(wrong.body), "This page accepts only GET, POST.");
  assert.equal((await ask("POST", "/")).response.get("Allow"), "GET");
  assert.is((await ask("HEAD", "/")).status, 200);
  const gone = await openStore(join(folder, "gone.db"));
  await gone.close();
  assert.is((await ask("GET", "/", makeSite(serviceOf({ store: gone })))).status, 503);
  assert.is(log.length, 2);
  // Only a site with its own domain asks for HTTPS permanently.
  const strict = async (of: string) =>
    (await ask("GET", "/favicon.ico", makeSite(serviceOf({ origin: of })))).response.get(
      "Strict-Transport-Security",
    );
  assert.equal(
    [await strict(origin), await strict("https://localhost:8990")],
    ["max-age=31536000", undefined],
  );
});

test.run();
