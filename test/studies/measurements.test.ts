/** Pages of models whose forms were measured: what they list, compare and leave out. On both databases. */
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { sql } from "kysely";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Entry } from "../../src/contracts/studies/index.js";
import { backUp, restore } from "../../src/studies/backup.js";
import { deleteAccount } from "../../src/studies/store/deletion.js";
import { listForms, listModels } from "../../src/studies/store/measurements.js";
import { migrate } from "../../src/studies/store/migrations.js";
import { reinstate, remove, withdraw } from "../../src/studies/store/moderation.js";
import { openStore } from "../../src/studies/store/open.js";
import type { Store } from "../../src/studies/store/store.js";
import { temporaryFolder } from "../support/temporary.js";
import { testClock } from "./support/clock.js";
import { startDatabases, type TestDatabase } from "./support/databases.js";
import { textOf } from "./support/markup.js";
import { formOf, hashOf, quantsBlock, quantsResult } from "./support/measurements.js";
import { peopleOf } from "./support/people.js";
import { startService } from "./support/service.js";

const databases = await startDatabases();
const folder = temporaryFolder("measurements");
const path = (model: string) => `/models/${hashOf(model)}`;

/** A service with two authors, and their actions. */
async function start(database: TestDatabase) {
  const clock = testClock();
  const service = await startService(database.fresh(), { store: { dialect: clock.dialect } });
  const people = peopleOf(service, clock);
  const [ada, ben] = [await service.account("Ada"), await service.account("Ben")];
  const page = async (address: string) => {
    const { status, text } = await service.call(address);
    return { status, text, main: /<main id="main">(.*)<\/main>/s.exec(text)?.[1] ?? "" };
  };
  return { service, clock, ...people, ada, ben, page };
}

/** Rows of the page's first table: the cells' texts, a line break as `|`. */
function rowsOf(main: string): string[][] {
  const body = /<tbody>(.*?)<\/tbody>/s.exec(main)?.[1] ?? "";
  return body
    .split("<tr>")
    .slice(1)
    .map((row) =>
      row
        .split(/<t[hd][^>]*>/)
        .slice(1)
        .map(plain),
    );
}

const plain = (markup: string) => textOf(markup.replace(/<br>/g, "|")).trim();

