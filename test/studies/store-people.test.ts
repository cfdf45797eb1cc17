/** What people, moderators and operators do, in the store alone: to whom it happens, to whom not, and what is written down. On SQLite. */
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { StudyPackage } from "../../src/contracts/studies/index.js";
import { accountNamed, type Role, roles, signInAccount } from "../../src/studies/store/accounts.js";
import { approve, disapprove } from "../../src/studies/store/approvals.js";
import { type Actor, asModerator, readAudit } from "../../src/studies/store/audit.js";
import { deleteAccount, deleteAccountOf, whatLeaves } from "../../src/studies/store/deletion.js";
import {
  addComment,
  deleteComment,
  editComment,
  hasUpvoted,
  placeOfComment,
  readComments,
  setUpvote,
} from "../../src/studies/store/discussion.js";
import { saveDraft } from "../../src/studies/store/drafts.js";
import { countAction } from "../../src/studies/store/limits.js";
import {
  eraseComment,
  reinstate,
  remove,
  setCommentHidden,
  suspend,
  unsuspend,
  withdraw,
} from "../../src/studies/store/moderation.js";
import { findFeed, notify, setFeed } from "../../src/studies/store/notifications.js";
import { publishDraft, StudyGone } from "../../src/studies/store/publish.js";
import { dismissReport, openReports, report } from "../../src/studies/store/reports.js";
import { startSession } from "../../src/studies/store/sessions.js";
import { openStore, type Store } from "../../src/studies/store/store.js";
import { findStudy, listStudies } from "../../src/studies/store/studies.js";
import { createToken, listTokens, revokeToken, sha256Hex } from "../../src/studies/store/tokens.js";
import { testClock } from "./support/clock.js";
import { samplePackage } from "./support/packages.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-people-"));
const clock = testClock();
let store: Store;
let stores = 0;
const open = (name: string) => openStore(join(folder, name), { dialect: clock.dialect });
// Made once: each test begins with a copy of it.
test.before(async () => (await open("empty.db")).close());
test.before.each(async () => {
  stores += 1;
  copyFileSync(join(folder, "empty.db"), join(folder, `${stores}.db`));
  store = await open(`${stores}.db`);
});
test.after.each(() => store.close());
test.after(() => rmSync(folder, { recursive: true, force: true }));

const person = (subject: string, more: { email?: string; login?: string } = {}) =>
  signInAccount(store, {
    ...{ issuer: "https://id.example", subject, name: subject, email: null, login: null },
    ...more,
  });

async function draft(accountId: string, change: Partial<StudyPackage> = {}) {
  clock.ms += 1000;
  const bytes = Buffer.from(JSON.stringify(samplePackage(change)));
  const credential = { tokenId: "none", accountId, scopes: [] };
  const saved = (await saveDraft(store, credential, bytes, change.title ?? "t", null)) as { id: string };
  return { accountId, draftId: saved.id, reviewedSha256: sha256Hex(bytes), replaces: null };
}

/** @returns the study's id */
async function publish(
  accountId: string,
  change: Partial<StudyPackage> = {},
  replaces: string | null = null,
) {
  const published = await publishDraft(store, { ...(await draft(accountId, change)), replaces });
  return (published as { id: string }).id;
}

async function say(accountId: string, study: string, parent: string | null = null, body = "said") {
  clock.ms += 1000;
  const added = await addComment(store, { accountId, name: accountId }, study, parent, body);
  assert.is(added.outcome, "added");
  return (added as { id: string }).id;
}

/** What was done since the last look: who, what, to what, with which words. */
let lastLook = 0;
async function log() {
  const all = await readAudit(store, { limit: 1000 });
  const since = all
    .filter(({ at }) => at > lastLook)
    .map(({ actor, action, target, detail }) => [actor, action, target, detail]);
  lastLook = clock.ms;
  clock.ms += 1;
  return since.sort((a, b) => (String(a) < String(b) ? -1 : 1));
}

