/** What single pages of the website say, and do not say, in each of their states. On SQLite: both databases give pages the same. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Html } from "../../src/studies/site/html.js";
import { Outline } from "../../src/studies/site/outline.js";
import { firstParagraph } from "../../src/studies/site/pages/abstract.js";
import { approve } from "../../src/studies/store/approvals.js";
import { deleteAccount } from "../../src/studies/store/deletion.js";
import { remove, withdraw } from "../../src/studies/store/moderation.js";
import { report } from "../../src/studies/store/reports.js";
import { testClock } from "./support/clock.js";
import { peopleOf } from "./support/people.js";
import { startService, type TestService } from "./support/service.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-pages-"));
const clock = testClock();
let service: TestService;
test.before(async () => {
  service = await startService(join(folder, "studies.db"), { store: { dialect: clock.dialect } });
});
test.after(async () => {
  await service.close();
  rmSync(folder, { recursive: true, force: true });
});

test("my drafts: what waits, what was published, and what became of it", async () => {
  const ada = await service.account("Ada");
  const { store, see, save, publish } = peopleOf(service, clock);
  const empty = (await see("/drafts", ada)).text;
  assert.match(empty, "No draft is waiting.");
  assert.match(empty, "<p>Nothing yet.</p>");
  const [standing, withdrawn, removed] = [
    await publish(ada, { title: "Stands" }),
    await publish(ada, { title: "Went" }),
    await publish(ada, { title: "Taken" }),
  ];
  await withdraw(store, ada.id, { studyId: withdrawn.id, version: null }, "wrong");
  await remove(store, "operator", { studyId: removed.id, version: null }, "copied");
  await save(ada, { title: "Waits" });
  const { text } = await see("/drafts", ada);
  assert.not.match(text, "No draft is waiting.");
  assert.not.match(text, "<p>Nothing yet.</p>");
  const badges = [...text.matchAll(/<h3 dir="auto"><a href="\/studies\/([^"]+)">[^<]*<\/a>(.*?)<\/h3>/g)];
  assert.equal(Object.fromEntries(badges.map(([, id, badge]) => [id, badge?.trim()])), {
    [standing.id]: "",
    [withdrawn.id]: '<span class="badge revoked">withdrawn</span>',
    [removed.id]: '<span class="badge revoked">removed</span>',
  });
});

test("a review points at what looks secret and at what hides, and says nothing where there is neither", async () => {
  const ben = await service.account("Ben");
  const { see, save } = peopleOf(service, clock);
  const key = ["AKIA", "ABCDEFGHIJKLMNOP"].join("");
  const telling = await save(ben, { title: "Telling", finding: `With ${key}\u202e and \u202e.` });
  const { text } = await see(`/drafts/${telling.id}`, ben);
  assert.match(text, "Look at these twice.");
  assert.match(text, "<li>AWS access key at <code>/finding</code>: AKIAABCDEFGH…</li>");
  assert.match(text, "Hidden or direction-changing characters.");
  assert.match(text, /<li>U\+202E [^<]*, 2 times, first at <code>\/finding/);
  const plain = await save(ben, { title: "Plain" });
  const quiet = (await see(`/drafts/${plain.id}`, ben)).text;
  assert.not.match(quiet, "Look at these twice.");
  assert.not.match(quiet, "direction-changing characters.");
});

test("notifications: 50 on a page, the way to earlier ones, and what may be done", async () => {
  const cleo = await service.account("Cleo");
  const people = [await service.account("Dan"), await service.account("Eve")];
  const { see, post, publish, comment } = peopleOf(service, clock);
  const { id } = await publish(cleo, { title: "Much discussed" });
  const told = ({ text }: { text: string }) => text.match(/<li class="(?:un)?read">/g)?.length ?? 0;
  for (let count = 0; count < 26; count++) await comment(id, people[0]!, `One ${count}`);
  for (let count = 0; count < 24; count++) await comment(id, people[1]!, `Two ${count}`);
  const full = await see("/notifications", cleo);
  assert.is(told(full), 50);
  const [, rest] = /<a href="(\?before=[^"]+)">Earlier<\/a>/.exec(full.text) ?? [];
  const beyond = await see(`/notifications${rest}`, cleo);
  assert.is(told(beyond), 0);
  assert.match(beyond.text, "<p>Nothing earlier.</p>");
  await comment(id, people[1]!, "The last");
  const newest = await see("/notifications", cleo);
  assert.equal([told(newest), newest.text.includes("Mark all as read")], [50, true]);
  const [, next] = /<a href="(\?before=[^"]+)">Earlier<\/a>/.exec(newest.text) ?? [];
  const older = await see(`/notifications${next}`, cleo);
  assert.equal(
    [told(older), older.text.includes("Mark all as read"), older.text.includes("Earlier</a>")],
    [1, false, false],
  );
  assert.match(older.text, "One 0");
  // All of them are read up to a moment that the form names, and no other.
  const without = await post("/notifications/read", cleo);
  assert.is(without.status, 400);
  assert.match(without.text, "This form does not say up to when.");
  assert.match((await see("/notifications", cleo)).text, '<li class="unread">');
  const nothing = await see("/notifications", people[0]!);
  assert.match(nothing.text, "<p>Nothing yet.</p>");
  // The feed can be ended where there is one.
  assert.match(newest.text, ">Make an address</button>");
  assert.not.match(newest.text, ">End the feed</button>");
  const made = (await post("/notifications/feed", cleo)).text;
  assert.match(made, "it is shown this once");
  const later = (await see("/notifications", cleo)).text;
  assert.match(later, ">Make a new address, and end the former</button>");
  assert.match(later, ">End the feed</button>");
  assert.not.match(later, "it is shown this once");
});

test("reports name who wrote and who told, by handle or as a deleted account", async () => {
  const [fay, gus] = [await service.account("Fay"), await service.account("Gus")];
  const moderator = await service.account("Mod");
  const { store, see, publish, comment } = peopleOf(service, clock);
  await approve(store, "moderator", "mod@example.org");
  const { id } = await publish(fay, { title: "Told on" });
  const long = `${"word ".repeat(400)}end`;
  const commentId = await comment(id, gus, long);
  await report(store, gus.id, { studyId: id, commentId: null }, "the study");
  await report(store, fay.id, { studyId: id, commentId }, "the comment");
  const listed = async () => {
    const { text } = await see("/moderation", moderator);
    return [...text.matchAll(/<li id="report-.*?<\/form><\/li>/gs)].map(([item]) => item);
  };
  const account = (handle: string) => `<a href="/moderation/account?handle=${handle}">@${handle}</a>`;
  const study = (items: string[]) => items.find((item) => item.includes(">Study: Told on<")) as string;
  const speech = (items: string[]) => items.find((item) => item.includes(">Comment on: Told on<")) as string;
  const before = await listed();
  assert.is(before.length, 2);
  assert.match(study(before), `by ${account("fay")}</li>\n<li>reported by ${account("gus")}`);
  assert.not.match(study(before), "<blockquote");
  assert.match(speech(before), `by ${account("gus")}</li>\n<li>reported by ${account("fay")}`);
  assert.match(speech(before), "…</blockquote>");
  assert.not.match(speech(before), "end…");
  await deleteAccount(store, gus.id);
  const after = await listed();
  for (const item of after) assert.not.match(item, "@gus");
  if (after.some((item) => item.includes(">Study: Told on<")))
    assert.match(study(after), "reported by a deleted account");
});

test("the page that is shown is the one marked in the navigation, and signing in leads back to it", async () => {
  const { see } = peopleOf(service, clock);
  const current = ({ text }: { text: string }) =>
    [...(text.split("</header>")[0] as string).matchAll(/<a href="([^"]*)" aria-current="page">/g)].map(
      ([, path]) => path,
    );
  const front = await see("/");
  assert.equal(current(front), ["/"]);
  assert.match(front.text, 'href="/sign-in?return=%2F"');
  const docs = await see("/docs/api");
  assert.not.ok(current(docs).includes("/"));
  const signIn = await see("/sign-in");
  assert.equal(current(signIn), ["/sign-in"]);
});

test("a list of contents names sixty places, each by 120 characters at most", () => {
  const outline = new Outline();
  outline.begin("finding");
  assert.is(outline.heading("x".repeat(120)), "finding-1");
  assert.is(outline.heading(` ${"y".repeat(121)} `), "finding-2");
  assert.equal(outline.within("finding"), [
    { id: "finding-1", name: "x".repeat(120) },
    { id: "finding-2", name: `${"y".repeat(120)}…` },
  ]);
  assert.equal(outline.within("method"), []);
  outline.entry({ id: "a", kind: "result", title: "" });
  outline.entry({ id: "b", kind: "result", title: "Named" });
  assert.is(outline.heading("within an entry"), null);
  assert.equal(outline.within("entries"), [
    { id: "entry-a", name: "result" },
    { id: "entry-b", name: "Named" },
  ]);
  const drawing = new Html("<svg></svg>");
  assert.is(outline.figure("none", []), "figure-1");
  assert.is(outline.headline, null);
  assert.is(outline.figure("of an entry", [drawing]), "figure-2");
  assert.is(outline.headline?.id, "figure-2");
  outline.begin("finding");
  assert.is(outline.figure("first", [drawing]), "figure-3");
  assert.is(outline.figure("second", [drawing]), "figure-4");
  assert.is(outline.headline?.id, "figure-3", "the finding's first goes before those of entries");
  outline.begin("method");
  for (let place = 1; place <= 56; place++) assert.is(outline.heading("more"), `method-${place}`);
  assert.is(outline.heading("the 61st"), null);
  assert.is(outline.within("method").length, 56);
});

test("an abstract's paragraph has 900 characters at most, and ends with a word", () => {
  const word = "word ".repeat(179); // 895
  assert.is(firstParagraph(`${word}12345`), `${word}12345`);
  assert.is(firstParagraph(`${word}123456`), `${word.trim()} …`);
  const sentence = `${"A".repeat(600)}. ${"B".repeat(600)}`;
  assert.is(firstParagraph(sentence), `${"A".repeat(600)}. …`);
  const unbroken = "é".repeat(1000);
  assert.is(firstParagraph(unbroken), `${"é".repeat(900)} …`);
  const pairs = `x${"😀".repeat(500)}`;
  assert.is(firstParagraph(pairs), `x${"😀".repeat(449)} …`, "no half of a character");
  assert.is(firstParagraph("# Heading\n\n- list\n\n"), null);
});

test("nothing failed inside", () => {
  assert.equal(service.log, []);
});

test.run();
