/** Sets of common words stay true while studies are published, withdrawn, removed and put back. */
import { sql } from "kysely";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { gatherStatistics } from "../../src/studies/backup.js";
import { signInAccount } from "../../src/studies/store/accounts.js";
import { readCounters } from "../../src/studies/store/counters.js";
import type { Search } from "../../src/studies/store/dialect.js";
import { saveDraft } from "../../src/studies/store/drafts.js";
import { reinstate, remove, withdraw } from "../../src/studies/store/moderation.js";
import { openStore } from "../../src/studies/store/open.js";
import { postgresql } from "../../src/studies/store/postgresql.js";
import { publishDraft, summaryOf } from "../../src/studies/store/publish.js";
import { searchEntry } from "../../src/studies/store/search-entry.js";
import { sqlite } from "../../src/studies/store/sqlite.js";
import type { Store } from "../../src/studies/store/store.js";
import { listStudies } from "../../src/studies/store/studies.js";
import { WordSets } from "../../src/studies/store/word-sets.js";
import { fc } from "../support/fc.js";
import { startDatabases } from "./support/databases.js";
import { samplePackage } from "./support/packages.js";

const databases = await startDatabases();
const vocabulary = ["heron", "hero", "owl", "kestrel", "wren"];
const anyWords = fc.array(fc.constantFrom(...vocabulary), { minLength: 1, maxLength: 3 });

interface Publish {
  kind: "publish";
  title: string[];
  question: string[];
  method: string[];
  /** Place among what was published, of the study that it is the next version of; null for a new one. */
  replaces: number | null;
}
interface Standing {
  kind: "withdraw" | "remove" | "reinstate";
  study: number;
  /** Whether the newest version alone is meant. */
  newest: boolean;
}
interface Find {
  kind: "search";
  words: string[];
  limit: number;
  offset: number;
}

const step = fc.oneof(
  fc.record<Publish>({
    kind: fc.constant("publish"),
    title: anyWords,
    question: anyWords,
    method: anyWords,
    replaces: fc.option(fc.nat(20)),
  }),
  fc.record<Standing>({
    kind: fc.constantFrom("withdraw", "remove", "remove", "reinstate", "reinstate"),
    study: fc.nat(8),
    newest: fc.boolean(),
  }),
  fc.record<Find>({
    kind: fc.constant("search"),
    words: fc.array(fc.constantFrom(...vocabulary, "he", "h", "wr"), { minLength: 1, maxLength: 3 }),
    limit: fc.integer({ min: 1, max: 6 }),
    offset: fc.integer({ min: 0, max: 6 }),
  }),
);

for (const database of databases.all) {
  const search = database.name === "sqlite" ? sqlite.search : postgresql.search;

  test(`${database.name}: sets match a plain search after additions and removals`, async () => {
    const store = await openStore(database.fresh());
    try {
      const account = await newAccount(store);
      const studies: string[] = [];
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
          // As a process that starts now has them: none, while some studies are down already.
          const sets = new WordSets(store.db, store.dialect.search);
          for (const one of steps) {
            if (one.kind === "search") await assertSame(store, sets, one);
            else await change(store, account, studies, one);
          }
          for (const word of vocabulary) {
            await assertSame(store, sets, { kind: "search", words: [word], limit: 50, offset: 0 });
          }
        }),
        { numRuns: 8 },
      );
    } finally {
      await store.close();
    }
  });

  test(`${database.name}: publishing and removing studies updates sets without rereading`, async () => {
    let readings = 0;
    const having: Search["having"] = (...asked) => {
      readings += 1;
      return search.having(...asked);
    };
    const store = await openStore(database.fresh(), { dialect: { search: { ...search, having } } });
    try {
      const account = await newAccount(store);
      const studies: string[] = [];
      const publish = (replaces: number | null) =>
        change(store, account, studies, { kind: "publish", ...owl, replaces });
      const owl = { title: ["owl"], question: ["wren"], method: ["heron"] };
      const find = () => assertSame(store, store.wordSets, { ...all, words: ["owl", "he"] });
      const all = { kind: "search" as const, limit: 50, offset: 0 };
      for (let count = 0; count < 3; count += 1) await publish(null);
      await find();
      const first = readings;
      assert.ok(first > 0);
      await publish(null);
      await find();
      await publish(1);
      await find();
      const stand = (kind: "remove" | "reinstate") =>
        change(store, account, studies, { kind, study: 2, newest: false });
      await stand("remove");
      await find();
      await stand("reinstate");
      await find();
      assert.is(readings, first);
      // Sets that were read while it was removed include it as well.
      await stand("remove");
      await assertSame(store, store.wordSets, { ...all, words: ["wren"] });
      await stand("reinstate");
      await assertSame(store, store.wordSets, { ...all, words: ["wren"] });
      const second = readings;
      // That many changes at once are read again.
      for (let count = 0; count < 21; count += 1) await publish(null);
      await find();
      assert.ok(readings > second);
    } finally {
      await store.close();
    }
  });

  test(`${database.name}: sets of the commonest words are read ahead until closing`, async () => {
    const location = database.fresh();
    let readings = 0;
    const having: Search["having"] = (...asked) => {
      readings += 1;
      return search.having(...asked);
    };
    const store = await openStore(location, { dialect: { search: { ...search, having } } });
    try {
      if (database.name === "postgresql") {
        // So that nothing but this test gathers statistics.
        await sql`alter table search set (autovacuum_enabled = false)`.execute(store.db);
      }
      await fill(store, 600);
      if (database.name === "postgresql") {
        await store.wordSets.readAhead();
        assert.is(readings, 0, "before the database knows which words are common");
        await gatherStatistics(store);
      }
      await store.wordSets.readAhead();
      assert.ok(readings > 0);
      assert.ok(store.wordSets.has(["zebra"]));
      const before = readings;
      assert.is((await listStudies(store, "zebra", 20, 0)).total, 600);
      assert.is((await listStudies(store, "zebra zebra", 20, 580)).rows.length, 20);
      assert.is(readings, before);
      assert.not.ok(store.wordSets.has(["quagga"]), "a word of 300 studies is not common");
    } finally {
      await store.close();
    }
    const again = await openStore(location);
    const ended = again.wordSets.readAhead();
    await again.close();
    await ended;
    assert.not.ok(again.wordSets.has(["zebra"]));
    await again.wordSets.readAhead();
  });
}

