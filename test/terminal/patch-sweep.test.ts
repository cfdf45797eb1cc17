import { test } from "uvu";
import * as assert from "uvu/assert";
import type { PatchSweepResult } from "../../src/contracts/index.js";
import type { Figure } from "../../src/findings/figure.js";
import { width } from "../../src/findings/text.js";
import { patchSweepPicture } from "../../src/operations/patch_sweep/picture.js";
import { findingsOf } from "../../src/report/index.js";
import { bare } from "../../src/terminal/index.js";
import { hostile, patchJob } from "../report/jobs.js";

const result = patchJob().result as PatchSweepResult;
const draw = (of: PatchSweepResult, columns = 100, colors: "none" | "truecolor" = "none") =>
  patchSweepPicture(of, { width: columns, colors });

test("rows are blocks, the deepest on top; columns are tokens of both prompts", () => {
  const lines = draw(result);
  // A site where nothing can change is a dot.
  assert.match(lines[1] as string, /^ +3 +· +· +0\.75 *$/);
  assert.match(lines[2] as string, /^ +0 +· +0\.75 +-0\.25 *$/);
  assert.match(lines[3] as string, /^layer +The +·cat\/··sat·dog +·sat *$/);
  const text = lines.join("\n");
  assert.match(
    text.replace(/\s+/g, " "),
    /At layer 0 the answer depends on “·cat”; at layer 3 \(layers 1 to 2 were not measured\), on the last token, “·sat”\./,
  );
  // 0.1 of the 8 between the runs.
  assert.match(
    text.replace(/\s+/g, " "),
    /Patching there moves the logit difference 75 % of the way; norm-matched random changes move it at most 1\.3 % of the way/,
  );
  assert.match(
    text,
    /“·The” minus “·b”: clean 4, corrupted -4, with its own activation patched back -4\.001/,
  );
});

test("columns follow the text, whatever the order of the positions", () => {
  const positions = [-1, 0, -2];
  const sites = result.sites.map((site) => ({ ...site, position: [0, -2, -1][site.position] as number }));
  assert.equal(draw({ ...result, positions, sites }).slice(1, 4), draw(result).slice(1, 4));
});

test("sites in any order are below their tokens", () => {
  const sites = result.sites.toSorted((a, b) => a.layer - b.layer || b.position - a.position);
  assert.equal(draw({ ...result, sites }), draw(result));
});

test("the site with the largest recovery is named, not the largest opposite one", () => {
  const sites = result.sites.map((site) => (site.recovery === -0.25 ? { ...site, recovery: -2 } : site));
  assert.is(sites.filter(({ recovery }) => recovery === -2).length, 1);
  assert.match(
    draw({ ...result, sites })
      .join(" ")
      .replace(/\s+/g, " "),
    /At layer 0 the answer depends on “·cat”; .* moves the logit difference 75 % of the way;/,
  );
});

test("the text mentions random controls only if a site that can change has one", () => {
  const control = { logit_difference: 5, change: 9, recovery: 1 };
  const sites = result.sites.map((site) => (site.position === 0 ? { ...site, control } : site));
  const bare = result.sites.map(({ control: _, ...site }) => site);
  const said = (of: PatchSweepResult["sites"]) =>
    draw({ ...result, sites: of })
      .join(" ")
      .replace(/\s+/g, " ");
  assert.match(said(sites), /norm-matched random changes move it at most 1\.3 % of the way,/);
  assert.match(said(bare), /75 % of the way; without random controls, it is open whether any change/);
});

