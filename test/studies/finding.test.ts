/** Navigation: counts next to facets, author pages, abstracts and contents, quotations and permalinks. */
import { randomUUID } from "node:crypto";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { StudyPackage } from "../../src/contracts/studies/index.js";
import { Outline } from "../../src/studies/site/outline.js";
import { Pace } from "../../src/studies/site/pace.js";
import { abstractView, contentsView, firstParagraph, isLong } from "../../src/studies/site/pages/abstract.js";
import { packageView } from "../../src/studies/site/pages/package-view.js";
import { revealed } from "../../src/studies/site/reveal.js";
import type { Filters } from "../../src/studies/store/filters.js";
import { reinstate, remove } from "../../src/studies/store/moderation.js";
import { countFacets } from "../../src/studies/store/studies.js";
import { withoutMarkup } from "../../src/studies/text/plain.js";
import { quotation } from "../../src/studies/text/quote.js";
import { inspectJob, patchJob } from "../report/jobs.js";
import { startDatabases } from "./support/databases.js";
import { unescaped } from "./support/markup.js";
import { samplePackage } from "./support/packages.js";
import { peopleOf, reproduction } from "./support/people.js";
import { resultBlock } from "./support/results.js";
import { startService } from "./support/service.js";

const databases = await startDatabases();

interface Made {
  title: string;
  author: string;
  model: string;
  license: "CC-BY-4.0" | "CC0-1.0";
  methods: string[];
  words: string;
  reproduced: boolean;
  listed: boolean;
}

