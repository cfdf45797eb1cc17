/**
 * Published studies, as others find, follow, cite and repeat them: versions and differences, references, feeds,
 * reproductions, facets and orders, and conditional requests. On both databases.
 */
import { randomUUID } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { StudyPackage } from "../../src/contracts/studies/index.js";
import { addComment, deleteComment, editComment, setUpvote } from "../../src/studies/store/discussion.js";
import { withdraw } from "../../src/studies/store/moderation.js";
import { publishDraft } from "../../src/studies/store/publish.js";
import { bibtex, type Citable, cff, ris } from "../../src/studies/text/cite.js";
import { matchesIn, snippetOf } from "../../src/studies/text/matches.js";
import { inspectJob } from "../report/jobs.js";
import { testClock } from "./support/clock.js";
import { startDatabases } from "./support/databases.js";
import { samplePackage } from "./support/packages.js";
import { resultBlock } from "./support/results.js";
import { startService, type TestService } from "./support/service.js";

const databases = await startDatabases();

type Account = Awaited<ReturnType<TestService["account"]>>;

/** Publishes as an account does. @returns the study's id, and the bytes' hash */
async function publishing(service: TestService, account: Account) {
  const { token } = await service.token(account.id);
  return async (change: Partial<StudyPackage>, replaces: string | null = null) => {
    const body = JSON.stringify(samplePackage(change));
    const { json } = await service.api(token, "/api/v1/studies", { method: "POST", body });
    const { id } = (await publishDraft(service.running.service.store, {
      accountId: account.id,
      draftId: json.id,
      reviewedSha256: json.package_sha256,
      replaces,
    })) as { id: string };
    return { id, sha256: json.package_sha256 as string, token };
  };
}

function reproduction(block: object): string {
  return `\`\`\`tapline-reproduction\n${JSON.stringify({ schemaVersion: 1, ...block })}\n\`\`\``;
}