test("controls are measured from the patched run, by absolute size", () => {
  const sites = result.sites.map((site) => ({
    ...site,
    control: { logit_difference: 0, change: -0.3, recovery: 0 },
  }));
  const of: PatchSweepResult = {
    ...result,
    direction: "noise",
    clean: 4,
    corrupted: -4,
    restored: 4.5,
    sites,
  };
  const said = [draw(of), findingsOf({ ...patchJob(), result: of }).summary].map((lines) =>
    lines.join(" ").replace(/\s+/g, " "),
  );
  // 0.5 of the 8 between the runs: batching alone does not explain it.
  for (const text of said) {
    assert.match(
      text,
      /75 % of the way, but so does patching back the run's own activation, 6\.3 % of the way: these effects are not reliable\./,
    );
  }
  const steady = findingsOf({ ...patchJob(), result: { ...of, restored: 4.25 } }).summary.join(" ");
  // 0.3 of 8.
  assert.match(steady, /75 % of the way; norm-matched random changes move it at most 3\.8 % of the way/);
});

test("half of the recovery stands out; half of a raw logit change does not", () => {
  const boldCells = (of: PatchSweepResult) =>
    draw(of, 100, "truecolor").join("\n").split("\u001b[1;38;").length - 1;
  assert.is(boldCells(result), 2);
  const sites = result.sites.map((site) => ({ ...site, recovery: null, change: 0.75 }));
  assert.is(boldCells({ ...result, sites }), 0);
});

