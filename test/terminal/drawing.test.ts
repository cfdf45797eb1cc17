import { test } from "uvu";
import * as assert from "uvu/assert";
import { firstShare } from "../../src/findings/blocks.js";
import type { LensReading } from "../../src/findings/lens.js";
import { bestLayer } from "../../src/findings/probe.js";
import { width } from "../../src/findings/text.js";
import { comparePicture } from "../../src/operations/compare/picture.js";
import {
  AnswerWriter,
  ago,
  bare,
  bytes,
  type Canvas,
  duration,
  harmless,
  JobProgress,
  normsGrid,
  plot,
  table,
  ticksUpTo,
} from "../../src/terminal/index.js";
import { measureGrid } from "../../src/terminal/inspect-grids.js";
import { heading } from "../../src/terminal/page.js";
import { statsPicture } from "../../src/terminal/stats-picture.js";
import { withTime } from "../support/with-time.js";
import { compared, stats, trial } from "./results.js";

const canvas = (columns: number): Canvas => ({ width: columns, colors: "none" });
const unit = {
  low: 0,
  high: 1,
  ticks: [
    [0, "0"],
    [1, "1"],
  ] as Array<[number, string]>,
};

test("a plot: a rising line runs from the lower left to the upper right", () => {
  const series = [
    {
      points: [
        [0, 0],
        [1, 1],
      ] as Array<[number, number]>,
      marker: "x",
      place: 0.5,
    },
  ];
  const lines = plot({ series, x: unit, y: unit, rows: 5 }, canvas(30));
  assert.is(lines.length, 7);
  assert.match(lines[0]!, /^1 ┤ +\S*x$/);
  assert.match(lines[4]!, /^0 ┤x/);
  assert.match(lines[5]!, /^ {2}└┬─+┬$/);
  assert.match(lines[6]!, /^ {3}0 +1$/);
  const starts = lines.slice(0, 5).map((line) => line.slice(3).search(/\S/));
  assert.equal(
    starts,
    [...starts].sort((a, b) => b - a),
  );
  for (const line of lines) assert.is(width(line), 30);
});

test("a heading fits the width: its meaning is dropped first, then its key", () => {
  const at = (columns: number) => heading("Title", "a meaning of words", "0 key 1", canvas(columns));
  assert.is(at(48), "Title  a meaning of words                0 key 1");
  // 5 + 2 + 18 columns of words, 2 of space and 7 of the key; no canvas counts as narrower than 24.
  assert.is(at(34), "Title  a meaning of words  0 key 1");
  assert.is(at(33), "Title                     0 key 1");
  assert.is(heading("Title", "a meaning of words", "", canvas(25)), "Title  a meaning of words");
  assert.is(heading("Title", "a meaning of words", "", canvas(24)), "Title");
  assert.is(heading("A title of words", "m", "0 k 1", canvas(24)), "A title of words   0 k 1");
  assert.is(heading("A title of words", "m", "0 key 1", canvas(25)), "A title of words  0 key 1");
  assert.is(heading("A title of words", "m", "0 key 1", canvas(24)), "A title of words");
});

test("ticks: 0, half and all of a rounded number, from 0.001 to 100,000", () => {
  const of = (most: number) => ticksUpTo(most).ticks.map(([, text]) => text);
  assert.equal(of(0.001), ["0", "5.0e-4", "0.001"]);
  assert.equal(of(1.2), ["0", "0.75", "1.5"]);
  assert.equal(of(7), ["0", "4", "8"]);
  assert.equal(of(90_000), ["0", "50000", "1.0e+5"]);
});

