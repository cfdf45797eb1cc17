/** What readers still see of content that was changed, hidden, deleted, repeated or taken down. On SQLite. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { personalFiles } from "../../src/studies/personal/export.js";
import { approve } from "../../src/studies/store/approvals.js";
import { deleteAccount } from "../../src/studies/store/deletion.js";
import { deleteComment, editComment, setUpvote } from "../../src/studies/store/discussion.js";
import {
  eraseComment,
  reinstate,
  remove,
  setCommentHidden,
  withdraw,
} from "../../src/studies/store/moderation.js";
import { publishDraft } from "../../src/studies/store/publish.js";
import { reproducedStudies } from "../../src/studies/store/reproductions.js";
import { topStudies } from "../../src/studies/store/studies.js";
import { testClock } from "./support/clock.js";
import { samplePackage } from "./support/packages.js";
import { peopleOf, reproduction } from "./support/people.js";
import { startService, type TestService } from "./support/service.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-afterwards-"));
const clock = testClock();
let service: TestService;
let number = 0;
test.before.each(async () => {
  number += 1;
  service = await startService(join(folder, `${number}.db`), { store: { dialect: clock.dialect } });
});
test.after.each(() => service.close());
test.after(() => rmSync(folder, { recursive: true, force: true }));

/** Three people, and what they do. */
async function people() {
  const [ada, ben, cleo] = [
    await service.account("Ada"),
    await service.account("Ben"),
    await service.account("Cleo"),
  ];
  return { ...peopleOf(service, clock), ada, ben, cleo };
}

test("cached public pages drop changed, hidden, deleted or erased comments and deleted users", async () => {
  const { store, see, publish, comment, ada, ben } = await people();
  const { id } = await publish(ada);
  const [deleted, erased] = [await comment(id, ben, "Said in haste."), await comment(id, ben, "An address.")];
  const page = async () => (await see(`/studies/${id}`)).text;
  // Each page is requested before the change, so that it is cached.
  assert.match(await page(), "Said in haste.");
  await editComment(store, ben.id, deleted, "Said at leisure.");
  assert.match(await page(), "Said at leisure.");
  assert.not.match(await page(), "Said in haste.");
  await deleteComment(store, ben.id, deleted);
  assert.not.match(await page(), "Said at leisure.");
  assert.match(await page(), "An address.");
  await setCommentHidden(store, "operator", erased, "private");
  assert.not.match(await page(), "An address.");
  await setCommentHidden(store, "operator", erased, null);
  assert.match(await page(), "An address.");
  await eraseComment(store, "operator", erased, "private");
  assert.not.match(await page(), "An address.");
  assert.match(await page(), ">0 upvotes<");
  await setUpvote(store, ben.id, id, true);
  assert.match(await page(), ">1 upvote<");
  assert.match(await page(), "@ada");
  await deleteAccount(store, ada.id);
  assert.not.match(await page(), /Ada|@ada/);
});

test("the change list mentions a taken-down version only to those who may read it", async () => {
  const { store, see, publish, ada, ben, cleo } = await people();
  await approve(store, "moderator", "@cleo");
  const { id } = await publish(ada, { title: "Heron" });
  for (const title of ["Stork", "Crane", "Egret"]) await publish(ada, { title }, id);
  await withdraw(store, ada.id, { studyId: id, version: 1 }, "wrong");
  await remove(store, "operator", { studyId: id, version: 3 }, "copied");
  const seen = async (query: string, who: typeof ada | null = null) => {
    const { status, text } = await see(`/studies/${id}/changes${query}`, who);
    return [status, ...(text.match(/Heron|Stork|Crane|Egret/g) ?? [])].filter(
      (one, at, all) => all.indexOf(one) === at,
    );
  };
  assert.equal(await seen(""), [200, "Egret", "Stork"], "the last two that stand");
  for (const who of [null, ben]) {
    for (const query of ["?from=1", "?from=1&to=2", "?from=2&to=1", "?from=3", "?to=3", "?from=3&to=1"])
      assert.equal(await seen(query, who), [410], query);
    assert.equal(await seen("?from=5", who), [404]);
  }
  for (const who of [ada, cleo])
    assert.equal((await seen("?from=1&to=3", who)).sort(), [200, "Crane", "Heron"], who.name);
  await remove(store, "operator", { studyId: id, version: null }, "all");
  assert.equal(await seen("?from=2&to=4"), [410], "nor of a study that is gone");
});

