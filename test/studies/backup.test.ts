import { spawnSync } from "node:child_process";
import crypto, { randomBytes } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { sql } from "kysely";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { backUp, restore } from "../../src/studies/backup.js";
import { seed } from "../../src/studies/dev/seed.js";
import { signInAccount } from "../../src/studies/store/accounts.js";
import { ActivityLog } from "../../src/studies/store/activity.js";
import { admit } from "../../src/studies/store/admission.js";
import { approve } from "../../src/studies/store/approvals.js";
import { readAudit } from "../../src/studies/store/audit.js";
import { deleteAccount } from "../../src/studies/store/deletion.js";
import { readComments, setUpvote } from "../../src/studies/store/discussion.js";
import { saveDraft } from "../../src/studies/store/drafts.js";
import { countAction } from "../../src/studies/store/limits.js";
import { openStore } from "../../src/studies/store/open.js";
import { publishDraft } from "../../src/studies/store/publish.js";
import { report } from "../../src/studies/store/reports.js";
import { startSession } from "../../src/studies/store/sessions.js";
import type { Store } from "../../src/studies/store/store.js";
import { listStudies, readVersion } from "../../src/studies/store/studies.js";
import { createToken, sha256Hex } from "../../src/studies/store/tokens.js";
import { startDatabases } from "./support/databases.js";
import { samplePackage } from "./support/packages.js";
import { reproduction } from "./support/people.js";

const databases = await startDatabases();
const folder = mkdtempSync(join(tmpdir(), "tapline-backup-"));

/** Everything that a visitor or a token's owner can see. */
async function content(store: Store) {
  const { rows, total } = await listStudies(store, "", 50, 0);
  const studies = await Promise.all(
    rows.map(async (row) => ({
      row,
      bytes: (await readVersion(store, row.id))?.package.toString("hex"),
      comments: await readComments(store, row.id, 0, 50),
    })),
  );
  const found = await listStudies(store, "steers polite", 50, 0);
  const rest = [
    "accounts",
    "approvals",
    "votes",
    "reports",
    "replays",
    "notifications",
    "reproductions",
    "retired_handles",
    "activity",
    "audit",
    "counters",
  ] as const;
  const tables = Object.fromEntries(
    await Promise.all(
      rest.map(async (table) => {
        const rows: object[] = await store.db.selectFrom(table).selectAll().execute();
        // The backup and the restore write themselves down; a number of the cache may move.
        const kept = rows.filter(
          (row) => !/"(action":"(backup|restore)|name":"generation)"/.test(JSON.stringify(row)),
        );
        return [table, kept.map((row) => JSON.stringify(row, Object.keys(row).sort())).sort()] as const;
      }),
    ),
  );
  const { drafts, tokens } = {
    drafts: await store.db.selectFrom("drafts").selectAll().orderBy("id").execute(),
    tokens: await store.db.selectFrom("tokens").selectAll().orderBy("id").execute(),
  };
  return { total, studies, found: found.rows.map(({ id }) => id), drafts, tokens, tables };
}

for (const from of databases.all) {
  for (const to of databases.all) {
    test(`a backup of ${from.name} restores the same contents into ${to.name}`, async () => {
      const source = await openStore(from.fresh());
      await seed(source);
      const { id: accountId } = await source.db
        .selectFrom("accounts")
        .select("id")
        .limit(1)
        .executeTakeFirstOrThrow();
      const made = await createToken(source, accountId, { name: "t", days: 1, scopes: ["drafts:write"] });
      const session = await startSession(source, accountId, "browser");
      const bytes = Buffer.from('{"odd": "\\u0000\\ud800"}\n');
      await saveDraft(source, { tokenId: made!.id, accountId, scopes: [] }, bytes, "odd \0", "key");
      const { id: studyId, account_id } = await source.db
        .selectFrom("studies")
        .select(["id", "account_id"])
        .limit(1)
        .executeTakeFirstOrThrow();
      const reader = await source.db
        .selectFrom("accounts")
        .select("id")
        .where("id", "!=", account_id)
        .limit(1)
        .executeTakeFirstOrThrow();
      await setUpvote(source, reader.id, studyId, true);
      await report(source, reader.id, { studyId, commentId: null }, "because");
      await approve(source, "publisher", "later@example.org");
      const credential = { tokenId: made!.id, accountId, scopes: [] };
      const { sha256 = "" } = (await readVersion(source, studyId)) ?? {};
      const claim = { study: studyId, version: 1, package_sha256: sha256, outcome: "held" } as const;
      const again = Buffer.from(JSON.stringify(samplePackage({ finding: reproduction(claim) })));
      const draft = (await saveDraft(source, credential, again, "again", null)) as { id: string };
      const reviewedSha256 = sha256Hex(again);
      await publishDraft(source, { accountId, draftId: draft.id, reviewedSha256, replaces: null });
      const leaver = { issuer: "t", subject: "l", name: "Leaver", email: null, login: null };
      await deleteAccount(source, (await signInAccount(source, leaver)).id);
      const log = new ActivityLog(source);
      log.record(made!.id, "studies.list", 200, null);
      await log.flush();
      const file = join(folder, `${from.name}-${to.name}.gz`);
      const { rows, studies } = await backUp(source, file);
      assert.is(statSync(file).mode & 0o777, 0o600);
      const text = gunzipSync(readFileSync(file)).toString();
      for (const secret of [made!.token, session, sha256Hex(session)]) assert.not.ok(text.includes(secret));
      const target = await openStore(to.fresh());
      assert.equal(await restore(target, file), { rows, studies });
      const whole = await content(source);
      // `counters` and `audit` start with rows.
      for (const table of Object.keys(whole.tables))
        assert.ok(whole.tables[table]?.length, `there is something to lose: ${table}`);
      assert.equal(await content(target), whole);
      assert.is((await admit(target, sha256Hex(made!.token))).outcome, "admitted");
      await restore(target, file).then(
        () => assert.unreachable(),
        (error) => assert.match(error.message, /not empty/),
      );
      await Promise.all([source.close(), target.close()]);
    });
  }
}

