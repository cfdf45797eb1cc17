/** Filtered, sorted lists and facet counts, compared with a slow reference on rows of 2,300 studies. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Filters, Order } from "../../src/studies/store/filters.js";
import { openStore } from "../../src/studies/store/open.js";
import type { Store } from "../../src/studies/store/store.js";
import { countFacets, listStudies } from "../../src/studies/store/studies.js";
import { WordSets } from "../../src/studies/store/word-sets.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-narrowing-"));
let store: Store;
test.after(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const id = (kind: string, at: number) => `${kind}-${String(at).padStart(5, "0")}`;
const methods = [[], ["inspect"], ["compare", "inspect"], ["sae"], ["patch_sweep", "probe", "sae"]];
/** From the last millisecond of 2019, 22 hours apart; some at the very start of a year. */
const begin = Date.UTC(2020, 0) - 1;
const timeOf = (at: number) => (at === 1 ? Date.UTC(2020, 0) : begin + at * 22 * 3_600_000);

interface Made {
  at: number;
  model: string;
  license: "CC-BY-4.0" | "CC0-1.0";
  methods: string[];
  author: string;
  year: number;
  reproduced: boolean;
  upvotes: number;
  comments: number;
  words: string[];
  listed: boolean;
}

const studies = Array.from({ length: 2300 }, (_, at): Made => {
  const lot = (at * 7919 + 13) % 104_729;
  return {
    at,
    model: `model ${(lot % 23) % 17}`,
    license: lot % 3 === 0 ? "CC0-1.0" : "CC-BY-4.0",
    methods: methods[lot % 5] as string[],
    author: id("a", (lot % 31) % 15),
    year: new Date(timeOf(at)).getUTCFullYear(),
    reproduced: at % 41 === 0,
    upvotes: lot % 4,
    comments: (lot >> 3) % 3,
    words: at % 50 === 3 ? ["heron"] : [],
    listed: at % 11 !== 5,
  };
});

const insert = async (table: string, rows: object[]) => {
  for (let at = 0; at < rows.length; at += 500)
    await store.db
      .insertInto(table as "accounts")
      .values(rows.slice(at, at + 500) as never)
      .execute();
};

test.before(async () => {
  store = await openStore(join(folder, "studies.db"));
  const people = Array.from({ length: 16 }, (_, at) => id("a", at));
  const account = { issuer: "test", created_at: 1, recent_drafts: "[]", turn: 0 };
  await insert(
    "accounts",
    people.map((one) => ({ ...account, id: one, subject: one, name: `N ${one}`, handle: `h${one}` })),
  );
  await insert(
    "studies",
    studies.map((one) => ({
      id: id("s", one.at),
      account_id: one.author,
      author: one.author,
      version: 1,
      title: id("s", one.at),
      question: "?",
      model: "{}",
      model_name: one.model,
      license: one.license,
      methods: one.methods.map((name) => ` ${name} `).join(""),
      entry_count: 1,
      created_at: timeOf(one.at),
      published_at: timeOf(one.at),
      upvotes: one.upvotes,
      comment_count: one.comments,
      listed: one.listed ? 1 : 0,
    })),
  );
  // Each reproduced by a published study; reproductions by removed ones do not count.
  const standing = studies.filter(({ listed, reproduced }) => listed && !reproduced);
  const fallen = studies.filter(({ listed }) => !listed);
  const repeats = (from: Made | undefined, of: Made | undefined) => ({
    study_id: id("s", from?.at ?? 0),
    version: 1,
    original_id: id("s", of?.at ?? 0),
    original_version: 1,
    outcome: "held",
  });
  await insert("reproductions", [
    ...studies.filter((one) => one.reproduced).map((one, at) => repeats(standing[at], one)),
    ...fallen.slice(0, 9).map((one, at) => repeats(one, standing[100 + at])),
  ]);
  const found = studies.filter(({ words, listed }) => listed && words.length > 0);
  await store.dialect.search.add(
    store.db,
    // In the title, in question or model, or anywhere.
    found.map(({ at, words }) => ({
      publishedAt: timeOf(at),
      entry: { title: [], head: [], body: [], [["title", "head", "body"][at % 3] as string]: words },
    })),
  );
  const times = { name: "published_at", value: timeOf(3000) };
  await store.db.updateTable("counters").set({ value: times.value }).where("name", "=", times.name).execute();
});

