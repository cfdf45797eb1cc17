/** The website's parts by themselves: who sees which form, what is quoted, drawn, kept and refused. On SQLite. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Koa, { type Context } from "koa";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { StudyPackage } from "../../src/contracts/studies/index.js";
import { findingsOf } from "../../src/report/index.js";
import type { Service } from "../../src/studies/service.js";
import { resultFigures } from "../../src/studies/site/figures.js";
import { html } from "../../src/studies/site/html.js";
import { site as makeSite, routes } from "../../src/studies/site/middleware.js";
import { Outline } from "../../src/studies/site/outline.js";
import { Pace } from "../../src/studies/site/pace.js";
import { commentActions, goneSentence, studyActions } from "../../src/studies/site/pages/actions.js";
import { differenceView } from "../../src/studies/site/pages/difference.js";
import { discussionView, quoteOf } from "../../src/studies/site/pages/discussion.js";
import { facetPanel } from "../../src/studies/site/pages/facets.js";
import { pageLinks, pageOf } from "../../src/studies/site/pages/feed.js";
import { packageView } from "../../src/studies/site/pages/package-view.js";
import { answerPublic, isPublic } from "../../src/studies/site/public-pages.js";
import { Reveal, revealed } from "../../src/studies/site/reveal.js";
import { NeedsSignIn, SiteError, type Visit } from "../../src/studies/site/visit.js";
import { NotModerator } from "../../src/studies/store/audit.js";
import { Kept } from "../../src/studies/store/kept.js";
import { AccountSuspended, bumpGeneration, openStore, type Store } from "../../src/studies/store/store.js";
import type { StudyRow } from "../../src/studies/store/studies.js";
import { inspectJob, patchJob } from "../report/jobs.js";
import { samplePackage } from "./support/packages.js";
import { resultBlock } from "./support/results.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-site-parts-"));
const uuid = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
let store: Store;
test.before(async () => {
  store = await openStore(join(folder, "studies.db"));
});
test.after(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const origin = "https://s.example";
type Who = { id: string; moderator?: boolean } | null;
const sessionOf = (who: Who) =>
  who && { id: "x", account: { id: who.id }, isModerator: who.moderator === true, unread: 0 };
const visitOf = (who: Who, querystring = "") =>
  ({ service: { origin }, ctx: { querystring }, session: sessionOf(who), csrf: "token" }) as unknown as Visit;
const rowOf = (change: object = {}) =>
  ({
    id: "s",
    account_id: "author",
    listed: 1,
    standing: "published",
    comment_count: 0,
    ...change,
  }) as StudyRow;
const [author, reader, moderator] = [{ id: "author" }, { id: "reader" }, { id: "mod", moderator: true }];

test("forms below a study are those that its visitor can use, in its state", () => {
  const forms = (who: Who, change: object, standings: string[] = ["published"]) => {
    const versions = standings.map((standing, at) => ({ version: at + 1, standing }));
    const { markup = "" } = studyActions(visitOf(who), rowOf(change), versions) ?? {};
    return [...markup.matchAll(/action="\/studies\/s\/([a-z]+)"/g)].map(([, name]) => name);
  };
  const published = {};
  const withdrawn = { standing: "withdrawn", listed: 0 };
  const removed = { standing: "removed", listed: 0 };
  for (const [who, change, versions, expected] of [
    [null, published, undefined, []],
    [reader, published, undefined, ["report"]],
    [author, published, undefined, ["withdraw"]],
    [moderator, published, undefined, ["remove", "report"]],
    [{ id: "author", moderator: true }, published, undefined, ["withdraw", "remove"]],
    [reader, withdrawn, undefined, []],
    [author, withdrawn, undefined, []],
    [moderator, withdrawn, undefined, []],
    [author, removed, undefined, []],
    [reader, removed, undefined, []],
    [moderator, removed, undefined, ["reinstate"]],
    [moderator, published, ["removed", "published"], ["remove", "reinstate", "report"]],
    [reader, published, ["removed", "published"], ["report"]],
    // No version stands any more, though the study does.
    [author, { listed: 0 }, ["withdrawn"], []],
    [moderator, { listed: 0 }, ["removed"], ["reinstate"]],
  ] as [Who, object, string[] | undefined, string[]][]) {
    assert.equal(forms(who, change, versions), expected, JSON.stringify([who, change, versions]));
  }
  const versions = ["published", "withdrawn", "removed", "published"].map((standing, at) => ({
    version: at + 1,
    standing,
  }));
  const choices = (markup = "") =>
    [...markup.matchAll(/<select id="([a-z]+)-version".*?<\/select>/gs)].map(([select, name]) => [
      name,
      ...[...select.matchAll(/<option value="(\d+)"/g)].map(([, version]) => version),
    ]);
  assert.equal(choices(studyActions(visitOf({ id: "author", moderator: true }), rowOf(), versions)?.markup), [
    ["withdraw", "1", "4"],
    ["remove", "1", "4"],
    ["reinstate", "3"],
  ]);
  assert.is(goneSentence({ standing: "withdrawn", at: 0, reason: "" }), "This was withdrawn by its author.");
  assert.is(goneSentence({ standing: "removed", at: 0, reason: "" }), "This was removed by a moderator.");
});

test("forms below a comment, too; it is changed within fifteen minutes", () => {
  const now = Date.now();
  const forms = (who: Who, change: object = {}) => {
    const comment = {
      id: "c",
      study_id: "s",
      account_id: "author",
      hidden: null,
      created_at: now,
      body: "<said>",
      ...change,
    };
    const { markup = "" } = commentActions(visitOf(who), comment) ?? {};
    return [...markup.matchAll(/action="\/comments\/c\/([a-z]+)"/g)].map(([, name]) => name);
  };
  const late = { created_at: now - 15 * 60_000 };
  const soon = { created_at: now - 5 * 60_000 };
  for (const [who, change, expected] of [
    [null, {}, []],
    [author, soon, ["edit", "delete"]],
    [author, late, ["delete"]],
    [author, { ...soon, hidden: "hidden" }, ["delete"]],
    [author, { hidden: "deleted" }, []],
    [reader, {}, ["report"]],
    [reader, { hidden: "hidden" }, []],
    [moderator, {}, ["report", "hide", "erase"]],
    [moderator, { hidden: "hidden" }, ["show", "erase"]],
    [moderator, { hidden: "deleted" }, []],
  ] as [Who, object, string[]][]) {
    assert.equal(forms(who, change), expected, JSON.stringify([who, change]));
  }
});

const comment = (number: number, change: object = {}) =>
  ({
    ...{
      id: uuid(number),
      study_id: "s",
      account_id: "author",
      author: "Ada",
      handle: "ada",
      parent_id: null,
    },
    ...{
      created_at: 0,
      edited_at: null,
      hidden: null,
      reason: null,
      body: `said ${number}`,
      thread: "000001",
    },
    ...change,
  }) as Parameters<typeof quoteOf>[2][number];

test("what an address asks to be quoted, for who may answer", () => {
  const entries = [
    { id: uuid(1), kind: "note", title: "One", answer: "answer", note: "note", prompt: "prompt" },
    { id: uuid(2), kind: "note", title: "Two", note: "note", prompt: "prompt" },
    { id: uuid(3), kind: "note", title: "", prompt: "prompt" },
    { id: uuid(4), kind: "note", title: "Four" },
    { id: uuid(5), kind: "note", title: "" },
    { id: uuid(6).replace("8000", "A000"), kind: "note", title: "Six" },
  ];
  const content = samplePackage({ entries } as unknown as Partial<StudyPackage>);
  const comments = [comment(11), comment(12, { hidden: "hidden" })];
  const quoted = (asked: string, who: Who = reader, change: object = {}) =>
    quoteOf(visitOf(who, asked), { row: rowOf(change), content, version: 3 }, comments);
  const entry = (number: number, name: string, words: string, id = uuid(number)) => ({
    parent: null,
    text: `> [${name}](${origin}/studies/s/v/3#entry-${id})\n>\n> ${words}\n\n`,
  });
  assert.equal(quoted(`quote=entry-${uuid(1)}`), entry(1, "One, version 3", "answer"));
  assert.equal(quoted(`quote=entry-${uuid(2)}`), entry(2, "Two, version 3", "note"));
  assert.equal(quoted(`quote=entry-${uuid(3)}`), entry(3, "An entry of version 3", "prompt"));
  assert.equal(quoted(`quote=entry-${uuid(4)}`), entry(4, "Four, version 3", "Four"));
  const [, , , , , sixth] = entries;
  assert.equal(
    quoted(`quote=entry-${sixth?.id.toLowerCase()}`),
    entry(6, "Six, version 3", "Six", sixth?.id as string),
  );
  assert.equal(quoted(`quote=comment-${uuid(11)}`), {
    parent: uuid(11),
    text: `> [Ada wrote](${origin}/comments/${uuid(11)})\n>\n> said 11\n\n`,
  });
  for (const nothing of [
    "",
    "quote=",
    `quote=entry-${uuid(5)}`,
    `quote=entry-${uuid(9)}`,
    `quote=comment-${uuid(12)}`,
    `quote=comment-${uuid(1)}`,
    "quote=entry-1",
    `quote=other-${uuid(1)}`,
    `quote=x-entry-${uuid(1)}`,
  ])
    assert.is(quoted(nothing), null, nothing);
  assert.is(quoted(`quote=entry-${uuid(1)}`, null), null);
  assert.is(quoted(`quote=entry-${uuid(1)}`, reader, { listed: 0 }), null);
});

test("a page of a discussion: how deep, what is hidden from whom, where it goes on, what an answer begins with", async () => {
  const view = async (
    who: Who,
    shown: Partial<Parameters<typeof discussionView>[2]> = {},
    change: object = { comment_count: 1 },
  ) =>
    (
      await discussionView(visitOf(who), rowOf(change), {
        ...{ comments: [], offset: 0, quote: null, texts: async (text: string) => html`<i>${text}</i>` },
        ...shown,
      })
    ).markup;
  const said = (change: object) => ({ comments: [comment(1, change)] });
  const nobody = "Nobody has said anything yet.";
  assert.match(await view(null, {}, { comment_count: 0 }), nobody);
  assert.not.match(await view(null), nobody);
  const links = async (offset: number, comment_count: number) =>
    [
      ...(await view(null, { offset }, { comment_count })).matchAll(
        /href="\?comments=(\d+)#discussion">(?:← )?(\w+)/g,
      ),
    ].map(([, to, name]) => `${name} ${to}`);
  assert.equal(await links(0, 50), []);
  assert.equal(await links(0, 51), ["Later 50"]);
  assert.equal(await links(50, 51), ["Earlier 0"]);
  assert.equal(await links(20, 71), ["Earlier 0", "Later 70"]);
  assert.equal(await links(100, 151), ["Earlier 50", "Later 150"]);
  // Of who may see what.
  assert.match(await view(null, said({})), "<i>said 1</i>");
  for (const [who, hidden, reason, text, sentence] of [
    [reader, "hidden", "rude", false, "Hidden by a moderator: rude"],
    [moderator, "hidden", "rude", true, "Hidden by a moderator: rude"],
    [moderator, "deleted", null, false, "Deleted by its author."],
    [reader, "deleted", "spam", false, "Deleted by a moderator: spam"],
  ] as const) {
    const markup = await view(who, said({ hidden, reason, edited_at: 5 }));
    assert.is(markup.includes("<i>said 1</i>"), text);
    assert.match(markup, sentence);
    assert.not.match(markup, "<summary>Reply");
    assert.not.match(markup, "<li>changed ");
  }
  assert.not.match(await view(reader, said({})), 'class="gone"');
  assert.match(await view(null, said({ edited_at: 5 })), "<li>changed <time");
  for (const [thread, depth] of [
    [1, 0],
    [2, 1],
    [6, 5],
    [7, 5],
  ] as const)
    assert.match(await view(null, said({ thread: "00000a".repeat(thread) })), `<li class="depth-${depth}"`);
  // Who is signed in answers what stands.
  const forms = (markup: string) => (markup.match(/action="\/studies\/s\/comments"/g) ?? []).length;
  assert.equal(
    [
      await view(null, said({})),
      await view(reader, said({})),
      await view(reader, said({}), { listed: 0, comment_count: 1 }),
    ].map(forms),
    [0, 2, 0],
  );
  assert.match(await view(null), "Sign in</a> to comment");
  const open = "<details open><summary>Reply</summary>";
  const own = await view(reader, { ...said({}), quote: { parent: null, text: "> words" } });
  assert.not.match(own, open);
  assert.match(own, /<textarea id="body-new"[^>]*>\n&gt; words</);
  const answer = await view(reader, { ...said({}), offset: 50, quote: { parent: uuid(1), text: "> words" } });
  assert.match(answer, open);
  assert.match(answer, new RegExp(`<textarea id="body-${uuid(1)}"[^>]*>\\n&gt; words<`));
  assert.match(answer, /<textarea id="body-new"[^>]*>\n<\/textarea>/);
  assert.match(answer, `href="?comments=50&amp;quote=comment-${uuid(1)}#body-${uuid(1)}"`);
});

test("differences: three hundred at most, and 1,500,000 characters of markup", async () => {
  const view = async (omissions: string[]) => {
    const { markup } = await differenceView(
      samplePackage({ entries: [] }),
      samplePackage({ entries: [], omissions }),
      revealed,
      new Pace(),
    );
    return [markup.match(/<ins>/g)?.length ?? 0, /(\d+) more differences/.exec(markup)?.[1] ?? null];
  };
  assert.equal(await view(Array(300).fill("x")), [300, null]);
  assert.equal(await view(Array(302).fill("x")), [300, "2"]);
  const frame = '<p class="hint"><code>/omissions/0</code></p>\n<ins></ins>'.length;
  const long = (length: number) => "x".repeat(length - frame);
  assert.equal(await view([...Array(10).fill(long(150_000)), "y"]), [10, "1"]);
  assert.equal(await view([...Array(9).fill(long(150_000)), long(149_999), "y"]), [11, null]);
  const same = await differenceView(
    samplePackage({ entries: [] }),
    samplePackage({ entries: [] }),
    revealed,
    new Pace(),
  );
  assert.is(same.markup, "<p>The content is the same.</p>");
});

test("a result's figures: drawn twice, their data beside them, within a bound; what is no result stays text", async () => {
  const [, label = "", block = ""] = /^```(.*)\n(.*)\n```$/.exec(resultBlock(inspectJob())) ?? [];
  let turns = 0;
  const pace = {
    turn: async () => {
      turns += 1;
    },
  } as unknown as Pace;
  const figures = (text: string, outline?: Outline, named = label, shown = revealed) =>
    resultFigures(named, text, shown, pace, outline);
  for (const text of ["", "{", "null", "5", "{}", '{"operation":"toString"}', '{"operation":"inspect"}'])
    assert.is(await figures(text), null, text);
  assert.is(await figures(block, undefined, "other"), null);
  const parsed = JSON.parse(block);
  assert.is(await figures(JSON.stringify({ ...parsed, operation: "compare" })), null);
  const tokens = Array.from({ length: 450 }, (_, at) => ` t${at}`);
  const [, , long = ""] = /^```(.*)\n(.*)\n```$/.exec(resultBlock(inspectJob(tokens))) ?? [];
  for (const [text, job] of [
    [block, inspectJob()],
    [long, inspectJob(tokens)],
  ] as const) {
    turns = 0;
    const outline = new Outline();
    const { markup = "" } = (await figures(text, outline)) ?? {};
    const parts = findingsOf(job).parts.flatMap((part) => ("chart" in part ? [part] : []));
    const drawn = markup.split("<figure").slice(1);
    assert.is(drawn.length, parts.length);
    let rows = 0;
    for (const [at, { title, table }] of parts.entries()) {
      const figure = drawn[at] as string;
      const most = Math.min(400, Math.floor(8000 / table.head.length));
      const told = Math.min(most, table.rows.length);
      rows += told;
      assert.match(figure, new RegExp(`^ id="figure-${at + 1}">`), title);
      assert.is(figure.match(/<tr>/g)?.length, told + 1, title);
      assert.is(figure.match(/<th scope="col">/g)?.length, table.head.length);
      const more = /(\d+) more rows are in the exact bytes/.exec(figure)?.[1];
      assert.is(more, table.rows.length > most ? String(table.rows.length - most) : undefined, title);
      const pictures = [...figure.matchAll(/<div class="drawing (\w+)">/g)].map(([, name]) => name);
      const none = figure.includes("Too many values for a picture here.");
      assert.equal(pictures, none ? [] : ["wide", "narrow"], title);
    }
    assert.ok(turns >= rows + 3 * parts.length, "and others get their turn");
  }
  const without = await figures(block);
  assert.match(without?.markup ?? "", "<figure><figcaption>");
  assert.not.match(without?.markup ?? "", 'class="hint">Weights');
  const left = await figures(JSON.stringify({ ...parsed, left_out: "Weights <b>" }));
  assert.match(left?.markup ?? "", '<p class="hint">Weights &lt;b&gt;</p>');
  // Parts that do not fit together make it text; any other fault is one.
  for (const Fault of [TypeError, RangeError])
    assert.is(
      await figures(block, undefined, label, () => {
        throw new Fault("does not fit");
      }),
      null,
    );
  const fault = await figures(block, undefined, label, () => {
    throw new Error("broken");
  }).catch((error: Error) => error.message);
  assert.is(fault, "broken");
  const sweep = /^```.*\n(.*)\n```$/.exec(resultBlock(patchJob()))?.[1] ?? "";
  assert.match((await figures(sweep))?.markup ?? "", "<figure>");
});

test("an entry opens with what was asked and answered; what was written is Markdown, what was said is not", async () => {
  const entry = {
    ...{ id: uuid(1), kind: "result", title: "", model: "m", system: "*s*", prompt: "*p*", thinking: "*t*" },
    ...{ answer: "*a*", note: "*n*", context: [{ role: "user", content: "*c*" }], finishReason: "stop" },
    settings: { temperature: 0.5, seed: 1, maxTokens: 2, thinking: "on" },
  };
  const view = async (change: object, options: object = {}) => {
    const study = samplePackage({ entries: [{ ...entry, ...change }] } as unknown as Partial<StudyPackage>);
    return (
      await packageView(study, { shown: new Reveal().show, pace: new Pace(), source: false, ...options })
    ).markup;
  };
  const markup = await view({});
  const parts = [...markup.matchAll(/<details( open)?><summary>([^<]*)<\/summary>(.*?)<\/details>/gs)].map(
    ([, open, name, body = ""]) => [name, open !== undefined, body.includes("<em>")],
  );
  assert.equal(parts, [
    ["System prompt", false, false],
    ["Context (1)", false, false],
    ["Prompt", true, false],
    ["Thinking", false, false],
    ["Answer", true, true],
    ["Note", true, true],
  ]);
  assert.match(
    markup,
    "<li>temperature 0.5</li><li>seed 1</li><li>at most 2 tokens</li><li>thinking on</li>",
  );
  assert.match(markup, "<li>finished: stop</li>");
  assert.match(markup, "\nUntitled <a ");
  const bare = { system: "", prompt: undefined, thinking: "", answer: "", note: undefined, context: [] };
  const none = await view({ ...bare, model: undefined, settings: undefined, finishReason: null, title: "T" });
  assert.not.match(none, "<details");
  assert.match(none, '<ul class="meta"></ul>');
  assert.match(none, "<bdi>T</bdi>");
  assert.not.match(none, 'class="quote"');
  const links = (quote: boolean) => ({ links: { permanent: "/studies/s/v/2", quote } });
  assert.match(await view({}, links(false)), `href="/studies/s/v/2#entry-${uuid(1)}"`);
  assert.not.match(await view({}, links(false)), 'class="quote"');
  assert.match(await view({}, links(true)), `href="/studies/s/v/2?quote=entry-${uuid(1)}#body-new"`);
  assert.not.match(await view({}, { source: true }), "<em>");
});

test("lists have pages of twenty, five hundred of them", () => {
  const asked = (query: string) => pageOf(visitOf(null, query));
  for (const [query, number] of [
    ["", 1],
    ["page=1", 1],
    ["page=0", 1],
    ["page=2", 2],
    ["page=500", 500],
    ["page=501", 500],
    ["page=9999", 500],
    ["page=10000", 1],
    ["page=-2", 1],
    ["page=x", 1],
  ] as const)
    assert.equal(asked(query), { number, offset: (number - 1) * 20, size: 20 }, query);
  const links = (number: number, total: number) =>
    [
      ...pageLinks({ path: "/p", query: { q: "a b" }, number, total }).markup.matchAll(
        /rel="(\w+)" href="([^"]*)"/g,
      ),
    ].map(([, rel, to]) => `${rel} ${to}`);
  const to = (rel: string, page: number) => `${rel} /p?q=a+b&amp;page=${page}`;
  assert.equal(links(1, 20), []);
  assert.equal(links(1, 21), [to("next", 2)]);
  assert.equal(links(2, 40), [to("prev", 1)]);
  assert.equal(links(2, 41), [to("prev", 1), to("next", 3)]);
  assert.equal(links(500, 20_000), [to("prev", 499)]);
  assert.equal(links(499, 20_000), [to("prev", 498), to("next", 500)]);
});

test("facets are links that set a filter, and the one that is set leads back", () => {
  const counts = {
    model: [
      { value: "m1", count: 3 },
      { value: "m2", count: 1 },
    ],
    method: [{ value: "sae", count: 2 }],
    author: [{ value: "ada", count: 4, name: "Ada L" }],
    year: [],
    license: [{ value: "CC0-1.0", count: 5 }],
    reproduced: [{ value: "yes", count: 1 }],
  };
  const panel = (given: object, more: object = {}) =>
    facetPanel({ path: "/", q: "", given, counts, ...more }).markup;
  const links = (markup: string) =>
    [
      ...markup.matchAll(
        /<a rel="nofollow" href="([^"]*)"( aria-current="true")?><bdi>([^<]*)<\/bdi> <span class="count">(\d+)/g,
      ),
    ].map(([, to, chosen, name, count]) => [to, chosen !== undefined, name, count]);
  assert.equal(links(panel({})), [
    ["/?model=m1", false, "m1", "3"],
    ["/?model=m2", false, "m2", "1"],
    ["/?method=sae", false, "sae", "2"],
    ["/?author=ada", false, "Ada L", "4"],
    ["/?license=CC0-1.0", false, "CC0-1.0", "5"],
    ["/?reproduced=yes", false, "by somebody", "1"],
  ]);
  assert.not.match(panel({}), "<dt>Year</dt>");
  assert.equal(links(panel({ model: "m1", sort: "top" }, { q: "x y" })).slice(0, 3), [
    ["/?q=x+y&amp;sort=top", true, "m1", "3"],
    ["/?q=x+y&amp;sort=top&amp;model=m2", false, "m2", "1"],
    ["/?q=x+y&amp;model=m1&amp;sort=top&amp;method=sae", false, "sae", "2"],
  ]);
  assert.equal(links(panel({ model: "m1" }))[0], ["/", true, "m1", "3"]);
  // One that nothing has any more can still be taken back.
  assert.equal(links(panel({ year: "1999" }))[4], ["/", true, "1999", "0"]);
  const state = (markup: string) => [
    markup.includes('<details class="filters" open>'),
    [...markup.matchAll(/<option value="(\w+)" selected>/g)].map(([, value]) => value),
    [...markup.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)].map(
      ([, name, value]) => `${name}=${value}`,
    ),
    [...markup.matchAll(/<input type="text" id="(\w+)" name="\w+" value="([^"]*)">/g)].map(
      ([, name, value]) => `${name}=${value}`,
    ),
  ];
  assert.equal(state(panel({})), [false, [], [], ["model=", "author=", "year="]]);
  assert.equal(state(panel({ model: "m", method: "sae", year: "2020", sort: "new" })), [
    true,
    ["new"],
    ["method=sae"],
    ["model=m", "author=", "year=2020"],
  ]);
  assert.equal(state(panel({ author: "ada" }, { fixed: "author" })), [false, [], [], ["model=", "year="]]);
  assert.not.match(panel({}, { fixed: "author" }), "<dt>Author</dt>");
});

/** A request over HTTPS, as the website sees it. */
function contextOf(method: string, url: string, headers: Record<string, string> = {}): Context {
  const request = new IncomingMessage(Object.assign(new Socket(), { encrypted: true }));
  Object.assign(request, { method, url });
  for (const [name, value] of Object.entries(headers)) request.headers[name.toLowerCase()] = value;
  return new Koa().createContext(request, new ServerResponse(request)) as Context;
}

