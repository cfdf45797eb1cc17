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
import { startSession } from "../../src/studies/store/sessions.js";
import { testClock } from "./support/clock.js";
import { unescaped } from "./support/markup.js";
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

test("my drafts lists pending and published drafts and their outcome", async () => {
  const ada = await service.account("Ada");
  const { store, see, save, publish } = peopleOf(service, clock);
  const empty = (await see("/drafts", ada)).text;
  assert.match(empty, "No drafts yet.");
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
  assert.not.match(text, "No drafts yet.");
  assert.not.match(text, "<p>Nothing yet.</p>");
  const badges = [...text.matchAll(/<h3 dir="auto"><a href="\/studies\/([^"]+)">[^<]*<\/a>(.*?)<\/h3>/g)];
  assert.equal(Object.fromEntries(badges.map(([, id, badge]) => [id, badge?.trim()])), {
    [standing.id]: "",
    [withdrawn.id]: '<span class="badge revoked">withdrawn</span>',
    [removed.id]: '<span class="badge revoked">removed</span>',
  });
});

test("a review marks likely secrets and hidden characters, and is silent without any", async () => {
  const ben = await service.account("Ben");
  const { see, save } = peopleOf(service, clock);
  const key = ["AKIA", "ABCDEFGHIJKLMNOP"].join("");
  const telling = await save(ben, { title: "Telling", finding: `With ${key}\u202e and \u202e.` });
  const { text } = await see(`/drafts/${telling.id}`, ben);
  assert.match(text, "Double-check these.");
  assert.match(text, "<li>AWS access key at <code>/finding</code>: AKIAABCDEFGH…</li>");
  assert.match(text, "Hidden or direction-changing characters.");
  assert.match(text, /<li>U\+202E [^<]*, 2 times, first at <code>\/finding/);
  const plain = await save(ben, { title: "Plain" });
  const quiet = (await see(`/drafts/${plain.id}`, ben)).text;
  assert.not.match(quiet, "Double-check these.");
  assert.not.match(quiet, "direction-changing characters.");
});

test("notifications: 50 per page, a link to earlier ones, and the actions offered", async () => {
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
  assert.match(beyond.text, "<p>No earlier notifications.</p>");
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
  assert.match(without.text, "The form lacks a valid time.");
  assert.match((await see("/notifications", cleo)).text, '<li class="unread">');
  const nothing = await see("/notifications", people[0]!);
  assert.match(nothing.text, "<p>No notifications yet.</p>");
  // The feed can be ended where there is one.
  assert.match(newest.text, ">Create an address</button>");
  assert.not.match(newest.text, ">Delete the feed</button>");
  const made = (await post("/notifications/feed", cleo)).text;
  assert.match(made, "be able to see it again");
  const later = (await see("/notifications", cleo)).text;
  assert.match(later, ">Replace the address</button>");
  assert.match(later, ">Delete the feed</button>");
  assert.not.match(later, "be able to see it again");
});

test("reports name author and reporter by handle or as a deleted account", async () => {
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

test("a review shows which of the author's studies it replaces, and the differences", async () => {
  const [hal, ida] = [await service.account("Hal"), await service.account("Ida")];
  const { store, see, save, publish } = peopleOf(service, clock);
  const [first, gone] = [await publish(hal, { title: "Stands" }), await publish(hal, { title: "Went" })];
  await publish(hal, { title: "Stands", finding: "Second." }, first.id);
  const foreign = await publish(ida, { title: "Foreign" });
  await withdraw(store, hal.id, { studyId: gone.id, version: null }, "wrong");
  const draft = await save(hal, { title: "Stands", finding: "Third." });
  const review = async (replaces = "") => {
    const { text } = await see(`/drafts/${draft.id}${replaces === "" ? "" : `?replaces=${replaces}`}`, hal);
    const [select = ""] = /<select id="replaces".*?<\/select>/s.exec(text) ?? [];
    return {
      options: [...select.matchAll(/<option value="([^"]*)"( selected)?>([^<]*)</g)].map(
        ([, id, chosen, name]) => [id, chosen !== undefined, name],
      ),
      difference: /Difference from version (\d+)<\/h2>(.*?)<div id="readable">/s.exec(text)?.slice(1) ?? null,
      replaces: /name="replaces" value="([^"]*)"/.exec(text)?.[1],
      next: text.includes("the next version of “Stands”"),
      link: text.includes('href="#difference"'),
    };
  };
  const version = "version 3 of “Stands”";
  for (const none of ["", gone.id, foreign.id, "x", "00000000-0000-4000-8000-000000000000"]) {
    const options = [
      ["", false, "a new study"],
      [first.id, false, version],
    ];
    assert.equal(
      await review(none),
      { options, difference: null, replaces: "", next: false, link: false },
      none,
    );
  }
  const chosen = await review(first.id);
  assert.equal(chosen.options[1], [first.id, true, version]);
  assert.equal(
    [chosen.difference?.[0], chosen.replaces, chosen.next, chosen.link],
    ["2", first.id, true, true],
  );
  assert.match(chosen.difference?.[1] ?? "", "<del>Second.</del><ins>Third.</ins>");
  // Once it is published, its address leads to what it became, for its author alone.
  const became = async (id: string, who = hal) => {
    const { status, headers } = await see(`/drafts/${id}`, who);
    return [status, headers.location];
  };
  assert.equal(await became(first.id), [303, `/studies/${first.id}/v/1`]);
  assert.equal(await became(first.id, ida), [404, undefined]);
  assert.equal(await became(foreign.id, ida), [303, `/studies/${foreign.id}`]);
});