for (const database of databases.all) {
  const named = (what: string) => `${database.name}: ${what}`;

  test(named("a model's page lists forms with figures, author and study"), async () => {
    const { service, publish, ada, ben, page } = await start(database);
    const large = formOf("Q8_0", { bytes: 8_500_000, kl: [0.00113, 0.001, 0.00125], drift: null });
    const small = formOf("Q4_K_M", { survival: [0.812, 0.79, 0.83] });
    const one = await publish(ada, {
      title: "What <b>quantization</b> does",
      finding: quantsBlock(quantsResult("small", "one", [small, large])),
    });
    await publish(ben, { title: "Another", finding: quantsBlock(quantsResult("other", "two", [small])) });
    const { status, main } = await page(path("small"));
    assert.is(status, 200);
    assert.match(main, "<h1>Forms of <bdi>small-F16.gguf</bdi></h1>");
    assert.match(
      main,
      "<li>16.0 MB</li><li>16.03 bits per weight</li><li>2 forms</li><li>1 study</li><li>1 author</li>",
    );
    assert.match(main, hashOf("small"));
    const who = "Ada @ada|What <b>quantization</b> does";
    const drawn = (name: string) => `${name}|${name}.gguf ${hashOf(name).slice(0, 12)}`;
    assert.equal(rowsOf(main), [
      [drawn("Q8_0"), who, "8.5 MB", "4.50", "0.00113|0.001 to 0.00125", "90.0 %|88.0 % to 92.0 %", "–", "–"],
      [
        ...[drawn("Q4_K_M"), who, "4.0 MB", "4.50", "0.02|0.01 to 0.03", "90.0 %|88.0 % to 92.0 %"],
        ...["8 %|7 % to 9 %, layer 29", "81.2 %|79.0 % to 83.0 %, res-12 at layer 12"],
      ],
    ]);
    assert.match(main, `href="/studies/${one.id}"><bdi>What &lt;b&gt;quantization`);
    assert.not.match(main, "Independent measurements");
    const study = await page(`/studies/${one.id}`);
    assert.match(study.main, `<a href="${path("small")}">See all measurements of this model</a>`);
    assert.match(study.main, "<details><summary>Figures as data</summary>");
    const index = await page("/models");
    const models = [...index.main.matchAll(/<h2 dir="auto"><a href="([^"]+)"><bdi>([^<]+)</g)];
    assert.equal(
      models.map(([, to, name]) => [to, name]),
      [
        [path("other"), "other-F16.gguf"],
        [path("small"), "small-F16.gguf"],
      ],
    );
    assert.match(study.text, '<a href="/models">Models</a>');
    assert.equal(service.log, []);
    await service.close();
  });

  test(named("lists no drafts, older versions or studies taken down"), async () => {
    const { service, store, save, publish, ada, ben, page } = await start(database);
    const of = (result: string, ...forms: object[]) => ({
      finding: quantsBlock(quantsResult("small", result, forms)),
    });
    const missing = async (why: string) => {
      const { status, main } = await page(path("small"));
      assert.is(status, 404, why);
      assert.match(main, "No published study measures forms of this model.");
      assert.match((await page("/models")).main, "No models have been measured yet.");
    };
    const formsOf = async () => rowsOf((await page(path("small"))).main).map(([name]) => name?.split("|")[0]);
    await save(ada, of("one", formOf("Q8_0")));
    await missing("a draft");
    const first = await publish(ada, of("one", formOf("Q8_0")));
    const second = await publish(ben, of("two", formOf("Q4_0")));
    assert.equal(
      await formsOf(),
      ["Q4_0", "Q8_0"].sort((a, b) => (hashOf(a) < hashOf(b) ? -1 : 1)),
    );
    await publish(ada, of("three", formOf("Q6_K")), first.id);
    assert.equal((await formsOf()).sort(), ["Q4_0", "Q6_K"], "only the current version");
    assert.match((await page(`/studies/${first.id}/v/2`)).main, "See all measurements");
    assert.not.match((await page(`/studies/${first.id}/v/1`)).main, "See all measurements");
    await withdraw(store, ada.id, { studyId: first.id, version: 2 }, "wrong");
    assert.equal((await formsOf()).sort(), ["Q4_0", "Q8_0"], "the version before is current again");
    await remove(store, "operator", { studyId: first.id, version: null }, "spam");
    assert.equal(await formsOf(), ["Q4_0"]);
    await reinstate(store, "operator", { studyId: first.id, version: null });
    assert.equal((await formsOf()).sort(), ["Q4_0", "Q8_0"]);
    await remove(store, "operator", { studyId: first.id, version: null }, "spam");
    await publish(ben, { finding: "No figures." }, second.id);
    await missing("a version without figures");
    assert.not.match((await page(`/studies/${second.id}`)).main, "See all measurements");
    assert.equal(service.log, []);
    await service.close();
  });

  test(named("independent measurements of a form are compared in sentences"), async () => {
    const { service, store, publish, ada, ben, page } = await start(database);
    const measure = async (who: typeof ada, result: string, form: object, texts = "texts") =>
      publish(who, { finding: quantsBlock(quantsResult("small", result, [form], { texts })) });
    const kl = (value: number) => formOf("Q4_0", { kl: [value, value - 0.001, value + 0.001] });
    const compared = async () => {
      const { main } = await page(path("small"));
      const part = main.split('<h2 id="independent">')[1];
      if (part === undefined) return null;
      return { sentence: plain(/<\/h3>\s*<p>(.*?)<\/p>/s.exec(part)?.[1] ?? ""), rows: rowsOf(part) };
    };
    await measure(ada, "one", kl(0.5));
    await measure(ada, "two", kl(0.02));
    assert.is(await compared(), null, "one author's own");
    const copy = await measure(ben, "one", kl(0.02));
    assert.is(await compared(), null, "a copy of another's result");
    await withdraw(store, ben.id, { studyId: copy.id, version: null }, "a copy");
    await measure(ben, "three", kl(0.0205));
    const found = await compared();
    assert.is(
      found?.sentence,
      "Ben @ben and Ada @ada measured this form independently, on the same texts. Their intervals overlap for every figure. Because the texts are the same, differences come from the machines or the software.",
    );
    assert.equal(found?.rows, [
      [
        ...["KL", "0.0205|0.0195 to 0.0215", "0.02|0.019 to 0.021"],
        "They differ by 0.0005 nats, and the intervals overlap.",
      ],
      [
        ...["Same top token", "90.0 %|88.0 % to 92.0 %", "90.0 %|88.0 % to 92.0 %"],
        "They found the same value, and the intervals overlap.",
      ],
      [
        ...["Drift at layer 29", "8 %|7 % to 9 %", "8 %|7 % to 9 %"],
        "They found the same value, and the intervals overlap.",
      ],
    ]);
    const cleo = await service.account("Cleo");
    await measure(cleo, "four", kl(0.03), "other texts");
    assert.match(
      (await compared())?.sentence ?? "",
      "Cleo @cleo, Ben @ben and Ada @ada measured this form independently, on different texts. Not all of their intervals overlap for KL. The different texts may explain differences.",
    );
    assert.is(
      (await compared())?.rows[0]?.at(-1),
      "They differ by up to 0.01 nats, and the intervals of Ada @ada and Cleo @cleo do not overlap.",
    );
    await deleteAccount(store, cleo.id);
    assert.match((await compared())?.sentence ?? "", /^deleted account, Ben @ben and Ada @ada/);
    // A sixth author is one too many to compare.
    for (const name of ["Dan", "Eve", "Fay"]) await measure(await service.account(name), name, kl(0.02));
    const six = await page(path("small"));
    assert.match(six.main, "Only the 5 most recent authors are compared.");
    assert.match(six.main, 'Fay</bdi> <span class="handle">@fay</span>, ');
    assert.is(rowsOf(six.main.split('<h2 id="independent">')[1] ?? "")[0]?.length, 7);
    assert.equal(service.log, []);
    await service.close();
  });

  test(named("an upgrade and a restored backup find earlier studies"), async () => {
    const { service, store, publish, ada, ben, page } = await start(database);
    const result = quantsResult("small", "one", [formOf("Q8_0"), formOf("Q4_0", { bytes: 1 })]);
    // More than one batch of studies.
    for (let at = 0; at < 55; at += 1) await publish(ben, { title: `Plain ${at}` });
    await publish(ada, { finding: quantsBlock(result) });
    const gone = await publish(ada, { finding: quantsBlock({ ...result, sha256: hashOf("two") }) });
    await withdraw(store, ada.id, { studyId: gone.id, version: null }, "wrong");
    const expected = await contents(store);
    assert.equal([expected.models.length, expected.forms.length], [1, 2]);
    assert.is((await page(path("small"))).status, 200);
    const file = join(folder, `${database.name}.gz`);
    await backUp(store, file);
    const target = await openStore(database.fresh());
    await restore(target, file);
    assert.equal(await contents(target), expected, "restored");
    await target.close();
    // The state before the migration has neither table.
    for (const table of ["measured_models", "measured_forms"])
      await store.db.schema.dropTable(table).execute();
    await sql`delete from kysely_migration where name = '010-measurements'`.execute(store.db);
    await migrate(store.db, store.dialect);
    assert.equal(await contents(store), expected, "upgraded");
    await service.close();
  });

  test(named("hostile names are escaped, and invalid figures are ignored"), async () => {
    const { service, publish, ada, page } = await start(database);
    const odd = `<img src=x onerror=alert(1)>"'&\u202E\u0000\ud800`;
    const form = { ...formOf("Q8_0", { survival: [0.5, 0.4, 0.6] }), name: odd + "n".repeat(200), file: odd };
    const survival = { ...form.survival, dictionary: odd };
    const result = quantsResult("small", "one", [{ ...form, survival }]);
    const named = { ...result, reference: { ...result.reference, file: odd } };
    const study = await publish(ada, { finding: quantsBlock(named) });
    for (const address of [path("small"), "/models", `/studies/${study.id}`]) {
      const { status, text } = await page(address);
      assert.is(status, 200, address);
      assert.not.match(text, "<img", address);
      for (const hidden of ["\u202E", "\0"]) assert.not.ok(text.includes(hidden), address);
    }
    const { main } = await page(path("small"));
    assert.match(main, "&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;");
    assert.not.match(main, "n".repeat(120), "long names are cut");
    assert.ok(Buffer.byteLength(main) < 20_000);
    const bad = (change: object) =>
      quantsBlock({ ...quantsResult("bad", "bad", [formOf("Q8_0")]), ...change });
    const withForm = (change: object) => bad({ forms: [{ ...formOf("Q8_0"), ...change }] });
    for (const finding of [
      "```tapline-quants\n{\n```",
      "```tapline-quants\nnull\n```",
      bad({ kind: "another" }),
      bad({ schema_version: 2 }),
      bad({ forms: [] }),
      bad({ forms: Array(101).fill(formOf("Q8_0")) }),
      bad({ sha256: "x" }),
      bad({ reference: { ...result.reference, fingerprint: "../../top" } }),
      withForm({ fingerprint: hashOf("x").toUpperCase() }),
      withForm({ name: "" }),
      withForm({ name: "n".repeat(301) }),
      withForm({ bytes: -1 }),
      withForm({ bytes: 1e300 }),
      withForm({ bits_per_weight: "<b>4</b>" }),
      withForm({ divergence: { value: 1e9, low: 0, high: 1 } }),
      withForm({ divergence: { value: 1, low: 2, high: 1 } }),
      withForm({ agreement: { value: 1.5, low: 0, high: 1 } }),
      withForm({ agreement: { value: null, low: 0, high: 1 } }),
      withForm({ survival: { features: 5 } }),
      quantsBlock(quantsResult("bad", "bad", [formOf("Q8_0")])).replace('"value":0.02', '"value":1e999'),
    ]) {
      const { id } = await publish(ada, { finding });
      assert.is((await page(`/models/${hashOf("bad")}`)).status, 404, finding.slice(0, 200));
      assert.is((await page(`/studies/${id}`)).status, 200);
    }
    // A valid block after an invalid one counts; a form without active features has no share of them.
    const after = `${bad({ forms: [] })}\n\n${withForm({ survival: { features: 0 } })}`;
    await publish(ada, { finding: after });
    assert.equal(rowsOf((await page(`/models/${hashOf("bad")}`)).main)[0]?.at(-1), "–");
    assert.equal(service.log, []);
    await service.close();
  });
}

