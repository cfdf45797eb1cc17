import { statSync } from "node:fs";
import { sql } from "kysely";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { isApproved, signInAccount } from "../../src/studies/store/accounts.js";
import { admit } from "../../src/studies/store/admission.js";
import { approve, disapprove } from "../../src/studies/store/approvals.js";
import { addComment, readComments, setUpvote } from "../../src/studies/store/discussion.js";
import { deleteDraft, listDrafts, saveDraft } from "../../src/studies/store/drafts.js";
import { openStore } from "../../src/studies/store/open.js";
import { publishDraft } from "../../src/studies/store/publish.js";
import { endSessions, findSession, listSessions, startSession } from "../../src/studies/store/sessions.js";
import type { Store } from "../../src/studies/store/store.js";
import { findStudy, listStudies, readForToken, topStudies } from "../../src/studies/store/studies.js";
import {
  createToken,
  isTokenShaped,
  listTokens,
  newToken,
  revokeToken,
  sha256Hex,
} from "../../src/studies/store/tokens.js";
import { testClock } from "./support/clock.js";
import { startDatabases } from "./support/databases.js";
import { samplePackage } from "./support/packages.js";

const databases = await startDatabases();

async function account(store: Store, name = "Ada") {
  return signInAccount(store, {
    issuer: "test",
    subject: name,
    name,
    email: `${name}@Example.org`,
    login: null,
  });
}

async function publish(store: Store, accountId: string, change: Parameters<typeof samplePackage>[0] = {}) {
  const made = await createToken(store, accountId, { name: "t", days: 1, scopes: ["drafts:write"] });
  const bytes = Buffer.from(JSON.stringify(samplePackage(change)));
  const draft = await saveDraft(
    store,
    { tokenId: made!.id, accountId, scopes: [] },
    bytes,
    change.title ?? "x",
    null,
  );
  await revokeToken(store, accountId, made!.id);
  assert.is(draft.outcome, "saved");
  const id = (draft as { id: string }).id;
  await publishDraft(store, { accountId, draftId: id, reviewedSha256: sha256Hex(bytes), replaces: null });
  return id;
}

test("tokens have a prefix, 256 bits and a checksum that detects any change", () => {
  const token = newToken();
  assert.match(token, /^tpl_[0-9A-Za-z]{49}$/);
  assert.ok(isTokenShaped(token));
  for (let at = 0; at < token.length; at += 1) {
    const other = token[at] === "a" ? "b" : "a";
    assert.not.ok(isTokenShaped(token.slice(0, at) + other + token.slice(at + 1)), `changed at ${at}`);
  }
});