for (const database of databases.all) {
  test(`${database.name}: every version has its address, differences and references`, async () => {
    const service = await startService(database.fresh());
    const publish = await publishing(service, await service.account("Ada"));
    const { id, sha256 } = await publish({ title: "One", finding: "*Nothing* yet." });
    await publish({ title: "Two", finding: "Something." }, id);
    const see = async (path: string) => (await service.call(`/studies/${id}${path}`)).text;
    assert.match(await see(""), /<h1 dir="auto">Two</);
    const first = await see("/v/1");
    assert.match(first, /<h1 dir="auto">One</);
    assert.match(first, "This is version 1; the current version is 2.");
    assert.match(first, "<em>Nothing</em> yet.");
    assert.match(await see("/v/1?view=source"), "*Nothing* yet.");
    assert.match(await see("?version=1"), /<h1 dir="auto">One</, "the address that it had before");
    assert.is((await service.call(`/studies/${id}/v/3`)).status, 404);
    const changes = await see("/changes");
    assert.match(changes, "<del>One</del><ins>Two</ins>");
    assert.match(changes, "<del>*Nothing* yet.</del><ins>Something.</ins>");
    assert.match(await see("/changes?from=2&to=1"), "<del>Two</del><ins>One</ins>");
    const address = `${service.running.origin}/studies/${id}/v/1`;
    assert.match(first, `<link rel="canonical" href="${address}">`);
    assert.match(first, '<meta name="citation_title" content="One">');
    assert.match(first, '<meta property="og:title" content="One">');
    const bib = await see("/v/1/cite.bib");
    assert.match(bib, "title = {{One}},");
    assert.match(bib, `url = {${address}},`);
    assert.match(await see("/v/2/cite.cff"), 'title: "Two"');
    assert.match(await see("/v/2/cite.ris"), "TI  - Two\r\n");
    assert.is((await service.call(`/studies/${id}/v/1/cite.exe`)).status, 404);
    const bytes = await service.call(`/studies/${id}/v/1/package.json`);
    assert.equal([bytes.headers["x-content-sha256"], bytes.headers["x-study-version"]], [sha256, "1"]);
    assert.equal(service.log, []);
    await service.close();
  });

  test(`${database.name}: a study's page lists its reproductions while they are published`, async () => {
    const service = await startService(database.fresh());
    const ada = await publishing(service, await service.account("Ada"));
    const ben = await service.account("Ben");
    const publish = await publishing(service, ben);
    const { id, sha256 } = await ada({ title: "The original" });
    const claim = { study: id.toUpperCase(), version: 1, package_sha256: sha256, outcome: "partly" };
    const again = await publish({
      title: "Again",
      finding: reproduction({ ...claim, differed: "The <b>norms</b> differ." }),
    });
    for (const wrong of [
      { ...claim, package_sha256: "0".repeat(64) },
      { ...claim, version: 2 },
      { ...claim, study: randomUUID() },
      { ...claim, outcome: "surely" },
      { ...claim, extra: 1 },
    ]) {
      await publish({ title: "Not one", finding: reproduction(wrong) });
    }
    const page = (await service.call(`/studies/${id}`)).text;
    assert.match(page, "Reproductions (1)");
    assert.match(page, '<span class="badge outcome-partly">held partly</span>');
    assert.match(page, "The &lt;b&gt;norms&lt;/b&gt; differ.");
    assert.match((await service.call(`/studies/${again.id}`)).text, "This reproduces");
    const reproduced = async () => {
      const list = await service.api(again.token, "/api/v1/studies?reproduced=yes");
      return list.json.items.map(({ title }: { title: string }) => title);
    };
    assert.equal(await reproduced(), ["The original"]);
    assert.match((await service.call("/reproduced")).text, "The original");
    // Its next version does not say so any more, and a later one does again.
    await publish({ title: "Again, other" }, again.id);
    assert.not.match((await service.call(`/studies/${id}`)).text, "Reproductions");
    assert.equal(await reproduced(), []);
    await publish({ title: "Again", finding: reproduction(claim) }, again.id);
    assert.equal(await reproduced(), ["The original"]);
    await withdraw(
      service.running.service.store,
      ben.id,
      { studyId: again.id, version: null },
      "Wrong model.",
    );
    assert.not.match((await service.call(`/studies/${id}`)).text, "Reproductions");
    assert.equal(service.log, []);
    await service.close();
  });

  test(`${database.name}: facets and orders combine with search words, by API and on the site`, async () => {
    const service = await startService(database.fresh());
    const ada = await service.account("Ada");
    const ben = await service.account("Ben");
    const { store } = service.running.service;
    const [first, second] = [await publishing(service, ada), await publishing(service, ben)];
    const patched = '```tapline-result\n{"schemaVersion":1,"operation":"patch_sweep"}\n```';
    const [red, green, blue] = [
      await first({ title: "Red heron", model: { name: "Qwen", runtime: "x" }, finding: patched }),
      await first({ title: "Green heron", license: "CC0-1.0", finding: resultBlock(inspectJob()) }),
      await second({ title: "Blue heron", model: { name: "Qwen", runtime: "y" }, method: "Of a crane." }),
    ] as const;
    await setUpvote(store, ben.id, green.id, true);
    await addComment(store, { accountId: ben.id, name: "Ben" }, red.id, null, "Well.");
    const titles = async (query: string) => {
      const list = await service.api(blue.token, `/api/v1/studies?${query}`);
      assert.is(list.status, 200, list.text);
      assert.is(list.json.total, list.json.items.length, query);
      return list.json.items.map(({ title }: { title: string }) => title.split(" ")[0]);
    };
    const { items } = (await service.api(blue.token, "/api/v1/studies")).json;
    const year = items[0].published_at.slice(0, 4);
    for (const [query, expected] of [
      ["model=Qwen", ["Blue", "Red"]],
      ["license=CC0-1.0", ["Green"]],
      ["method=inspect", ["Green"]],
      ["method=patch_sweep", ["Red"]],
      ["method=probe", []],
      ["author=ada", ["Green", "Red"]],
      ["author=nobody", []],
      [`year=${year}&model=Qwen`, ["Blue", "Red"]],
      ["year=1999", []],
      ["sort=top", ["Green", "Blue", "Red"]],
      ["sort=discussed", ["Red", "Blue", "Green"]],
      ["sort=new", ["Blue", "Green", "Red"]],
      ["q=heron&model=Qwen&sort=discussed", ["Red", "Blue"]],
      ["q=heron&sort=top", ["Green", "Blue", "Red"]],
      ["q=crane&author=ben", ["Blue"]],
      ["q=crane&author=ada", []],
    ] as const) {
      assert.equal(await titles(query), expected, query);
    }
    for (const wrong of [
      "license=MIT",
      "sort=best",
      "year=99",
      "method=x",
      "author=A%20B",
      "reproduced=no",
      "model=",
    ]) {
      const refused = await service.api(red.token, `/api/v1/studies?${wrong}`);
      assert.equal([refused.status, refused.json.code], [400, "invalid_parameter"], wrong);
    }
    const found = (await service.call("/?q=crane&license=CC-BY-4.0")).text;
    assert.match(found, "1 study matches");
    assert.match(found, "Of a <mark>crane</mark>.");
    assert.not.match((await service.call("/?license=MIT%22%3E")).text, "MIT");
    const author = (await service.call("/authors/ada")).text;
    assert.match(author, "2 published");
    assert.is((await service.call("/authors/nobody")).status, 404);
    const atom = (await service.call("/feed.atom?q=heron")).text;
    assert.is(atom.match(/<entry>/g)?.length, 3);
    assert.match((await service.call("/authors/ben/feed.atom")).text, "<title>Blue heron</title>");
    const map = (await service.call("/sitemap-1.xml")).text;
    assert.is(map.match(/<loc>/g)?.length, 3);
    assert.match((await service.call("/sitemap.xml")).text, "/sitemap-1.xml");
    assert.match((await service.call("/robots.txt")).text, "Disallow: /drafts");
    assert.equal(service.log, []);
    await service.close();
  });

  test(`${database.name}: unchanged pages are not resent, and only public ones compressed`, async () => {
    const service = await startService(database.fresh());
    const ada = await service.account("Ada");
    const { id, token } = await (await publishing(service, ada))({ finding: "words ".repeat(2000) });
    const gzip = { "Accept-Encoding": "gzip" };
    for (const ask of [
      (headers: Record<string, string>) => service.call(`/studies/${id}`, { headers }),
      (headers: Record<string, string>) => service.api(token, `/api/v1/studies/${id}`, { headers }),
    ]) {
      const plain = await ask({});
      assert.is(plain.headers["content-encoding"], undefined);
      const etag = plain.headers.etag as string;
      assert.match(etag, /^"[0-9a-f]{32}"$/);
      const packed = await ask(gzip);
      assert.is(packed.headers["content-encoding"], "gzip");
      assert.ok(gunzipSync(packed.bytes).equals(plain.bytes));
      assert.is(packed.headers.etag, etag);
      const known = await ask({ ...gzip, "If-None-Match": `"other", W/${etag}` });
      assert.equal([known.status, known.bytes.length], [304, 0]);
    }
    // A page with this session's forms beside user text, a private draft, a form's response.
    const own = await service.call(`/studies/${id}`, { headers: { ...gzip, Cookie: ada.cookie } });
    assert.equal([own.headers["content-encoding"], own.headers.etag], [undefined, undefined]);
    assert.is(own.headers["cache-control"], "no-store");
    const body = JSON.stringify(samplePackage({ finding: "words ".repeat(2000) }));
    const draft = (await service.api(token, "/api/v1/studies", { method: "POST", body, headers: gzip })).json;
    const read = await service.api(token, `/api/v1/studies/${draft.id}`, { headers: gzip });
    assert.equal(
      [read.status, read.headers["content-encoding"], read.headers.etag],
      [200, undefined, undefined],
    );
    // New comments appear immediately.
    await addComment(
      service.running.service.store,
      { accountId: ada.id, name: "Ada" },
      id,
      null,
      "New words.",
    );
    assert.match((await service.call(`/studies/${id}`)).text, "New words.");
    assert.equal(service.log, []);
    await service.close();
  });
}

