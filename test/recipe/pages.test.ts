/** A reproduction's page and its bars. Nothing runs. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { StudyPackage } from "../../src/contracts/studies/index.js";
import type { Outcome } from "../../src/recipe/outcome.js";
import { reproductionPage } from "../../src/recipe/page.js";
import { axisEnds, rangeBar } from "../../src/recipe/range-bar.js";
import { repetitionPage } from "../../src/recipe/repetition-page.js";
import { reproductionWords } from "../../src/recipe/words.js";
import { usualTolerances } from "../../src/study/index.js";
import { check } from "./a-recipe.js";

const recipe = check();
const outcome = (at: number, seen: number, held: boolean): Outcome => {
  const expected = recipe.expected[at]!;
  return { expected, low: expected.low, high: expected.high, source: expected.source, seen, held };
};
const outcomes = [outcome(0, 1.23456, true), outcome(1, 7, false)];

test("a reproduction's page has the verdict, the claim and its sources, and no script", () => {
  const steps = [{ what: "the first <step>", file: "a b.html" }];
  const page = reproductionPage(recipe, "demo & more", outcomes, steps);
  assert.match(
    page,
    "content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">",
  );
  assert.not.match(page, /<script/);
  assert.match(page, "<title>A &lt;title&gt;</title>");
  assert.match(page, '<p class="verdict failed">1 of 2 values are outside their expected ranges.</p>');
  assert.match(
    reproductionPage(recipe, "demo", [outcome(0, 1, true)], []),
    '<p class="verdict">All values are within their expected ranges.</p>',
  );
  assert.match(page, "<p>A claim.</p>");
  assert.match(page, "<strong>Differences from the paper</strong><p>Everything.</p>");
  for (const [name, text] of [
    ["Paper", "A paper, https://example.org"],
    ["Model", "demo &amp; more"],
    ["Data", "One sentence. (MIT)"],
  ])
    assert.match(page, `<dt>${name}</dt><dd>${text}</dd>`);
  assert.match(page, '<li><a href="a%20b.html">the first &lt;step&gt;</a></li>');
});

test("each value has its range, its source and a bar; controls are a section", () => {
  const page = reproductionPage(recipe, "demo", outcomes, []);
  const [, figures = "", controls = ""] = /id="figures"(.*)id="controls"(.*)/s.exec(page) ?? [];
  assert.match(figures, "<p>figure a</p>");
  assert.match(figures, "<strong>1.235</strong> measured, at least 1 expected: in range</p>");
  assert.match(figures, "Source of the range: here");
  assert.match(figures, 'aria-label="expected at least 1, measured 1.235, on an axis from ');
  assert.not.match(figures, "figure b");
  assert.match(controls, '<li class="failed"><div><p>figure b</p>');
  assert.match(controls, "<strong>7</strong> measured, at most 2 expected: <strong>out of range</strong>");
  assert.not.match(reproductionPage(recipe, "demo", [outcome(0, 1, true)], []), 'id="controls"');
});

test("axes of shares go from 0 to 1, others have room around range and value", () => {
  assert.equal(axisEnds({ low: 0.9, high: undefined, seen: 0.95 }), [0, 1]);
  assert.equal(axisEnds({ low: undefined, high: 0.1, seen: -0.02 }), [-1, 1]);
  assert.equal(axisEnds({ low: 10, high: 20, seen: 15 }), [7.5, 22.5]);
  assert.equal(axisEnds({ low: 1, high: undefined, seen: 5 }), [0, 6]);
  assert.equal(axisEnds({ low: -30, high: undefined, seen: -30 }), [-37.5, -22.5]);
});

test("a bar's band spans the range, and the mark is where the value is", () => {
  // The axis from 0 to 1 is 300 wide and begins at 10.
  const inside = rangeBar({ low: 0.5, high: 0.75, seen: 0.6, held: true }).markup;
  assert.match(inside, '<rect class="band" x="160" y="8" width="75"');
  assert.match(inside, '<circle class="mark" cx="190"');
  const below = rangeBar({ low: 0.5, high: undefined, seen: 0.1, held: false }).markup;
  assert.match(below, '<rect class="band" x="160" y="8" width="150"');
  assert.match(below, '<path class="mark" d="M40,6');
  const least = rangeBar({ low: undefined, high: 0, seen: 0, held: true }).markup;
  assert.match(least, 'width="2"', "a range without extent can be seen");
});

test("a repeated study's page shows per figure how many values match", () => {
  const page = repetitionPage(
    {
      ...{ study: "id", version: 2, package_sha256: "", address: "https://example.org/studies/id/v/2" },
      ...{
        content: { title: "Where\nit <is>" } as StudyPackage,
        outcome: "partly",
        tolerances: usualTolerances,
      },
      compared: [
        { title: "Lens", values: 40, within: 39, missing: 0, held: true, worst: null },
        {
          ...{ title: "Norms", values: 10, within: 4, missing: 3, held: false },
          worst: { what: "7, 0", before: 1.5, after: 2.25 },
        },
      ],
      left: ["extract writes files."],
    },
    ["demo"],
    [{ what: "inspect", file: "request-1.html" }],
  );
  assert.match(page, "<title>Where it &lt;is&gt;</title>");
  assert.match(
    page,
    '<p class="verdict failed">Some figures match the original within the tolerances, and some do not.</p>',
  );
  assert.match(
    page,
    "<strong>0.975</strong> of the values within tolerance, at least 0.95 expected: matches</p>",
  );
  assert.match(
    page,
    "<strong>0.4</strong> of the values within tolerance, at least 0.95 expected: <strong>differs</strong>",
  );
  assert.match(page, "3 values in only one of the results");
  assert.match(page, "Largest difference: 7, 0, published 1.5, measured 2.25");
  assert.match(page, "within the tolerance: 0.02 for probabilities and shares, 5 % for everything else.");
  assert.match(page, "<li>extract writes files.</li>");
  assert.match(page, '<li><a href="request-1.html">inspect</a></li>');
});

test("a study's words name each value with its range", () => {
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
