/** What everybody gets without a network: headers of every kind of answer, feeds, authors, addresses for crawlers. On SQLite. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { StudyPackage } from "../../src/contracts/studies/index.js";
import { signInAccount } from "../../src/studies/store/accounts.js";
import { saveDraft } from "../../src/studies/store/drafts.js";
import { withdraw } from "../../src/studies/store/moderation.js";
import { notify } from "../../src/studies/store/notifications.js";
import { openStore } from "../../src/studies/store/open.js";
import { publishDraft } from "../../src/studies/store/publish.js";
import { startSession } from "../../src/studies/store/sessions.js";
import { bumpGeneration, type Store } from "../../src/studies/store/store.js";
import { sha256Hex } from "../../src/studies/store/tokens.js";
import { testClock } from "./support/clock.js";
import { textOf as plainText } from "./support/markup.js";
import { samplePackage } from "./support/packages.js";
import { type Got, serviceOf, visitor } from "./support/visits.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-public-"));
const clock = testClock();
let store: Store;
let ask: ReturnType<typeof visitor>;
test.before(async () => {
  store = await openStore(join(folder, "studies.db"), { dialect: clock.dialect });
  ask = visitor(serviceOf(store));
});
test.after(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const origin = "https://studies.example.org";
const account = (name: string) =>
  signInAccount(store, { issuer: "t", subject: name, name, email: null, login: null });
async function publish(accountId: string, change: Partial<StudyPackage>, replaces: string | null = null) {
  clock.ms += 1000;
  await store.db.updateTable("accounts").set({ recent_drafts: "[]" }).execute();
  const bytes = Buffer.from(JSON.stringify(samplePackage(change)));
  const saved = await saveDraft(store, { tokenId: "t", accountId, scopes: [] }, bytes, "t", null);
  clock.ms += 1000;
  const draftId = (saved as { id: string }).id;
  const reviewed = { accountId, draftId, reviewedSha256: sha256Hex(bytes), replaces };
  return ((await publishDraft(store, reviewed)) as { id: string }).id;
}

test("a public page is rendered once, whatever unknown parameters its address has", async () => {
  const ada = await account("Cached");
  const id = await publish(ada.id, { title: "Kingfisher" });
  // Rows are only read when a page is rendered: a change made without the service shows only then.
  const made = async (address: string, without: string) => {
    await ask(without);
    await store.db.updateTable("studies").set({ author: "Tampered" }).where("id", "=", id).execute();
    const { text, header } = await ask(address);
    await store.db.updateTable("studies").set({ author: "Cached" }).where("id", "=", id).execute();
    const again = await ask(without);
    assert.is(header("ETag"), again.header("ETag"), address);
    assert.not.match(text, "Tampered", address);
    await bumpGeneration(store.db);
  };
  const search = "/?q=kingfisher&model=x";
  for (const [address, without] of [
    ["/?x=RANDOM", "/"],
    ["/?x", "/"],
    ["/?utm_source=a&q=", "/?q="],
    ["/?model=x&x=1&q=kingfisher&q=other", search],
    ["/top?page=1&q=RANDOM", "/top?page=01"],
    [`/studies/${id}?x=RANDOM`, `/studies/${id}`],
    [`/studies/${id}?quote=entry-RANDOM&view=RANDOM&comments=RANDOM`, `/studies/${id}`],
    [`/studies/${id}?comments=7`, `/studies/${id}`],
    [`/studies/${id}?x=1&view=source`, `/studies/${id}?view=source`],
    [`/studies/${id}/v/1?x=1`, `/studies/${id}/v/1`],
    [`/studies/${id}/v/1/cite.bib?x=1`, `/studies/${id}/v/1/cite.bib`],
    ["/feed.atom?x=1&page=2", "/feed.atom"],
    ["/authors/cached?x=1", "/authors/cached"],
    ["/sitemap.xml?x=1", "/sitemap.xml"],
  ] as const)
    await made(address, without);
  // Parameters that a page does read give another page.
  const plain = await ask(`/studies/${id}`);
  for (const other of [`/studies/${id}?view=source`, `/studies/${id}?comments=50`])
    assert.is.not((await ask(other)).header("ETag"), plain.header("ETag"), other);
});

test("every response has security headers, for every visitor and kind of response", async () => {
  const ada = await account("Ada");
  const id = await publish(ada.id, { title: "Heron" });
  const cookies = { "__Host-tapline-session": await startSession(store, ada.id, "b") };
  const policy =
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
  const always = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Strict-Transport-Security": "max-age=31536000",
  };
  const script = `${policy}; script-src ${origin}${/src="([^"]+\.js)"/.exec((await ask(`/studies/${id}`)).text)?.[1]}`;
  const own = "no-store";
  for (const [path, sent, expected, rules, kept] of [
    ["/", {}, 200, policy, "no-cache"],
    ["/", { cookies }, 200, policy, own],
    ["/account", { cookies }, 200, policy, own],
    ["/account", {}, 303, policy, own],
    ["/nothing", {}, 404, policy, own],
    ["/account", { form: {} }, 405, policy, own],
    [`/studies/${id}`, {}, 200, script, "no-cache"],
    [`/studies/${id}`, { cookies }, 200, script, own],
    [`/studies/${id}/package.json`, {}, 200, policy, "no-cache"],
    ["/feed.atom", {}, 200, policy, "no-cache"],
    ["/favicon.ico", {}, 200, policy, "public, max-age=86400"],
    [
      /href="(\/assets\/[^"]+\.css)"/.exec((await ask("/")).text)?.[1] as string,
      {},
      200,
      policy,
      "public, max-age=31536000, immutable",
    ],
    ["/sign-in", {}, 200, policy, own],
  ] as const) {
    const got = await ask(path, sent);
    assert.is(got.status, expected, path);
    assert.equal([got.header("Content-Security-Policy"), got.header("Cache-Control")], [rules, kept], path);
    for (const [name, value] of Object.entries(always)) assert.is(got.header(name), value, `${path} ${name}`);
    assert.equal(got.cookies, {});
  }
  // Visitors with any cookie get pages rendered for them, which are not cached.
  const stranger = await ask("/", { cookies: { any: "thing" } });
  assert.equal([stranger.header("Cache-Control"), stranger.header("ETag")], [own, ""]);
  const named = await ask("/");
  assert.match(named.header("ETag"), /^"[\da-f]{32}"$/);
  assert.is((await ask("/", { headers: { "If-None-Match": named.header("ETag") } })).status, 304);
  assert.not.match(named.text, "My drafts");
  assert.match((await ask("/", { cookies })).text, "My drafts");
  // Unread notifications are counted up to 99.
  const told = { kind: "draft", draft_id: "x" } as const;
  const badge = async () => /<span class="count">([^<]*)</.exec((await ask("/docs", { cookies })).text)?.[1];
  assert.is(await badge(), undefined);
  for (let count = 0; count < 99; count += 1) await notify(store.db, clock.ms, ada.id, told);
  assert.is(await badge(), "99");
  await notify(store.db, clock.ms, ada.id, told);
  assert.is(await badge(), "99+");
});

const found = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, one]) => one);

test("a draft's exact text appears complete and once, with surrogate pairs intact", async () => {
  const ida = await account("Ida");
  const cookies = { "__Host-tapline-session": await startSession(store, ida.id, "b") };
  const textOf = (finding: string) => JSON.stringify(samplePackage({ finding, entries: [] }));
  // Pieces have 20,000 characters: this pair would straddle the end of the first.
  const before = textOf("\u{1F600}").indexOf("\u{1F600}");
  const text = textOf(`${"x".repeat(19_999 - before)}\u{1F600}${"<&y>".repeat(9000)}`);
  assert.is(text.codePointAt(19_999), 0x1f600);
  const saved = await saveDraft(
    store,
    { tokenId: "t", accountId: ida.id, scopes: [] },
    Buffer.from(text),
    "t",
    null,
  );
  const page = await ask(`/drafts/${(saved as { id: string }).id}`, { cookies });
  const [, markup = ""] = /aria-label="Exact JSON">(.*?)<\/pre>/s.exec(page.text) ?? [];
  const decoded = plainText(markup);
  assert.is(decoded.length, text.length);
  assert.ok(decoded === text);
  assert.not.match(page.text, "are not shown, to limit the page size");
});

test("feeds are newest first, even for ranked searches, with authors and times", async () => {
  const [ben, cleo] = [await account("Ben"), await account("Cleo & <Co>")];
  const best = await publish(ben.id, { title: "Owl owl", question: "Old & <best>?" });
  const newer = await publish(cleo.id, { title: "Another", question: "An\u202E owl\uFFFE?" });
  const published = clock.ms;
  const titles = async (path: string) => found((await ask(path)).text, /<entry><title>([^<]*)</g);
  assert.equal(await titles("/feed.atom?q=owl"), ["Another", "Owl owl"]);
  assert.equal(found((await ask("/?q=owl")).text, /<h2 dir="auto"><a href="\/studies\/([^"]+)"/g), [
    best,
    newer,
  ]);
  const whole = (await ask("/feed.atom")).text;
  assert.equal((await titles("/feed.atom")).slice(0, 2), ["Another", "Owl owl"]);
  assert.match(whole, `<id>${origin}/feed.atom</id>`);
  const iso = (ms: number) => new Date(ms).toISOString();
  assert.match(
    whole,
    `<entry><title>Another</title><id>urn:uuid:${newer}</id><link href="${origin}/studies/${newer}"/>
<published>${iso(published - 1000)}</published><updated>${iso(published)}</updated><author><name>Cleo &amp; &lt;Co&gt;</name><uri>${origin}/authors/cleo-co</uri></author><summary>An owl\uFFFD?</summary></entry>`,
  );
  assert.match(whole, `<updated>${iso(published)}</updated>\n<entry>`);
  const search = (await ask("/feed.atom?q=owl+%26")).text;
  assert.match(search, "<title>tapline studies: owl &amp;</title>");
  assert.match(
    search,
    `<link rel="self" href="${origin}/feed.atom?q=owl+%26"/><link href="${origin}/?q=owl+%26"/>`,
  );
  const own = await ask("/authors/ben/feed.atom");
  assert.equal(found(own.text, /<entry><title>([^<]*)</g), ["Owl owl"]);
  assert.match(own.text, "<title>tapline studies by Ben</title>");
});

test("the author list holds users with published studies; their pages list these", async () => {
  const [dan, eve] = [await account("Dan"), await account("Eve")];
  const first = await publish(dan.id, { title: "Swan one" });
  const second = await publish(dan.id, { title: "Swan two" });
  await publish(eve.id, { title: "Swan of another" });
  const titles = ({ text }: Got) =>
    found(text, /<h2 dir="auto"><a href="\/studies\/[^"]+">(?:<mark>)?([^<]*(?:<\/mark>[^<]*)?)</g).map(
      (title) => title?.replace("</mark>", ""),
    );
  assert.equal(titles(await ask("/authors/dan")), ["Swan two", "Swan one"]);
  assert.equal(titles(await ask("/authors/dan?q=two")).length, 1);
  await withdraw(store, dan.id, { studyId: second, version: null }, "wrong");
  const left = await ask("/authors/dan");
  assert.equal([titles(left), /<li>1 published<\/li>/.test(left.text)], [["Swan one"], true]);
  await withdraw(store, dan.id, { studyId: first, version: null }, "wrong");
  const nobody = await account("Nobody");
  for (const path of ["/authors/dan", "/authors/dan/feed.atom", `/authors/${nobody.handle}`, "/authors/none"])
    assert.is((await ask(path)).status, 404, path);
  assert.is((await ask("/authors/eve")).status, 200);
});

test("list pages run from the first to the last that can have results", async () => {
  const at = async (query: string) => {
    const { text } = await ask(`/?${query}`);
    return found(text, /<a rel="(?:prev|next)" href="\/\?([^"]+)"/g);
  };
  assert.equal(await at("page=2"), ["page=1"]);
  // Twenty a page; the API's last offset is 10,000.
  const many = (count: number) =>
    store.db.updateTable("counters").set({ value: count }).where("name", "=", "studies").execute();
  const before = await store.db
    .selectFrom("counters")
    .select("value")
    .where("name", "=", "studies")
    .executeTakeFirstOrThrow();
  await many(20_000);
  await bumpGeneration(store.db);
  for (const [query, links] of [
    ["", ["page=2"]],
    ["page=0", ["page=2"]],
    ["page=x", ["page=2"]],
    ["page=2", ["page=1", "page=3"]],
    ["page=499", ["page=498", "page=500"]],
    ["page=500", ["page=499"]],
    ["page=9999", ["page=499"]],
  ] as const)
    assert.equal(await at(query), [...links], query);
  await many(20);
  await bumpGeneration(store.db);
  assert.equal([await at("page=1"), (await ask("/sitemap.xml")).text.match(/<sitemap>/g)?.length], [[], 1]);
  await many(21);
  await bumpGeneration(store.db);
  assert.equal(await at("page=1"), ["page=2"]);
  for (const [count, parts] of [
    [10_000, 1],
    [10_001, 2],
    [0, 1],
  ] as const) {
    await many(count);
    await bumpGeneration(store.db);
    assert.equal(
      found((await ask("/sitemap.xml")).text, /<loc>([^<]*)</g),
      Array.from({ length: parts }, (_, part) => `${origin}/sitemap-${part + 1}.xml`),
    );
  }
  await many(before.value);
  await bumpGeneration(store.db);
  const listed = await store.db
    .selectFrom("studies")
    .select("id")
    .where("listed", "=", 1)
    .orderBy("published_at")
    .execute();
  assert.equal(
    found((await ask("/sitemap-1.xml")).text, /<loc>([^<]*)</g),
    listed.map(({ id }) => `${origin}/studies/${id}`),
  );
  assert.equal([(await ask("/sitemap-2.xml")).status, (await ask("/sitemap-0.xml")).status], [404, 404]);
  // Of nothing there is one part, which is empty.
  const none = await openStore(join(folder, "none.db"), { dialect: clock.dialect });
  const { status, text } = await visitor(serviceOf(none))("/sitemap-1.xml");
  assert.equal([status, found(text, /<loc>([^<]*)</g)], [200, []]);
  await none.close();
  const robots = (await ask("/robots.txt")).text;
  for (const line of [
    "Disallow: /account",
    "Disallow: /notifications",
    "Disallow: /*?",
    `Sitemap: ${origin}/sitemap.xml`,
  ])
    assert.match(robots, `${line}\n`);
});

test.run();