test("pairs with other tokens have no names in common", () => {
  const [pair] = result.pairs as [PatchSweepResult["pairs"][number]];
  const other = {
    ...pair,
    clean: { ...pair.clean, tokens: ["The", " hen", " sat"] },
    corrupted: { ...pair.corrupted, tokens: ["The", " owl", " sat"] },
  };
  const text = draw({ ...result, pairs: [pair, other] }).join("\n");
  assert.match(text, /The +#1 +·sat/);
  assert.match(text, /target minus foil, mean of 2 pairs/);
});

test("no line is wider than the terminal, and colours change nothing but colours", () => {
  for (const of of [result, patchJob(hostile).result as PatchSweepResult]) {
    for (const columns of [40, 80, 200]) {
      for (const line of draw(of, columns)) assert.ok(width(line) <= columns, `${columns}: ${line}`);
      const coloured = draw(of, columns, "truecolor").map(bare);
      assert.equal(coloured.slice(1), draw(of, columns).slice(1));
    }
  }
});

/** The example with two heads instead of each block: the second moves as much the other way, at another token. */
function headResult(): PatchSweepResult {
  const sites = [0, 3].flatMap((layer) =>
    [5, 2].flatMap((head) =>
      result.sites
        .filter((site) => site.layer === layer)
        .map((site) => ({
          ...site,
          point: "head_out" as const,
          head,
          recovery: head === 5 ? site.recovery : -(site.recovery as number) / 3,
        })),
    ),
  );
  return { ...result, points: ["head_out"], heads: [5, 2], sites };
}

test("heads get a map: layers by heads, each at its strongest token", () => {
  const lines = draw(headResult());
  assert.match(lines[0] as string, /^Recovery, head_out +of each head at the token with its largest effect/);
  assert.match(lines[1] as string, /^ +3 +0\.75 +-0\.25 *$/);
  assert.match(lines[2] as string, /^ +0 +0\.75 +-0\.25 *$/);
  assert.match(lines[3] as string, /^layer +h5 +h2 *$/);
  const text = lines.join(" ").replace(/\s+/g, " ");
  assert.match(
    text,
    /Heads 0\.5 at ·cat\/··sat·dog \(token 1\) 0\.75, 3\.5 at ·sat \(token 2\) 0\.75, 0\.2 at/,
  );
  assert.match(
    text,
    /Of single heads \(block\.head\), heads 0\.5, 3\.5 move the answer most, about equally\./,
  );
  // Heads that do not fit go on below.
  const many = Array.from({ length: 40 }, (_, head) => head);
  const wide = { ...headResult(), heads: many };
  wide.sites = many.flatMap((head) =>
    headResult()
      .sites.filter((site) => site.head === 2)
      .map((site) => ({ ...site, head })),
  );
  const drawn = draw(wide, 80);
  for (const head of many)
    assert.ok(
      drawn.some((line) => new RegExp(`^layer.* h${head} `).test(line)),
      `h${head}`,
    );
  for (const line of drawn) assert.ok(width(line) <= 80, line);
});

test("the report draws heads by layer, and the strongest by token", () => {
  const { parts } = findingsOf({ ...patchJob(), result: headResult() });
  const [map, strongest] = parts as [Figure, Figure];
  assert.equal([map.id, strongest.id], ["patch-map-head-out", "patch-heads"]);
  assert.equal(map.table.head, ["layer", "head 5", "head 2"]);
  // Layer, head, and its column.
  assert.equal(
    map.rows.map((row) => row.slice(0, 3)),
    [
      [0, 5, 0],
      [0, 2, 1],
      [3, 5, 0],
      [3, 2, 1],
    ],
  );
  assert.equal(map.table.rows[0], [
    "0",
    "75.0 % (token 1, ·cat vs. ··sat·dog)",
    "-25.0 % (token 1, ·cat vs. ··sat·dog)",
  ]);
  assert.match(
    map.details[0] as string,
    /^layer 0 head 5, token 1\nclean ·cat, corrupted ··sat·dog\nrecovery 75\.0 %/,
  );
  const { chart } = strongest;
  assert.equal(chart.kind === "sites" && chart.rows, { name: "head", names: ["3.2", "0.2", "3.5", "0.5"] });
  // All tokens of a head, the strongest head in the row with the greatest number.
  assert.equal(strongest.rows.map(([row, label, column]) => [row, label, column]).slice(0, 4), [
    [3, "0.5", 0],
    [1, "0.2", 0],
    [2, "3.5", 0],
    [0, "3.2", 0],
  ]);
  assert.equal(strongest.table.rows[0], ["0.5", "0 %", "75.0 %", "-25.0 %"]);
});

test("of marked texts the columns are spans", () => {
  const [pair] = result.pairs as [PatchSweepResult["pairs"][number]];
  const spans = (texts: string[]) => texts.map((text, index) => ({ text, position: index + 1 }));
  const marked = {
    ...result,
    positions: [0, 1],
    pairs: [
      {
        ...pair,
        clean: { ...pair.clean, spans: spans(["the cat", "sat"]) },
        corrupted: { ...pair.corrupted, spans: spans(["a big dog", "sat"]) },
      },
    ],
    sites: result.sites
      .filter(({ position }) => position > 0)
      .map((site) => ({ ...site, position: site.position - 1 })),
  };
  const lines = draw(marked);
  assert.match(lines[3] as string, /^layer +the·cat.* sat *$/);
  assert.match(
    lines.join(" ").replace(/\s+/g, " "),
    /At layer 0 the answer depends on “the·cat”; at layer 3 .*, on “sat”\./,
  );
});

test("the report's heat map has both prompts' tokens, the values and the faint cells", () => {
  const { parts, summary } = findingsOf(patchJob());
  const [map] = parts as [Figure];
  assert.equal(map.chart, {
    kind: "sites",
    columns: [
      { above: "The", below: "" },
      { above: "·cat", below: "··sat·dog" },
      { above: "·sat", below: "" },
    ],
    value: "recovery",
    legend: "recovery",
    least: 1,
  });
  const at = (name: string) => map.columns.findIndex((column) => column.name === name);
  assert.equal(
    map.rows.map((row) => row[at("inside")]),
    [0, 1, 1, 0, 0, 1],
  );
  assert.equal(
    map.rows.map((row) => row[at("recovery")]),
    [0, 0.75, -0.25, 0, 0, 0.75],
  );
  assert.match(
    map.details[1] as string,
    /^layer 0, token 1\nclean ·cat, corrupted ··sat·dog\nrecovery 75\.0 %\nlogit difference 2 \(\+6\.000\)\nchange 3 of an activation of norm 12/,
  );
  assert.match(map.details[0] as string, /cannot change anything/);
  assert.match(
    summary[2] as string,
    /^Logit difference \(·The minus ·b\): 4 in the clean run, -4 in the corrupted one, -4\.001 with one of the patched run's own activations patched back\.$/,
  );
});

test.run();
