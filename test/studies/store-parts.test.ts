/** What the store and the parts around it decide by themselves: handles, archives, limits, forms, what is kept. On SQLite. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import Koa from "koa";
import { sql } from "kysely";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Providers } from "../../src/studies/auth/providers.js";
import { backUp, restore } from "../../src/studies/backup.js";
import { readConfig } from "../../src/studies/config.js";
import {
  answeredAsKnown,
  etagOf,
  pack,
  sendPacked,
  unpack,
  wantsGzip,
} from "../../src/studies/http/conditional.js";
import { health } from "../../src/studies/http/health.js";
import { personalFiles } from "../../src/studies/personal/export.js";
import { tar } from "../../src/studies/personal/tar.js";
import type { Service } from "../../src/studies/service.js";
import { seal, unseal } from "../../src/studies/site/sealed.js";
import { snippets } from "../../src/studies/site/snippets.js";
import {
  countVisit,
  readCookie,
  readForm,
  reasonOf,
  type SiteError,
  type Visit,
} from "../../src/studies/site/visit.js";
import { identitiesOf, signInAccount } from "../../src/studies/store/accounts.js";
import { freeHandle } from "../../src/studies/store/handles.js";
import { Kept } from "../../src/studies/store/kept.js";
import { countAction } from "../../src/studies/store/limits.js";
import { setFeed } from "../../src/studies/store/notifications.js";
import { summaryOf } from "../../src/studies/store/publish.js";
import { ReadAhead } from "../../src/studies/store/read-ahead.js";
import { numbersOf, readTimes } from "../../src/studies/store/reading.js";
import type { Database } from "../../src/studies/store/schema.js";
import type { Session } from "../../src/studies/store/sessions.js";
import { openStore, readNow, type Store } from "../../src/studies/store/store.js";
import type { StudyRow } from "../../src/studies/store/studies.js";
import { createToken, listTokens, revokeToken } from "../../src/studies/store/tokens.js";
import { saying } from "../support/saying.js";
import { testClock } from "./support/clock.js";
import { samplePackage } from "./support/packages.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-store-"));
const clock = testClock();
let store: Store;
test.before(async () => {
  store = await openStore(join(folder, "studies.db"), { dialect: clock.dialect });
});
test.after(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const signIn = (name: string, more: { email?: string | null; login?: string | null } = {}) =>
  signInAccount(store, {
    ...{ issuer: "https://id.example", subject: `${name}-subject`, name },
    ...{ email: more.email ?? null, login: more.login ?? null },
  });

test("a handle is a name in plain letters, never the service's own words, and never two people's", async () => {
  const free = (name: string) => freeHandle(store.db, name);
  const expected: [name: string, handle: string][] = [
    ["Ada Lovelace", "ada-lovelace"],
    ["  Zoë  Müller-Ångström ", "zoe-muller-angstrom"],
    ["--a..b--", "a-b"],
    ["東京", "reader"],
    ["", "reader"],
    ["x".repeat(40), "x".repeat(32)],
    [`${"y".repeat(31)} z`, "y".repeat(31)],
    ["Admin", "admin-2"],
    ["TapLine", "tapline-2"],
  ];
  for (const [name, handle] of expected) assert.is(await free(name), handle, name);
  for (let count = 1; count <= 9; count++) {
    assert.is(await free("Grace"), count === 1 ? "grace" : `grace-${count}`);
    await store.db
      .updateTable("accounts")
      .set({ handle: count === 1 ? "grace" : `grace-${count}` })
      .where("id", "=", (await signIn(`Other ${count}`)).id)
      .execute();
  }
  assert.match(await free("Grace"), /^grace-[1-9]\d{3,6}$/);
  // One that nobody has may be out all the same.
  const out = (handle: string) => Promise.resolve(["ivy", "ivy-2"].includes(handle));
  assert.is(await freeHandle(store.db, "Ivy", out), "ivy-3");
});

test("an account can be approved by its id, its provider's name for it, and what else is known of it", async () => {
  const bare = await signIn("Bare");
  assert.equal(identitiesOf(bare), [bare.id, "https://id.example#Bare-subject"]);
  const whole = await signIn("Whole", { email: "Whole@Example.org", login: "octocat" });
  const [id, subject, email, login, ...more] = identitiesOf(whole);
  assert.equal([id, subject], [whole.id, "https://id.example#Whole-subject"]);
  assert.is(email?.toLowerCase(), "whole@example.org");
  assert.equal([login, more], ["github:octocat", []]);
});

test("tokens are listed active ones first, and of each the newest first", async () => {
  const { id } = await signIn("Tokens");
  const make = async (name: string, days: number) => {
    clock.ms += 1000;
    return (await createToken(store, id, { name, days, scopes: ["public:read"] }))?.id as string;
  };
  await make("first", 10);
  const revoked = await make("revoked", 10);
  await make("short", 1);
  await make("last", 10);
  await revokeToken(store, id, revoked);
  const names = async () => (await listTokens(store, id)).map(({ name }) => name);
  assert.equal(await names(), ["last", "short", "first", "revoked"]);
  // A token has expired at its last moment, not after it.
  const { expires_at } = await store.db
    .selectFrom("tokens")
    .select("expires_at")
    .where("name", "=", "short")
    .executeTakeFirstOrThrow();
  clock.ms = expires_at - 1;
  assert.equal(await names(), ["last", "short", "first", "revoked"]);
  clock.ms = expires_at;
  assert.equal(await names(), ["last", "first", "short", "revoked"]);
});

test("a private feed that is made or ended is written down as what it was", async () => {
  const { id } = await signIn("Feed");
  const done = () =>
    store.db.selectFrom("audit").select("action").where("target", "=", id).orderBy("at").execute();
  clock.ms += 1000;
  await setFeed(store, id, "0".repeat(64));
  clock.ms += 1000;
  await setFeed(store, id, null);
  const actions = (await done()).map(({ action }) => action).filter((action) => action.startsWith("feed"));
  assert.equal(actions, ["feed.create", "feed.end"]);
});

test("a file of an archive is an ordinary one, readable by all and its owner's to write", async () => {
  async function* files() {
    yield { name: "a.json", bytes: Buffer.from("{}\n") };
  }
  const { value: header } = await tar(files(), 0).next();
  // POSIX ustar: mode at 100, owner and group at 108 and 116, kind at 156.
  const at = (from: number, to: number) => (header as Buffer).toString("latin1", from, to);
  assert.equal([at(100, 108), at(108, 116), at(116, 124)], ["0000644\0", "0000000\0", "0000000\0"]);
  assert.is(at(156, 157), "0");
  // The name's place has a hundred bytes; a longer one would be cut, and be another file's.
  const headerOf = async (name: string) => {
    async function* one() {
      yield { name, bytes: Buffer.alloc(0) };
    }
    const { value } = await tar(one(), 0).next();
    return (value as Buffer).toString("latin1", 0, 108);
  };
  assert.is(await headerOf("n".repeat(100)), `${"n".repeat(100)}0000644\0`);
  for (const name of ["n".repeat(101), "", "a b", "ü", "a\n"]) {
    await headerOf(name).then(
      () => assert.unreachable(name),
      (error) => assert.is(error.message, `No name for a file of an archive: ${name}`),
    );
  }
});

const insertAll = async (into: Store, table: keyof Database, rows: object[]) => {
  for (let at = 0; at < rows.length; at += 500)
    await into.db
      .insertInto(table)
      .values(rows.slice(at, at + 500) as never)
      .execute();
};

test("an archive's lists: every row once, in files of so many, with times that people read", async () => {
  const archived = await openStore(join(folder, "archived.db"));
  const { id } = await signInAccount(archived, {
    issuer: "i",
    subject: "s",
    name: "Ada",
    email: null,
    login: null,
  });
  const other = await signInAccount(archived, {
    issuer: "i",
    subject: "o",
    name: "Ben",
    email: null,
    login: null,
  });
  const numbered = (kind: string, at: number) => `${kind}-${String(at).padStart(4, "0")}`;
  const of = (count: number, make: (at: number) => object) =>
    Array.from({ length: count }, (_, at) => make(at));
  const bytes = Buffer.from('{"x":1}');
  const study = (study_id: string, account_id: string, at: number) => ({
    ...{ id: study_id, account_id, author: "x", version: 1, title: "t", question: "?", model: "{}" },
    ...{ license: "CC0-1.0", entry_count: 1, created_at: 1, published_at: at, upvotes: 3, comment_count: 0 },
  });
  await insertAll(archived, "studies", [
    ...of(100, (at) => study(numbered("s", at), id, 1000 + at)),
    study("s-none", other.id, 1),
  ]);
  await insertAll(
    archived,
    "versions",
    of(200, (at) => ({
      ...{ study_id: numbered("s", at >> 1), version: (at % 2) + 1, created_at: 2, published_at: at + 1 },
      ...{ sha256: "h", package: bytes },
    })),
  );
  const draft = (at: number) => ({
    ...{ id: numbered("d", at), account_id: id, token_id: "none", title: "t", created_at: 5 + (at >> 2) },
    ...{ sha256: "h", package: bytes },
  });
  await insertAll(archived, "drafts", of(41, draft));
  const comment = (at: number) => ({
    ...{ id: numbered("c", at), study_id: "s-none", parent_id: null, account_id: id, author: "x" },
    ...{ created_at: 86_400_000, body: "said", thread: numbered("", at) },
  });
  await insertAll(archived, "comments", of(100, comment));
  await insertAll(
    archived,
    "votes",
    of(1001, (at) => ({
      ...{
        study_id: numbered("s", at % 100),
        version: 1 + Math.floor(at / 100),
        account_id: id,
        created_at: 1,
      },
    })),
  );
  await insertAll(
    archived,
    "reports",
    of(201, (at) => ({
      id: numbered("r", at),
      study_id: "s-none",
      account_id: id,
      created_at: 1,
      reason: "why",
    })),
  );
  const [busy, idle] = [
    (await createToken(archived, id, { name: "b", days: 1, scopes: ["public:read"] }))?.id,
    (await createToken(archived, id, { name: "i", days: 1, scopes: ["public:read"] }))?.id,
  ];
  // Six hundred of one millisecond, over the end of what is read at once.
  await insertAll(
    archived,
    "activity",
    of(1700, (at) => ({
      token_id: busy,
      at: 10 + Math.min(at, 800) + Math.max(0, at - 1399),
      action: `${at}`,
      status: 200,
    })),
  );
  await insertAll(archived, "activity", [{ token_id: idle, at: 0, action: "idle", status: 200 }]);
  const files = new Map<string, Buffer>();
  for await (const { name, bytes: content } of personalFiles(archived, id)) files.set(name, content);
  const rows = (name: string) => JSON.parse(files.get(name)?.toString() ?? "null");
  const counts = Object.fromEntries(
    [...files.keys()]
      .filter((name) => /^[a-z]+-\d+\.json$/.test(name))
      .map((name) => [name, rows(name).length]),
  );
  const {
    "audit-1.json": written,
    "activity-1.json": one,
    "activity-2.json": two,
    "activity-3.json": three,
    ...lists
  } = counts;
  assert.equal(lists, {
    "drafts-1.json": 20,
    "drafts-2.json": 20,
    "drafts-3.json": 1,
    "comments-1.json": 100,
    "votes-1.json": 1000,
    "votes-2.json": 1,
    "reports-1.json": 200,
    "reports-2.json": 1,
    "notifications-1.json": 0,
  });
  assert.is(written, 2, "two tokens were made");
  // A thousand at once, and what else is of the last one's millisecond; each token by itself.
  assert.equal([one, two, three].sort(), [1, 1400, 300].sort());
  const actions = [1, 2, 3].flatMap((at) =>
    rows(`activity-${at}.json`).map((row: { action: string }) => row.action),
  );
  assert.equal(actions.sort(), [...of(1700, (at) => new String(at)).map(String), "idle"].sort());
  assert.equal(rows("comments-1.json")[0], {
    ...{ id: "c-0000", study_id: "s-none", parent_id: null, created_at: "1970-01-02T00:00:00.000Z" },
    ...{ edited_at: null, hidden: null, reason: null, body: "said" },
  });
  assert.equal(rows("votes-2.json"), [
    { study_id: "s-0099", version: 10, created_at: "1970-01-01T00:00:00.001Z" },
  ]);
  assert.equal(
    rows("drafts-2.json").map((row: { id: string }) => row.id),
    of(20, (at) => ({ id: numbered("d", at + 20) })).map((row) => (row as { id: string }).id),
  );
  const names = [...files.keys()];
  assert.is(names.filter((name) => /^drafts\/d-\d+\.json$/.test(name)).length, 41);
  assert.is(names.filter((name) => /^studies\/s-\d+\.json$/.test(name)).length, 100);
  assert.is(names.filter((name) => /^studies\/s-\d+\/v[12]\.json$/.test(name)).length, 200);
  assert.equal(files.get("studies/s-0099/v2.json"), bytes);
  assert.not.ok(names.some((name) => name.includes("s-none")));
  const kept = rows("studies/s-0007.json");
  assert.equal(
    [kept.upvotes, kept.published_at, kept.versions[1].version],
    [3, "1970-01-01T00:00:01.007Z", 2],
  );
  const { tokens, created_at, approved_as } = rows("account.json");
  assert.match(created_at, /^\d{4}-\d\d-\d\dT/);
  assert.equal(approved_as, []);
  assert.equal(
    [tokens[0].revoked_at, tokens[0].state, typeof tokens[0].expires_at],
    [null, "active", "string"],
  );
  await archived.close();
});

test("words that many studies have, out of a vocabulary that is read in parts", async () => {
  const spoken = await openStore(join(folder, "spoken.db"));
  const entry = (at: number, ...title: string[]) => ({
    publishedAt: at,
    entry: { title, head: [], body: [] },
  });
  const rare = Array.from({ length: 1200 }, (_, at) => `w${String(at).padStart(4, "0")}`);
  await spoken.dialect.search.add(spoken.db, [
    ...[1, 2, 3, 4, 5].map((at) => entry(at, "zebra")),
    ...[11, 12, 13, 14].map((at) => entry(at, "ant")),
    ...[21, 22, 23].map((at) => entry(at, "moth")),
    entry(30, ...rare.slice(0, 600)),
    entry(31, ...rare.slice(600)),
  ]);
  let steps = 0;
  const common = (moreThan: number, most: number) => {
    steps = 0;
    return spoken.dialect.search.common(spoken.db, { moreThan, most }, (step) => {
      steps += 1;
      if (steps > 10) throw new Error("It goes round in a circle.");
      return step();
    });
  };
  assert.equal(await common(2, 9), ["zebra", "ant", "moth"]);
  assert.is(steps, 3, "1,203 words, 500 at a time");
  assert.equal(await common(3, 9), ["zebra", "ant"]);
  assert.equal(await common(2, 2), ["zebra", "ant"]);
  assert.equal(await common(5, 9), []);
  await spoken.close();
});

test("whoever has one file does not wait for another's", async () => {
  const [one, two] = [await openStore(join(folder, "one.db")), await openStore(join(folder, "two.db"))];
  const order: string[] = [];
  await one.db.transaction().execute(async () => {
    await readNow(two, two.db);
    order.push("the other file is read meanwhile");
    // The same file's second connection takes its turn behind this one.
    void readNow(one, one.quick).then(() => order.push("the turn"));
    await readNow(two, two.quick);
    order.push("the transaction ends");
  });
  await readNow(one, one.quick);
  assert.equal(order, ["the other file is read meanwhile", "the transaction ends", "the turn"]);
  await Promise.all([one.close(), two.close()]);
});

test("times in a text are numbers in order, of one moment with the publication's number", async () => {
  assert.equal([...numbersOf(null)], []);
  assert.equal([...numbersOf("")], []);
  assert.equal([...numbersOf("7")], [7]);
  assert.equal([...numbersOf("1700000000000,20,309")], [1_700_000_000_000, 20, 309]);
  await store.db.updateTable("counters").set({ value: 42 }).where("name", "=", "published_at").execute();
  for (const [text, times] of [
    ["3,1,20", [1, 3, 20]],
    ["1,2,2,3", [1, 2, 2, 3]],
    ["2,1", [1, 2]],
    ["", []],
  ] as const) {
    const read = await readTimes(store.db, sql`select ${text}`);
    assert.equal([read.publication, [...read.times]], [42, times]);
  }
});

test("what was computed is kept while its number holds, and no failure is", async () => {
  const kept = new Kept<string>(2);
  let computed = 0;
  const get = (number: number, key: string, fails = false) =>
    kept.get(number, key, async () => {
      computed += 1;
      if (fails) throw new Error("no");
      return `${number} ${key} ${computed}`;
    });
  assert.equal([await get(5, "a"), await get(5, "a")], ["5 a 1", "5 a 1"]);
  assert.equal([kept.has(5, "a"), kept.has(5, "b"), kept.has(4, "a")], [true, false, false]);
  // Who saw an older state computes alone; a newer one lets all go.
  assert.is(await get(4, "a"), "4 a 2");
  assert.is(await get(5, "a"), "5 a 1");
  assert.is(await get(6, "a"), "6 a 3");
  assert.is(await get(6, "b"), "6 b 4");
  assert.ok(kept.has(6, "a"));
  assert.is(await get(6, "c"), "6 c 5");
  assert.equal([kept.has(6, "a"), kept.has(6, "b"), kept.has(6, "c")], [false, true, true]);
  kept.forget("c");
  assert.not.ok(kept.has(6, "c"));
  await get(6, "d", true).catch(() => {});
  assert.not.ok(kept.has(6, "d"));
  assert.is(await get(6, "d"), "6 d 7");
});

test("work ahead goes on where it was started, once more where it is wanted again, and ends with its step", async () => {
  const done: string[] = [];
  let steps: string[] = [];
  const ahead = new ReadAhead(async (pace) => {
    for (const step of steps) {
      await pace(async () => {
        await null;
        done.push(step);
        if (step === "again") ahead.again();
        if (step === "end") void ahead.close();
        if (step === "fail") throw new Error("no");
      });
    }
  });
  ahead.again();
  assert.equal(done, [], "it was not started");
  steps = ["again", "b"];
  const first = ahead.start();
  steps = ["c", "fail", "never"];
  await first;
  assert.equal(done, ["again", "b", "c", "fail"], "what fails is left");
  steps = ["d"];
  await ahead.start();
  assert.is(done.at(-1), "d");
  steps = ["e", "end", "never"];
  await ahead.start();
  assert.equal(done.slice(-2), ["e", "end"]);
  await ahead.start();
  assert.equal(done.slice(-2), ["e", "end"]);
  await ahead.close();
});

/** A request, as the service's parts see it. */
function contextOf(headers: Record<string, string> = {}, url = "/") {
  const request = new IncomingMessage(new Socket());
  request.method = "GET";
  request.url = url;
  for (const [name, value] of Object.entries(headers)) request.headers[name.toLowerCase()] = value;
  return new Koa().createContext(request, new ServerResponse(request));
}

