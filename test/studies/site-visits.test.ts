/** What a request sends and receives, whatever it asks for: health, bodies, cookies, forms. On SQLite. */
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { join } from "node:path";
import Koa from "koa";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  answeredAsKnown,
  etagOf,
  pack,
  sendPacked,
  unpack,
  wantsGzip,
} from "../../src/studies/http/conditional.js";
import { health } from "../../src/studies/http/health.js";
import type { Service } from "../../src/studies/service.js";
import { seal, unseal } from "../../src/studies/site/sealed.js";
import { snippets } from "../../src/studies/site/snippets.js";
import { countVisit, readForm, reasonOf, type SiteError, type Visit } from "../../src/studies/site/visit.js";
import { countAction } from "../../src/studies/store/limits.js";
import { openStore } from "../../src/studies/store/open.js";
import type { Session } from "../../src/studies/store/sessions.js";
import type { Store } from "../../src/studies/store/store.js";
import type { StudyRow } from "../../src/studies/store/studies.js";
import { saying } from "../support/saying.js";
import { aroundStore, clock, folder, store } from "./support/one-store.js";

aroundStore();

/** A request, as the service's parts see it. */
function contextOf(headers: Record<string, string> = {}, url = "/") {
  const request = new IncomingMessage(new Socket());
  request.method = "GET";
  request.url = url;
  for (const [name, value] of Object.entries(headers)) request.headers[name.toLowerCase()] = value;
  return new Koa().createContext(request, new ServerResponse(request));
}

test("liveness needs only the process; readiness needs its database", async () => {
  const gone = await openStore(join(folder, "gone.db"));
  await gone.close();
  for (const [path, of, status] of [
    ["/healthz", gone, 200],
    ["/readyz", gone, 503],
    ["/readyz", store, 200],
  ] as const) {
    const ctx = contextOf({}, path);
    await health({ store: of, log() {} } as unknown as Service)(ctx, async () => assert.unreachable());
    const both = status === 200 ? "ok" : "failed";
    const database = path === "/healthz" ? {} : { reads: both, writes: both };
    assert.equal(
      [ctx.status, ctx.body],
      [status, { status: status === 200 ? "ok" : "unavailable", ...database }],
      path,
    );
    assert.is(ctx.response.get("Cache-Control"), "no-store");
  }
  let others = 0;
  for (const path of ["/", "/healthz/", "/ready"])
    await health({ store: gone } as Service)(contextOf({}, path), async () => {
      others += 1;
    });
  assert.is(others, 3);
});

test("a body is sent in the client's encoding, and not again to a client that has it", async () => {
  const [short, long] = [Buffer.alloc(999, "a"), Buffer.alloc(1000, "a")];
  const hash = "0123456789abcdef".repeat(4);
  assert.is(etagOf(hash), `"${hash.slice(0, 32)}"`);
  const [plain, packed] = [await pack(short, hash), await pack(long, hash)];
  assert.equal([plain.gzipped, plain.bytes], [false, short]);
  assert.ok(packed.gzipped && packed.bytes.length < 100);
  assert.equal([await unpack(plain), await unpack(packed)], [short, long]);
  const etag = `"${hash.slice(0, 32)}"`;
  for (const [asked, known] of [
    ["", false],
    ['"x"', false],
    [etag, true],
    [`"x", W/${etag}`, true],
    ["*", true],
    [etag.slice(1, -1), false],
  ] as const) {
    const ctx = contextOf({ "If-None-Match": asked });
    assert.is(answeredAsKnown(ctx, etag), known, asked);
    assert.equal([ctx.status === 304, ctx.response.get("ETag")], [known, etag]);
    assert.match(String(ctx.response.get("Vary")), "Accept-Encoding");
  }
  for (const [accepted, gzip] of [
    ["", false],
    ["gzip", true],
    ["br, gzip;q=0.5", true],
    ["identity", false],
    ["gzip;q=0", false],
    ["identity, gzip;q=0.1", false],
  ] as const) {
    assert.is(wantsGzip(contextOf({ "Accept-Encoding": accepted })), gzip, accepted);
    const ctx = contextOf({ "Accept-Encoding": accepted });
    await sendPacked(ctx, packed);
    assert.equal(ctx.body, gzip ? packed.bytes : long);
    assert.is(ctx.response.get("Content-Encoding"), gzip ? "gzip" : undefined);
  }
  const ctx = contextOf({ "Accept-Encoding": "gzip" });
  await sendPacked(ctx, plain);
  assert.equal([ctx.body, ctx.response.get("Content-Encoding")], [short, undefined]);
  const known = contextOf({ "If-None-Match": etag });
  await sendPacked(known, packed);
  assert.equal([known.status, known.body ?? null], [304, null]);
});

test("browser cookies are read only by this service, and only as sealed", async () => {
  const sealed = await seal(store, { a: [1, "ü"] });
  assert.equal(await unseal(store, sealed), { a: [1, "ü"] });
  assert.is.not(await seal(store, { a: [1, "ü"] }), sealed, "with another nonce");
  const bytes = Buffer.from(sealed, "base64url");
  for (const at of [0, 12, bytes.length - 17, bytes.length - 1]) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] as number) ^ 1;
    assert.is(await unseal(store, changed.toString("base64url")), undefined, `byte ${at}`);
  }
  for (const other of ["", "x", sealed.slice(0, 30)]) assert.is(await unseal(store, other), undefined);
  const elsewhere = await openStore(join(folder, "elsewhere.db"));
  assert.is(await unseal(elsewhere, sealed), undefined);
  await elsewhere.close();
});