test("a removed study offers no upvote, quote or reproduction, even to moderators", async () => {
  const { store, see, publish, ada, cleo } = await people();
  await approve(store, "moderator", "@cleo");
  const method = "# Repeat\n\n```tapline-request\n{}\n```";
  const { id } = await publish(ada, { method });
  const offered = async () => {
    const { text } = await see(`/studies/${id}`, cleo);
    return [/action="[^"]*\/upvote"/, /[?&;]quote=/, /tapline reproduce https:/].map((one) => one.test(text));
  };
  assert.equal(await offered(), [true, true, true]);
  await withdraw(store, ada.id, { studyId: id, version: null }, "wrong");
  assert.equal(await offered(), [false, false, false]);
});

test("invisible characters are stripped from titles and from links to them", async () => {
  const { see, publish, ada } = await people();
  const { id } = await publish(ada, { title: "He\u202er\u200bon" });
  const head = (await see(`/studies/${id}`)).text.split("</head>")[0] ?? "";
  assert.match(head, "<title>Heron · tapline studies</title>");
  assert.match(head, '<meta name="citation_title" content="Heron">');
  assert.match(head, '<meta property="og:title" content="Heron">');
});

test("taking down a version removes its files and every reference to them", async () => {
  const { store, see, publish, ada, ben } = await people();
  const { id, body } = await publish(ada, { title: "Heron" });
  await publish(ada, { title: "Stork" }, id);
  const files = ["package.json", "cite.bib", "cite.cff", "cite.ris"];
  const statuses = (who: typeof ada | null) =>
    Promise.all(files.map(async (file) => (await see(`/studies/${id}/v/1/${file}`, who)).status));
  assert.equal(await statuses(null), [200, 200, 200, 200]);
  await withdraw(store, ada.id, { studyId: id, version: 1 }, "wrong");
  for (const who of [null, ben]) {
    assert.equal(await statuses(who), [410, 410, 410, 410]);
    for (const file of files)
      assert.not.match((await see(`/studies/${id}/v/1/${file}`, who)).text, "Heron", file);
  }
  assert.is((await see(`/studies/${id}/v/1/package.json`, ada)).text, body, "its author has it");
  assert.match((await see(`/studies/${id}/v/2/cite.bib`)).text, "Stork", "the current version does");
});

test("a removed study is not offered for citation, search or a second view, even to its author", async () => {
  const { store, see, publish, ada } = await people();
  const { id } = await publish(ada, { title: "Heron" });
  const noindex = '<meta name="robots" content="noindex">';
  const head = async (query = "") =>
    (await see(`/studies/${id}${query}`, ada)).text.split("</head>")[0] ?? "";
  const standing = await head();
  assert.match(standing, '<meta name="citation_title" content="Heron">');
  assert.match(standing, '<meta property="og:title" content="Heron">');
  assert.not.match(standing, noindex);
  const source = await head("?view=source");
  assert.match(source, noindex);
  assert.match(source, `<link rel="canonical" href="${service.running.origin}/studies/${id}/v/1">`);
  await withdraw(store, ada.id, { studyId: id, version: null }, "wrong");
  const gone = await head();
  assert.match(gone, "<title>Heron");
  assert.match(gone, noindex);
  assert.not.match(gone, /citation_|og:|canonical/);
});