for (const database of databases.all) {
  test(`${database.name}: authors can edit a comment for 15 minutes`, async () => {
    const clock = testClock();
    const service = await startService(database.fresh(), { store: { dialect: clock.dialect } });
    const { store } = service.running.service;
    const [ada, ben] = [await service.account("Ada"), await service.account("Ben")];
    const { id, token } = await (await publishing(service, ada))({});
    const said = await addComment(store, { accountId: ben.id, name: "Ben" }, id, null, "Frist.");
    const comment = (said as { id: string }).id;
    assert.is(await editComment(store, ada.id, comment, "Mine."), null, "another's");
    clock.ms += 899_000;
    const read = async () => (await service.api(token, `/api/v1/studies/${id}/discussion`)).json.comments[0];
    // What databases cannot hold is replaced.
    assert.is(await editComment(store, ben.id, comment, "Fi\0rs\uD800t."), id);
    assert.is((await read()).body, "Fi\uFFFDrs\uFFFDt.");
    assert.is(await editComment(store, ben.id, comment, "First."), id);
    const changed = await read();
    assert.equal(
      [changed.body, Date.parse(changed.edited_at) - Date.parse(changed.created_at)],
      ["First.", 899_000],
    );
    assert.match((await service.call(`/studies/${id}`)).text, "edited <time");
    clock.ms += 1000;
    assert.is(await editComment(store, ben.id, comment, "Late."), null);
    await deleteComment(store, ben.id, comment);
    clock.ms -= 10_000;
    assert.is(await editComment(store, ben.id, comment, "Back."), null, "a deleted comment stays deleted");
    assert.is((await read()).body, "");
    await service.close();
  });
}

