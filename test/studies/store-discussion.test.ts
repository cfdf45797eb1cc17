/** Comments, upvotes and their notifications, in the store alone. On SQLite. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { readAudit } from "../../src/studies/store/audit.js";
import { deleteAccount } from "../../src/studies/store/deletion.js";
import {
  addComment,
  deleteComment,
  editComment,
  hasUpvoted,
  placeOfComment,
  readComments,
  setUpvote,
} from "../../src/studies/store/discussion.js";
import { eraseComment, setCommentHidden, suspend } from "../../src/studies/store/moderation.js";
import { notify } from "../../src/studies/store/notifications.js";
import { findStudy } from "../../src/studies/store/studies.js";
import { aroundStores, clock, log, person, publish, say, store, told } from "./support/people-stores.js";

aroundStores();

test("comments: owner, depth, time to edit, and who is notified", async () => {
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

test("an upvote counts once per account and version", async () => {
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

test("nobody is notified of their own actions; suspended accounts are notified later", async () => {
  const [ada, gone, sue] = [await person("Ada"), await person("Gone"), await person("Sue")];
  await deleteAccount(store, gone.id);
  await suspend(store, "operator", sue, "x");
  const event = { kind: "reply", study_id: "s", actor_id: ada.id } as const;
  for (const { id } of [ada, gone, sue]) await notify(store.db, 5, id, event);
  await notify(store.db, 5, "nobody", event);
  const rows = await store.db.selectFrom("notifications").select(["account_id", "read_at", "at"]).execute();
  assert.equal(rows, [{ account_id: sue.id, read_at: null, at: 5 }]);
});

test.run();
