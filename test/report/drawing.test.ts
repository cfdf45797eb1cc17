/** Where marks of pictures without script stand, at the edges of what fits: pixels by hand. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Chart, Figure } from "../../src/findings/figure.js";
import { drawFigure } from "../../src/report/drawing/index.js";

function draw(chart: Chart, columns: string[], rows: (string | number | null)[][], width: number): string[] {
  const figure: Figure = {
    ...{ id: "f", title: "F", description: "", details: [], table: { head: [], rows: [] } },
    columns: columns.map((name) => ({ name, label: name })),
    ...{ chart, rows },
  };
  return drawFigure(figure, width).map(({ markup }) => markup);
}

/** The texts of a class. */
const texts = (markup: string, kind: string) =>
  [...markup.matchAll(/<text [^>]*class="([^"]*)"[^>]*>([^<]*)<\/text>/g)].flatMap(([, one, text]) =>
    one === kind ? [text] : [],
  );
const boxes = (markup: string) =>
  [
    ...markup.matchAll(/<rect x="([\d.-]+)" y="[\d.-]+" width="([\d.-]+)" height="[\d.-]+" class="([^"]*)"/g),
  ].map(([, x, width, kind]) => [Number(x), Number(width), kind]);
const tokens = (more: Partial<Extract<Chart, { kind: "tokens" }>> = {}): Chart => ({
  ...{ kind: "tokens", tokens: ["a", "b", "c", "d", "e"], value: "v", label: "t", legend: "L" },
  scale: "probability",
  ...more,
});

test("bars of nothing but zeros have an axis, and no length", () => {
  const chart: Chart = { kind: "bars", label: "n", value: "v", axis: "amount" };
  const [picture = ""] = draw(
    chart,
    ["n", "v"],
    [
      ["a", 0],
      ["b", 0],
    ],
    200,
  );
  // Names take a column of 7 pixels and 12 next to it; 54 are for the numbers.
  assert.match(picture, /<path d="M19,60L146,60" class="axis"\/>/);
  assert.equal(boxes(picture), [
    [19, 0, "f0"],
    [19, 0, "f0"],
  ]);
  assert.equal(texts(picture, "ink"), ["a", "0", "b", "0"]);
  const [below = ""] = draw(
    chart,
    ["n", "v"],
    [
      ["a", -1],
      ["b", 0.0004],
    ],
    200,
  );
  assert.equal(texts(below, "ink"), ["a", "-1", "b", "&lt; 0.001"]);
  const [[left, wide] = []] = boxes(below) as [number, number][];
  assert.equal([left, wide], [19, 126.9]);
});

const lines = (more: Partial<Extract<Chart, { kind: "lines" }>> = {}): Chart => ({
  ...{ kind: "lines", x: "x", y: "y", series: "s", xAxis: "x", yAxis: "y", dots: true },
  ...more,
});

test("names of series continue on the next line where space runs out", () => {
  // 28 pixels and 7 a letter, with 14 between: 28 + 7 * 4 = 56, and 56 + 14 + 56 = 126.
  const rows = [
    [0, 0, "aaaa"],
    [0, 1, "bbbb"],
  ];
  const at = (width: number) => {
    const [legend = ""] = draw(lines(), ["x", "y", "s"], rows, width);
    return [...legend.matchAll(/<text x="(\d+)" y="(\d+)"/g)].map(([, x, y]) => [Number(x), Number(y)]);
  };
  assert.equal(at(126), [
    [24, 14],
    [94, 14],
  ]);
  assert.equal(at(125), [
    [24, 14],
    [24, 34],
  ]);
});