async function told(accountId: string) {
  const rows = await store.db
    .selectFrom("notifications")
    .select(["kind", "study_id", "comment_id", "by_study_id", "actor_id"])
    .where("account_id", "=", accountId)
    .orderBy("at")
    .execute();
  return rows.map((row) => Object.values(row));
}

const approvals = async () =>
  (
    await store.db
      .selectFrom("approvals")
      .select(["role", "identity", "account_id"])
      .orderBy("identity")
      .execute()
  ).map((row) => Object.values(row));
const error = (work: Promise<unknown>) =>
  work.then(
    () => "done",
    (thrown: Error) => `${thrown.name}: ${thrown.message}`,
  );

test("an approval is kept under the name that it was given by, for the account that shows it", async () => {
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
    // Once, however often it is said; by the account's id, where there is one.
    assert.equal(await log(), [["operator", "approval.add", whose ?? given, "agent"]]);
    await store.db.deleteFrom("approvals").execute();
  }
  await approve(store, "agent", ada.id.toUpperCase());
  assert.equal(await approvals(), [["agent", ada.id, ada.id]]);
  for (const nobody of ["@nobody", "00000000-0000-4000-8000-000000000000"]) {
    assert.is(await error(approve(store, "agent", nobody)), `UserError: There is no account ${nobody}.`);
    assert.is(await error(accountNamed(store.db, nobody)), `UserError: There is no account ${nobody}.`);
  }
  const other = await person("Other", { email: "ada@example.org" });
  await log();
  assert.is(
    await error(approve(store, "publisher", "ada@example.org")),
    `UserError: 2 accounts show ada@example.org: @octo (https://id.example#Ada), @other (https://id.example#Other). Name one by its @handle.`,
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
  assert.equal(added, [[ada.id, "approval.add", "later@example.org", "publisher"]]);
});

test("who is taken off a list is off it under every name, of that list alone; only agents lose tokens", async () => {
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
  // One that waits is taken back, too, by the name alone.
  await approve(store, "agent", "later@example.org");
  assert.equal(
    [await disapprove(store, "agent", "@later"), await disapprove(store, "agent", "later@example.org")],
    [false, true],
  );
  assert.equal((await log()).at(-1), ["operator", "approval.remove", "later@example.org", "agent"]);
});