test("spans: what would round to the next unit is of that unit", () => {
  const said: [seconds: number, words: string][] = [
    [-1, "0 ms"],
    [0.0004, "0 ms"],
    [0.999, "999 ms"],
    [0.9995, "1.0 s"],
    [9.9, "9.9 s"],
    [9.95, "10 s"],
    [59.9, "60 s"],
    [59.95, "1 min 0 s"],
    [3599.4, "59 min 59 s"],
    [3599.5, "1 h 0 min"],
    [86_369, "23 h 59 min"],
    [86_370, "1 d 0 h"],
    [129_600, "1 d 12 h"],
  ];
  for (const [seconds, words] of said) assert.is(duration(seconds), words, String(seconds));
  const then: [seconds: number, words: string][] = [
    [-5, "0 s ago"],
    [59.9, "59 s ago"],
    [60, "1 min ago"],
    [3600, "1 h ago"],
    [86_399, "23 h ago"],
    [86_400, "1 d ago"],
  ];
  for (const [seconds, words] of then) assert.is(ago(1000, 1000 + seconds), words);
});

test("a plot: one point, equal bounds and labels that would touch do no harm", () => {
  const flat = { low: 2, high: 2, ticks: [[2, "2"]] as Array<[number, string]> };
  const lines = plot(
    {
      series: [{ points: [[2, 2]], marker: "●" }],
      x: flat,
      y: flat,
      rows: 3,
      guides: { x: 2, diagonal: true },
    },
    canvas(24),
  );
  assert.is(lines.join("").split("●").length, 2);
  const ticks = [0, 0.01, 0.02, 1].map((value) => [value, `label ${value}`] as const);
  const [names] = plot({ series: [], x: { low: 0, high: 1, ticks }, y: unit, rows: 2 }, canvas(40)).slice(-1);
  assert.match(names!, /label 0 +label 1$/);
  // 21 columns of two dots for 0 to 20, three for a label: the first in the columns 1 to 3, one of the others right behind it and
  // one with a column between.
  const under = (...values: number[]) => {
    const three = values.map((value) => [value, `<${value % 1 === 0 ? "-" : "x"}>`] as const);
    const x = { low: 0, high: 20, ticks: three };
    return plot({ series: [], x, y: { ...unit, ticks: [[0, "0"]] }, rows: 2 }, canvas(24))
      .at(-1)
      ?.trim();
  };
  assert.is(under(2, 4.9), "<->");
  assert.is(under(2, 5.9), "<-> <x>");
});

test("the first expert's share is of all weights of its token, whatever they come to", () => {
  const weights = [[2, 1, 1], [1, 3], [0, 0], []];
  assert.equal(
    [0, 1, 2, 3, 4].map((token) => firstShare({ weights }, token)),
    [0.5, 0.25, 0, 0, 0],
  );
});

test("an axis ends at a round number", () => {
  for (const [most, high] of [
    [1, 1],
    [0.0042, 0.005],
    [37, 40],
    [0.71, 0.8],
    [0, 1],
  ] as const) {
    assert.ok(Math.abs(ticksUpTo(most).high - high) < 1e-9, `${most}: ${ticksUpTo(most).high}`);
  }
});

test("a table's spare width goes to one column after the other", () => {
  const columns = [
    { title: "a", least: 5 },
    { title: "b", least: 5 },
  ];
  // 24 columns, two of them between: five each, and the other twelve to the first.
  assert.equal(table(columns, [["x".repeat(20), "y".repeat(20)]], canvas(24)), [
    "a                  b",
    `${"x".repeat(16)}…  yyyy…`,
  ]);
});

test("a table cuts, then leaves out, then cuts what is left", () => {
  const columns = [
    { title: "name", least: 4 },
    { title: "value", align: "right" as const },
    { title: "extra", dispensable: 1 },
  ];
  const rows = [
    ["a long name", "1", "something"],
    ["b", ["22", (text: string) => `<${text}>`] as const, ""],
  ];
  assert.equal(table(columns, rows, canvas(60)), [
    "name         value  extra",
    "a long name      1  something",
    "b            <   22>",
  ]);
  assert.equal(table(columns, rows, canvas(24))[1], "a lon…      1  something");
  for (const line of table(
    [{ title: "x" }, { title: "y" }],
    [["m".repeat(50), "n".repeat(50)]],
    canvas(24),
  )) {
    assert.ok(width(line) <= 24, line);
  }
});

