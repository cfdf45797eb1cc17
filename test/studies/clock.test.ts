/**
 * A clock that ran ahead and is set back: no user is locked out, nothing lasts too long, and publications keep their
 * order.
 */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { signInAccount } from "../../src/studies/store/accounts.js";
import { admit } from "../../src/studies/store/admission.js";
import { saveDraft } from "../../src/studies/store/drafts.js";
import { countAction } from "../../src/studies/store/limits.js";
import { openStore } from "../../src/studies/store/open.js";
import { publishDraft } from "../../src/studies/store/publish.js";
import { findSession, listSessions, startSession } from "../../src/studies/store/sessions.js";
import { listStudies } from "../../src/studies/store/studies.js";
import { createToken, sha256Hex } from "../../src/studies/store/tokens.js";
import { testClock } from "./support/clock.js";
import { startDatabases } from "./support/databases.js";
import { samplePackage } from "./support/packages.js";

const databases = await startDatabases();
test.after(() => databases.close());
const [minute, hour, day] = [60_000, 3_600_000, 86_400_000];

for (const database of databases.all) {
  const open = async () => {
    const clock = testClock();
    const store = await openStore(database.fresh(), { dialect: clock.dialect });
    const one = { issuer: "t", subject: "a", name: "A", email: null, login: null };
    const { id } = await signInAccount(store, one);
    return { clock, store, id };
  };

  test(`${database.name}: exhausted quotas do not last until a clock set back catches up`, async () => {
    const { clock, store, id } = await open();
    const made = await createToken(store, id, { name: "t", days: 30, scopes: ["public:read"] });
    const hash = sha256Hex(made?.token as string);
    const fill = async () => {
      for (let count = 0; count < 60; count += 1) assert.is((await admit(store, hash)).outcome, "admitted");
      return admit(store, hash);
    };
    assert.is((await fill()).outcome, "exhausted");
    clock.ms -= day;
    const after = await fill();
    assert.is(after.outcome, "exhausted", "the quota itself holds");
    if (after.outcome === "exhausted") assert.ok(after.window.resetSeconds <= 60);
    // A small step back loses nothing: earlier requests still count.
    clock.ms -= 30_000;
    const small = await admit(store, hash);
    assert.is(small.outcome, "exhausted");
    if (small.outcome === "exhausted") {
      assert.is(small.window.resetSeconds, 90);
      clock.ms += 90_000;
      assert.is((await admit(store, hash)).outcome, "admitted", "waiting that long suffices");
    }
    for (let count = 0; count < 5; count += 1)
      assert.is(await countAction(store, "export", { accountId: id, address: "a" }), 0);
    assert.ok((await countAction(store, "export", { accountId: id, address: "a" })) > 3000);
    clock.ms -= 2 * day;
    assert.is(await countAction(store, "export", { accountId: id, address: "a" }), 0);
    await store.close();
  });

  test(`${database.name}: a session from a clock that ran ahead ends 14 days after the correction`, async () => {
    const { clock, store, id } = await open();
    const secret = await startSession(store, id, "b");
    clock.ms -= 300 * day;
    assert.ok(await findSession(store, secret), "it is still signed in");
    const [listed] = await listSessions(store, id);
    assert.equal([listed?.seen_at, listed?.expires_at], [clock.ms, clock.ms + 14 * day]);
    clock.ms += 14 * day - minute;
    assert.ok(await findSession(store, secret));
    clock.ms += minute;
    assert.is(await findSession(store, secret), null);
    await store.close();
  });

  test(`${database.name}: publications after a clock step back sort after earlier ones`, async () => {
    const { clock, store, id: accountId } = await open();
    const publish = async (title: string) => {
      const bytes = Buffer.from(JSON.stringify(samplePackage({ title })));
      const saved = await saveDraft(store, { tokenId: "t", accountId, scopes: [] }, bytes, title, null);
      const draftId = (saved as { id: string }).id;
      const reviewed = { accountId, draftId, reviewedSha256: sha256Hex(bytes), replaces: null };
      assert.is((await publishDraft(store, reviewed)).outcome, "published");
    };
    await publish("one");
    clock.ms -= hour;
    await publish("two");
    clock.ms -= 300 * day;
    await publish("three");
    clock.ms += 400 * day;
    await publish("four");
    const { rows } = await listStudies(store, "", 10, 0);
    assert.equal(
      rows.map(({ title }) => title),
      ["four", "three", "two", "one"],
    );
    const times = rows.map(({ published_at }) => published_at);
    assert.is(new Set(times).size, 4);
    await store.close();
  });
}

test.run();
