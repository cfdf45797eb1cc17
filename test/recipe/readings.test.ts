/** What a recipe reads of its steps' results, and how they come in: paths, numbers, placeholders, contrasts, ranges. Nothing runs. */

import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Reading } from "../../src/contracts/recipe.js";
import { figureOf } from "../../src/findings/numbers.js";
import { contrasted } from "../../src/recipe/contrast.js";
import { contrastPage } from "../../src/recipe/contrast-page.js";
import { measure, partsOf } from "../../src/recipe/measure.js";
import { outcomesOf, rangeText } from "../../src/recipe/outcome.js";
import { replaced } from "../../src/recipe/placeholders.js";
import { check, refusal } from "./a-recipe.js";

test("a path's parts: between slashes, quotes keep slashes and blanks together", () => {
  for (const [path, parts] of [
    ["a/b", ["a", "b"]],
    ["a//b/", ["a", "b"]],
    ['a/"b/c d"/e', ["a", "b/c d", "e"]],
    ['x=" a"&y=b', ["x= a&y=b"]],
    ["", []],
  ] as const)
    assert.equal(partsOf(path), [...parts], path);
});

test("what is read at a path, number by number", () => {
  const results = new Map<string, unknown>([
    [
      "s",
      {
        list: [10, 20, 30, 40],
        object: { a: 1, b: 3 },
        none: null,
        rows: [
          { layer: 1, kind: "x=y", value: 5 },
          { layer: 1, kind: "z", value: 7 },
          { layer: 12, kind: "z", value: 9 },
          null,
        ],
        text: "4",
        half: [0.5, 1],
        "=": 8,
        numbers: [0.25, Number.NaN],
      },
    ],
    ["t", { list: [1, 2] }],
  ]);
  const read = (path: string, more: Partial<Reading> = {}) => measure({ step: "s", path, ...more }, results);
  for (const [path, value] of [
    ["list/0", 10],
    ["list/-1", 40],
    ["list/-4", 10],
    ["list/*", 25],
    ["list/1:3", 25],
    ["list/:1", 10],
    ["list/-1:", 40],
    ["list/:", 25],
    ["object/*", 2],
    ["object/b", 3],
    ["rows/layer=1/value", 6],
    ["rows/layer=12/value", 9],
    ["rows/layer=1&kind=z/value", 7],
    ["rows/kind=x=y/value", 5],
    ["rows/0:3/value", 7],
    ["=", 8],
  ] as const)
    assert.is(read(path), value, path);
  assert.equal([read("list/*", { take: "min" }), read("list/*", { take: "max" })], [10, 40]);
  const nothing = (path: string) => `The result of step s has no value at ${path}.`;
  for (const path of [
    "list/4",
    "list/-5",
    "list/x",
    "list/1.5",
    "none/x",
    "text/0",
    "rows/layer=2/value",
    "object/c",
    "list/2:1",
  ]) {
    assert.is(
      refusal(() => read(path)),
      nothing(path),
    );
    assert.is(read(path, { otherwise: -3 }), -3, path);
  }
  assert.is(read("text", { contains: "4" }), 1);
  assert.equal(
    [read("text", { contains: ["x", "4"] }), read("text", { contains: "x", otherwise: 9 })],
    [1, 0],
  );
  assert.is(
    refusal(() => read("text")),
    'The result of step s has "4" at text, which is not a number.',
  );
  assert.is(
    refusal(() => read("list/0", { contains: "1" })),
    "The result of step s has 10 at list/0, which is not a number.",
  );
  assert.is(
    refusal(() => read("numbers/*")),
    "The result of step s has null at numbers/*, which is not a number.",
  );
  assert.is(
    refusal(() => read("none")),
    "The result of step s has null at none, which is not a number.",
  );
  // -ln 0.5 and -ln 1: ln 2 and 0, and their mean.
  assert.ok(Math.abs(read("half/*", { surprise: true }) - Math.LN2 / 2) < 1e-15);
  assert.ok(Math.abs(read("half/*", { surprise: true, take: "max" }) - Math.LN2) < 1e-15);
  assert.is(read("half/9", { surprise: true, otherwise: 2 }), 2, "what stands for nothing is as it is said");
  const at = (step: string, path: string) => ({ step, path });
  assert.is(
    measure({ difference: [at("s", "list/0"), { mean: [at("t", "list/0"), at("s", "list/1")] }] }, results),
    10 - 10.5,
  );
  assert.is(
    refusal(() => measure({ same: [at("s", "list/*"), at("t", "list/*")] }, results)),
    "Steps s and t must have the same number of values to compare, got 4 at list/* and 2 at list/*.",
  );
  assert.is(measure({ same: [at("s", "list/0:2"), at("s", "list/0:2")] }, results), 1);
  assert.is(measure({ same: [at("s", "rows/0:2/layer"), at("t", "list/*")] }, results), 0.5);
});