/** The same counts, computed the slow way: each study against each filter combined with all others. */
function expected(studies: readonly Made[], word: string, filters: Filters, year: string) {
  const counted = (own: keyof Filters, values: (one: Made) => string[]) => {
    const counts = new Map<string, number>();
    for (const one of studies) {
      const others: Filters = { ...filters };
      delete others[own];
      const fits =
        one.listed &&
        one.words.includes(word) &&
        (others.model ?? one.model) === one.model &&
        (others.license ?? one.license) === one.license &&
        (others.author ?? one.author) === one.author &&
        (others.method === undefined || one.methods.includes(others.method)) &&
        (others.year === undefined || String(others.year) === year) &&
        (!others.reproduced || one.reproduced);
      if (fits) for (const value of values(one)) counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    return [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  };
  return {
    model: counted("model", (one) => [one.model]),
    license: counted("license", (one) => [one.license]),
    author: counted("author", (one) => [one.author]),
    method: counted("method", (one) => one.methods),
    year: counted("year", () => [year]),
    reproduced: counted("reproduced", (one) => (one.reproduced ? ["yes"] : [])),
  };
}

for (const database of databases.all) {
  test(`${database.name}: facet counts follow studies as they are published and removed`, async () => {
    const service = await startService(database.fresh());
    const people = { ada: await service.account("Ada"), ben: await service.account("Ben") };
    const { store, see, publish } = peopleOf(service);
    const made: Made[] = [];
    const ids: string[] = [];
    const add = async (one: Omit<Made, "reproduced" | "listed">, finding = "") => {
      const blocks = one.methods.map((name) => resultBlock(name === "inspect" ? inspectJob() : patchJob()));
      const { id, sha256 } = await publish(people[one.author as "ada"], {
        title: one.title,
        method: one.words,
        license: one.license,
        model: { name: one.model, runtime: "x" },
        finding: [...blocks, finding].join("\n\n"),
      });
      made.push({ ...one, reproduced: false, listed: true });
      ids.push(id);
      return { id, sha256 };
    };
    for (let at = 0; at < 7; at += 1) {
      await add({
        title: `Study ${at}`,
        author: at % 3 === 0 ? "ben" : "ada",
        model: `model ${at % 3}`,
        license: at % 2 === 0 ? "CC-BY-4.0" : "CC0-1.0",
        methods: [[], ["inspect"], ["inspect", "patch_sweep"]][at % 3] as string[],
        words: at % 2 === 0 ? "heron crane" : "heron",
      });
    }
    const year = String(new Date().getUTCFullYear());
    const agrees = async (when: string) => {
      for (const [q, filters] of [
        ["", {}],
        ["heron", {}],
        ["crane", { model: "model 1" }],
        ["", { license: "CC0-1.0", author: "ada" }],
        ["", { method: "inspect", license: "CC-BY-4.0", model: "model 2" }],
        ["heron", { author: "nobody" }],
        ["", { reproduced: true, year: Number(year) }],
        ["", { year: 1999 }],
        ["emu", {}],
      ] as [string, Filters][]) {
        const facets = await countFacets(store, q, filters);
        const pairs = (list: { value: string; count: number }[]) =>
          list
            .map(({ value, count }) => [value, count] as const)
            .sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
        const seen = {
          model: pairs(facets.model),
          license: pairs(facets.license),
          author: pairs(facets.author),
          method: pairs(facets.method),
          year: pairs(facets.year),
          reproduced: pairs(facets.reproduced),
        };
        assert.equal(seen, expected(made, q, filters, year), `${when}: ${q} ${JSON.stringify(filters)}`);
      }
    };
    await agrees("first");
    const whole = (at: number) => ({ studyId: ids[at] as string, version: null });
    await remove(store, "operator", whole(1), "copied");
    made[1]!.listed = false;
    await agrees("one taken down");
    const { id, sha256 } = await add({
      title: "Late",
      author: "ben",
      model: "model 9",
      license: "CC0-1.0",
      methods: ["patch_sweep"],
      words: "heron",
    });
    await add(
      { title: "Again", author: "ada", model: "model 9", license: "CC0-1.0", methods: [], words: "crane" },
      reproduction({ study: id, version: 1, package_sha256: sha256, outcome: "held" }),
    );
    made[made.length - 2]!.reproduced = true;
    await agrees("two more");
    await reinstate(store, "operator", whole(1));
    made[1]!.listed = true;
    await agrees("one put back");

    const front = (await see("/?method=inspect&q=heron")).text;
    assert.match(front, /<bdi>model 1<\/bdi> <span class="count">2<\/span>/);
    assert.match(
      front,
      /href="\/\?q=heron" aria-current="true"><bdi>inspect<\/bdi>/,
      "chosen again, it is left",
    );
    assert.match(front, 'href="/?q=heron&amp;method=inspect&amp;license=CC0-1.0"');
    const ada = (await see("/authors/ada?license=CC0-1.0")).text;
    assert.match(ada, "3 studies match. ");
    assert.not.match(ada, /<dt>Author<\/dt>/);
    assert.match(ada, "5 published");
    assert.match((await see("/authors/ada?q=crane")).text, "Of a <mark>crane</mark>".replace("Of a ", ""));
    assert.match((await see("/authors/ada")).text, 'href="/authors/ada?license=CC0-1.0"');
    assert.equal(service.log, []);
    await service.close();
  });

  test(`${database.name}: comment permalinks work on any page; entries can be quoted`, async () => {
    const service = await startService(database.fresh());
    const [ada, ben] = [await service.account("Ada"), await service.account("Ben *[x](y)*")];
    const { see, post, publish, comment } = peopleOf(service);
    const entry = {
      id: randomUUID(),
      kind: "result" as const,
      title: "A *title* [x]",
      answer: "One.\n\n```\ntwo",
    };
    const { id } = await publish(ada, { entries: [entry] });
    const first = await comment(id, ben, "First.\n\n> Zeroth <b>.");
    const said: string[] = [];
    for (let at = 0; at < 50; at += 1) said.push(await comment(id, ben, `Comment ${at}`));
    const late = said.at(-1) as string;
    const leads = async (one: string) => {
      const { status, headers } = await see(`/comments/${one}`);
      return `${status} ${headers.location}`;
    };
    assert.is(await leads(first), `303 /studies/${id}#comment-${first}`);
    assert.is(await leads(late), `303 /studies/${id}?comments=50#comment-${late}`);
    // A reply to the first comment pushes the others down; the reply itself is on the first page.
    const answer = await post(`/studies/${id}/comments`, ada, { body: "An answer.", parent: first });
    assert.match(String(answer.headers.location), new RegExp(`^/studies/${id}#comment-`));
    assert.is(await leads(said.at(-2) as string), `303 /studies/${id}?comments=50#comment-${said.at(-2)}`);
    assert.is((await see(`/comments/${randomUUID()}`)).status, 404);
    assert.is((await see("/comments/x")).status, 404);

    const area = (text: string, name: string) =>
      new RegExp(`<textarea id="body-${name}"[^>]*>\\n([^<]*)</textarea>`).exec(text)?.[1] ?? "";
    const origin = service.running.origin;
    const quoting = (await see(`/studies/${id}?quote=comment-${first}`, ada)).text;
    assert.is(
      unescaped(area(quoting, first)),
      `> [Ben &#42;&#91;x&#93;&#40;y&#41;&#42; wrote](${origin}/comments/${first})\n>\n> First.\n>\n> > Zeroth <b>.\n\n`,
    );
    assert.is(area(quoting, "new"), "");
    const page = (await see(`/studies/${id}/v/1?quote=entry-${entry.id.toUpperCase()}`, ada)).text;
    const quoted = unescaped(area(page, "new"));
    assert.match(
      quoted,
      `> [A &#42;title&#42; &#91;x&#93;, version 1](${origin}/studies/${id}/v/1#entry-${entry.id})\n>\n> One.`,
    );
    await post(`/studies/${id}/comments`, ada, { body: `${quoted}I see.` });
    const shown = (await see(`/studies/${id}?comments=50`)).text;
    assert.match(
      shown,
      new RegExp(
        `<blockquote>\\s*<p dir="auto"><a href="${origin}/studies/${id}/v/1#entry-${entry.id}" rel="nofollow noopener ugc">A \\*title\\* \\[x\\], version 1</a>`,
      ),
    );
    assert.match(shown, '<p dir="auto">I see.</p>');
    for (const nothing of [`comment-${randomUUID()}`, `entry-${randomUUID()}`, "comment-x", "draft-1"]) {
      assert.is(area((await see(`/studies/${id}?quote=${nothing}`, ada)).text, "new"), "", nothing);
    }
    assert.not.match(
      (await see(`/studies/${id}?quote=comment-${first}`)).text,
      "textarea",
      "who cannot answer",
    );
    assert.equal(service.log, []);
    await service.close();
  });
}

test("a quotation is cut, marked as cut, and does not grow with its source", () => {
  const source = { name: "N", address: "https://s.example/c" };
  assert.is(quotation("one", source), "> [N](https://s.example/c)\n>\n> one\n\n");
  const long = quotation("x".repeat(5000), source);
  assert.ok(long.length < 900);
  assert.match(long, "\n> …\n\n");
  assert.is(quotation("a\n".repeat(50), source).split("\n").length, 2 + 12 + 1 + 2);
});

async function page(study: StudyPackage) {
  const outline = new Outline();
  const options = { shown: revealed, pace: new Pace(), source: false, outline };
  const readable = (await packageView(study, options)).markup;
  const abstract = (await abstractView(study, options))?.markup ?? "";
  const contents = contentsView(study, "/studies/1", { source: false, outline, reproductions: 0 }).markup;
  return { readable, abstract, contents };
}

test("only long studies start with an abstract, a figure and a table of contents", async () => {
  const id = randomUUID();
  const long = samplePackage({
    question: "# Heading\n\nWhat *is* it?\n\nMore.",
    method: `## Set up\n\n${"We measure. ".repeat(250)}\n\n## Set <b>down</b> $x$\n\nEnd.`,
    finding: `It **is** so.\n\n${resultBlock(inspectJob())}`,
    entries: [
      { id, kind: "result", title: "Result <i>", note: `## Not listed\n\n${resultBlock(patchJob())}` },
    ],
  });
  assert.ok(isLong(long));
  const { readable, abstract, contents } = await page(long);
  assert.match(abstract, "What <em>is</em> it?");
  assert.match(abstract, "It <strong>is</strong> so.");
  assert.not.match(abstract, "More.");
  assert.match(abstract, /<a href="#figure-1">[^<]+<\/a>/);
  assert.match(abstract, "<svg ");
  assert.match(readable, '<figure id="figure-1">');
  assert.match(readable, '<h3 dir="auto" id="method-1">Set up</h3>');
  assert.match(contents, '<a href="#method-2"><bdi>Set &lt;b&gt;down&lt;/b&gt; $x$</bdi></a>');
  assert.match(contents, `<a href="#entry-${id}"><bdi>Result &lt;i&gt;</bdi></a>`);
  assert.not.match(contents, "Not listed");
  for (const [, name = ""] of contents.matchAll(/href="#([^"]+)"/g)) {
    if (["provenance", "discussion"].includes(name)) continue;
    assert.is(readable.split(`id="${name}"`).length, 2, `${name} is there, once`);
  }
  const short = samplePackage({ finding: `Yes.\n\n${resultBlock(inspectJob())}` });
  const other = await page(short);
  assert.is(other.abstract, "");
  assert.not.match(other.contents, "<bdi>");
});

test("excerpts drop Markdown syntax and keep everything else", () => {
  for (const [markdown, words] of [
    ["At **which** block?\n\n1. *One*\n2. `two`", "At which block? 1. One 2. two"],
    ["## Head\n> said [here](https://x.example/a) and ![there](b.png)", "Head said here and there"],
    ["before ## Set up We", "before Set up We"],
    ["a ```python lab.inspect() ``` b", "a lab.inspect() b"],
    [
      "2 * 3 * 4, a*b*c, snake_case_name, $x_1$, 5 > 4, [x]",
      "2 * 3 * 4, a*b*c, snake_case_name, $x_1$, 5 > 4, [x]",
    ],
    ["cut in **the midd", "cut in **the midd"],
  ] as const) {
    assert.is(withoutMarkup(markdown), words);
  }
});

test("the first paragraph is prose", () => {
  assert.is(firstParagraph("```\ncode\n```\n\n- list\n\n| a |\n\nText\nof two."), "Text\nof two.");
  assert.is(firstParagraph("# Only\n\n> quoted"), null);
  assert.is(firstParagraph(""), null);
  const cut = firstParagraph(`${"A sentence here. ".repeat(100)}`) as string;
  assert.ok(cut.length <= 902 && cut.endsWith(" …"), cut.slice(-20));
});

test.after(() => databases.close());
test.run();
