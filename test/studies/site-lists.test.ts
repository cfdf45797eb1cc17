/** Lists of studies: their pages, and what narrows them. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { facetPanel } from "../../src/studies/site/pages/facets.js";
import { pageLinks, pageOf } from "../../src/studies/site/pages/feed.js";
import { visitOf } from "./support/visitors.js";

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

test.run();