test("an invalid backup is refused and changes nothing", async () => {
  const target = await openStore((databases.all[0] as (typeof databases.all)[number]).fresh());
  const file = join(folder, "other.gz");
  for (const text of ['{"format":"another"}', '{"table":"accounts","row":{}}', "{}"]) {
    writeFileSync(file, gzipSync(`${text}\n{"end":0}\n`));
    const error = await restore(target, file).catch((thrown) => thrown);
    assert.is(error.message, `${file} is not a backup of the studies service.`);
    assert.equal(await target.db.selectFrom("accounts").select(sql.lit(1).as("one")).execute(), []);
  }
  await target.close();
});

for (const database of databases.all) {
  test(`${database.name}: restoring into a non-empty database changes nothing and lists its contents`, async () => {
    const source = await openStore(database.fresh());
    await seed(source);
    const file = join(folder, `${database.name}-touched.gz`);
    await backUp(source, file);
    const target = await openStore(database.fresh());
    await approve(target, "publisher", "later@example.org");
    await restore(target, file).then(
      () => assert.unreachable(),
      (error) =>
        assert.match(
          error.message,
          /^The database is not empty \(it has approvals\); restore into a new one\.$/,
        ),
    );
    for (const table of ["accounts", "studies", "versions", "comments"] as const)
      assert.equal(await target.db.selectFrom(table).select(sql.lit(1).as("one")).execute(), [], table);
    assert.equal(
      (await readAudit(target, { limit: 10 })).map(({ action }) => action),
      ["approval.add"],
    );
    assert.is((await listStudies(target, "", 5, 0)).total, 0);
    // Rows that a service writes when it starts and answers do not count as content.
    const asked = await openStore(database.fresh());
    await countAction(asked, "sign-in", { accountId: null, address: "192.0.2.1" });
    assert.ok((await restore(asked, file)).rows > 0);
    await Promise.all([source.close(), target.close(), asked.close()]);
  });
}

test("a backup to a bad path fails with one sentence and leaves no file and no log entry", async () => {
  const store = await openStore(databases.all[0]!.fresh());
  await seed(store);
  const place = mkdtempSync(join(folder, "bad-"));
  mkdirSync(join(place, "a folder"));
  writeFileSync(join(place, "a file"), "");
  for (const [path, code] of [
    [join(place, "nowhere", "x.gz"), "ENOENT"],
    [join(place, "a file", "x.gz"), "ENOTDIR"],
    [join(place, "a folder"), "EISDIR"],
  ] as const) {
    await backUp(store, path).then(
      () => assert.unreachable(path),
      (error) => {
        assert.is(error.name, "UserError", error.stack);
        assert.is(
          error.message,
          `Cannot write the backup to ${path} (${code}); the partial file was removed.`,
        );
      },
    );
  }
  assert.equal(readdirSync(place).sort(), ["a file", "a folder"]);
  assert.equal(readdirSync(join(place, "a folder")), []);
  assert.is((await readAudit(store, { limit: 100 })).filter(({ action }) => action === "backup").length, 0);
  await store.close();
});

