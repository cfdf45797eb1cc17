import { test } from "uvu";
import * as assert from "uvu/assert";
import type { PatchSweepResult } from "../../src/contracts/index.js";
import { type Figure, findingsOf } from "../../src/report/index.js";
import { bare, width } from "../../src/terminal/index.js";
import { patchSweepPicture } from "../../src/terminal/patch-sweep-picture.js";
import { hostile, patchJob } from "../report/jobs.js";

const result = patchJob().result as PatchSweepResult;
const draw = (of: PatchSweepResult, columns = 100, colors: "none" | "truecolor" = "none") =>
  patchSweepPicture(of, { width: columns, colors });

test("rows are blocks, the deepest on top; columns are tokens, both where the prompts differ", () => {
  const lines = draw(result);
  // A site where nothing can change is a dot.
  assert.match(lines[1] as string, /^ +3 +· +· +0\.75 *$/);
  assert.match(lines[2] as string, /^ +0 +· +0\.75 +-0\.25 *$/);
  assert.match(lines[3] as string, /^layer +The +·cat\/··sat·dog +·sat *$/);
  const text = lines.join("\n");
  assert.match(
    text.replace(/\s+/g, " "),
    /One state goes furthest: block 0 at “·cat\/··sat·dog” \(token 1\), put from the clean run into the corrupted run,/,
  );
  assert.match(text.replace(/\s+/g, " "), /moves the logit difference 75 % of the way\./);
  assert.match(text, /“·The” less “·b”: clean 4, corrupted -4/);
  assert.match(
    text.replace(/\s+/g, " "),
    /put back moves the run by -0\.001; random changes as long as the patch's by at most 0\.1/,
  );
});

test("columns follow the text, however the positions were asked for", () => {
  const positions = [-1, 0, -2];
  const sites = result.sites.map((site) => ({ ...site, position: [0, -2, -1][site.position] as number }));
  assert.equal(draw({ ...result, positions, sites }).slice(1, 4), draw(result).slice(1, 4));
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
  assert.match(text, /target less foil, mean of 2 pairs/);
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
    /^layer 0, token 1\nclean ·cat, corrupted ··sat·dog\nrecovery 75\.0 %\nlogit difference 2 \(\+6\.000\)\nchange 3 of a row of 12/,
  );
  assert.match(map.details[0] as string, /nothing can change here/);
  assert.match(
    summary[1] as string,
    /^Logit difference \(·The less ·b\): 4 in the clean run, -4 in the corrupted one\.$/,
  );
});

test.run();