test("a log axis handles small and lone numbers; zero makes it linear", () => {
  const ticksOf = (values: number[]) => {
    const rows = values.map((value, at) => [at, value, "s"]);
    const [picture = ""] = draw(lines({ logarithmic: true }), ["x", "y", "s"], rows, 400);
    return [...picture.matchAll(/text-anchor="end">([\d.e-]+)<\/text>/g)].map(([, text]) => text);
  };
  assert.equal(ticksOf([0.001, 0.1]), ["0.001", "0.01", "0.1"]);
  assert.equal(ticksOf([0.5, 1, 20]), ["1", "10"]);
  assert.equal(ticksOf([0, 1]), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
  // Around 0.02, half and twice as much: a single power of ten is between 0.01 and 0.04.
  assert.equal(ticksOf([0.02]), ["0.01"]);
});

test("error bars are at their dots, and next to each other where dots share a place", () => {
  const chart: Chart = {
    ...{ kind: "lines", x: "x", y: "y", series: "s", xAxis: "size", yAxis: "value", dots: true },
    ...{ interval: { low: "low", high: "high" }, xDomain: [0, 10], yDomain: [0, 1] },
  };
  const bars = (second: number) => {
    const rows = [
      [2, 0.5, 0.4, 0.6, "a"],
      [second, 0.5, 0.4, 0.6, "b"],
    ];
    const [, picture = ""] = draw(chart, ["x", "y", "low", "high", "s"], rows, 900);
    return [...picture.matchAll(/<path d="M([\d.]+),[\d.]+L([\d.]+),[\d.]+" class="l\d"/g)].map(
      ([, from, to]) => {
        assert.is(from, to, "upright");
        return Number(from);
      },
    );
  };
  // Of 900 pixels, 50 are left of the axis, 16 right of it, and 6 within on either side: 56 + 822 * x / 10.
  assert.equal(bars(8), [220.4, 713.6]);
  assert.equal(bars(2), [218.4, 222.4]);
});

test("points get names if no other is within eleven pixels above or below", () => {
  // Height 280: 0 to 11 of y are the 214 pixels from 242 up to 28.
  const chart: Chart = {
    ...{ kind: "scatter", x: "x", y: "y", series: "s", label: "n", xAxis: "x", yAxis: "y" },
  };
  const named = (gap: number) => {
    const y = (gap / 214) * 11;
    const [picture = ""] = draw(
      chart,
      ["x", "y", "s", "n"],
      [
        [0.5, 0, "s", "first"],
        [0.51, y, "s", "second"],
        [0, 11, "s", "top"],
      ],
      400,
    );
    return [...picture.matchAll(/<text x="([\d.]+)" y="[\d.]+" class="soft">([a-z]{2,})/g)].map(
      ([, x, name]) => `${name} ${x}`,
    );
  };
  // 56 and 316 wide; the first is at 214, its name to the right. Nearer ones leave each other no room there.
  assert.equal(named(12), ["first 221", "second 224.2", "top 63"]);
  assert.equal(named(11), ["first 172", "second 224.2", "top 63"]);
});

test("points of one quantity lie inside, with a line through equal values", () => {
  const chart: Chart = {
    ...{ kind: "scatter", x: "x", y: "y", series: "s", label: "n", xAxis: "x", yAxis: "y", diagonal: true },
  };
  const [picture = ""] = draw(
    chart,
    ["x", "y", "s", "n"],
    [
      [-4, 6, "s", "first"],
      [0, 0, "s", "second"],
    ],
    400,
  );
  // -4 to 6 are the 316 pixels from 56 to 372 across, and the 214 from 242 up to 28.
  assert.match(picture, /<path d="M56,242L372,28" class="axis"/);
  const dots = [...picture.matchAll(/translate\(([\d.]+),([\d.]+)\)/g)].map(([, x, y]) => [x, y]);
  assert.equal(dots, [
    ["56", "28"],
    ["182.4", "156.4"],
  ]);
});

test("tokens that do not fit start another picture, 64 pixels each", () => {
  const rows = [0, 1, 2, 3, 4].map((position) => [2, position, 0.5, "x"]);
  const titles = (width: number) =>
    draw(tokens(), ["layer", "position", "v", "t"], rows, width)
      .slice(1)
      .map((markup) => /aria-label="([^"]*)"/.exec(markup)?.[1]);
  // 40 pixels for the names of layers, and 4.
  assert.equal(titles(44 + 5 * 64), ["F"]);
  assert.equal(titles(44 + 5 * 64 - 1), ["F: tokens 0 to 2", "F: tokens 3 to 4"]);
  assert.equal(titles(44 + 2 * 64), ["F: tokens 0 to 1", "F: tokens 2 to 3", "F: tokens 4 to 4"]);
  assert.equal(
    titles(10),
    [0, 1, 2, 3, 4].map((at) => `F: tokens ${at} to ${at}`),
  );
});

