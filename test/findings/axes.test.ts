/** Ranges of the axes of each kind of chart: numbers by hand. */
import { readdirSync, readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { axesOf, type Row, shareEnd, withAxes } from "../../src/findings/axes.js";
import type { Chart } from "../../src/findings/figure.js";

const rowsOf = (columns: string[], ...rows: (string | number | null)[][]): Row[] =>
  rows.map((cells) => Object.fromEntries(columns.map((name, at) => [name, cells[at] ?? null])));
const lines = (more: Partial<Extract<Chart, { kind: "lines" }>> = {}) => ({
  ...{ kind: "lines" as const, x: "x", y: "y", series: "s", xAxis: "", yAxis: "" },
  ...more,
});

test("lines reach over their points and the ends of their intervals", () => {
  const rows = rowsOf(["x", "y", "s", "low", "high"], [2, 0.5, "a", 0.25, 0.75], [6, 1, "b", null, null]);
  const plain = axesOf(lines(), rows);
  assert.equal(
    [plain.x, plain.y, plain.steps],
    [
      [2, 6],
      [0.5, 1],
      [2, 6],
    ],
  );
  assert.equal(axesOf(lines({ interval: { low: "low", high: "high" } }), rows).y, [0.25, 1]);
  assert.equal(axesOf(lines({ xDomain: [0, 9], yDomain: [0, 1] }), rows).x, [0, 9]);
});

test("a single value has room on both sides; on a logarithmic axis half and twice", () => {
  const one = rowsOf(["x", "y", "s"], [3, 8, "a"]);
  assert.equal(axesOf(lines(), one).y, [7, 9]);
  const { y, logarithmic } = axesOf(lines({ logarithmic: true }), one);
  assert.equal([y, logarithmic], [[4, 16], true]);
  const nought = rowsOf(["x", "y", "s"], [3, 0, "a"], [4, 5, "a"]);
  assert.is(axesOf(lines({ logarithmic: true }), nought).logarithmic, false);
  assert.equal(axesOf(lines(), []).y, [0, 1]);
});

test("the emphasised series gets the first colour, whatever its position", () => {
  const rows = rowsOf(["x", "y", "s"], [0, 0, "a"], [0, 0, "mean"], [0, 0, "b"]);
  const places = (emphasis?: string) =>
    axesOf(lines({ ...(emphasis && { emphasis }) }), rows).series.map(({ name, place, wide }) => [
      name,
      place,
      wide,
    ]);
  assert.equal(places(), [
    ["a", 0, false],
    ["mean", 1, false],
    ["b", 2, false],
  ]);
  assert.equal(places("mean"), [
    ["a", 1, false],
    ["mean", 0, true],
    ["b", 2, false],
  ]);
});

test("dots are scaled by the largest of their series, and at least by one", () => {
  const rows = rowsOf(["x", "y", "s", "n"], [0, 0, "a", 4], [0, 0, "a", 9], [0, 0, "b", 0.5]);
  assert.equal(
    axesOf(lines({ size: "n" }), rows).series.map(({ largest }) => largest),
    [9, 1],
  );
});

test("each shade of a map has its own axis, and ranks are reversed", () => {
  const shade = (scale: "probability" | "magnitude" | "amount" | "rank", value: string) => ({
    ...{ id: value, name: value, value, label: "", legend: "", scale },
  });
  const shades = [
    shade("probability", "p"),
    shade("magnitude", "m"),
    shade("amount", "e"),
    shade("rank", "r"),
  ];
  const chart: Chart = { ...{ kind: "tokens", tokens: ["t"] }, ...shade("probability", "p"), shades };
  const rows = rowsOf(["layer", "p", "m", "e", "r"], [0, 0.5, 10, 4, 3], [5, 0.1, 1000, 0, 70]);
  const found = axesOf(chart, rows);
  assert.equal(found.layers, [5, 0]);
  const texts = (id: string) => found.shades[id]?.legend.map(({ text }) => text);
  const { legend: _, ...p } = found.shades.p as NonNullable<(typeof found.shades)[string]>;
  // None is above a half, so the scale ends at the next of 1, 2 and 5.
  assert.equal(p, { domain: [0, 0.5], logarithmic: false, reversed: false });
  assert.equal(texts("p"), ["0 %", "10 %", "20 %", "30 %", "40 %", "50 %"]);
  assert.equal(
    [found.shades.m?.domain, texts("m")],
    [
      [10, 1000],
      ["10", "100", "1000"],
    ],
  );
  assert.equal(
    [found.shades.e?.domain, texts("e")],
    [
      [0, 3.96],
      ["0", "1.98", "≥ 3.96"],
    ],
  );
  assert.equal([found.shades.r?.domain, found.shades.r?.reversed], [[1, 70], true]);
  assert.equal(texts("r"), ["1", "8", "70"]);
});

test("axes of differences are symmetric, with a minimum for their kind", () => {
  const sites: Chart = { ...{ kind: "sites", columns: [], value: "v", legend: "" }, least: 1 };
  const rows = rowsOf(["layer", "v"], [1, -0.5], [0, null]);
  assert.is(axesOf(sites, rows).reach, 1);
  assert.is(axesOf({ ...sites, least: 0 }, rows).reach, 0.5);
  const grid: Chart = { kind: "differences", x: "x", y: "y", value: "v", xAxis: "", legend: "" };
  const cells = rowsOf(["x", "y", "v"], [2, "b", 0.001], [-1, "a", 0]);
  const { columns, names, reach, digits, legend } = axesOf(grid, cells);
  assert.equal(
    { columns, names, reach, digits },
    { columns: [-1, 2], names: ["b", "a"], reach: 0.001, digits: 4 },
  );
  assert.equal(
    legend.map(({ text }) => text),
    ["-0.001", "0", "+0.001"],
  );
  const same = rowsOf(["x", "y", "v"], [2, "b", 1e-9], [-1, "a", 0]);
  assert.is(axesOf(grid, same).reach, 1, "nothing that a cell could show");
});

test("no legend has a label twice, and values that read alike are not spread", () => {
  const textsOf = (scale: "probability" | "magnitude" | "amount" | "rank", values: number[]) => {
    const chart: Chart = { ...{ kind: "tokens", tokens: ["t"], value: "v", label: "", legend: "" }, scale };
    const rows = rowsOf(["layer", "v"], ...values.map((value, layer) => [layer, value]));
    return axesOf(chart, rows).shades.v?.legend.map(({ text }) => text);
  };
  assert.equal(textsOf("rank", [1, 1]), ["1", "2"]);
  assert.equal(textsOf("rank", [1, 3]), ["1", "2", "3"]);
  // Both read 31.0: they are one value, in the middle of a scale from half to twice of it.
  assert.equal(textsOf("magnitude", [31.001, 31.002]), ["15.5", "31", "62"]);
  assert.equal(textsOf("magnitude", [100, 101]), ["100", "101"]);
  assert.equal(textsOf("probability", [0.013, 0.0002]), ["0 %", "0.4 %", "0.8 %", "1.2 %", "1.6 %", "2 %"]);
  assert.equal(textsOf("probability", [0.51]), ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]);
  assert.equal(
    [[0], [0.5], [0.2, 0.21], [0.05], [0.07], [1e-5]].map(shareEnd),
    [1, 0.5, 0.5, 0.05, 0.1, 1e-5],
  );
});