const tests: Record<keyof Filters, (one: Made, value: never) => boolean> = {
  model: (one, value) => one.model === value,
  license: (one, value) => one.license === value,
  method: (one, value) => one.methods.includes(value),
  author: (one, value) => `h${one.author}` === value,
  year: (one, value) => one.year === value,
  reproduced: (one) => one.reproduced,
};
const fits = (one: Made, filters: Filters, but?: keyof Filters) =>
  one.listed &&
  Object.entries(filters).every(
    ([name, value]) => name === but || tests[name as keyof Filters](one, value as never),
  );

/** Counts of each filter's values among what all the other filters leave: the commonest first, twelve at most. */
function expected(filters: Filters, among: readonly Made[] = studies) {
  const counted = (own: keyof Filters, values: (one: Made) => string[]) => {
    const counts = new Map<string, number>();
    for (const one of among)
      if (fits(one, filters, own))
        for (const value of values(one)) counts.set(value, (counts.get(value) ?? 0) + 1);
    return [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).slice(0, 12);
  };
  return {
    model: counted("model", (one) => [one.model]),
    license: counted("license", (one) => [one.license]),
    method: counted("method", (one) => one.methods),
    author: counted("author", (one) => [`h${one.author}`]),
    // The latest first.
    year: counted("year", (one) => [String(one.year)]).sort(([a], [b]) => Number(b) - Number(a)),
    reproduced: counted("reproduced", (one) => (one.reproduced ? ["yes"] : [])),
  };
}

const pairs = (counts: Record<string, { value: string; count: number }[]>) =>
  Object.fromEntries(
    Object.entries(counts).map(([name, list]) => [name, list.map(({ value, count }) => [value, count])]),
  );

const narrowings: Filters[] = [
  {},
  { model: "model 3" },
  { model: "model nobody has" },
  { license: "CC0-1.0" },
  { method: "sae" },
  { author: "ha-00004" },
  { author: "hnobody" },
  { author: "ha-00015" },
  { year: 2019 },
  { year: 2020 },
  { year: 2024 },
  { year: 1999 },
  { reproduced: true },
  { model: "model 1", license: "CC-BY-4.0" },
  { method: "inspect", year: 2021, license: "CC0-1.0" },
  { author: "ha-00002", method: "probe", reproduced: true },
  {
    model: "model 0",
    license: "CC-BY-4.0",
    method: "inspect",
    author: "ha-00000",
    year: 2020,
    reproduced: true,
  },
];

test("each facet value shows how many studies it would leave", async () => {
  for (const filters of narrowings) {
    assert.equal(
      pairs({ ...(await countFacets(store, "", filters)) }),
      expected(filters),
      JSON.stringify(filters),
    );
  }
  assert.is((await countFacets(store, "", {})).author[0]?.name.startsWith("N a-"), true);
  // Matches that are known already come in any order.
  const few = studies.filter(({ at }) => at % 7 === 0);
  const times = few.map(({ at }) => timeOf(at)).reverse();
  const publication = await publicationOf();
  const of = { filters: { license: "CC0-1.0" } as Filters, author: null };
  const { author: _, ...counts } = await store.wordSets.facets(publication, [], times, of);
  const { author: __, ...slow } = expected(of.filters, few);
  assert.equal(pairs(counts), slow);
});

