/** What pages show: entries, figures, differences, lists and what narrows them. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { StudyPackage } from "../../src/contracts/studies/index.js";
import { findingsOf } from "../../src/report/index.js";
import { resultFigures } from "../../src/studies/site/figures.js";
import { Outline } from "../../src/studies/site/outline.js";
import { Pace } from "../../src/studies/site/pace.js";
import { differenceView } from "../../src/studies/site/pages/difference.js";
import { facetPanel } from "../../src/studies/site/pages/facets.js";
import { pageLinks, pageOf } from "../../src/studies/site/pages/feed.js";
import { packageView } from "../../src/studies/site/pages/package-view.js";
import { Reveal, revealed } from "../../src/studies/site/reveal.js";
import { inspectJob, patchJob } from "../report/jobs.js";
import { samplePackage } from "./support/packages.js";
import { resultBlock } from "./support/results.js";
import { uuid, visitOf } from "./support/visitors.js";

test("differences show at most 300 entries and 1,500,000 characters of markup", async () => {
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
  assert.is(same.markup, "<p>The content is identical.</p>");
});

test("result figures render twice with data, within a limit; other blocks stay text", async () => {
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
      const more = /(\d+) more rows are in the package download/.exec(figure)?.[1];
      assert.is(more, table.rows.length > most ? String(table.rows.length - most) : undefined, title);
      const pictures = [...figure.matchAll(/<div class="drawing (\w+)">/g)].map(([, name]) => name);
      const none = figure.includes("Too many values to plot here.");
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

test("an entry opens with request and outcome; texts are Markdown, statements are not", async () => {
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
  assert.match(markup, "<li>temperature 0.5</li><li>seed 1</li><li>max tokens 2</li><li>thinking on</li>");
  assert.match(markup, "<li>finish reason: stop</li>");
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

test("facets are links that set a filter, and the active one links back", () => {
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
    ["/?reproduced=yes", false, "yes", "1"],
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

test.run();