test("counts of two classes get a panel each, fitted to the chart", () => {
  const chart: Chart = {
    ...{ kind: "mirror", from: "from", to: "to", up: "up", down: "down", axis: "" },
    panels: ["layer", "split"],
  };
  const rows = rowsOf(
    ["layer", "split", "from", "to", "up", "down"],
    [3, "test", -2, -1, 4, 7],
    [5, "test", 0, 1, 0, 1],
    [3, "test", 0, 6, 2, 0],
  );
  assert.equal(axesOf(chart, rows), {
    sides: { up: "class 1", down: "class 0" },
    panels: [
      { name: "layer 3, test", rows: [0, 2], x: [0, 1], reach: 7 },
      { name: "layer 5, test", rows: [1], x: [0, 1], reach: 1 },
    ],
  });
  const fitted = axesOf({ ...chart, fitted: true, sides: { up: "towards", down: "away from" } }, rows);
  assert.equal(
    [fitted.sides.up, fitted.panels.map(({ x }) => x)],
    [
      "towards",
      [
        [-2, 6],
        [0, 1],
      ],
    ],
  );
});

test("bars and points begin at 0", () => {
  const bars: Chart = { kind: "bars", label: "n", value: "v", axis: "" };
  assert.equal(axesOf(bars, rowsOf(["n", "v"], ["a", 2], ["b", -1])).x, [-1, 2]);
  assert.equal(axesOf(bars, rowsOf(["n", "v"], ["a", 0])).x, [0, 1]);
  const points: Chart = { kind: "scatter", x: "x", y: "y", series: "s", label: "n", xAxis: "", yAxis: "" };
  assert.equal(axesOf(points, rowsOf(["x", "y", "s"], [0.5, 3, "s"])).y, [0, 3]);
});

test("points of one quantity get one range that contains 0", () => {
  const points: Chart = {
    ...{ kind: "scatter", x: "x", y: "y", series: "s", label: "n", xAxis: "", yAxis: "", diagonal: true },
  };
  const { x, y } = axesOf(points, rowsOf(["x", "y", "s"], [0.5, -3, "s"], [2, 1, "s"]));
  assert.equal(
    [x, y],
    [
      [-3, 2],
      [-3, 2],
    ],
  );
});

test("a figure that goes to a page takes its axes along", () => {
  const figure = {
    ...{ id: "f", title: "", description: "", details: [], table: { head: [], rows: [] } },
    ...{ chart: { kind: "bars", label: "n", value: "v", axis: "" } as Chart, rows: [["a", 4]] },
    columns: ["n", "v"].map((name) => ({ name, label: name })),
  };
  assert.equal(withAxes(figure).axes, { x: [0, 4] });
});

test("drawers take ranges from here and compute none", () => {
  const report = new URL("../../src/report/", import.meta.url);
  for (const folder of ["page/", "drawing/"]) {
    for (const name of readdirSync(new URL(folder, report))) {
      const text = readFileSync(new URL(folder + name, report), "utf8");
      assert.not.match(text, /d3\.(extent|max|min|quantile|groups)\b/, name);
    }
  }
});

test.run();