test("cells that read alike have one colour, and decimals fit the range", () => {
  const chart: Chart = { ...{ kind: "sites", value: "v", legend: "L", least: 0 }, columns: columnsOf(5) };
  const cells = (values: number[], kind: Chart = chart) => {
    const rows = values.map((value, at) => [2, at, value, 1]);
    const [legend = "", picture = ""] = draw(kind, ["layer", "column", "v", "inside"], rows, 500);
    const found = texts(picture, "on light").concat(texts(picture, "on half"), texts(picture, "on full"));
    return { ends: texts(legend, "soft"), colours: boxes(picture).map(([, , one]) => one), found };
  };
  // At most 1: two decimals, and what is below 0.005 is neutral, whatever its sign.
  const wide = cells([0.004, -0.004, 0, 1, -0.5]);
  assert.equal(wide.ends, ["L", "-1", "+1"]);
  assert.equal(wide.colours, ["ramp a0", "ramp a0", "ramp a0", "ramp a20", "down a10"]);
  assert.equal(wide.found.slice(0, 3), ["0.00", "0.00", "0.00"]);
  // At most 0.004: five decimals would be one hundredth of a step; four are enough.
  const small = cells([0.004, -0.002, 0, 0, 0]);
  assert.equal(small.ends, ["L", "-0.004", "+0.004"]);
  assert.equal(small.colours.slice(0, 3), ["ramp a20", "down a10", "ramp a0"]);
  assert.ok(small.found.includes("0.0000") && small.found.includes("−0.0020"), small.found.join());
  const none = cells([1e-9, -1e-9, 0, 0, 0]);
  assert.equal(new Set(none.colours), new Set(["ramp a0"]));
  const grid: Chart = {
    ...{ kind: "differences", x: "column", y: "layer", value: "v" },
    xAxis: "",
    legend: "L",
  };
  const signed = cells([0.0004, -0.0004, 0.3, -0.3, 0], grid);
  assert.equal(signed.colours, ["ramp a0", "ramp a0", "ramp a20", "down a20", "ramp a0"]);
});

const columnsOf = (count: number) =>
  Array.from({ length: count }, (_, at) => ({ above: `${at}`, below: "" }));

test("shades: linear with a zero, logarithmic without, no shade if unknown", () => {
  const shadesOf = (values: (number | null)[], scale: "magnitude" | "amount" | "probability") => {
    const rows = values.map((value, at) => [-Math.floor(at / 5), at % 5, value, "x"]);
    const [legend = "", picture = ""] = draw(tokens({ scale }), ["layer", "position", "v", "t"], rows, 500);
    return [boxes(picture).map(([, , kind]) => kind), texts(legend, "soft").slice(1)];
  };
  assert.equal(shadesOf([0, 5, 10, null], "magnitude"), [
    ["ramp a0", "ramp a10", "ramp a20", "blank"],
    ["0", "10"],
  ]);
  assert.equal(shadesOf([1, 10, 100], "magnitude"), [
    ["ramp a0", "ramp a10", "ramp a20"],
    ["1", "100"],
  ]);
  // Amounts are from 0, also where none is 0, and to nearly the largest: 99 in a hundred of the way from 10 to 20 are 19.9.
  assert.equal(shadesOf([20, 10, null], "amount"), [
    ["ramp a20", "ramp a10", "blank"],
    ["0", "≥ 19.9"],
  ]);
  assert.equal(shadesOf([0, 0.1, 0.2], "amount"), [
    ["ramp a0", "ramp a10", "ramp a20"],
    ["0", "≥ 0.198"],
  ]);
  // Of 201 numbers 99 in a hundred are not larger than the third from above: an outlier does not fade the others.
  const many = Array.from({ length: 201 }, (_, at) => (at < 198 ? 1 : at === 200 ? 1000 : 2));
  const [shades, ends] = shadesOf(many, "amount");
  assert.equal([shades![0], shades![199], shades![200]], ["ramp a10", "ramp a20", "ramp a20"]);
  assert.equal(ends, ["0", "≥ 2"]);
  assert.equal(shadesOf([0, 0], "amount"), [
    ["ramp a0", "ramp a0"],
    ["0", "1"],
  ]);
  assert.equal(shadesOf([null], "amount"), [["blank"], ["0", "1"]]);
  assert.equal(shadesOf([0, 0.25, 2], "probability"), [
    ["ramp a0", "ramp a5", "ramp a20"],
    ["0 %", "100 %"],
  ]);
});

test("sites: touching tokens are cut, and opposite effects change colour", () => {
  const chart: Chart = {
    ...{ kind: "sites", value: "v", legend: "recovery", least: 1 },
    columns: [
      { above: "abcdefgh", below: "" },
      { above: "abcdefghi", below: "12345678" },
    ],
  };
  const rows = [
    [1, 0, 0.5, 1],
    [1, 1, -2, 1],
    [0, 0, 3, 0],
    [0, 1, null, 1],
  ];
  // Two cells of 60 pixels: four of them free, and eight letters of seven.
  const [legend = "", picture = ""] = draw(chart, ["layer", "column", "v", "inside"], rows, 44 + 2 * 60);
  assert.equal(texts(picture, "ink"), ["abcdefgh", "abcdefg…"]);
  assert.equal(texts(picture, "soft"), ["1", "0", "layer", "12345678"]);
  // 3 is the largest, although nothing can change there: 20 shades.
  assert.equal(boxes(picture), [
    [40.5, 59, "ramp a3"],
    [100.5, 59, "down a13"],
    [40.5, 59, "grid"],
    [100.5, 59, "ramp a0"],
  ]);
  assert.equal(texts(legend, "soft"), ["recovery", "-3", "+3"]);
});

test.run();
