/** What an account that is deleted takes along, and what stays, in the store alone. On SQLite. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { approve } from "../../src/studies/store/approvals.js";
import { readAudit } from "../../src/studies/store/audit.js";
import { deleteAccount, deleteAccountOf, whatLeaves } from "../../src/studies/store/deletion.js";
import { setUpvote } from "../../src/studies/store/discussion.js";
import { countAction } from "../../src/studies/store/limits.js";
import { suspend } from "../../src/studies/store/moderation.js";
import { setFeed } from "../../src/studies/store/notifications.js";
import { dismissReport, openReports, report } from "../../src/studies/store/reports.js";
import { startSession } from "../../src/studies/store/sessions.js";
import { findStudy } from "../../src/studies/store/studies.js";
import { createToken } from "../../src/studies/store/tokens.js";
import {
  aroundStores,
  clock,
  draft,
  error,
  log,
  person,
  publish,
  say,
  store,
} from "./support/people-stores.js";

aroundStores();

test("who leaves takes what is theirs along, and nothing of anybody else's", async () => {
  const [ada, ben] = [await person("Ada", { email: "ada@example.org" }), await person("Ben")];
  const study = await publish(ben.id);
  await publish(ada.id);
  const reports: string[] = [];
  for (const { id } of [ada, ben]) {
    await draft(id, { title: "waits" });
    await createToken(store, id, { name: "t", days: 1, scopes: ["public:read"] });
    await startSession(store, id, "b");
    await approve(store, "agent", id);
    await countAction(store, "vote", { accountId: id, address: "192.0.2.1" });
    for (const reason of ["settled", "open"]) {
      await report(store, id, { studyId: study, commentId: null }, `${reason} ${id}`);
      const [one] = (await openReports(store)).filter((each) => each.reason === `${reason} ${id}`);
      if (reason === "settled") await dismissReport(store, "operator", one?.id as string);
      else reports.push(one?.id as string);
    }
  }
  await say(ada.id, study);
  await setUpvote(store, ada.id, study, true);
  assert.equal(await whatLeaves(store, ada.id), {
    studies: 1,
    comments: 1,
    votes: 1,
    drafts: 1,
    tokens: 1,
    reports: 1,
  });
  const left = async (
    table:
      | "drafts"
      | "tokens"
      | "sessions"
      | "approvals"
      | "reports"
      | "studies"
      | "comments"
      | "votes"
      | "notifications",
  ) =>
    (await store.db.selectFrom(table).select("account_id").execute())
      .map(({ account_id }) => (account_id === ada.id ? "ada" : "ben"))
      .sort();
  await log();
  await deleteAccount(store, ada.id);
  assert.equal(await log(), [[ada.id, "account.delete", ada.id, null]]);
  for (const table of ["drafts", "tokens", "sessions", "approvals"] as const)
    assert.equal(await left(table), ["ben"], table);
  assert.equal(await left("notifications"), ["ben", "ben"], "a draft that waits, a comment");
  assert.equal(await left("reports"), ["ada", "ben", "ben"]);
  assert.equal((await openReports(store)).map(({ id }) => id).sort(), reports.sort());
  assert.equal(
    [await left("studies"), await left("comments"), await left("votes")],
    [["ada", "ben"], ["ada"], ["ada"]],
  );
  const keys = (await store.db.selectFrom("limits").select("key").execute()).map(({ key }) => key).sort();
  assert.equal(keys, [`vote account ${ben.id}`, "vote address 192.0.2.1"]);
  assert.is((await findStudy(store, study))?.author, "Ben", "nobody else's name goes");
  // What anybody once called them is not in the log any more.
  assert.equal((await readAudit(store, { target: "ada@example.org", limit: 9 })).length, 0);
  assert.is(await error(deleteAccountOf(store, ada)), `UserError: The account ${ada.id} is deleted already.`);
  assert.is((await person("Ada")).handle, "ada-2");
});

test("an account that is deleted keeps its number and its times, and nothing of who it was", async () => {
  const { id, created_at } = await person("Ada", { email: "ada@example.org", login: "ada" });
  await setFeed(store, id, "a hash");
  await suspend(store, "operator", { id }, "She sold things.");
  const suspended = clock.ms;
  clock.ms += 1000;
  await deleteAccountOf(store, { id });
  const { turn: _turn, ...row } = await store.db.selectFrom("accounts").selectAll().executeTakeFirstOrThrow();
  assert.equal(row, {
    ...{ id, issuer: "deleted", subject: id, name: "deleted account" },
    ...{ email: null, login: null, handle: null, feed_hash: null, suspension: null, recent_drafts: "[]" },
    ...{ created_at, suspended_at: suspended, deleted_at: clock.ms },
  });
});

test.run();