test("a placeholder is an object of that one field with a text, wherever it stands", () => {
  const of = (value: unknown) => replaced(value, "texts", (name) => [name]);
  assert.equal(of({ texts: "a" }), ["a"]);
  assert.equal(of([{ x: { texts: "a" } }, "texts", null, 3]), [{ x: ["a"] }, "texts", null, 3]);
  for (const other of [{ texts: "a", more: 1 }, { texts: 3 }, { text: "a" }, { texts: null }, {}])
    assert.equal(of(other), other);
  assert.equal(of({ a: undefined, b: { texts: "c" } }), { b: ["c"] });
  assert.is(of(undefined), undefined);
});

test("figures beside their ranges: the model's own, both ends within", () => {
  const recipe = check((r) =>
    Object.assign(r.models[1]!, { expected: { a: { low: 3, high: 4, source: "own" } } }),
  );
  const seen = (one: number, two: number, model = 0) =>
    outcomesOf(
      recipe,
      recipe.models[model]!,
      new Map([
        ["one", { x: one }],
        ["two", { x: two }],
      ]),
    ).map(({ low, high, source, seen: value, held }) => [low, high, source, value, held]);
  assert.equal(seen(1, 2), [
    [1, undefined, "here", 1, true],
    [undefined, 2, "there", 2, true],
  ]);
  assert.equal(
    seen(0.999, 2.001).map((row) => row[4]),
    [false, false],
  );
  for (const [value, held] of [
    [2.99, false],
    [3, true],
    [4, true],
    [4.01, false],
  ] as const)
    assert.equal(seen(value, 0, 1)[0], [3, 4, "own", value, held]);
  assert.equal(
    [
      rangeText({ low: 1, high: undefined }),
      rangeText({ low: undefined, high: 0 }),
      rangeText({ low: 0, high: 2 }),
    ],
    ["at least 1", "at most 0", "0 to 2"],
  );
  assert.equal([0.123456, 12345.6, 1, 0, -0.00012346].map(figureOf), [
    "0.1235",
    "12350",
    "1",
    "0",
    "-0.0001235",
  ]);
});

test("contrasts: groups from either end, tokens by place, ties by number", () => {
  const text = (...tops: [number, number][][]) => ({
    tokens: tops.map(String),
    token_ids: tops.map((_, at) => at),
    top: tops.map((top) => top.map(([feature, activation]) => ({ feature, activation }))),
  });
  const texts = [
    text(
      [[5, 9]],
      [
        [1, 2],
        [2, 2],
      ],
    ),
    text(
      [[5, 1]],
      [
        [1, 2],
        [2, 2],
      ],
    ),
    text([[6, 4]], [[3, 1]]),
  ];
  const found = (change: object) =>
    contrasted({ step: "s", texts: ":2", against: "-1:", ...change }, { texts } as never, 3);
  assert.equal(found({}), {
    feature: 1,
    mean: { texts: 2, against: 0 },
    active: { texts: 1, against: 0 },
    auroc: 1,
  });
  assert.equal(found({ token: 0 }).feature, 5);
  assert.equal(found({ token: 0 }).mean, { texts: 5, against: 0 });
  assert.is(found({ texts: "2:", against: ":2" }).feature, 3);
  assert.equal(found({ token: 0, feature: 6 }), {
    feature: 6,
    mean: { texts: 0, against: 4 },
    active: { texts: 0, against: 1 },
    auroc: 0,
  });
  assert.is(
    refusal(() => found({ texts: "1:1" })),
    "Step s has 3 texts; the range 1:1 selects none.",
  );
  assert.is(
    refusal(() => contrasted({ step: "s", texts: ":2", against: "2:" }, { texts } as never, 2)),
    "Step s lists 2 features per token, and all are active: a contrast needs a larger top.",
  );
  assert.is(
    refusal(() => found({ token: 2 })),
    "A text of step s has 2 tokens; there is no token 2.",
  );
  assert.is(
    refusal(() => found({ texts: ":1", against: "1:2" })),
    "No feature is more active in the first group of texts than in the second.",
  );
  const page = (change: object) =>
    contrastPage("pick <it>", { step: "s", texts: ":2", against: "2:", ...change }, found({}));
  assert.match(page({}), "<h1>pick &lt;it&gt;</h1>");
  assert.match(
    page({}),
    "Feature 1, picked because its mean activation in the first group exceeds that in the second by the most. AUROC 1.",
  );
  assert.match(page({ feature: 1 }), "Feature 1, chosen by an earlier step or the recipe. AUROC 1.");
  assert.match(page({}), "<th>texts :2 of s</th><th>texts 2:</th>");
  assert.match(page({}), /<td>Mean activation<\/td><td class="number">2<\/td>\s*<td class="number">0<\/td>/);
  assert.match(
    page({}),
    /<td>Share of texts with the feature active<\/td><td class="number">1<\/td>\s*<td class="number">0<\/td>/,
  );
});

test.run();