async function newAccount(store: Store): Promise<string> {
  const who = { issuer: "test", subject: "a", name: "Ada", email: null, login: null };
  return (await signInAccount(store, who)).id;
}

async function change(
  store: Store,
  accountId: string,
  studies: string[],
  one: Publish | Standing,
): Promise<void> {
  if (one.kind === "publish") {
    const { title, question, method } = one;
    const text = (words: string[]) => words.join(" ");
    const content = samplePackage({ title: text(title), question: text(question), method: text(method) });
    const bytes = Buffer.from(JSON.stringify(content));
    await store.db.updateTable("accounts").set({ recent_drafts: "[]" }).where("id", "=", accountId).execute();
    const saved = await saveDraft(store, { tokenId: accountId, accountId, scopes: [] }, bytes, "t", null);
    if (saved.outcome !== "saved") throw new Error(saved.outcome);
    const replaced = one.replaces === null ? undefined : studies[one.replaces % (studies.length || 1)];
    const listed = replaced === undefined ? undefined : await listedOf(store, replaced);
    const draft = { accountId, draftId: saved.id, reviewedSha256: saved.sha256 };
    const published = await publishDraft(store, { ...draft, replaces: listed ?? null });
    if (published.outcome === "published" && listed === undefined) studies.push(published.id);
    return;
  }
  const studyId = studies[one.study % (studies.length || 1)];
  if (studyId === undefined) return;
  const { version } = await store.db
    .selectFrom("studies")
    .select("version")
    .where("id", "=", studyId)
    .executeTakeFirstOrThrow();
  const target = { studyId, version: one.newest ? version : null };
  if (one.kind === "withdraw") await withdraw(store, accountId, target, "why");
  else if (one.kind === "remove") await remove(store, "operator", target, "why");
  else await reinstate(store, "operator", target);
}

async function listedOf(store: Store, id: string): Promise<string | undefined> {
  const found = await store.db
    .selectFrom("studies")
    .select("id")
    .where("id", "=", id)
    .where("listed", "=", 1)
    .executeTakeFirst();
  return found?.id;
}

async function assertSame(store: Store, sets: WordSets, { words, limit, offset }: Find): Promise<void> {
  const { publication } = await readCounters(store);
  const found = await sets.find(publication, words, { limit, offset });
  const plain = await store.dialect.search.few(store.db, words, 100_000);
  const ranked = plain!.sort((a, b) => a.tier - b.tier || b.publishedAt - a.publishedAt);
  assert.equal(found, {
    keys: ranked.slice(offset, offset + limit).map(({ publishedAt }) => publishedAt),
    total: ranked.length,
  });
}

/** Studies of which all have a zebra and every second one a quagga. */
async function fill(store: Store, count: number): Promise<void> {
  const account_id = await newAccount(store);
  await store.db.transaction().execute(async (trx) => {
    for (let index = 0; index < count; index += 1) {
      const study = samplePackage({ title: "Zebra", method: index % 2 === 0 ? "A quagga." : "None." });
      const numbers = { version: 1, upvotes: 0, comment_count: 0 };
      const times = { created_at: index + 1, published_at: index + 1 };
      await trx
        .insertInto("studies")
        .values({ id: `${index}`, account_id, author: "", ...numbers, ...times, ...summaryOf(study) })
        .execute();
      await store.dialect.search.add(trx, [{ publishedAt: index + 1, entry: searchEntry(study) }]);
    }
    await trx.updateTable("counters").set({ value: count }).where("name", "=", "published_at").execute();
  });
}

test.after(() => databases.close());
test.run();