test("a token is created for who may have one, ten that are active at a time, and revoked by its owner", async () => {
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

test("what a moderator may do nobody else may, and operators may; a role that was taken back is none", async () => {
  const [ada, ben, mod] = [await person("Ada"), await person("Ben"), await person("Mod")];
  for (const role of ["agent", "publisher"] as const) await approve(store, role, "@ben");
  await approve(store, "moderator", "@mod");
  const study = await publish(ada.id);
  const said = await say(ada.id, study);
  await report(store, ben.id, { studyId: study, commentId: null }, "copied");
  const [{ id: open } = { id: "" }] = await openReports(store);
  const target = { studyId: study, version: null };
  const deeds: [string, (actor: Actor) => Promise<unknown>][] = [
    ["remove", (actor) => remove(store, actor, target, "x")],
    ["reinstate", (actor) => reinstate(store, actor, target)],
    ["hide", (actor) => setCommentHidden(store, actor, said, "x")],
    ["show", (actor) => setCommentHidden(store, actor, said, null)],
    ["erase", (actor) => eraseComment(store, actor, said, "x")],
    ["suspend", (actor) => suspend(store, actor, ada, "x")],
    ["unsuspend", (actor) => unsuspend(store, actor, ada)],
    ["dismiss", (actor) => dismissReport(store, actor, open)],
  ];
  await log();
  for (const [name, deed] of deeds)
    for (const who of [ada, ben])
      assert.match(await error(deed({ accountId: who.id })), /^NotModerator: /, name);
  assert.equal([await log(), (await openReports(store)).length], [[], 1]);
  assert.is(await asModerator(store, { accountId: mod.id }, async (_, now) => now), clock.ms);
  await disapprove(store, "moderator", "@mod");
  assert.match(await error(asModerator(store, { accountId: mod.id }, async () => 0)), /^NotModerator: /);
  assert.is(await asModerator(store, "operator", async () => 7), 7);
});

test("reports: one open one of each about each; what is done closes those about it, and no others", async () => {
  const [ada, ben, cleo, mod] = [
    await person("Ada"),
    await person("Ben"),
    await person("Cleo"),
    await person("Mod"),
  ];
  await approve(store, "moderator", "@mod");
  const actor = { accountId: mod.id };
  const [study, other] = [
    await publish(ada.id, { title: "Heron" }),
    await publish(ada.id, { title: "Crane" }),
  ];
  const [one, two] = [await say(ben.id, study, null, "one"), await say(ben.id, study, null, "two")];
  const tell = async (who: { id: string }, commentId: string | null, reason: string, studyId = study) => {
    clock.ms += 1;
    return report(store, who.id, { studyId, commentId }, reason);
  };
  assert.is(await tell(cleo, null, "first"), "reported");
  assert.is(await tell(cleo, one, "rude"), "reported");
  assert.is(await tell(ada, one, "very rude"), "reported");
  assert.is(await tell(cleo, two, "odd"), "reported");
  assert.is(await tell(cleo, null, "other", other), "reported");
  assert.is(await tell(cleo, one, "ruder"), "reported", "in place of the first");
  for (const [commentId, studyId] of [
    [one, other],
    [null, "00000000-0000-4000-8000-000000000000"],
    ["00000000-0000-4000-8000-000000000000", study],
  ] as const)
    assert.is(await tell(cleo, commentId, "x", studyId), "missing");
  const open = async () =>
    (await openReports(store)).map(({ title, body, reason, reporter, author, speaker }) => [
      title,
      body,
      reason,
      reporter,
      author,
      speaker,
    ]);
  assert.equal(await open(), [
    ["Heron", null, "first", "cleo", "ada", null],
    ["Heron", "one", "ruder", "cleo", "ada", "ben"],
    ["Heron", "one", "very rude", "ada", "ada", "ben"],
    ["Heron", "two", "odd", "cleo", "ada", "ben"],
    ["Crane", null, "other", "cleo", "ada", null],
  ]);
  assert.is((await openReports(store, 2)).length, 2);
  const reasons = async () => (await openReports(store)).map(({ reason }) => reason);
  clock.ms += 1000;
  await setCommentHidden(store, actor, one, "insult");
  assert.equal(await reasons(), ["first", "odd", "other"]);
  assert.is(await tell(cleo, one, "again"), "missing", "readers do not see it any more");
  // Neither a removal that was none, nor the author's own doing, closes anything.
  assert.is(await remove(store, actor, { studyId: study, version: 9 }, "x"), "already");
  assert.is(await withdraw(store, ada.id, { studyId: other, version: null }, "wrong"), "changed");
  assert.equal(await reasons(), ["first", "odd", "other"]);
  assert.is(await tell(cleo, null, "late", other), "missing");
  assert.is(await remove(store, actor, { studyId: study, version: null }, "copied"), "changed");
  assert.equal(await reasons(), ["odd", "other"], "its comments' stay");
  await reinstate(store, actor, { studyId: study, version: null });
  assert.equal(await reasons(), ["odd", "other"]);
  await eraseComment(store, actor, two, "an address");
  assert.equal(await reasons(), ["other"]);
  const [{ id } = { id: "" }] = await openReports(store);
  await log();
  assert.equal([await dismissReport(store, actor, id), await dismissReport(store, actor, id)], [true, false]);
  assert.equal(await log(), [[mod.id, "report.dismiss", id, null]]);
  const settled = await store.db.selectFrom("reports").select(["reason", "outcome", "closed_at"]).execute();
  assert.equal(settled.map(({ reason, outcome }) => `${reason} ${outcome}`).sort(), [
    "first acted",
    "odd acted",
    "other dismissed",
    "ruder acted",
    "very rude acted",
  ]);
  assert.ok(settled.every(({ closed_at }) => closed_at !== null && closed_at <= clock.ms));
  // What was settled may come up again.
  assert.equal([await tell(cleo, null, "once more"), await reasons()], ["reported", ["once more"]]);
});

test("taking down and putting back: what is current, counted, found and told, and by whom", async () => {
  const [ada, ben, mod] = [await person("Ada"), await person("Ben"), await person("Mod")];
  await approve(store, "moderator", "@mod");
  const actor = { accountId: mod.id };
  const study = await publish(ada.id, { title: "Heron one" });
  await setUpvote(store, ben.id, study, true);
  await publish(ada.id, { title: "Heron two" }, study);
  await publish(ben.id, { title: "Crane" });
  const count = async () =>
    (
      await store.db
        .selectFrom("counters")
        .select("value")
        .where("name", "=", "studies")
        .executeTakeFirstOrThrow()
    ).value;
  const state = async () => {
    const row = await findStudy(store, study);
    const found = (await listStudies(store, "heron", 9, 0)).rows.map(({ title }) => title);
    return [row?.listed, row?.version, row?.title, row?.upvotes, await count(), found];
  };
  const of = (version: number | null) => ({ studyId: study, version });
  assert.equal(await state(), [1, 2, "Heron two", 0, 2, ["Heron two"]]);
  await log();
  assert.is(await withdraw(store, ben.id, of(2), "not mine"), "missing");
  assert.is(await withdraw(store, ada.id, of(2), "wrong"), "changed");
  assert.equal(await state(), [1, 1, "Heron one", 1, 2, ["Heron one"]]);
  assert.is(await withdraw(store, ada.id, of(2), "again"), "already");
  assert.equal(
    [await told(ada.id), await log()],
    [[], [[ada.id, "study.withdraw", study, "version 2: wrong"]]],
  );
  assert.is(await reinstate(store, actor, of(2)), "already", "its author's doing stays");
  assert.is(await remove(store, actor, of(1), "copied"), "changed");
  assert.equal(await state(), [0, 1, "Heron one", 1, 1, []]);
  clock.ms += 1;
  assert.is(await reinstate(store, "operator", of(1)), "changed");
  assert.equal(await state(), [1, 1, "Heron one", 1, 2, ["Heron one"]]);
  clock.ms += 1;
  assert.is(await remove(store, "operator", of(null), "all"), "changed");
  assert.equal(await state(), [0, 1, "Heron one", 1, 1, []]);
  assert.is(await withdraw(store, ada.id, of(null), "late"), "already");
  assert.is(await remove(store, actor, { studyId: "none", version: null }, "x"), "missing");
  assert.equal(await told(ada.id), [
    ["removed", study, null, null, mod.id],
    ["reinstated", study, null, null, null],
    ["removed", study, null, null, null],
  ]);
  assert.equal(
    await log(),
    [
      [mod.id, "study.remove", study, "version 1: copied"],
      ["operator", "study.reinstate", study, "version 1"],
      ["operator", "study.remove", study, "all"],
    ].sort((a, b) => (String(a) < String(b) ? -1 : 1)),
  );
  // Nothing replaces what is taken down; the draft stays.
  const next = { ...(await draft(ada.id)), replaces: study };
  await publishDraft(store, next).then(
    () => assert.unreachable(),
    (thrown) => assert.instance(thrown, StudyGone),
  );
  const foreign = await publish(ben.id, { title: "Owl" });
  assert.match(
    await error(publishDraft(store, { ...next, replaces: foreign })),
    /^StudyGone/,
    "nor another's",
  );
  assert.equal(await publishDraft(store, { ...next, accountId: ben.id, replaces: null }), {
    outcome: "gone",
  });
  assert.is((await publishDraft(store, { ...next, replaces: null })).outcome, "published");
  assert.is(await count(), 3);
});

test("suspending: the account's own keys and sessions, once; moderators by operators alone", async () => {
  const [ada, ben, mod] = [await person("Ada"), await person("Ben"), await person("Mod")];
  for (const name of ["@mod", "@ben"]) await approve(store, "moderator", name);
  for (const { id } of [ada, ben]) {
    await createToken(store, id, { name: "t", days: 1, scopes: ["public:read"] });
    await startSession(store, id, "b");
    await setFeed(store, id, `${id} feed`);
  }
  const keys = async (id: string) => [
    (await listTokens(store, id)).map(({ state }) => state),
    (await store.db.selectFrom("sessions").select("id").where("account_id", "=", id).execute()).length,
    (await findFeed(store, `${id} feed`))?.id === id,
  ];
  const actor = { accountId: mod.id };
  await log();
  assert.is(await suspend(store, actor, ben, "x"), "moderator");
  assert.equal([await keys(ben.id), await log()], [[["active"], 1, true], []]);
  assert.is(await suspend(store, actor, ada, "spam"), "changed");
  assert.is(await suspend(store, actor, ada, "again"), "already");
  assert.equal(
    [await keys(ada.id), await keys(ben.id)],
    [
      [["revoked"], 0, false],
      [["active"], 1, true],
    ],
  );
  const row = async () => {
    const { suspended_at, suspension } = await accountNamed(store.db, "@ada");
    return [suspended_at, suspension];
  };
  assert.equal(await row(), [clock.ms, "spam"]);
  assert.equal(await log(), [[mod.id, "account.suspend", ada.id, "spam"]]);
  const study = await publish(ben.id);
  for (const work of [
    () => startSession(store, ada.id, "b"),
    () => setUpvote(store, ada.id, study, true),
    () => report(store, ada.id, { studyId: study, commentId: null }, "x"),
    () => setFeed(store, ada.id, "f"),
    () => draft(ada.id),
    () => deleteAccount(store, ada.id),
  ])
    assert.match(await error(work()), /^AccountSuspended/);
  await log();
  assert.is(await unsuspend(store, actor, ada), "changed");
  assert.is(await unsuspend(store, actor, ada), "already");
  assert.equal(
    [await row(), await keys(ada.id)],
    [
      [null, null],
      [["revoked"], 0, true],
    ],
  );
  assert.equal(await log(), [[mod.id, "account.reinstate", ada.id, null]]);
  assert.is(await suspend(store, "operator", ben, "y"), "changed");
});

test("comments: whose they are, how deep, for how long they change, and who is told of them", async () => {
  const [ada, ben, cleo] = [await person("Ada"), await person("Ben"), await person("Cleo")];
  const study = await publish(ada.id);
  const first = await say(ben.id, study, null, "nul \0");
  const bodies = async () =>
    (await readComments(store, study, 0, 99)).map(({ body, hidden, reason }) => [body, hidden, reason]);
  assert.equal(await bodies(), [["nul \ufffd", null, null]]);
  const begun = clock.ms;
  const edit = (who: { id: string }, body = "changed") => editComment(store, who.id, first, body);
  assert.is(await edit(ada), null, "another's");
  clock.ms = begun + 899_999;
  assert.is(await edit(ben), study);
  assert.equal(await bodies(), [["changed", null, null]]);
  clock.ms = begun + 900_000;
  assert.is(await edit(ben, "late"), null);
  const second = await say(ben.id, study);
  const third = await say(ada.id, study, second);
  const late = await say(cleo.id, study, third);
  assert.equal(await told(ben.id), [["reply", study, third, null, ada.id]]);
  assert.equal(await told(ada.id), [
    ["comment", study, first, null, ben.id],
    ["comment", study, second, null, ben.id],
    ["reply", study, late, null, cleo.id],
  ]);
  assert.equal(
    await Promise.all([first, second, third, late].map((id) => placeOfComment(store, id))),
    [0, 1, 2, 3].map((before) => ({ studyId: study, before })),
  );
  assert.is(await placeOfComment(store, "none"), null);
  await log();
  assert.equal(
    [await deleteComment(store, ada.id, second), await deleteComment(store, ben.id, second)],
    [null, study],
  );
  assert.is(await deleteComment(store, ben.id, second), null);
  assert.equal(await log(), [[ben.id, "comment.delete", second, null]]);
  await setCommentHidden(store, "operator", first, "rude");
  assert.equal(await bodies(), [
    ["changed", "hidden", "rude"],
    ["", "deleted", null],
    ["said", null, null],
    ["said", null, null],
  ]);
  assert.is(await setCommentHidden(store, "operator", first, "again"), null);
  assert.is(await setCommentHidden(store, "operator", third, null), null);
  assert.is(await setCommentHidden(store, "operator", first, null), study);
  assert.equal((await bodies())[0], ["changed", null, null]);
  assert.is(await eraseComment(store, "operator", first, "an address"), study);
  assert.is(await eraseComment(store, "operator", first, "twice"), null);
  assert.equal((await bodies())[0], ["", "deleted", "an address"]);
  assert.is((await told(ben.id)).filter(([kind]) => kind === "hidden").length, 2);
  const no = async (parent: string | null, on = study) =>
    (await addComment(store, { accountId: ben.id, name: "Ben" }, on, parent, "x")).outcome;
  assert.equal(
    [await no(first), await no(null, "none"), await no("none")],
    ["no_parent", "no_study", "no_parent"],
  );
  let parent: string | null = null;
  for (let depth = 0; depth < 32; depth += 1) parent = await say(ben.id, study, parent);
  assert.is(await no(parent), "too_deep");
  assert.is((await findStudy(store, study))?.comment_count, 36, "of what was refused none is counted");
});

test("an upvote is one account's for one version, counted once", async () => {
  const [ada, ben, cleo] = [await person("Ada"), await person("Ben"), await person("Cleo")];
  const [study, other] = [await publish(ada.id), await publish(ada.id)];
  const upvotes = async (id = study) => (await findStudy(store, id))?.upvotes;
  for (const { id } of [ben, ben, cleo]) assert.is(await setUpvote(store, id, study, true), "counted");
  assert.equal([await upvotes(), await upvotes(other)], [2, 0]);
  assert.equal(
    [await setUpvote(store, ada.id, study, true), await setUpvote(store, ben.id, "none", true)],
    ["own", "no_study"],
  );
  await setUpvote(store, cleo.id, other, true);
  await setUpvote(store, cleo.id, study, false);
  assert.equal([await upvotes(), await upvotes(other)], [1, 1]);
  await publish(ada.id, {}, study);
  assert.is(await upvotes(), 0);
  const has = (version: number, who = ben) => hasUpvoted(store, who.id, study, version);
  assert.equal([await has(1), await has(2), await has(1, cleo)], [true, false, false]);
  await setUpvote(store, ben.id, study, true);
  await setUpvote(store, ben.id, study, false);
  assert.equal([await has(1), await has(2), await upvotes()], [true, false, 0], "the first version's stays");
  assert.equal((await readAudit(store, { target: other, limit: 9 })).map(({ action }) => action).sort(), [
    "study.publish",
    "vote.give",
  ]);
});

test("nobody is told what they did, nor who is gone; a suspended account is told for later", async () => {
  const [ada, gone, sue] = [await person("Ada"), await person("Gone"), await person("Sue")];
  await deleteAccount(store, gone.id);
  await suspend(store, "operator", sue, "x");
  const event = { kind: "reply", study_id: "s", actor_id: ada.id } as const;
  for (const { id } of [ada, gone, sue]) await notify(store.db, 5, id, event);
  await notify(store.db, 5, "nobody", event);
  const rows = await store.db.selectFrom("notifications").select(["account_id", "read_at", "at"]).execute();
  assert.equal(rows, [{ account_id: sue.id, read_at: null, at: 5 }]);
});

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

test("an idempotency key is a token's own, for a day, with the bytes that it came with", async () => {
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

test.run();