test("a backup never overwrites an existing file or link, even at a path used before", async () => {
  const store = await openStore(databases.all[0]!.fresh());
  const place = mkdtempSync(join(folder, "link-"));
  const [path, victim] = [join(place, "x.gz"), join(place, "another's")];
  writeFileSync(victim, "theirs");
  const known = "00000000-0000-4000-8000-000000000001";
  symlinkSync(victim, `${path}.${known}.partial`);
  const { randomUUID } = crypto;
  crypto.randomUUID = () => known;
  syncBuiltinESMExports();
  try {
    await backUp(store, path).then(
      () => assert.unreachable(),
      (error) =>
        assert.is(
          error.message,
          `Cannot write the backup to ${path} (EEXIST); the partial file was removed.`,
        ),
    );
  } finally {
    crypto.randomUUID = randomUUID;
    syncBuiltinESMExports();
  }
  assert.is(readFileSync(victim, "utf8"), "theirs");
  assert.not.ok(existsSync(path));
  await store.close();
});

const small = mkdtempSync(join(tmpdir(), "tapline-full-"));
const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tapline", small]).status === 0;

(mounted ? test : test.skip)("a backup to a full disk leaves the previous backup intact", async () => {
  const store = await openStore(databases.all[0]!.fresh());
  const { id: accountId } = await signInAccount(store, {
    issuer: "t",
    subject: "a",
    name: "A",
    email: null,
    login: null,
  });
  const path = join(small, "daily.gz");
  await backUp(store, path);
  const before = readFileSync(path);
  // Random, so that compressing does not make it small.
  const bytes = Buffer.from(JSON.stringify({ finding: randomBytes(100_000).toString("base64") }));
  await saveDraft(store, { tokenId: accountId, accountId, scopes: [] }, bytes, "large", null);
  await backUp(store, path).then(
    () => assert.unreachable(),
    (error) => {
      assert.is(error.name, "UserError", error.stack);
      assert.is(error.message, `Cannot write the backup to ${path} (ENOSPC); the partial file was removed.`);
    },
  );
  assert.equal(readdirSync(small), ["daily.gz"]);
  assert.equal(readFileSync(path), before, "yesterday's is whole");
  await store.close();
});

for (const database of databases.all) {
  // Writers to the same SQLite file in one process wait for their turn; only other processes can write meanwhile.
  if (database.name === "sqlite") continue;
  test(`${database.name}: a backup is consistent while other writes happen`, async () => {
    const location = database.fresh();
    const other = await openStore(location);
    const person = { issuer: "t", subject: "late", name: "Late", email: "late@example.org", login: null };
    let tables = 0;
    const read: Store["dialect"]["read"] = async function* (db, query) {
      tables += 1;
      if (tables === 2) {
        await signInAccount(other, person);
        await approve(other, "publisher", "late@example.org");
      }
      yield* other.dialect.read(db, query);
    };
    const store = await openStore(location, { dialect: { read } });
    const file = join(folder, `${database.name}-moment.gz`);
    await backUp(store, file);
    assert.ok(tables > 10);
    assert.not.match(gunzipSync(readFileSync(file)).toString(), /late@example\.org|Late/);
    await Promise.all([store.close(), other.close()]);
  });
}

test("a damaged or foreign backup file restores nothing", async () => {
  const store = await openStore(databases.all[0]!.fresh());
  await seed(store);
  const file = join(folder, "whole.gz");
  await backUp(store, file);
  const whole = readFileSync(file);
  const empty = await openStore(databases.all[0]!.fresh());
  // Whole as a compressed file, and yet not what was written: a row is missing, one is there twice, the end is.
  const rows = gunzipSync(whole).toString().trimEnd().split("\n");
  const packed = (text: string[]) => gzipSync(`${text.join("\n")}\n`);
  const twice = rows.at(-2) as string;
  const path = join(folder, "bad.gz");
  for (const [bad, sentence] of [
    [whole.subarray(0, whole.length - 2000), "is damaged (unexpected end of file); nothing was restored."],
    [Buffer.from("hello"), "is damaged (incorrect header check); nothing was restored."],
    [Buffer.alloc(0), ""],
    [packed(rows.slice(0, -1)), "is truncated; nothing was restored."],
    [packed(rows.toSpliced(-2, 1)), "is truncated; nothing was restored."],
    [packed(rows.with(-1, twice)), ""],
    [
      packed(rows.toSpliced(1, 0, '{"table":"secrets","row":{}}')),
      "is damaged (unknown table secrets); nothing was restored.",
    ],
  ] as const) {
    writeFileSync(path, bad);
    await restore(empty, path).then(
      () => assert.unreachable(sentence),
      (error) => {
        assert.is(error.name, "UserError", error.stack);
        if (sentence !== "") assert.is(error.message, `${path} ${sentence}`);
      },
    );
    assert.is((await empty.db.selectFrom("accounts").select("id").execute()).length, 0);
  }
  assert.ok((await restore(empty, file)).rows > 0, "and the whole one still goes in");
  await Promise.all([store.close(), empty.close()]);
});

test.after(async () => {
  if (mounted) spawnSync("umount", [small]);
  rmSync(small, { recursive: true, force: true });
  await databases.close();
  rmSync(folder, { recursive: true, force: true });
});
test.run();
