/**
 * From the released state, with data. The fixtures were written by the release before handles and moderation: an
 * SQLite file, a dump of PostgreSQL, and a backup, all of the same four people, three studies, one draft and votes.
 */
import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { sql } from "kysely";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { restore } from "../../src/studies/backup.js";
import { isApproved, signInAccount } from "../../src/studies/store/accounts.js";
import { admit } from "../../src/studies/store/admission.js";
import { readComments } from "../../src/studies/store/discussion.js";
import { listDrafts } from "../../src/studies/store/drafts.js";
import { migrate } from "../../src/studies/store/migrations.js";
import { openStore } from "../../src/studies/store/open.js";
import { originalsOf, reproductionsOf } from "../../src/studies/store/reproductions.js";
import type { Database } from "../../src/studies/store/schema.js";
import type { Store } from "../../src/studies/store/store.js";
import {
  countFacets,
  findBecome,
  listStudies,
  listVersions,
  readVersion,
} from "../../src/studies/store/studies.js";
import { sha256Hex } from "../../src/studies/store/tokens.js";
import { inspectJob, patchJob } from "../report/jobs.js";
import { startDatabases } from "./support/databases.js";
import { samplePackage } from "./support/packages.js";
import { reproduction } from "./support/people.js";
import { resultBlock } from "./support/results.js";

const databases = await startDatabases();
const fixture = (name: string) => fileURLToPath(new URL(`./fixtures/released.${name}`, import.meta.url));