test("references: no part of a title leaves its field", () => {
  const study: Citable = {
    address: "https://studies.example/studies/1/v/2",
    id: "12345678-1234-4234-8234-123456789abc",
    version: 2,
    title: 'A {braced} 50% "title"\\\nER  - \u202eand _more_',
    author: "Ada: #1 & Co",
    license: "CC0-1.0",
    publishedAt: Date.UTC(2026, 1, 3),
    sha256: "ab".repeat(32),
  };
  assert.match(
    bibtex(study),
    'title = {{A \\{braced\\} 50\\% "title"\\textbackslash{} ER - and \\_more\\_}},',
  );
  assert.match(bibtex(study), "author = {{Ada: \\#1 \\& Co}},");
  assert.match(bibtex(study), "@misc{tapline-12345678-v2,\n");
  assert.match(cff(study), 'title: "A {braced} 50% \\"title\\"\\\\ ER - and _more_"\n');
  assert.match(cff(study), "date-released: 2026-02-03\n");
  const lines = ris(study).split("\r\n");
  assert.is(lines[1], 'TI  - A {braced} 50% "title"\\ ER - and _more_');
  assert.equal(
    lines.map((line) => line.slice(0, 6)),
    [
      "TY  - ",
      "TI  - ",
      "AU  - ",
      "PY  - ",
      "DA  - ",
      "ET  - ",
      "PB  - ",
      "UR  - ",
      "C1  - ",
      "ID  - ",
      "ER  - ",
      "",
    ],
  );
});

test("matches and snippets fold words as the search does", () => {
  const marked = (text: string, wanted: string[]) =>
    matchesIn(text, wanted)
      .map((part) => (part.match ? `[${part.text}]` : part.text))
      .join("");
  assert.is(
    marked("A naïve Straße, strasse-wise.", ["naive", "stras"]),
    "A [naïve] [Straße], [strasse]-wise.",
  );
  assert.is(marked("one oneself", ["one", "two"]), "[one] oneself", "only the last may be a beginning");
  assert.is(marked("", ["x"]), "");
  const study = samplePackage({
    title: "Heron",
    question: "Where?",
    finding: `${"long ".repeat(60)}the crane is here ${"and on ".repeat(60)}`,
  });
  const snippet = snippetOf(study, ["heron", "crane"]) as string;
  assert.match(snippet, /^… .*the crane is here.* …$/);
  assert.ok(snippet.length < 300);
  assert.is(snippetOf(study, ["heron"]), null);
  assert.is(snippetOf(study, ["heron", "emu"]), null);
});

test.after(() => databases.close());
test.run();