test("lists hold what the filters select, in the requested order, page by page", async () => {
  const by: Record<Order, (a: Made, b: Made) => number> = {
    relevance: (a, b) => (a.words.length && b.words.length ? (a.at % 3) - (b.at % 3) : 0) || b.at - a.at,
    new: (a, b) => b.at - a.at,
    top: (a, b) => b.upvotes - a.upvotes || b.at - a.at,
    discussed: (a, b) => b.comments - a.comments || b.at - a.at,
  };
  for (const q of ["", "heron", "her", "emu"]) {
    for (const order of Object.keys(by) as Order[]) {
      for (const filters of [
        {},
        { license: "CC0-1.0" },
        { model: "model 3", year: 2021 },
        { year: 1999 },
      ] as Filters[]) {
        const matching = studies.filter(
          (one) => fits(one, filters) && (q === "" || one.words.some((word) => word.startsWith(q))),
        );
        const compare = q === "" && order === "relevance" ? by.new : by[order];
        const all = matching.toSorted(compare).map(({ at }) => id("s", at));
        for (const [limit, offset] of [
          [7, 0],
          [20, 10],
          [5, 4000],
        ] as const) {
          const found = await listStudies(store, q, limit, offset, undefined, { filters, order });
          const about = `${q} ${order} ${JSON.stringify(filters)} ${offset}`;
          assert.equal(
            found.rows.map((row) => row.id),
            all.slice(offset, offset + limit),
            about,
          );
          // Without filters, the stored total of all studies is returned.
          const plain =
            q === "" && Object.keys(filters).length === 0 && (order === "relevance" || order === "new");
          if (!plain) assert.equal([found.total, found.exact], [all.length, true], about);
        }
      }
    }
  }
});

const publicationOf = async () => {
  const row = store.db.selectFrom("counters").select("value").where("name", "=", "published_at");
  return (await row.executeTakeFirstOrThrow()).value;
};

test("concurrent identical searches share one reading; outdated results are not cached", async () => {
  const { search } = store.dialect;
  let readings = 0;
  let meanwhile = async () => {};
  const sets = new WordSets(store.db, {
    ...search,
    having: async (...asked) => {
      readings += 1;
      const read = await search.having(...asked);
      await meanwhile();
      return read;
    },
  });
  const all = { limit: 100, offset: 0 };
  const found = studies.filter(({ listed, words }) => listed && words.length > 0).length;
  const heron = async () => (await sets.find(await publicationOf(), ["heron"], all)).total;
  assert.equal(await Promise.all([heron(), heron(), heron()]), [found, found, found]);
  assert.is(readings, 3, "title, head and body");
  assert.ok(sets.has(["heron"]));
  assert.not.ok(sets.has(["her"]));
  // While each one is being read, something is published and another request comes in.
  let within = false;
  meanwhile = async () => {
    if (within) return;
    within = true;
    await store.db
      .updateTable("counters")
      .set((eb) => ({ value: eb("value", "+", 1) }))
      .where("name", "=", "published_at")
      .execute();
    await sets.find(await publicationOf(), [], all);
    within = false;
  };
  readings = 0;
  assert.is((await sets.find(await publicationOf(), ["her"], all)).total, found);
  assert.is(readings % 3, 0, "three times each");
  assert.ok(readings >= 9);
  assert.not.ok(sets.has(["her"]));
  await sets.close();
});

test("counts drop removed studies and include new ones", async () => {
  const change = async (at: number, listed: boolean) => {
    (studies[at] as Made).listed = listed;
    await store.db
      .updateTable("studies")
      .set({ listed: listed ? 1 : 0 })
      .where("id", "=", id("s", at))
      .execute();
  };
  const [gone, back] = [
    studies.findIndex(({ listed }) => listed),
    studies.findLastIndex(({ listed }) => !listed),
  ];
  await change(gone, false);
  await change(back, true);
  await store.db
    .updateTable("counters")
    .set((eb) => ({ value: eb("value", "+", 1) }))
    .where("name", "=", "published_at")
    .execute();
  for (const filters of narrowings.slice(0, 6))
    assert.equal(
      pairs({ ...(await countFacets(store, "", filters)) }),
      expected(filters),
      JSON.stringify(filters),
    );
});

test.run();