test("spans of time and sizes", () => {
  assert.equal([0, 0.0004, 0.25, 0.9999, 3.14, 42, 59.99, 125, 3599.6, 5400, 90_000].map(duration), [
    "0 ms",
    "0 ms",
    "250 ms",
    "1.0 s",
    "3.1 s",
    "42 s",
    "1 min 0 s",
    "2 min 5 s",
    "1 h 0 min",
    "1 h 30 min",
    "1 d 1 h",
  ]);
  assert.equal(
    [0, 61, 7300, 200_000].map((span) => ago(1e9 - span, 1e9)),
    ["0 s ago", "1 min ago", "2 h ago", "2 d ago"],
  );
  assert.equal([0, 999, 1500, 3_150_000, 24e9, 999.7e6].map(bytes), [
    "0 B",
    "999 B",
    "1.5 kB",
    "3.1 MB",
    "24 GB",
    "1000 MB",
  ]);
});

function written(colors: "none" | "16", thinking = true) {
  let text = "";
  const writer = new AnswerWriter({ write: (part) => (text += part) }, { colors, thinking });
  return { writer, text: () => text };
}

test("an answer: thinking is dimmed or barred, and parts begin without empty lines", () => {
  const parts = (writer: AnswerWriter) => {
    writer.thinking("\nlet me");
    writer.thinking(" see\nand so");
    writer.answer("\n\n");
    writer.answer("Yes.\n\nNo");
    writer.end();
  };
  const bars = written("none");
  parts(bars.writer);
  assert.is(bars.text(), "| let me see\n| and so\nYes.\n\nNo\n");
  const dimmed = written("16");
  parts(dimmed.writer);
  assert.is(bare(dimmed.text()), "let me see\nand so\nYes.\n\nNo\n");
  assert.match(dimmed.text(), "\u001b[2mlet me\u001b[0m");
  const hidden = written("none", false);
  parts(hidden.writer);
  assert.is(hidden.text(), "Yes.\n\nNo\n");
});

test("an answer cannot move the cursor or turn a line around", () => {
  assert.is(harmless("a\u001b[2Jb\tc\r\nd\u202ee\u009b"), "a<001B>[2Jb\tc\nd<202E>e<009B>");
});

test("progress: one line on a terminal, a line a stage in a log", () => {
  const show = (isTTY: boolean) => {
    let text = "";
    const progress = new JobProgress({ isTTY, columns: 60, write: (part) => (text += part) });
    const seen = (stage: string, done: number, total: number) =>
      progress.show({ status: "running", progress: { stage, done, total } });
    seen("model", 0.25, 1);
    seen("model", 0.5, 1);
    seen("sweep", 3, 12);
    progress.show({ status: "completed", progress: { stage: "completed", done: 1, total: 1 } });
    progress.clear();
    return text;
  };
  assert.is(show(false), "loading the model 25 %\ncomparing 3/12\n");
  assert.match(show(true), /loading the model █{5}░{15} 25 %[\s\S]*comparing █{5}░{15} 3\/12/);
  assert.not.match(show(true), /\n/);
});

test("progress: a single step is told in percent", () => {
  let text = "";
  const progress = new JobProgress({ isTTY: true, columns: 80, write: (part) => (text += part) });
  for (const [done, words] of [
    [0, /writing artifacts ░{20} 0 %/],
    [1, /writing artifacts █{20} 100 %/],
  ] as const) {
    text = "";
    progress.show({ status: "running", progress: { stage: "artifact", done, total: 1 } });
    assert.match(text, words);
  }
});