test("pages that everybody may read: asked for without a cookie, by reading", () => {
  const open = (method: string, path: string, who: Who = null, headers = {}) =>
    isPublic({ ctx: contextOf(method, path, headers), session: sessionOf(who) } as unknown as Visit);
  for (const path of [
    "/",
    "/top",
    "/reproduced?x=1",
    "/docs",
    "/robots.txt",
    "/sitemap-1.xml",
    "/feed.atom",
    "/studies/x",
    "/authors/x",
  ]) {
    assert.equal([open("GET", path), open("HEAD", path)], [true, true], path);
    assert.equal(
      [open("POST", path), open("GET", path, reader), open("GET", path, null, { Cookie: "" })],
      [false, false, false],
      path,
    );
  }
  for (const path of [
    "/topics",
    "/drafts",
    "/account",
    "/sign-in",
    "/comments/x",
    "/notifications/feed/x.atom",
  ])
    assert.not.ok(open("GET", path), path);
});

test("a public page is made once while nothing changes, and kept unless it is large", async () => {
  const service = { store, pages: new Kept(5) } as unknown as Service;
  let made = 0;
  const ask = async (body: string | Buffer, path = "/docs?a=1", status = 200, headers = {}) => {
    const ctx = contextOf("GET", path, headers);
    await answerPublic({ ctx, service } as unknown as Visit, async () => {
      made += 1;
      ctx.status = status;
      ctx.set({ "Content-Type": "text/x-own", "X-Study-Version": "7", "X-Other": "y" });
      ctx.body = body;
    });
    return ctx;
  };
  const first = await ask("one");
  const second = await ask("two");
  assert.equal([String(first.body), String(second.body), made], ["one", "one", 1]);
  assert.equal(
    [
      second.status,
      second.response.get("Content-Type"),
      second.response.get("X-Study-Version"),
      second.response.get("X-Other"),
    ],
    [200, "text/x-own", "7", undefined],
  );
  assert.is(second.response.get("Cache-Control"), "no-cache");
  assert.match(String(second.response.get("Vary")), "Cookie");
  assert.is(String((await ask("other", "/docs?a=2")).body), "other");
  assert.is(made, 2);
  await bumpGeneration(store.db);
  assert.is(String((await ask("new")).body), "new");
  const etag = (await ask("new")).response.get("ETag");
  assert.is((await ask("new", "/docs?a=1", 200, { "If-None-Match": etag })).status, 304);
  // What is gone is told with its status, and has no name by which it could be known.
  const gone = await ask("gone", "/studies/x", 410);
  assert.equal([gone.status, String(gone.body), gone.response.get("ETag")], [410, "gone", undefined]);
  // Bytes that cannot be made smaller, and more of them than are kept.
  made = 0;
  const noise = (length: number) => randomBytes(length);
  const large = noise(130_000);
  await ask(large, "/top");
  assert.equal((await ask(large, "/top")).body, large);
  assert.is(made, 2);
  await ask(noise(120_000), "/reproduced");
  await ask(noise(120_000), "/reproduced");
  assert.is(made, 3);
});

