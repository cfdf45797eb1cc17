/** What moderators and operators do, in the store alone: to whom it happens, to whom not, and what is written down. On SQLite. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { accountNamed } from "../../src/studies/store/accounts.js";
import { approve, disapprove } from "../../src/studies/store/approvals.js";
import { type Actor, asModerator } from "../../src/studies/store/audit.js";
import { deleteAccount } from "../../src/studies/store/deletion.js";
import { setUpvote } from "../../src/studies/store/discussion.js";
import {
  eraseComment,
  reinstate,
  remove,
  setCommentHidden,
  suspend,
  unsuspend,
  withdraw,
} from "../../src/studies/store/moderation.js";
import { findFeed, setFeed } from "../../src/studies/store/notifications.js";
import { publishDraft, StudyGone } from "../../src/studies/store/publish.js";
import { dismissReport, openReports, report } from "../../src/studies/store/reports.js";
import { startSession } from "../../src/studies/store/sessions.js";
import { findStudy, listStudies } from "../../src/studies/store/studies.js";
import { createToken, listTokens } from "../../src/studies/store/tokens.js";
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
  told,
} from "./support/people-stores.js";

aroundStores();

test("moderator actions need the role, which operators have and which can be revoked", async () => {
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

test("reports: one open per reporter and subject; an action closes only those about it", async () => {
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
  const fileReport = async (
    who: { id: string },
    commentId: string | null,
    reason: string,
    studyId = study,
  ) => {
    clock.ms += 1;
    return report(store, who.id, { studyId, commentId }, reason);
  };
  assert.is(await fileReport(cleo, null, "first"), "reported");
  assert.is(await fileReport(cleo, one, "rude"), "reported");
  assert.is(await fileReport(ada, one, "very rude"), "reported");
  assert.is(await fileReport(cleo, two, "odd"), "reported");
  assert.is(await fileReport(cleo, null, "other", other), "reported");
  assert.is(await fileReport(cleo, one, "ruder"), "reported", "instead of the first");
  for (const [commentId, studyId] of [
    [one, other],
    [null, "00000000-0000-4000-8000-000000000000"],
    ["00000000-0000-4000-8000-000000000000", study],
  ] as const)
    assert.is(await fileReport(cleo, commentId, "x", studyId), "missing");
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
  assert.is(await fileReport(cleo, one, "again"), "missing", "readers do not see it any more");
  // A removal that changed nothing, or an author's own action, closes no report.
  assert.is(await remove(store, actor, { studyId: study, version: 9 }, "x"), "already");
  assert.is(await withdraw(store, ada.id, { studyId: other, version: null }, "wrong"), "changed");
  assert.equal(await reasons(), ["first", "odd", "other"]);
  assert.is(await fileReport(cleo, null, "late", other), "missing");
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
  // A settled matter may be reported again.
  assert.equal([await fileReport(cleo, null, "once more"), await reasons()], ["reported", ["once more"]]);
});

test("taking down and reinstating update versions, counts, search and notifications", async () => {
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

test("suspension ends keys and sessions; only operators suspend moderators", async () => {
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

test.run();