test("ranks are coloured by their order of magnitude, other measures by their size", () => {
  const standing = (rank: number) => ({ rank, probability: 0 });
  const layers = [
    { layer: 0, predictions: [], target: [1, 10, 100].map(standing), entropies: [0, 50, 100] },
  ] as LensReading["layers"];
  const behind = (view: "rank" | "entropy") => {
    const on: Canvas = { width: 60, colors: "truecolor" };
    const grid = measureGrid({ tokens: ["a", "b", "c"] }, { name: "one", layers }, view, 100, on);
    return [...grid.join("\n").matchAll(/48;2;([\d;]+)m/g)].map(([, color]) => color);
  };
  // The ends of the magnitudes' colours, and halfway between the third and the fourth of the six.
  const colors = ["40;32;48", "190;70;81", "254;217;140"];
  assert.equal([behind("rank"), behind("entropy")], [colors, colors]);
});

test("of equally good layers the earliest is named, in any order", () => {
  const told = (layer: number, auc: number, brier: number) => ({ layer, auc, brier });
  const equal = [told(5, 0.9, 0.1), told(2, 0.9, 0.1), told(7, 0.9, 0.1), told(1, 0.8, 0)];
  for (const reports of [equal, equal.toReversed()]) {
    const { best, tie } = bestLayer(reports);
    assert.equal([best.layer, tie], [2, ", the earliest of 3 tied layers"]);
  }
  const sharper = bestLayer([told(2, 0.9, 0.1), told(5, 0.9, 0.05)]);
  assert.equal([sharper.best.layer, sharper.tie], [5, ", the smallest Brier score of 2 tied layers"]);
});

test("a curve goes by strength, in whichever order the strengths were asked for", () => {
  const tried = [trial("One?", 0, 0.5, " a"), trial("One?", 1, 0.9, " a"), trial("One?", 2, 0.1, " a")];
  const curve = (...order: number[]) =>
    comparePicture(compared(...order.map((at) => tried[at]!)), canvas(60)).slice(0, 13);
  assert.equal(curve(2, 0, 1), curve(0, 1, 2));
  assert.equal(curve(1, 2, 0), curve(0, 1, 2));
});

test("a busy slot is visible among many; evicted captures are reported", () => {
  const drawn = (more: object) => statsPicture({ ...stats, ...more } as typeof stats, canvas(80)).join("\n");
  assert.match(drawn({ slots: { busy: 1, total: 40 } }), /Slots +█·{15} 1 of 40 busy/);
  assert.match(drawn({ slots: { busy: 0, total: 40 } }), /Slots +·{16} 0 of 40 busy/);
  const kept = { kept: 0, bytes: 0, dropped: 3 };
  assert.match(drawn({ row_captures: kept }), /Stored +0 captures, 0 B; 3 evicted/);
  assert.not.match(drawn({ row_captures: { ...kept, dropped: 0 } }), "Stored");
});

test("a grid says how many tokens came before: one is one token", () => {
  // Of 34 columns 6 are the margin's; a cell takes 7, so that four have room.
  const grid = (count: number) => {
    const tokens = Array.from({ length: count }, (_, at) => String(at));
    return normsGrid({ tokens, layers: [{ layer: 0, norms: tokens.map(() => 1.5) }] }, canvas(34)).split(
      "\n",
    );
  };
  assert.is(grid(5).at(-1), "… 1 earlier token not shown");
  assert.is(grid(6).at(-1), "… 2 earlier tokens not shown");
  assert.match(grid(4).at(-1)!, /^layer /);
});

test("progress: what is left is told at the speed of the stage so far", () => {
  let now = 0;
  withTime({ "performance.now": () => now }, () => {
    let text = "";
    const progress = new JobProgress({ isTTY: true, columns: 80, write: (part) => (text += part) });
    const seen = (stage: string, done: number, seconds: number) => {
      [now, text] = [seconds * 1000, ""];
      progress.show({ status: "running", progress: { stage, done, total: 12 } });
      return text;
    };
    assert.not.match(seen("sweep", 2, 10), "left");
    assert.match(seen("sweep", 5, 40), "5/12  40 s, about 1 min 10 s left"); // 10 s for each of 7
    assert.not.match(seen("sweep", 12, 110), "left");
    assert.not.match(seen("artifact", 3, 111), "left"); // a stage of its own
  });
});

test.run();