test("what goes wrong on a page is told by its kind, and only real faults are written down", async () => {
  const log: string[] = [];
  const serviceOf = (change: object = {}) =>
    ({
      store,
      origin,
      trustedProxies: null,
      providers: [],
      pages: new Kept(5),
      log: (line: string) => log.push(line),
      ...change,
    }) as unknown as Service;
  const site = makeSite(serviceOf());
  const nowhere = () => assert.unreachable();
  const ask = async (method: string, path: string, by = site) => {
    const ctx = contextOf(method, path);
    await by(ctx as never, nowhere as never);
    return ctx;
  };
  let fault: unknown;
  const path = /^\/fault$/;
  routes.push(["GET", path, () => Promise.reject(fault)], ["POST", path, () => Promise.reject(fault)]);
  const failing = async (error: unknown) => {
    fault = error;
    const ctx = await ask("GET", "/fault");
    const { body } = ctx;
    return [
      ctx.status,
      /<h1>([^<]*)<\/h1>/.exec(String(body))?.[1],
      /<\/h1><p>([^<]*)</.exec(String(body))?.[1],
      ctx.response.get("Retry-After"),
    ];
  };
  const nothing = [404, "Not found", "There is no such page.", undefined];
  assert.equal(await failing(new NotModerator()), nothing);
  const suspended = "This account is suspended or deleted; nothing was done.";
  assert.equal(await failing(new AccountSuspended()), [403, "Not allowed", suspended, undefined]);
  assert.equal(await failing(new SiteError(429, "Slowly.", 7)), [429, "Too often", "Slowly.", "7"]);
  assert.equal(await failing(new SiteError(410, "Gone.")), [410, "No longer here", "Gone.", undefined]);
  assert.equal(await failing(new SiteError(503, "Later.")), [503, "Not just now", "Later.", undefined]);
  const away = await (async () => {
    fault = new NeedsSignIn();
    return ask("GET", "/fault");
  })();
  assert.equal([away.status, away.response.get("Location")], [303, "/sign-in?return=%2Ffault"]);
  assert.equal(log, []);
  const unavailable = [
    503,
    "Not just now",
    "The service cannot answer at the moment; please try again soon.",
    undefined,
  ];
  assert.equal(await failing(Object.assign(new Error("gone"), { code: "ECONNRESET" })), unavailable);
  assert.equal(log, [], "who went away is no fault");
  assert.equal(await failing(new Error("broken")), unavailable);
  assert.is(log.length, 1);
  routes.splice(-2);

  assert.is((await ask("GET", "/nothing")).status, 404);
  const wrong = await ask("DELETE", "/agents");
  assert.equal([wrong.status, wrong.response.get("Allow")], [405, "GET, POST"]);
  assert.match(String(wrong.body), "This address accepts GET, POST only.");
  assert.equal((await ask("POST", "/")).response.get("Allow"), "GET");
  assert.is((await ask("HEAD", "/")).status, 200);
  const gone = await openStore(join(folder, "gone.db"));
  await gone.close();
  assert.is((await ask("GET", "/", makeSite(serviceOf({ store: gone })))).status, 503);
  assert.is(log.length, 2);
  // Only a site of its own name is one for ever by HTTPS.
  const strict = async (of: string) =>
    (await ask("GET", "/favicon.ico", makeSite(serviceOf({ origin: of })))).response.get(
      "Strict-Transport-Security",
    );
  assert.equal(
    [await strict(origin), await strict("https://localhost:8990")],
    ["max-age=31536000", undefined],
  );
});

test.run();