test("the process says that it answers; that it is ready only with its database", async () => {
  const gone = await openStore(join(folder, "gone.db"));
  await gone.close();
  for (const [path, of, status] of [
    ["/healthz", gone, 200],
    ["/readyz", gone, 503],
    ["/readyz", store, 200],
  ] as const) {
    const ctx = contextOf({}, path);
    await health({ store: of } as Service)(ctx, async () => assert.unreachable());
    assert.equal([ctx.status, ctx.body], [status, { status: status === 200 ? "ok" : "unavailable" }], path);
    assert.is(ctx.response.get("Cache-Control"), "no-store");
  }
  let others = 0;
  for (const path of ["/", "/healthz/", "/ready"])
    await health({ store: gone } as Service)(contextOf({}, path), async () => {
      others += 1;
    });
  assert.is(others, 3);
});

test("a body is sent as the client takes it, and not again to who has it", async () => {
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

test("what browsers carry is read by this service alone, and as it was sealed", async () => {
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

test("nothing is read for snippets where there is nothing to look for, nor anybody's words", async () => {
  const none = {} as Store;
  assert.is((await snippets(none, [], ["heron"])).size, 0);
  assert.is((await snippets(none, [{ published_at: 1 } as StudyRow], [])).size, 0);
});

test("a cookie by its whole name, what is said as a reason, and for how long to wait", async () => {
  const cookies = { Cookie: 'x; other=1; a=b=c ;ab=2; a=later; d="e"' };
  const read = (name: string) => readCookie(contextOf(cookies), name);
  assert.equal([read("a"), read("ab"), read("x"), read("b"), read("d")], ["b=c", "2", null, null, '"e"']);
  assert.is(readCookie(contextOf(), "a"), null);
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
    assert.throws(() => reason(text), saying(`A reason has 1 to 1000 characters; this has ${length}.`));
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
    `Too many sign-ins were begun from here in a short time; please try again in ${wait}.`;
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

test("a form is one of this site's own: by where it comes from, what it is, and whose it is", async () => {
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
      (read) => Object.fromEntries(read),
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
    "Too many forms came from here in a short time; please try again in 10 minutes.",
  ]);
  const elsewhere = [403, "This form was sent by another site, so nothing was done."];
  assert.equal(await send({ Origin: "https://e.example" }, "csrf=token"), elsewhere);
  assert.equal(await send({ "Sec-Fetch-Site": "same-site" }, "csrf=token"), elsewhere);
  assert.equal(await send({ ...own, "Sec-Fetch-Site": "none" }, "csrf=token"), elsewhere);
  for (const type of ["text/plain", "", "application/x-www-form-urlencodedx"])
    assert.equal(await send({ "Content-Type": type }, "csrf=token"), [
      400,
      "This is not a form of this site.",
    ]);
  assert.equal(await send({}, "csrf=token", false), [403, "Your session has ended; sign in and try again."]);
  for (const wrong of ["csrf=tokem", "csrf=toke", "csrf=", ""])
    assert.equal(await send({}, wrong), [
      403,
      "This form is too old, or was not made for you; load its page again.",
    ]);
  // A comment of 10,000 characters, twelve bytes each, and 4,000 bytes more.
  assert.is(Object.hasOwn(await send({}, `csrf=token&b=${"x".repeat(124_000 - 13)}`), "csrf"), true);
  assert.equal(await send({}, `csrf=token&b=${"x".repeat(124_001 - 13)}`), [
    400,
    "The form is too large, or did not arrive whole.",
  ]);
});

test("a restored database finds all of its studies again, however many there are", async () => {
  const [from, to] = [await openStore(join(folder, "from.db")), await openStore(join(folder, "to.db"))];
  const { id } = await signInAccount(from, {
    issuer: "i",
    subject: "s",
    name: "Ada",
    email: null,
    login: null,
  });
  const count = 101;
  const times = Array.from({ length: count }, (_, at) => 1000 + at);
  const content = (at: number) => samplePackage({ title: `Heron ${at}`, method: `word${at}` });
  await insertAll(
    from,
    "studies",
    times.map((published_at, at) => ({
      ...{ id: `s-${at}`, account_id: id, author: "x", version: 1, created_at: 1, published_at, upvotes: 0 },
      ...{ comment_count: 0, ...summaryOf(content(at)) },
    })),
  );
  await insertAll(
    from,
    "versions",
    times.map((published_at, at) => ({
      ...{ study_id: `s-${at}`, version: 1, created_at: 1, published_at, sha256: "h" },
      package: Buffer.from(JSON.stringify(content(at))),
    })),
  );
  const file = join(folder, "backup.gz");
  const rows = await backUp(from, file);
  assert.is(await restore(to, file), rows);
  assert.is((await to.dialect.search.few(to.db, ["heron"], 1000))?.length, count);
  for (const at of [0, 49, 50, 99, 100])
    assert.equal(await to.dialect.search.few(to.db, [`word${at}`, "heron"], 9), [
      { publishedAt: 1000 + at, tier: 2 },
    ]);
  const empty = await openStore(join(folder, "empty.db"));
  const nothing = join(folder, "nothing.gz");
  writeFileSync(nothing, gzipSync('{"format":"tapline studies backup 2"}\n{"end":0}\n'));
  assert.is(await restore(empty, nothing), 0, "of none there are none");
  await empty.close();
  const missing = await restore(to, join(folder, "none.gz")).catch((error: Error) => error.message);
  assert.is(missing, `There is no file ${join(folder, "none.gz")}.`);
  await Promise.all([from.close(), to.close()]);
});

test("a configuration says where it listens, what it trusts and who signs people in", () => {
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
