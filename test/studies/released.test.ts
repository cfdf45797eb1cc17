/**
 * From the released state, with data. The fixtures were written by the release before handles and moderation: an
 * SQLite file, a dump of PostgreSQL, and a backup, all of the same four people, three studies, one draft and votes.
 */
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
import { openStore, type Store } from "../../src/studies/store/store.js";
import { findBecome, listStudies, listVersions, readVersion } from "../../src/studies/store/studies.js";
import { sha256Hex } from "../../src/studies/store/tokens.js";
import { startDatabases } from "./support/databases.js";

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

/** What the release held, read by what came after it. */
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
  // The login may be registered again by somebody else; the approval does not go with it.
  const again = { issuer: "github", subject: "8", name: "Eve", email: null, login: "octocat" };
  const eve = await signInAccount(store, again);
  assert.not.ok(await isApproved(store, eve, "publisher"));
  assert.is(eve.handle, "octocat-2");
  // What waited for an address still does.
  const later = { issuer: "x", subject: "l", name: "L", email: "later@example.org", login: null };
  assert.ok(await isApproved(store, await signInAccount(store, later), "publisher"));
}

for (const database of databases.all) {
  test(`${database.name}: the released schema comes forward with what it holds, two processes at once`, async () => {
    const location = database.fresh();
    await released(database.name, location);
    const [one, two] = await Promise.all([openStore(location), openStore(location)]);
    assert.is((await listStudies(two, "", 50, 0)).total, 3);
    await assertWhole(one);
    await Promise.all([one.close(), two.close()]);
  });

  test(`${database.name}: a backup of the release is restored`, async () => {
    const store = await openStore(database.fresh());
    assert.ok((await restore(store, fixture("backup.gz"))) > 0);
    await assertWhole(store);
    await store.close();
  });
}

test.after(() => databases.close());
test.run();
