import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { backUp, restore } from "../../src/studies/backup.js";
import { seed } from "../../src/studies/dev/seed.js";
import { admit } from "../../src/studies/store/admission.js";
import { readComments } from "../../src/studies/store/discussion.js";
import { saveDraft } from "../../src/studies/store/drafts.js";
import { startSession } from "../../src/studies/store/sessions.js";
import { openStore, type Store } from "../../src/studies/store/store.js";
import { listStudies, readVersion } from "../../src/studies/store/studies.js";
import { createToken, sha256Hex } from "../../src/studies/store/tokens.js";
import { startDatabases } from "./support/databases.js";

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
  const { drafts, tokens } = {
    drafts: await store.db.selectFrom("drafts").selectAll().orderBy("id").execute(),
    tokens: await store.db.selectFrom("tokens").selectAll().orderBy("id").execute(),
  };
  return { total, studies, found: found.rows.map(({ id }) => id), drafts, tokens };
}

for (const from of databases.all) {
  for (const to of databases.all) {
    test(`a backup of ${from.name} fills ${to.name} with the same`, async () => {
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
      const file = join(folder, `${from.name}-${to.name}.gz`);
      const rows = await backUp(source, file);
      assert.is(statSync(file).mode & 0o777, 0o600);
      const text = gunzipSync(readFileSync(file)).toString();
      for (const secret of [made!.token, session, sha256Hex(session)]) assert.not.ok(text.includes(secret));
      const target = await openStore(to.fresh());
      assert.is(await restore(target, file), rows);
      assert.equal(await content(target), await content(source));
      assert.is((await admit(target, sha256Hex(made!.token))).outcome, "admitted");
      await restore(target, file).then(
        () => assert.unreachable(),
        (error) => assert.match(error.message, /not empty/),
      );
      await Promise.all([source.close(), target.close()]);
    });
  }
}

test("a damaged or foreign file restores nothing", async () => {
  const store = await openStore(databases.all[0]!.fresh());
  await seed(store);
  const file = join(folder, "whole.gz");
  await backUp(store, file);
  const whole = readFileSync(file);
  const empty = await openStore(databases.all[0]!.fresh());
  for (const bad of [whole.subarray(0, whole.length - 2000), Buffer.from("hello"), Buffer.alloc(0)]) {
    writeFileSync(join(folder, "bad.gz"), bad);
    await restore(empty, join(folder, "bad.gz")).then(
      () => assert.unreachable(),
      (error) => assert.is(error.name, "UserError", error.stack),
    );
    assert.is((await empty.db.selectFrom("accounts").select("id").execute()).length, 0);
  }
  assert.ok((await restore(empty, file)) > 0, "and the whole one still goes in");
  await Promise.all([store.close(), empty.close()]);
});

test.after(async () => {
  await databases.close();
  rmSync(folder, { recursive: true, force: true });
});
test.run();
