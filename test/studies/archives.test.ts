/** What leaves a store whole: a person's archive, a backup. On SQLite. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { backUp, restore } from "../../src/studies/backup.js";
import { personalFiles } from "../../src/studies/personal/export.js";
import { tar } from "../../src/studies/personal/tar.js";
import { signInAccount } from "../../src/studies/store/accounts.js";
import { openStore } from "../../src/studies/store/open.js";
import { summaryOf } from "../../src/studies/store/publish.js";
import type { Database } from "../../src/studies/store/schema.js";
import type { Store } from "../../src/studies/store/store.js";
import { createToken } from "../../src/studies/store/tokens.js";
import { samplePackage } from "./support/packages.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-archives-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

test("a file in an archive is a regular file that all can read and its owner can write", async () => {
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
      (error) => assert.is(error.message, `Invalid file name for a tar archive: ${name}`),
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

test("archive lists hold every row once, in files of bounded size, with readable times", async () => {
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
    "appeals-1.json": 0,
    "notifications-1.json": 0,
  });
  assert.is(written, 2, "two tokens were made");
  // A thousand at a time, plus the rest of the last millisecond; each token separately.
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

test("a restored database finds all of its studies, however many there are", async () => {
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
  const { rows, studies } = await backUp(from, file);
  assert.is(studies, count);
  assert.equal(await restore(to, file), { rows, studies });
  assert.is((await to.dialect.search.few(to.db, ["heron"], 1000))?.length, count);
  for (const at of [0, 49, 50, 99, 100])
    assert.equal(await to.dialect.search.few(to.db, [`word${at}`, "heron"], 9), [
      { publishedAt: 1000 + at, tier: 2 },
    ]);
  const empty = await openStore(join(folder, "empty.db"));
  const nothing = join(folder, "nothing.gz");
  writeFileSync(nothing, gzipSync('{"format":"tapline studies backup 2"}\n{"end":0}\n'));
  assert.equal(await restore(empty, nothing), { rows: 0, studies: 0 }, "of none there are none");
  await empty.close();
  const missing = await restore(to, join(folder, "none.gz")).catch((error: Error) => error.message);
  assert.is(missing, `${join(folder, "none.gz")} does not exist.`);
  await Promise.all([from.close(), to.close()]);
});

test.run();
