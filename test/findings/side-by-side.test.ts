/** Two runs side by side: which tokens belong together, and differences by hand. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { axesOf, rowsOf } from "../../src/findings/axes.js";
import {
  changeOf,
  pairedTokens,
  type Side,
  sharedLayers,
  sharedQuantities,
  sideBySideSummary,
  sideOfInspection,
} from "../../src/findings/side-by-side.js";
import { sideFigures } from "../../src/findings/side-figures.js";
import { inspectJob } from "../report/jobs.js";

const candidate = (token: string, probability: number) => ({ token_id: token.length, token, probability });

/** Two layers and three tokens; the lens of the deeper layer is given. */
const side = (name: string, norms: number[], top: [string, number][], more: Partial<Side> = {}): Side => ({
  ...{ name, tokens: ["A", " b", " c"], depth: 2, next: [candidate(...(top[2] as [string, number]))] },
  layers: [
    { layer: 0, norms: [1, 1, 1], top: top.map(() => [candidate("x", 0.5)]) },
    { layer: 1, norms, top: top.map(([token, share]) => [candidate(token, share), candidate("z", 0.1)]) },
  ],
  ...more,
});
const one = side(
  "one",
  [2, 4, 8],
  [
    ["p", 0.5],
    ["q", 0.25],
    ["r", 0.75],
  ],
);
const other = side(
  "other",
  [2, 5, 4],
  [
    ["p", 0.25],
    ["q", 0.5],
    ["s", 0.5],
  ],
);

test("texts with the same number of tokens are paired in order", () => {
  assert.equal(pairedTokens(["a", "b", "c"], ["c", "b", "a"]), [
    [0, 0],
    [1, 1],
    [2, 2],
  ]);
  assert.equal(pairedTokens([], []), []);
});

test("texts of different lengths are paired at shared tokens and equal stretches between", () => {
  const pairs = pairedTokens(["The", " capital", " of", " France", " is"], ["The", " river", " of", " is"]);
  assert.equal(pairs, [
    [0, 0],
    [1, 1],
    [2, 2],
    [4, 3],
  ]);
  assert.equal(pairedTokens(["a", "b"], ["c"]), []);
  // A stretch at the end.
  assert.equal(pairedTokens(["x", "a", "b"], ["a", "c"]), [
    [1, 0],
    [2, 1],
  ]);
});

test("changes of norms are shares, those of probabilities are differences", () => {
  const [, both] = sharedLayers(one, other);
  const change = (quantity: "norm" | "lens", at: number) =>
    changeOf(quantity, both as NonNullable<typeof both>, [at, at]);
  assert.equal(
    [0, 1, 2].map((at) => change("norm", at)),
    [{ value: 0 }, { value: 0.25 }, { value: -0.5 }],
  );
  assert.equal(change("lens", 0), { value: -0.25 });
  // The second run lists s and z, not r: r has at most the 0.1 of z.
  assert.equal(change("lens", 2)?.atLeast, true);
  assert.ok(Math.abs((change("lens", 2)?.value as number) - (0.1 - 0.75)) < 1e-12);
  // Unknown where one of the two was not read.
  const blank = { layer: 1, norms: [null, 1, 1], top: [[], [], []] };
  const halves = [both?.[0], blank] as Parameters<typeof changeOf>[1];
  assert.equal([changeOf("norm", halves, [0, 0]), changeOf("lens", halves, [0, 0])], [undefined, undefined]);
});

test("models with different numbers of layers have no differences, and the reason is given", () => {
  const deep = { ...other, depth: 3 };
  assert.equal(sharedLayers(one, deep), []);
  const { difference, missing } = sideFigures(one, deep, "norm");
  assert.is(difference, undefined);
  assert.match(missing as string, /the models have 2 and 3 layers/);
  assert.match(
    sideFigures(one, { ...other, tokens: ["n"] }, "norm").missing as string,
    /no tokens in common/,
  );
});

test("both maps have one scale, whichever has the extreme", () => {
  const { maps } = sideFigures(one, other, "norm");
  const axes = maps.map((figure) => {
    assert.is(figure.chart.kind, "tokens");
    return axesOf(figure.chart as Extract<typeof figure.chart, { kind: "tokens" }>, rowsOf(figure)).shades
      .value;
  });
  assert.equal(axes[0], axes[1]);
  assert.equal(axes[0]?.domain, [1, 8]);
});

test("the map of differences has one cell per shared layer and pair", () => {
  const { difference } = sideFigures(one, { ...other, tokens: ["A", " d", " c"] }, "norm");
  assert.is(difference?.chart.kind, "sites");
  const { chart, rows, columns } = difference as NonNullable<typeof difference>;
  assert.equal("columns" in chart && chart.columns, [
    { above: "A", below: "" },
    { above: "·b", below: "·d" },
    { above: "·c", below: "" },
  ]);
  const [layer, column, change] = ["layer", "column", "change"].map((name) =>
    columns.findIndex((found) => found.name === name),
  ) as [number, number, number];
  assert.equal(
    rows.map((row) => [row[layer], row[column], row[change]]),
    [
      ...[
        [0, 0, 0],
        [0, 1, 0],
        [0, 2, 0],
      ],
      ...[
        [1, 0, 0],
        [1, 1, 0.25],
        [1, 2, -0.5],
      ],
    ],
  );
  assert.equal(difference?.table.rows[1], ["·b and ·d", "0.0 %", "+25.0 %"]);
});

test("the summary names the next tokens, the layers that part and the largest change", () => {
  assert.equal(sideBySideSummary(one, other), [
    "one continues with “r” (75.0 %), other with “s” (50.0 %).",
    "After the last token, the lens reads different top tokens at layer 1.",
    "The norms differ in 2 of 6 cells, by a median of 37.5 %; the largest change is -50.0 %, at layer 1, “·c”.",
  ]);
  assert.equal(sideBySideSummary(one, one), [
    "Both continue with “r” (75.0 % and 75.0 %).",
    "After the last token, the lens reads the same top token at every layer measured.",
    "All norms are the same.",
  ]);
});

test("two answers are compared at the prompt's last token and by their words", () => {
  const [first, second] = ["Paris is it", "Paris was it"].map((answer, at) => ({
    ...([one, other][at] as Side),
    ...{ prompt: 1, answer, next: [] },
  })) as Side[] as [Side, Side];
  assert.equal(sideBySideSummary(first, second).slice(0, 2), [
    "1 of 3 words of the second answer is not in the first.",
    "After the prompt, the lens reads the same top token at every layer measured.",
  ]);
  assert.is(sideBySideSummary(first, first)[0], "The two answers are identical.");
});

test("an inspection becomes a side with the tracked token only where it was tracked", () => {
  const { result } = inspectJob() as { result: Parameters<typeof sideOfInspection>[1] };
  const plain = sideOfInspection("plain", result);
  assert.equal([plain.tracked, plain.depth, plain.layers.map(({ layer }) => layer)], [undefined, 4, [0, 3]]);
  assert.equal(plain.layers[1]?.norms, [10, 20, 30, 40, 50]);
  const target = result.tokens.map((_, at) => ({ probability: at / 10, rank: 1 }));
  const layers = result.layers.map((layer) => ({ ...layer, target }));
  const tracked = sideOfInspection("tracked", { ...result, layers, target_token: " is" });
  assert.equal([tracked.tracked, tracked.layers[0]?.tracked], [" is", [0, 0.1, 0.2, 0.3, 0.4]]);
  assert.equal(sharedQuantities(plain, tracked), ["lens", "norm"]);
  assert.equal(sharedQuantities(tracked, tracked), ["lens", "norm", "tracked"]);
});

test.run();