test("no snippet or comment is read where there is nothing to search for", async () => {
  const none = {} as Store;
  assert.is((await snippets(none, [], ["heron"])).size, 0);
  assert.is((await snippets(none, [{ published_at: 1 } as StudyRow], [])).size, 0);
});

test("cookies match by whole name; errors give a reason and how long to wait", async () => {
  const { cookies } = contextOf({ Cookie: "x; other=1; a=b=c;ab=2; a=later" });
  assert.equal(
    ["a", "ab", "x", "b"].map((name) => cookies.get(name)),
    ["b=c", "2", undefined, undefined],
  );
  assert.is(contextOf().cookies.get("a"), undefined);
  const reason = (text: string | null) =>
    reasonOf(new URLSearchParams(text === null ? {} : { reason: text }));
  assert.is(reason(" two\r\nlines\0 "), "two\nlines\ufffd");
  assert.is(reason("😀".repeat(1000)), "😀".repeat(1000));
  for (const [text, length] of [
    ["😀".repeat(1001), 1001],
    [" ", 0],
    ["\u00ad", 1],
    [null, 0],
  ] as const)
    assert.throws(() => reason(text), saying(`A reason must have 1 to 1000 characters, got ${length}.`));
  // Sixty sign-ins of one address in ten minutes.
  clock.ms += 1e9;
  const service = { store, trustedProxies: null } as unknown as Service;
  const visit = (session: Session | null = null) =>
    ({ service, ctx: contextOf(), session, csrf: "" }) as unknown as Visit;
  for (let count = 0; count < 60; count++) await countVisit(visit(), "sign-in");
  const refused = async (ms: number, from = visit()) => {
    clock.ms += ms;
    const error = await countVisit(from, "sign-in").then(
      () => null,
      (fault) => fault as SiteError,
    );
    return error && [error.status, error.retryAfter, error.message];
  };
  const sentence = (wait: string) =>
    `Too many sign-in attempts from your address in a short time. Please try again in ${wait}.`;
  assert.equal(await refused(0), [429, 600, sentence("10 minutes")]);
  assert.equal(await refused(479_001), [429, 121, sentence("3 minutes")]);
  assert.equal(await refused(1000), [429, 120, sentence("2 minutes")]);
  assert.equal(await refused(1000), [429, 119, sentence("119 seconds")]);
  assert.equal(await refused(118_998), [429, 1, sentence("1 seconds")]);
  assert.is(await refused(1), null);
  // An account has half as many, wherever it comes from.
  clock.ms += 1e9;
  const person = { account: { id: "somebody" } } as Session;
  for (let count = 0; count < 30; count++) assert.is(await refused(0, visit(person)), null);
  assert.is((await refused(0, visit(person)))?.[0], 429);
  assert.is(await refused(0), null);
});

test("a form must come from this site, with its type and the session's token", async () => {
  clock.ms += 1e9;
  const service = { store, trustedProxies: null, origin: "https://s.example" } as unknown as Service;
  const form = "application/x-www-form-urlencoded; charset=utf-8";
  const send = async (headers: Record<string, string>, body: string, session = true, id = "one") => {
    const ctx = contextOf({ "Content-Type": form, ...headers });
    ctx.req.push(body);
    ctx.req.push(null);
    const visit = {
      service,
      ctx,
      session: session ? { account: { id } } : null,
      csrf: session ? "token" : "",
    };
    return readForm(visit as unknown as Visit).then(
      ({ form }) => Object.fromEntries(form),
      (error: SiteError) => [error.status, error.message],
    );
  };
  const own = { Origin: "https://s.example", "Sec-Fetch-Site": "same-origin" };
  assert.equal(await send(own, "csrf=token&a=%C3%BC+b"), { csrf: "token", a: "ü b" });
  assert.equal(await send({}, "csrf=token"), { csrf: "token" });
  // Three hundred forms of an account in ten minutes.
  const from = { accountId: "busy", address: "192.0.2.9" };
  for (let count = 0; count < 299; count++) assert.is(await countAction(store, "form", from), 0);
  assert.equal(await send(own, "csrf=token", true, "busy"), { csrf: "token" });
  assert.equal(await send(own, "csrf=token", true, "busy"), [
    429,
    "Too many forms from your address in a short time. Please try again in 10 minutes.",
  ]);
  const elsewhere = [403, "This form was sent by another site, so it was ignored."];
  assert.equal(await send({ Origin: "https://e.example" }, "csrf=token"), elsewhere);
  assert.equal(await send({ "Sec-Fetch-Site": "same-site" }, "csrf=token"), elsewhere);
  assert.equal(await send({ ...own, "Sec-Fetch-Site": "none" }, "csrf=token"), elsewhere);
  for (const type of ["text/plain", "", "application/x-www-form-urlencodedx"])
    assert.equal(await send({ "Content-Type": type }, "csrf=token"), [
      400,
      "This is not a form from this site.",
    ]);
  assert.equal(await send({}, "csrf=token", false), [403, "Your session has ended. Sign in and try again."]);
  for (const wrong of ["csrf=tokem", "csrf=toke", "csrf=", ""])
    assert.equal(await send({}, wrong), [
      403,
      "This form has expired or belongs to another session. Reload its page.",
    ]);
  // A comment of 10,000 characters, twelve bytes each, and 4,000 bytes more.
  assert.is(Object.hasOwn(await send({}, `csrf=token&b=${"x".repeat(124_000 - 13)}`), "csrf"), true);
  assert.equal(await send({}, `csrf=token&b=${"x".repeat(124_001 - 13)}`), [
    400,
    "The form is too large or was truncated.",
  ]);
});

test.run();
