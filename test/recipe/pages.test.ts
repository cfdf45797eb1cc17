/** A reproduction's page. Nothing runs. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Outcome } from "../../src/recipe/outcome.js";
import { reproductionPage } from "../../src/recipe/page.js";
import { reproductionWords } from "../../src/recipe/words.js";
import { check } from "./a-recipe.js";

test("pages contain no script and load nothing; failures come first", () => {
  const recipe = check();
  const outcome = (at: number, seen: number, held: boolean): Outcome => {
    const expected = recipe.expected[at]!;
    return { expected, low: expected.low, high: expected.high, source: expected.source, seen, held };
  };
  const outcomes = [outcome(0, 1.23456, true), outcome(1, 7, false)];
  const steps = [{ what: "the first <step>", file: "a b.html" }];
  const page = reproductionPage(recipe, "demo & more", outcomes, steps);
  assert.match(
    page,
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
  );
  assert.match(page, "<title>A &lt;title&gt;</title>");
  assert.match(page, "<p>1 of 2 values are outside their expected ranges.</p>");
  assert.match(
    reproductionPage(recipe, "demo", [outcome(0, 1, true)], []),
    "<p>All values are within their expected ranges.</p>",
  );
  for (const [name, text] of [
    ["Paper", "A paper, https://example.org"],
    ["Claim", "A claim."],
    ["Differences from the paper", "Everything."],
    ["Model", "demo &amp; more"],
    ["Data", "One sentence. (MIT)"],
  ])
    assert.match(page, `<dt>${name}</dt><dd>${text}</dd>`);
  const rows = [...page.matchAll(/<tr>\n(.*?)<\/tr>/gs)].map(([, row = ""]) =>
    [...row.matchAll(/<td[^>]*>(.*?)<\/td>/g)].map(([, cell]) => cell),
  );
  assert.equal(rows, [
    ["figure a", "at least 1", "1.235", "yes", "here"],
    ["Control: figure b", "at most 2", "7", '<span class="failed">no</span>', "there"],
  ]);
  assert.match(page, '<li><a href="a%20b.html">the first &lt;step&gt;</a></li>');

  const words = reproductionWords("capital", recipe, outcomes, "The method.");
  const block = {
    recipe: "capital",
    paper: recipe.paper,
    expected: [
      { id: "a", low: 1, seen: 1.23456, held: true },
      { id: "b", high: 2, seen: 7, held: false },
    ],
  };
  assert.equal(
    { ...words, method: words.method.slice(0, words.method.indexOf("\n")) },
    {
      ...{ title: "A <title>", question: "Does this hold here? A claim." },
      hypothesis: "- figure a: at least 1 (here)\n- figure b: at most 2 (there)",
      method: "The method.",
      finding:
        "1 of 2 values were within their expected ranges.\n- in range: figure a: 1.235\n- out of range: figure b: 7",
      ...{ limitations: "Everything.", license: "CC-BY-4.0", omissions: [] },
    },
  );
  assert.equal(JSON.parse(/```reproduction\n(.*)\n```$/s.exec(words.method)?.[1] ?? ""), block);
});

test.run();