/** A database as the release left it. */
async function released(name: "sqlite" | "postgresql", location: string): Promise<void> {
  if (name === "sqlite") {
    mkdirSync(dirname(location), { recursive: true });
    writeFileSync(location, gunzipSync(readFileSync(fixture("sqlite.gz"))));
    return;
  }
  const dump = gunzipSync(readFileSync(fixture("postgresql.sql.gz"))).toString();
  const statements = dump.replace(/^SELECT pg_catalog\.set_config\('search_path'.*$/m, "");
  const store = await openStore(location, { migrate: false });
  await sql.raw(statements).execute(store.db);
  await store.close();
}

/** Data of the released version, read by later versions. */
async function assertWhole(store: Store): Promise<void> {
  const accounts = await store.db.selectFrom("accounts").selectAll().orderBy("created_at").execute();
  const by = (subject: string) => accounts.find((one) => one.subject === subject)!;
  assert.equal(
    ["ada", "7", "ben", "x"].map((subject) => by(subject).handle),
    ["ada-sample", "octocat", "ben-unal", "reader"],
  );
  const { rows, total } = await listStudies(store, "", 50, 0);
  assert.is(total, 3);
  assert.equal(
    rows.map(({ title, author, handle, version, upvotes, comment_count }) => [
      title,
      author,
      handle,
      version,
      upvotes,
      comment_count,
    ]),
    [
      ["Owl", "日本", "reader", 1, 0, 0],
      // The authors' own votes are gone, the other's stays.
      ["Kestrel", "Ada Sample", "octocat", 1, 0, 0],
      ["Heron two", "Ada Sample", "ada-sample", 2, 1, 2],
    ],
  );
  const heron = rows[2]!;
  assert.is((await listStudies(store, "second heron", 10, 0)).total, 1);
  assert.is((await listStudies(store, "first", 10, 0)).total, 0);
  assert.equal(
    (await listVersions(store, heron.id)).map(({ version, standing }) => [version, standing]),
    [
      [2, "published"],
      [1, "published"],
    ],
  );
  const first = await readVersion(store, heron.id, 1);
  assert.is(sha256Hex(first!.package), first!.sha256);
  assert.is(JSON.parse(first!.package.toString()).title, "Heron one");
  assert.is((await findBecome(store, heron.id))?.version, 1);
  assert.equal(
    (await readComments(store, heron.id, 0, 50)).map(({ body, author, handle }) => [body, author, handle]),
    [
      ["First!", "Bén Ünal", "ben-unal"],
      ["An answer.", "Ada Sample", "ada-sample"],
    ],
  );
  assert.equal(
    (await listDrafts(store, by("ada").id)).map(({ title }) => title),
    ["A waiting draft"],
  );
  assert.is((await admit(store, sha256Hex("tpl_of_the_released_state"))).outcome, "admitted");
  // Approvals are their accounts' now, each what it was.
  const approved = async (subject: string) =>
    [await isApproved(store, by(subject), "agent"), await isApproved(store, by(subject), "publisher")].join();
  assert.equal(
    [await approved("ada"), await approved("7"), await approved("ben"), await approved("x")],
    ["true,true", "true,true", "true,false", "false,false"],
  );
  // Someone else may register the login again; the approval does not follow it.
  const again = { issuer: "github", subject: "8", name: "Eve", email: null, login: "octocat" };
  const eve = await signInAccount(store, again);
  assert.not.ok(await isApproved(store, eve, "publisher"));
  assert.is(eve.handle, "octocat-2");
  // What waited for an address still does.
  const later = { issuer: "x", subject: "l", name: "L", email: "later@example.org", login: null };
  assert.ok(await isApproved(store, await signInAccount(store, later), "publisher"));
}

for (const database of databases.all) {
  test(`${database.name}: two processes upgrade the released schema with its data at once`, async () => {
    const location = database.fresh();
    await released(database.name, location);
    const [one, two] = await Promise.all([openStore(location), openStore(location)]);
    assert.is((await listStudies(two, "", 50, 0)).total, 3);
    await assertWhole(one);
    await Promise.all([one.close(), two.close()]);
  });

  test(`${database.name}: a backup of the release is restored`, async () => {
    const store = await openStore(database.fresh());
    assert.ok((await restore(store, fixture("backup.gz"))).rows > 0);
    await assertWhole(store);
    await store.close();
  });
}

/** Rows of the schema before studies were parsed: packages with machine-readable blocks that it did not store. */
async function beforeReading(store: Store): Promise<Record<string, string>> {
  await migrate(store.db, store.dialect, "003-public-site");
  const insert = (table: keyof Database, rows: object[]) =>
    store.db
      .insertInto(table)
      .values(rows as never)
      .execute();
  const [ada, ben] = [randomUUID(), randomUUID()];
  const account = { issuer: "test", created_at: 1, recent_drafts: "[]", turn: 0, email: null, login: null };
  await insert("accounts", [
    { ...account, id: ada, subject: "a", name: "Ada", handle: "ada" },
    { ...account, id: ben, subject: "b", name: "Ben", handle: "ben" },
  ]);
  let time = 1_700_000_000_000;
  const ids: Record<string, string> = {};
  /** Publishes a study in versions; the last one is current. */
  const publish = async (name: string, owner: string, texts: string[], listed = 1) => {
    const id = randomUUID();
    ids[name] = id;
    const versions = texts.map((finding, at) => {
      time += 1000;
      const model = { name: `model of ${name}`, runtime: "x" };
      const bytes = Buffer.from(JSON.stringify(samplePackage({ title: name, finding, model })));
      const standing = listed === 1 ? "published" : "withdrawn";
      const times = { created_at: time, published_at: time };
      const draft_id = at === 0 ? id : randomUUID();
      return {
        study_id: id,
        version: at + 1,
        draft_id,
        standing,
        sha256: sha256Hex(bytes),
        package: bytes,
        ...times,
      };
    });
    await insert("studies", [
      {
        id,
        account_id: owner,
        author: "x",
        version: texts.length,
        title: name,
        question: "?",
        model: "{}",
        license: "CC-BY-4.0",
        entry_count: 1,
        created_at: time,
        published_at: time,
        upvotes: 0,
        comment_count: 0,
        listed,
        standing: listed === 1 ? "published" : "withdrawn",
      },
    ]);
    await insert("versions", versions);
    return { study: id, sha256: versions.map((one) => one.sha256) };
  };
  const original = await publish("original", ada, ["first", "second"]);
  const claim = (version: number, outcome: string, sha256 = original.sha256[version - 1]) =>
    reproduction({ study: original.study.toUpperCase(), version, package_sha256: sha256, outcome });
  // More than one batch, before and after the rows that count.
  for (let at = 0; at < 55; at += 1) await publish(`plain ${at}`, ben, ["nothing"]);
  await publish("again", ben, [claim(1, "partly"), `${claim(2, "held")}\n\n${claim(1, "failed")}`]);
  await publish("wrong bytes", ben, [claim(1, "held", "0".repeat(64))]);
  await publish("no block", ben, ['```tapline-reproduction\n{"study":1}\n```\n```tapline-result\n]\n```']);
  await publish("withdrawn", ben, [claim(1, "failed")], 0);
  await publish("measured", ada, [`${resultBlock(inspectJob())}\n\n${resultBlock(patchJob())}`]);
  await insert("comments", [
    {
      id: randomUUID(),
      study_id: ids.original,
      parent_id: null,
      account_id: ben,
      author: "Ben",
      created_at: 5,
      body: "Old.",
      thread: "000001",
    },
  ]);
  await store.db.updateTable("counters").set({ value: time }).where("name", "=", "published_at").execute();
  return ids;
}

for (const database of databases.all) {
  test(`${database.name}: an upgrade adds results and reproductions to facets and links`, async () => {
    const location = database.fresh();
    const before = await openStore(location, { migrate: false });
    const ids = await beforeReading(before);
    await before.close();
    const store = await openStore(location);
    const found = async (filters: object) => {
      const { rows, total } = await listStudies(store, "", 50, 0, undefined, { filters, order: "new" });
      assert.is(rows.length, Math.min(50, total));
      return rows.map(({ title }) => title);
    };
    assert.equal(
      (await reproductionsOf(store, ids.original!)).map(({ title, original_version, outcome }) => [
        title,
        original_version,
        outcome,
      ]),
      [["again", 2, "held"]],
      "the current version's first word on it, and of what stands",
    );
    assert.equal(
      (await originalsOf(store, { id: ids.again!, version: 1 })).map(({ outcome }) => outcome),
      ["partly"],
      "an older version's statements are stored with it",
    );
    assert.equal(await found({ reproduced: true }), ["original"]);
    for (const method of ["inspect", "patch_sweep"])
      assert.equal(await found({ method }), ["measured"], method);
    assert.equal(await found({ model: "model of again" }), ["again"]);
    assert.equal(await found({ model: "model of plain 54" }), ["plain 54"]);
    assert.is((await found({ author: "ben" })).length, 50);
    const facets = await countFacets(store, "", { author: "ben" });
    assert.equal(
      facets.author.map(({ value, count }) => [value, count]),
      [
        ["ben", 58],
        ["ada", 2],
      ],
    );
    const [comment] = await readComments(store, ids.original!, 0, 5);
    assert.equal([comment?.body, comment?.edited_at], ["Old.", null]);
    const bare = await store.db.selectFrom("studies").select("id").where("model_name", "=", "").execute();
    assert.equal(
      bare.map(({ id }) => id),
      [ids.withdrawn],
      "an unlisted study is read when it is reinstated",
    );
    await store.close();
  });
}

test.after(() => databases.close());
test.run();