for (const database of databases.all) {
  const on = (name: string, body: (store: Store, location: string) => Promise<void>, dialect = {}) =>
    test(`${database.name}: ${name}`, async () => {
      const location = database.fresh();
      const store = await openStore(location, { dialect });
      try {
        await body(store, location);
      } finally {
        await store.close();
      }
    });

  if (database.name === "sqlite") {
    on("the file is private to its account", async (_store, location) => {
      assert.is(statSync(location).mode & 0o777, 0o600);
    });
  }

  const clock = testClock();
  on(
    "60 requests in any 60 seconds, and waiting as told suffices",
    async (store) => {
      const { id } = await account(store);
      const made = await createToken(store, id, { name: "t", days: 1, scopes: ["public:read"] });
      const hash = sha256Hex(made!.token);
      const admittedAt: number[] = [];
      let seed = 7;
      const random = () => {
        seed = (seed * 1103515245 + 12345) % 2147483648;
        return seed / 2147483648;
      };
      for (let step = 0; step < 400; step += 1) {
        clock.ms += Math.floor(random() ** 3 * 4000);
        const answer = await admit(store, hash);
        const inWindow = admittedAt.filter((time) => time > clock.ms - 60_000).length;
        if (answer.outcome === "admitted") {
          assert.ok(inWindow < 60);
          admittedAt.push(clock.ms);
          assert.is(answer.window.remaining, 60 - inWindow - 1);
        } else {
          assert.is(answer.outcome, "exhausted");
          assert.is(inWindow, 60);
          const wait = (answer as { window: { resetSeconds: number } }).window.resetSeconds;
          clock.ms += wait * 1000;
          assert.is((await admit(store, hash)).outcome, "admitted");
          admittedAt.push(clock.ms);
        }
      }
    },
    clock.dialect,
  );

  const later = testClock();
  on(
    "tokens expire or are revoked; drafts are limited to 10 in any 24 hours",
    async (store) => {
      const { id } = await account(store);
      const one = await createToken(store, id, {
        name: "one",
        days: 1,
        scopes: ["public:read", "drafts:write"],
      });
      const two = await createToken(store, id, { name: "two", days: 30, scopes: ["public:read"] });
      assert.is((await admit(store, sha256Hex(one!.token))).outcome, "admitted");
      assert.is((await admit(store, sha256Hex("x"))).outcome, "invalid");
      const credential = { tokenId: one!.id, accountId: id, scopes: [] };
      for (let count = 0; count < 10; count += 1) {
        const bytes = Buffer.from(`{"n":${count}}`);
        assert.is((await saveDraft(store, credential, bytes, "t", null)).outcome, "saved");
        later.ms += 1000;
      }
      const refused = await saveDraft(store, credential, Buffer.from("{}"), "t", null);
      assert.equal(refused, { outcome: "exhausted", retryAfter: 86_390 });
      later.ms += 86_389_999;
      assert.is((await saveDraft(store, credential, Buffer.from("{}"), "t", null)).outcome, "exhausted");
      later.ms += 1;
      assert.is((await saveDraft(store, credential, Buffer.from("{}"), "t", null)).outcome, "saved");
      later.ms += 100_000;
      assert.is((await admit(store, sha256Hex(one!.token))).outcome, "expired");
      assert.ok(await revokeToken(store, id, two!.id));
      assert.not.ok(await revokeToken(store, id, two!.id));
      assert.is((await admit(store, sha256Hex(two!.token))).outcome, "revoked");
      assert.equal((await listTokens(store, id)).map(({ name, state }) => `${name} ${state}`).sort(), [
        "one expired",
        "two revoked",
      ]);
    },
    later.dialect,
  );

  on("50 parallel creations leave exactly 10 tokens and 10 drafts", async (store, location) => {
    const { id } = await account(store);
    const other = await openStore(location, { migrate: false });
    const stores = [store, other];
    const tokens = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        createToken(stores[n % 2] as Store, id, { name: `${n}`, days: 1, scopes: ["drafts:write"] }),
      ),
    );
    assert.is(tokens.filter((token) => token !== null).length, 10);
    assert.is((await listTokens(store, id)).length, 10);
    const token = tokens.find((made) => made !== null)!;
    const drafts = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        saveDraft(
          stores[n % 2] as Store,
          { tokenId: token.id, accountId: id, scopes: [] },
          Buffer.from(`{"n":${n}}`),
          "t",
          null,
        ),
      ),
    );
    assert.is(drafts.filter(({ outcome }) => outcome === "saved").length, 10);
    assert.is((await listDrafts(store, id)).length, 10);
    const hash = sha256Hex(token.token);
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, n) => admit(stores[n % 2] as Store, hash)),
    );
    assert.is(answers.filter(({ outcome }) => outcome === "admitted").length, 60);
    await other.close();
  });

  on("an idempotency key gives the same draft again, and refuses other bytes", async (store) => {
    const { id } = await account(store);
    const made = await createToken(store, id, { name: "t", days: 1, scopes: ["drafts:write"] });
    const credential = { tokenId: made!.id, accountId: id, scopes: [] };
    const save = (text: string) => saveDraft(store, credential, Buffer.from(text), "t", "key");
    const all = await Promise.all(Array.from({ length: 20 }, () => save("{}")));
    assert.is(all.filter(({ outcome }) => outcome === "saved").length, 1);
    assert.is(new Set(all.map((answer) => (answer as { id: string }).id)).size, 1);
    assert.is((await save("[]")).outcome, "key_reused");
    const [draft, ...others] = await listDrafts(store, id);
    assert.is(others.length, 0);
    assert.is(await deleteDraft(store, id, draft!.id), true);
    assert.is((await save("{}")).outcome, "deleted", "no id is answered of what its owner has deleted");
  });

  on("a draft is readable by its token alone; published, by all; deleted, by none", async (store) => {
    const { id } = await account(store);
    const [mine, other] = await Promise.all(
      ["a", "b"].map((name) => createToken(store, id, { name, days: 1, scopes: ["drafts:write"] })),
    );
    const bytes = Buffer.from(` ${JSON.stringify(samplePackage({ title: "nul \u0000 and \ud800" }))}\n`);
    const credential = { tokenId: mine!.id, accountId: id, scopes: [] };
    const draft = (await saveDraft(store, credential, bytes, "nul \u0000 and \ud800", null)) as {
      id: string;
    };
    const read = await readForToken(store, draft.id, mine!.id);
    assert.ok(read!.package.equals(bytes));
    assert.is(read!.visibility, "private_draft");
    assert.is(await readForToken(store, draft.id, other!.id), undefined);
    const wrong = { accountId: id, draftId: draft.id, reviewedSha256: "0".repeat(64), replaces: null };
    assert.equal(await publishDraft(store, wrong), { outcome: "gone" });
    const right = { ...wrong, reviewedSha256: sha256Hex(bytes) };
    assert.equal(await publishDraft(store, right), { outcome: "published", id: draft.id, version: 1 });
    assert.equal(await publishDraft(store, right), { outcome: "gone" });
    const published = await readForToken(store, draft.id, other!.id);
    assert.ok(published!.package.equals(bytes));
    assert.is((await findStudy(store, draft.id))!.title, "nul \uFFFD and \uFFFD");
    const second = (await saveDraft(store, credential, bytes, "t", null)) as { id: string };
    assert.not.ok(await deleteDraft(store, "someone-else", second.id));
    assert.ok(await deleteDraft(store, id, second.id));
    assert.is(await readForToken(store, second.id, mine!.id), undefined);
  });

  if (database.name === "postgresql") {
    test("postgresql: connections prepare frequent statements, up to a limit", async () => {
      const location = database.fresh();
      // The connection that migrates also prepares a statement, because there are ten migrations.
      await (await openStore(location)).close();
      const store = await openStore(location, { connections: 1 });
      try {
        const prepared = async () =>
          (await sql<{ statement: string }>`select statement from pg_prepared_statements`.execute(store.db))
            .rows;
        const sum = async (numbers: number[]) =>
          (
            await sql<{ sum: number }>`select ${sql.join(
              numbers.map((number) => sql`${number}::bigint`),
              sql` + `,
            )} as sum`.execute(store.db)
          ).rows[0]?.sum;
        for (let run = 0; run < 30; run += 1) assert.is(await sum([run, 2]), run + 2);
        assert.is((await prepared()).length, 1);
        // Texts of every length, each run often.
        for (let length = 1; length <= 120; length += 1) {
          for (let run = 0; run < 12; run += 1) assert.is(await sum(Array(length).fill(run)), length * run);
        }
        assert.is((await prepared()).length, 100);
      } finally {
        await store.close();
      }
    });
  }

  on("search: every word, folded, the last as a prefix, best match first", async (store) => {
    const { id } = await account(store);
    const body = await publish(store, id, {
      title: "Alpha",
      question: "What?",
      method: "Measured café räksmörgås",
    });
    const head = await publish(store, id, { title: "Beta", question: "Is the CAFÉ open?", method: "none" });
    const title = await publish(store, id, {
      title: "Café ﬁndings in İstanbul",
      question: "Who?",
      method: "none",
    });
    const find = async (q: string) => (await listStudies(store, q, 50, 0)).rows.map((row) => row.id);
    assert.equal(await find(""), [title, head, body]);
    assert.equal(await find("cafe"), [title, head, body]);
    assert.equal(await find("CAFÉ"), [title, head, body]);
    assert.equal(await find("caf"), [title, head, body]);
    assert.equal(await find("caf open"), []);
    assert.equal(await find("open caf"), [head]);
    assert.equal(await find("findings istanbul"), [title]);
    assert.equal(await find("raksmorgas"), [body]);
    assert.equal(await find("demo-2M cafe"), [title, head, body]);
    assert.equal(await find("absent"), []);
    for (const odd of [
      '"',
      "a AND b",
      "NEAR(",
      "title:cafe",
      "'; drop",
      "\0",
      "*",
      "cafe*",
      "-cafe",
      "\ud800",
    ]) {
      await find(odd);
    }
    const page = await listStudies(store, "cafe", 1, 1);
    assert.equal([page.rows[0]?.id, page.rows.length, page.total], [head, 1, 3]);
  });

  on("many matches page through the tiers in the order that few have", async (store) => {
    const { id } = await account(store);
    const { summaryOf } = await import("../../src/studies/store/publish.js");
    const { searchEntry } = await import("../../src/studies/store/search-entry.js");
    const add = (from: number, until: number) =>
      store.db.transaction().execute(async (trx) => {
        for (let index = from; index < until; index += 1) {
          const where = [{ title: "Zebra" }, { question: "Zebra?" }, { method: "A zebra." }, {}][index % 4];
          const study = samplePackage(where);
          const times = { created_at: index + 1, published_at: index + 1 };
          const numbers = { version: 1, upvotes: 0, comment_count: 0 };
          await trx
            .insertInto("studies")
            .values({ id: `${index}`, account_id: id, author: "", ...numbers, ...times, ...summaryOf(study) })
            .execute();
          await store.dialect.search.add(trx, [{ publishedAt: index + 1, entry: searchEntry(study) }]);
        }
        await trx.updateTable("counters").set({ value: until }).where("name", "=", "published_at").execute();
      });
    await add(0, 600);
    const ids = async (q: string, limit: number, offset: number) =>
      (await listStudies(store, q, limit, offset)).rows.map((row) => Number(row.id));
    const tier = (place: number, all = 600) =>
      Array.from({ length: all }, (_, index) => all - 1 - index).filter((index) => index % 4 === place);
    const order = [...tier(0), ...tier(1), ...tier(2)];
    assert.equal(await ids("zebra", 50, 140), order.slice(140, 190), "450 matches: few");
    // "demo", a word in every model's name, gets its own tier at 600.
    assert.is((await listStudies(store, "demo", 1, 0)).total, 600);
    assert.equal(await ids("demo", 50, 575), [...Array(25).keys()].reverse());
    assert.equal(
      await ids("demo zeb", 50, 100),
      [...tier(0), ...tier(1)].sort((a, b) => b - a).slice(100, 150),
    );
    // Two hundred more: "zebra" now matches 600, which is many, and the cached sets for "demo" are outdated.
    await add(600, 800);
    const more = [...tier(0, 800), ...tier(1, 800), ...tier(2, 800)];
    const together = [...tier(0, 800), ...tier(1, 800)].sort((a, b) => b - a).concat(tier(2, 800));
    for (const offset of [0, 190, 390, 575, 600]) {
      assert.equal(await ids("zebra", 50, offset), more.slice(offset, offset + 50), `zebra ${offset}`);
      assert.equal(
        await ids("demo zeb", 50, offset),
        together.slice(offset, offset + 50),
        `demo zeb ${offset}`,
      );
      assert.equal(
        await ids("zebra demo", 50, offset),
        together.slice(offset, offset + 50),
        `zebra demo ${offset}`,
      );
    }
    assert.is((await listStudies(store, "zebra demo", 1, 0)).total, 600);
    assert.is((await listStudies(store, "demo", 1, 0)).total, 800);
    assert.is((await listStudies(store, "demo xylophone", 1, 0)).total, 0);
  });

  on("a new version keeps the id, moves to the front and is found by its new words only", async (store) => {
    const { id } = await account(store);
    const first = await publish(store, id, { title: "Original words" });
    const second = await publish(store, id, { title: "Another" });
    const made = await createToken(store, id, { name: "t", days: 1, scopes: ["drafts:write"] });
    const bytes = Buffer.from(JSON.stringify(samplePackage({ title: "Revised text" })));
    const credential = { tokenId: made!.id, accountId: id, scopes: [] };
    const draft = (await saveDraft(store, credential, bytes, "t", null)) as { id: string };
    await setUpvote(store, id, first, true);
    const published = await publishDraft(store, {
      accountId: id,
      draftId: draft.id,
      reviewedSha256: sha256Hex(bytes),
      replaces: first,
    });
    assert.equal(published, { outcome: "published", id: first, version: 2 });
    const all = await listStudies(store, "", 50, 0);
    assert.equal(
      all.rows.map((row) => [row.id, row.version, row.upvotes]),
      [
        [first, 2, 0],
        [second, 1, 0],
      ],
    );
    assert.is(all.total, 2);
    assert.is((await listStudies(store, "original", 50, 0)).total, 0);
    assert.is((await listStudies(store, "revised", 50, 0)).total, 1);
  });

  on("comments are in thread order, and upvotes count once per account", async (store) => {
    const ada = await account(store, "Ada");
    const ben = await account(store, "Ben");
    const author = await account(store, "Cleo");
    const study = await publish(store, author.id);
    const other = await publish(store, ada.id);
    const say = async (parent: string | null, body: string, who = ada) =>
      (
        (await addComment(store, { accountId: who.id, name: who.name }, study, parent, body)) as {
          id: string;
        }
      ).id;
    const a = await say(null, "a");
    const b = await say(null, "b");
    const a1 = await say(a, "a1", ben);
    await say(b, "b1");
    await say(a1, "a11");
    await say(a, "a2");
    const bodies = (await readComments(store, study, 0, 50)).map(({ body }) => body);
    assert.equal(bodies, ["a", "a1", "a11", "a2", "b", "b1"]);
    assert.is(
      (await addComment(store, { accountId: ada.id, name: "Ada" }, other, a, "x")).outcome,
      "no_parent",
    );
    await Promise.all([ada, ben, ada, ben].map(({ id }) => setUpvote(store, id, study, true)));
    assert.is((await findStudy(store, study))!.upvotes, 2);
    await setUpvote(store, ben.id, study, false);
    assert.is((await findStudy(store, study))!.upvotes, 1);
    assert.is(
      await setUpvote(store, author.id, study, true),
      "own",
      "an author does not vote for themselves",
    );
    assert.is((await findStudy(store, study))!.upvotes, 1);
    assert.is((await topStudies(store, 10, 0)).rows[0]!.id, study);
  });

  on("sessions are found by their secret until they end; approvals hold at once", async (store) => {
    const ada = await account(store);
    assert.is((await account(store)).id, ada.id);
    const secrets = [await startSession(store, ada.id, "one"), await startSession(store, ada.id, "two")];
    const first = await findSession(store, secrets[0] as string);
    assert.is(first?.account.name, "Ada");
    assert.is(await findSession(store, "wrong"), null);
    assert.is((await listSessions(store, ada.id)).length, 2);
    await endSessions(store, ada.id, { except: first!.id });
    assert.is(await findSession(store, secrets[1] as string), null);
    assert.ok(await findSession(store, secrets[0] as string));
    assert.not.ok(await isApproved(store, ada, "publisher"));
    await approve(store, "publisher", "ADA@example.org");
    assert.ok(await isApproved(store, ada, "publisher"));
    assert.not.ok(await isApproved(store, ada, "agent"));
    assert.ok(await disapprove(store, "publisher", "ada@example.org"));
    assert.not.ok(await isApproved(store, ada, "publisher"));
    // A provider's "address" that reads like another identity is none.
    await approve(store, "publisher", "github:octocat");
    for (const email of ["github:octocat", "GitHub:Octocat", "https://issuer.example#1"]) {
      const identity = { issuer: "test", subject: email, name: "Eve", email, login: null };
      const eve = await signInAccount(store, identity);
      assert.is(eve.email, null);
      assert.not.ok(await isApproved(store, eve, "publisher"));
    }
    const octocat = { issuer: "github", subject: "7", name: "Octo", email: null, login: "Octocat" };
    assert.ok(await isApproved(store, await signInAccount(store, octocat), "publisher"));
  });
}

test.after(() => databases.close());
test.run();