test("a review's exact JSON splits no character and counts hidden kinds beyond fifty", async () => {
  const jan = await service.account("Jan");
  const { see, save } = peopleOf(service, clock);
  for (const pad of ["", "x"]) {
    const { id, body } = await save(jan, { title: "Long", finding: pad + "😀".repeat(21_000) });
    const { text } = await see(`/drafts/${id}`, jan);
    assert.not.match(text, "unpaired surrogate");
    const [, exact = ""] = /aria-label="Exact JSON">(.*?)<\/pre>/s.exec(text) ?? [];
    assert.is(unescaped(exact), body, "all of it, in order");
  }
  const tags = (count: number) =>
    String.fromCodePoint(...Array.from({ length: count }, (_, at) => 0xe0020 + at));
  const kinds = async (count: number) => {
    const { id } = await save(jan, {
      title: "Hides",
      finding: `${tags(count)}\u{e0020}`,
      method: "\u{e0020}x",
    });
    const { text } = await see(`/drafts/${id}`, jan);
    const [, list = ""] = /Hidden or direction-changing.*?<ul>(.*?)<\/ul>/s.exec(text) ?? [];
    return [
      list.match(/<li>U\+/g)?.length,
      /and (\d+) other characters/.exec(list)?.[1],
      /U\+E0020 [^<]*<code>[^<]*/.exec(list)?.[0],
    ];
  };
  assert.equal(await kinds(50), [50, undefined, "U+E0020 invisible, 3 times, first at <code>/method"]);
  assert.equal((await kinds(52)).slice(0, 2), [50, "2"]);
  // The first hundred likely secrets are listed, wherever they are.
  const { id } = await save(jan, {
    title: "Secrets",
    question: "a@x.org ".repeat(70),
    method: "b@x.org ".repeat(70),
    finding: "c@x.org",
  });
  const { text } = await see(`/drafts/${id}`, jan);
  assert.is(text.match(/<li>e-mail address at/g)?.length, 140, "to the end of the text that reaches it");
  assert.not.match(text, "/finding</code>: c@x.org");
});