test("a reinstated study has no removal time in its author's export", async () => {
  const { store, publish, ada } = await people();
  const { id } = await publish(ada);
  const version = async () => {
    for await (const { name, bytes } of personalFiles(store, ada.id)) {
      if (name !== `studies/${id}.json`) continue;
      const { standing, standing_at, reason } = JSON.parse(bytes.toString("utf8")).versions[0];
      return [standing, standing_at, reason];
    }
    throw new Error("The study is not taken along.");
  };
  const target = { studyId: id, version: 1 };
  clock.ms = Date.UTC(2027, 2, 4, 5, 6, 7, 89);
  await remove(store, "operator", target, "It was copied.");
  assert.equal(await version(), ["removed", "2027-03-04T05:06:07.089Z", "It was copied."]);
  clock.ms += 1000;
  await reinstate(store, "operator", target);
  assert.equal(await version(), ["published", null, null]);
});

test("hidden comments, and comments on removed studies, stay out of notifications and feeds", async () => {
  const { store, see, post, publish, comment, ada, ben } = await people();
  const { id } = await publish(ada, { title: "Heron" });
  const first = await comment(id, ben, "What ben asked.");
  const rude = await comment(id, ben, "What was rude.");
  await comment(id, ada, "What ada answered.", first);
  const made = await post("/notifications/feed", ben);
  const feed = /\/notifications\/feed\/[\w-]{43}\.atom/.exec(made.text)?.[0] as string;
  assert.match((await see("/notifications", ada)).text, "What was rude.");
  await setCommentHidden(store, "operator", rude, "It was rude.");
  const told = (await see("/notifications", ada)).text;
  assert.not.match(told, "What was rude.");
  assert.match(told, "What ben asked.");

  const before = await see(feed);
  assert.match(before.text, "What ada answered.");
  assert.is(before.headers["x-robots-tag"], "noindex", "an address that a crawler found is not listed");
  await remove(store, "operator", { studyId: id, version: null }, "It was copied.");
  for (const text of [(await see(feed)).text, (await see("/notifications", ben)).text]) {
    assert.match(text, "a study that is no longer available");
    assert.not.match(text, /What ada answered|Heron/);
  }
  // The study's author can still read what was said about it.
  assert.match((await see("/notifications", ada)).text, "What ben asked.");
});

test("each reproduction creates a notification, which opening the study marks as read", async () => {
  const { see, publish, ada, ben, cleo } = await people();
  const { id, sha256 } = await publish(ada);
  const finding = reproduction({ study: id, version: 1, package_sha256: sha256, outcome: "held" });
  const one = await publish(ben, { title: "By Ben", finding });
  await publish(cleo, { title: "By Cleo", finding });
  const unread = async () =>
    (await see("/notifications", ada)).text.match(/<li class="unread">/g)?.length ?? 0;
  assert.is(await unread(), 2);
  await see(`/studies/${one.id}`, ada);
  assert.is(await unread(), 1, "the other waits to be seen");
  await see(`/studies/${id}`, ada);
  assert.is(await unread(), 0, "the repeated study shows both");
});

test("reproductions are listed newest first, without the study's own versions", async () => {
  const { store, see, publish, ada, ben, cleo } = await people();
  const { id, sha256 } = await publish(ada, { title: "Heron" });
  const finding = reproduction({ study: id, version: 1, package_sha256: sha256, outcome: "held" });
  await publish(ada, { title: "Heron again", finding }, id);
  const repeating = async () => {
    const { text } = await see(`/studies/${id}`);
    assert.not.match(text, "This reproduces");
    return [...text.matchAll(/<span class="badge outcome-held">held<\/span> <a [^>]*>([^<]*)</g)].map(
      ([, title]) => title,
    );
  };
  assert.equal(await repeating(), []);
  assert.is((await reproducedStudies(store, 10, 0)).total, 0);
  await publish(ben, { title: "By Ben", finding });
  await publish(cleo, { title: "By Cleo", finding });
  assert.equal(await repeating(), ["By Cleo", "By Ben"]);
});

