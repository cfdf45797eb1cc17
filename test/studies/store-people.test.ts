/** Roles, tokens, and what leaving users take with them; in the store alone. On SQLite. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { accountNamed, type Role, roles } from "../../src/studies/store/accounts.js";
import { approve, disapprove } from "../../src/studies/store/approvals.js";
import { readAudit } from "../../src/studies/store/audit.js";
import { deleteAccount, deleteAccountOf, whatLeaves } from "../../src/studies/store/deletion.js";
import { setUpvote } from "../../src/studies/store/discussion.js";
import { saveDraft } from "../../src/studies/store/drafts.js";
import { countAction } from "../../src/studies/store/limits.js";
import { suspend } from "../../src/studies/store/moderation.js";
import { setFeed } from "../../src/studies/store/notifications.js";
import { dismissReport, openReports, report } from "../../src/studies/store/reports.js";
import { startSession } from "../../src/studies/store/sessions.js";
import { findStudy } from "../../src/studies/store/studies.js";
import { createToken, listTokens, revokeToken, sha256Hex } from "../../src/studies/store/tokens.js";
import {
  approvals,
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

test("an approval is stored under the name given, for the account that presents it", async () => {
  const ada = await person("Ada", { email: "ada@example.org", login: "Octo" });
  const rest: [given: string, kept: string, whose: string | null][] = [
    ["ADA@example.org", "ada@example.org", ada.id],
    ["GitHub:OCTO", "github:octo", ada.id],
    ["https://id.example#Ada", "https://id.example#Ada", ada.id],
    ["@OCTO", ada.id, ada.id],
    ["later@example.org", "later@example.org", null],
    ["https://id.example#ada", "https://id.example#ada", null],
  ];
  for (const [given, kept, whose] of rest) {
    await log();
    await approve(store, "agent", given);
    await approve(store, "agent", given);
    assert.equal(await approvals(), [["agent", kept, whose]], given);
    // Once, however often it is repeated; by the account's id if it has one.
    assert.equal(await log(), [["operator", "approval.add", whose ?? given, "agent"]]);
    await store.db.deleteFrom("approvals").execute();
  }
  await approve(store, "agent", ada.id.toUpperCase());
  assert.equal(await approvals(), [["agent", ada.id, ada.id]]);
  for (const nobody of ["@nobody", "00000000-0000-4000-8000-000000000000"]) {
    assert.is(await error(approve(store, "agent", nobody)), `UserError: No account matches ${nobody}.`);
    assert.is(await error(accountNamed(store.db, nobody)), `UserError: No account matches ${nobody}.`);
  }
  const other = await person("Other", { email: "ada@example.org" });
  await log();
  assert.is(
    await error(approve(store, "publisher", "ada@example.org")),
    `UserError: 2 accounts match ada@example.org: @octo (https://id.example#Ada), @other (https://id.example#Other). Use one of the @handles.`,
  );
  assert.equal([await approvals(), await log()], [[["agent", ada.id, ada.id]], []]);
  // Nobody is named by what is gone.
  await deleteAccount(store, other.id);
  assert.is((await accountNamed(store.db, "ada@example.org")).id, ada.id);
  // A name that waits becomes whose it is by signing in, and stays so.
  await approve(store, "publisher", "later@example.org", { accountId: ada.id });
  const late = await person("Late", { email: "Later@example.org" });
  assert.equal((await approvals()).at(-1), ["publisher", "later@example.org", late.id]);
  const added = (await log()).filter(([, action]) => action === "approval.add");
  // From then on the log names the account, so that the address can go with it.
  assert.equal(added, [[ada.id, "approval.add", late.id, "publisher"]]);
});

test("removal from a list covers every name on that list; only agents lose tokens", async () => {
  const [ada, ben] = [await person("Ada", { email: "ada@example.org" }), await person("Ben")];
  const token = async (id: string) =>
    (await createToken(store, id, { name: "t", days: 9, scopes: ["public:read"] }))?.id;
  const state = async (id: string) => (await listTokens(store, id)).map((one) => one.state);
  await Promise.all([token(ada.id), token(ben.id)]);
  for (const role of roles)
    for (const name of ["ada@example.org", "@ada", "@ben"]) await approve(store, role, name);
  const left = async (role: Role) =>
    (await approvals()).filter(([of]) => of === role).map(([, , whose]) => whose);
  await log();
  assert.is(await disapprove(store, "publisher", "ADA@example.org"), true);
  assert.equal(await left("publisher"), [ben.id]);
  assert.equal([(await left("agent")).length, await state(ada.id)], [3, ["active"]]);
  assert.equal(await log(), [["operator", "approval.remove", ada.id, "publisher"]]);
  assert.is(await disapprove(store, "publisher", "ada@example.org"), false);
  assert.equal(await log(), []);
  assert.is(await disapprove(store, "moderator", "https://id.example#Ada", { accountId: ben.id }), true);
  assert.equal(await left("moderator"), [ben.id]);
  assert.equal(await log(), [
    [ben.id, "approval.remove", ada.id, "moderator"],
    [ben.id, "approval.remove", ada.id, "moderator"],
  ]);
  assert.is(await disapprove(store, "agent", ada.id), true);
  assert.equal(
    [await left("agent"), await state(ada.id), await state(ben.id)],
    [[ben.id], ["revoked"], ["active"]],
  );
  // A pending approval is also revoked, by the name alone.
  await approve(store, "agent", "later@example.org");
  assert.equal(
    [await disapprove(store, "agent", "@later"), await disapprove(store, "agent", "later@example.org")],
    [false, true],
  );
  assert.equal((await log()).at(-1), ["operator", "approval.remove", "later@example.org", "agent"]);
});

test("eligible users create tokens, ten active at a time, and revoke their own", async () => {
  const [ada, ben] = [await person("Ada"), await person("Ben")];
  const make = (days = 1, approved?: boolean) =>
    createToken(
      store,
      ada.id,
      { name: "t", days, scopes: ["drafts:write", "public:read"] },
      approved === undefined ? {} : { approved },
    );
  assert.is(await make(1, true), null, "not approved");
  for (const role of ["publisher", "moderator"] as const) await approve(store, role, "@ada");
  await approve(store, "agent", "@ben");
  assert.is(await make(1, true), null, "as another, or another was");
  await approve(store, "agent", "@ada");
  const begun = clock.ms;
  const made = (await make(2, true)) as { id: string; token: string };
  const row = await store.db
    .selectFrom("tokens")
    .selectAll()
    .where("id", "=", made.id)
    .executeTakeFirstOrThrow();
  assert.equal(row, {
    ...{ id: made.id, account_id: ada.id, name: "t", hash: sha256Hex(made.token) },
    ...{ prefix: made.token.slice(0, 8), last4: made.token.slice(-4), scopes: "public:read drafts:write" },
    ...{
      created_at: begun,
      expires_at: begun + 2 * 86_400_000,
      revoked_at: null,
      last_used_at: null,
      recent: "[]",
    },
  });
  for (let count = 1; count < 10; count += 1) assert.ok(await make());
  assert.is(await make(), null, "ten are active");
  assert.ok(
    await createToken(store, ben.id, { name: "b", days: 1, scopes: ["public:read"] }),
    "of each account",
  );
  assert.is(await revokeToken(store, ben.id, made.id), false);
  assert.is(await make(), null);
  await log();
  assert.equal(
    [await revokeToken(store, ada.id, made.id), await revokeToken(store, ada.id, made.id)],
    [true, false],
  );
  assert.equal(await log(), [[ada.id, "token.revoke", made.id, null]]);
  assert.ok(await make(30));
  assert.is(await make(), null);
  clock.ms = begun + 86_400_000;
  for (let count = 1; count < 10; count += 1) assert.ok(await make(), "nine have expired");
  assert.is(await make(), null);
});

test("an idempotency key belongs to a token, for a day, with its exact bytes", async () => {
  const [ada] = [await person("Ada")];
  const save = async (tokenId: string, key: string | null, text = "{}") => {
    await store.db.updateTable("accounts").set({ recent_drafts: "[]" }).execute();
    return saveDraft(store, { tokenId, accountId: ada.id, scopes: [] }, Buffer.from(text), "t", key);
  };
  const first = await save("one", "k");
  assert.equal(first.outcome, "saved");
  const begun = clock.ms;
  const { id, sha256 } = first as { id: string; sha256: string };
  assert.equal([sha256, await save("one", "k")], [sha256Hex("{}"), { outcome: "replayed", id, sha256 }]);
  assert.equal(await save("one", "k", "[]"), { outcome: "key_reused" });
  for (const [token, key] of [
    ["two", "k"],
    ["one", "K"],
    ["one", null],
  ] as const)
    assert.is((await save(token, key)).outcome, "saved", `${token} ${key}`);
  clock.ms = begun + 86_399_999;
  assert.is((await save("one", "k")).outcome, "replayed");
  clock.ms = begun + 86_400_000;
  const again = await save("one", "k", "[]");
  assert.is(again.outcome, "saved", "a day is over");
  assert.equal(await save("one", "k", "[]"), { ...again, outcome: "replayed" });
});

test("deleting an account removes its data and nobody else's", async () => {
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
  // Nothing that anyone once called them remains in the log.
  assert.equal((await readAudit(store, { target: "ada@example.org", limit: 9 })).length, 0);
  assert.is(await error(deleteAccountOf(store, ada)), `UserError: The account ${ada.id} is already deleted.`);
  assert.is((await person("Ada")).handle, "ada-2");
});

test("a deleted account keeps its number and times, without any identity", async () => {
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