test("pages state who may publish and create tokens, and how to get permission", async () => {
  const [kim, leo] = [await service.account("Kim", []), await service.account("Leo", ["agent"])];
  const { see, post, save } = peopleOf(service, clock);
  const without = (await see("/agents", kim)).text;
  assert.match(without, "Yours is not approved yet");
  assert.match(without, "You have no active tokens.");
  assert.not.match(without, ">Create token</button>");
  assert.not.match(without, "<h2>Expired and revoked</h2>");
  const { id } = await save(leo, { title: "Leo's" });
  const review = (await see(`/drafts/${id}`, leo)).text;
  assert.match(review, "only approved accounts can publish");
  assert.not.match(review, ">Publish</button>");
  const open = (await see("/agents", leo)).text;
  assert.match(open, ">Create token</button>");
  assert.not.match(open, "You have no active tokens.");
  assert.match(open, "last used <time");
  const scopes = { scope: "public:read", days: "30" };
  for (let count = 1; count < 10; count++)
    assert.is((await post("/agents", leo, { ...scopes, name: `T${count}` })).status, 200);
  const full = (await see("/agents", leo)).text;
  assert.match(full, "You have 10 active tokens, which is the limit. Revoke one first.");
  assert.match(full, "never used");
  assert.not.match(full, ">Create token</button>");
  const eleventh = await post("/agents", leo, { ...scopes, name: "T11" });
  assert.equal(
    [eleventh.status, eleventh.text.includes("10 active tokens, which is the limit")],
    [400, true],
  );
  const [, one = ""] = /action="\/agents\/([^/]+)\/revoke"/.exec(full) ?? [];
  assert.is((await post(`/agents/${one}/revoke`, leo)).status, 303);
  const after = (await see("/agents", leo)).text;
  assert.match(after, "<h2>Expired and revoked</h2>");
  assert.is(after.match(/\/revoke"/g)?.length, 9);
  assert.match((await see(`/agents/${one}`, leo)).text, '<span class="badge revoked">revoked</span>');
  // A second browser has a second session, which can be ended here.
  const { store } = service.running.service;
  const single = (await see("/account", kim)).text;
  assert.not.match(single, "Another browser");
  assert.not.match(single, "End all other sessions");
  await startSession(store, kim.id, "");
  const double = (await see("/account", kim)).text;
  assert.match(double, /<h3>Another browser<\/h3>\n<p class="hint">unknown browser/);
  assert.match(double, '<h3>This browser</h3>\n<p class="hint">test</p>');
  assert.match(double, "End all other sessions");
  assert.is((await post("/account/sessions/end-others", kim)).status, 303);
  assert.not.match((await see("/account", kim)).text, "Another browser");
});

test("the moderation log is paged, and an account's page shows its state", async () => {
  const [mod, ned] = [await service.account("Mia"), await service.account("Ned")];
  const { store, see, post, publish } = peopleOf(service, clock);
  await approve(store, "moderator", "mia@example.org");
  await publish(ned, { title: "Ned's" });
  const rows = Array.from({ length: 150 }, (_, at) => ({
    ...{
      id: `00000000-0000-4000-8000-${String(at).padStart(12, "0")}`,
      at: clock.ms + 1000 + Math.floor(at / 100),
    },
    ...{ actor: at % 2 === 0 ? ned.id : "operator", action: `test.${at}`, target: "x", detail: null },
  }));
  await store.db.insertInto("audit").values(rows).execute();
  const actions = (text: string) => [...text.matchAll(/<td>test\.(\d+)<\/td>/g)].map(([, at]) => Number(at));
  const newest = (await see("/moderation/log", mod)).text;
  assert.equal(
    actions(newest),
    Array.from({ length: 100 }, (_, at) => 149 - at),
  );
  assert.match(newest, "<td>@ned</td><td>test.148</td>");
  assert.match(newest, "<td>operator</td><td>test.149</td>");
  const [, earlier = ""] = /<a href="(\?before=[^"]+)">Earlier/.exec(newest) ?? [];
  const older = (await see(`/moderation/log${earlier}`, mod)).text;
  assert.equal(
    actions(older),
    Array.from({ length: 50 }, (_, at) => 49 - at),
  );
  assert.equal(actions((await see("/moderation/log?before=x", mod)).text).length, 100);
  assert.not.match((await see(`/moderation/log?before=1-${rows[0]?.id}`, mod)).text, "Earlier</a>");
  await store.db.deleteFrom("audit").where("target", "=", "x").execute();

  const account = async () => (await see("/moderation/account?handle=@NED", mod)).text;
  const standing = await account();
  assert.match(standing, `action="/accounts/${ned.id}/suspend"`);
  assert.not.match(standing, "<dt>Suspended</dt>");
  assert.match(standing, /Ned&#39;s<\/a><\/li>|Ned's<\/a><\/li>/);
  assert.not.match(standing, "(taken down)");
  assert.is((await post(`/accounts/${ned.id}/suspend`, mod, { reason: "spam" })).status, 303);
  const suspended = await account();
  assert.match(suspended, `action="/accounts/${ned.id}/reinstate"`);
  assert.match(suspended, /<dt>Suspended<\/dt><dd><time[^>]*>[^<]*<\/time>: spam/);
  assert.is((await post(`/accounts/${ned.id}/suspend`, mod, { reason: "again" })).status, 409);
  assert.is((await post(`/accounts/${mod.id}/suspend`, mod, { reason: "me" })).status, 403);
  assert.is((await post(`/accounts/${ned.id}/reinstate`, mod)).status, 303);
  assert.is((await see("/moderation/account?handle=nobody", mod)).status, 404);
});

test("navigation marks the current page, and signing in returns to it", async () => {
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

test("a table of contents lists 60 entries of at most 120 characters", () => {
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

test("an abstract's paragraph has at most 900 characters and ends with a whole word", () => {
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

test("no internal error occurred", () => {
  assert.equal(service.log, []);
});

test.run();