async function contents(store: Store) {
  const { rows: models } = await listModels(store, 100, 0);
  const { rows: forms } = await listForms(store, hashOf("small"), 100, 0);
  return { models, forms };
}

const sqlite = databases.all[0] as TestDatabase;

test("long lists have pages, of models and of forms", async () => {
  const { service, publish, ada, page } = await start(sqlite);
  const forms = Array.from({ length: 41 }, (_, at) => formOf(`Q${at}`, { bytes: 1000 - at }));
  await publish(ada, { finding: quantsBlock(quantsResult("small", "one", forms)) });
  for (let at = 0; at < 20; at += 1)
    await publish(ada, { finding: quantsBlock(quantsResult(`model ${at}`, `${at}`, [formOf("Q8_0")])) });
  const names = async (number: number) =>
    rowsOf((await page(`${path("small")}?page=${number}`)).main).map(([name]) => name?.split("|")[0]);
  const all = forms.map(({ name }) => name);
  assert.equal(await names(1), all.slice(0, 20));
  assert.equal(await names(2), all.slice(20, 40));
  assert.equal(await names(3), all.slice(40));
  const links = async (address: string) =>
    [...(await page(address)).main.matchAll(/<a rel="(\w+)" href="([^"]+)">([^<]+)</g)].map(
      ([, ...link]) => link,
    );
  assert.equal(await links(`${path("small")}?page=2`), [
    ["prev", `${path("small")}?page=1`, "← Previous"],
    ["next", `${path("small")}?page=3`, "Next →"],
  ]);
  assert.match((await page(`${path("small")}?page=4`)).main, "No more measurements.");
  assert.equal(await links("/models"), [["next", "/models?page=2", "Next →"]]);
  assert.match((await page("/models?page=2")).main, "small-F16.gguf");
  assert.match((await page("/models?page=3")).main, "No more models.");
  for (const address of [`/models/${"a".repeat(63)}`, `/models/${"A".repeat(64)}`, "/models/x", path("none")])
    assert.is((await page(address)).status, 404, address);
  await service.close();
});