test("removed studies are neither ranked nor counted as reproductions", async () => {
  const { store, see, publish, ada, ben } = await people();
  const repeating: string[] = [];
  const [gone, stays] = [await publish(ada, { title: "Gone" }), await publish(ada, { title: "Stays" })];
  for (const { id, sha256 } of [gone, stays]) {
    const block = { study: id, version: 1, package_sha256: sha256, outcome: "held" };
    repeating.push((await publish(ben, { title: "Repeats", finding: reproduction(block) })).id);
  }
  const lists = async () =>
    Promise.all([reproducedStudies(store, 10, 0), topStudies(store, 10, 0)]).then((both) =>
      both.map(({ rows, total }) => [total, rows.map(({ title }) => title)]),
    );
  assert.equal(await lists(), [
    [2, ["Stays", "Gone"]],
    [4, ["Repeats", "Repeats", "Stays", "Gone"]],
  ]);
  const named = async () => (await see(`/studies/${repeating[0]}`)).text.includes(">Gone</a>");
  assert.ok(await named());
  await withdraw(store, ada.id, { studyId: gone.id, version: null }, "wrong");
  assert.not.ok(await named(), "nor does what repeats it name it");
  assert.equal(await lists(), [
    [1, ["Stays"]],
    [3, ["Repeats", "Repeats", "Stays"]],
  ]);
});

test("upvotes belong to the reinstated version and to no other", async () => {
  const { store, see, publish, ada, ben, cleo } = await people();
  const dan = await service.account("Dan");
  const { id } = await publish(ada, { title: "One" });
  await setUpvote(store, ben.id, id, true);
  await setUpvote(store, cleo.id, id, true);
  await publish(ada, { title: "Two" }, id);
  for (const { id: voter } of [ben, cleo, dan]) await setUpvote(store, voter, id, true);
  const upvotes = async () => />(\d+ upvotes?)</.exec((await see(`/studies/${id}`)).text)?.[1];
  assert.is(await upvotes(), "3 upvotes");
  await remove(store, "operator", { studyId: id, version: 2 }, "copied");
  assert.is(await upvotes(), "2 upvotes");
  await reinstate(store, "operator", { studyId: id, version: 2 });
  assert.is(await upvotes(), "3 upvotes");
});

test("a hidden or deleted comment cannot be edited, and is restored unchanged", async () => {
  const { store, see, publish, comment, ada, ben } = await people();
  const { id } = await publish(ada);
  const [hidden, deleted] = [await comment(id, ben, "What was rude."), await comment(id, ben, "In haste.")];
  await setCommentHidden(store, "operator", hidden, "It was rude.");
  await deleteComment(store, ben.id, deleted);
  for (const one of [hidden, deleted])
    assert.is(await editComment(store, ben.id, one, "What was worse."), null);
  await setCommentHidden(store, "operator", hidden, null);
  const said = await store.db
    .selectFrom("comments")
    .select(["body", "edited_at"])
    .orderBy("thread")
    .execute();
  assert.equal(said, [
    { body: "What was rude.", edited_at: null },
    { body: "", edited_at: null },
  ]);
  assert.is(await editComment(store, ben.id, hidden, "What is better."), id);
  // Who takes back what a moderator hid has done that alone: the moderator's reason goes with it.
  await setCommentHidden(store, "operator", hidden, "It was rude.");
  assert.is(await deleteComment(store, ben.id, hidden), id);
  const page = (await see(`/studies/${id}`)).text;
  assert.is(page.match(/Deleted by its author\./g)?.length, 2);
  assert.not.match(page, "It was rude.");
});

test("a published draft's idempotency key still returns its id and saves nothing new", async () => {
  const { store, ada } = await people();
  const { token } = await service.token(ada.id);
  const body = JSON.stringify(samplePackage({ title: "Once" }));
  const send = () =>
    service.api(token, "/api/v1/studies", {
      method: "POST",
      body,
      headers: { "Idempotency-Key": "once" },
    });
  const { json } = await send();
  const review = { accountId: ada.id, draftId: json.id, reviewedSha256: json.package_sha256, replaces: null };
  assert.is((await publishDraft(store, review)).outcome, "published");
  const again = await send();
  assert.equal([again.status, again.json], [201, json]);
  assert.equal(await store.db.selectFrom("drafts").select("id").execute(), []);
});

test.run();