test("a study without the block is read from the complete result in its notes", async () => {
  const { service, publish, ada, page } = await start(sqlite);
  const whole = { ...quantsResult("small", "one", [formOf("Q8_0")]), tapline: "0.3.0", seconds: 5 };
  const text = JSON.stringify({ ...whole, seconds: "}".repeat(50) });
  const parent = randomUUID();
  const entriesOf = (...parts: string[]): Entry[] => [
    { id: parent, kind: "result", title: "Result of quants" },
    ...parts.map((note) => ({ id: randomUUID(), parent, kind: "note" as const, title: "part", note })),
  ];
  const end = text.lastIndexOf("}}}}");
  for (const parts of [
    [text],
    [text.slice(0, 200), text.slice(200)],
    [text.slice(0, end), text.slice(end)],
  ]) {
    const { id } = await publish(ada, { entries: entriesOf(...parts) });
    assert.equal(
      rowsOf((await page(path("small"))).main).map(([name]) => name?.split("|")[0]),
      ["Q8_0"],
    );
    await withdraw(service.running.service.store, ada.id, { studyId: id, version: null }, "next");
  }
  // Incomplete, and invalid.
  for (const parts of [[text.slice(0, -1)], [text.replace('"schema_version":1', '"schema_version":3')]]) {
    await publish(ada, { entries: entriesOf(...parts) });
    assert.is((await page(path("small"))).status, 404);
  }
  await service.close();
});

test.after(() => databases.close());
test.run();
