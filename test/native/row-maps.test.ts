/** The predicted micro-batches of random batches, beside those that llama.cpp's own code makes. */
import { execFileSync } from "node:child_process";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { builtTool } from "../support/built-tool.js";

interface Comparison {
  compared: number;
  divided: number;
  differing: number;
}

const count = 5000;
const seed = 29;

test("predicted micro-batches of 5,000 random batches per split match llama.cpp's", async () => {
  const program = await builtTool("tapline-row-maps");
  const line = execFileSync(program, [String(count), String(seed)], { encoding: "utf8" });
  const found = JSON.parse(line) as Record<string, Comparison>;
  assert.equal(Object.keys(found), ["inOrder", "equal", "equalAscending"]);
  for (const [split, { compared, divided, differing }] of Object.entries(found)) {
    assert.equal({ compared, differing }, { compared: count, differing: 0 }, split);
    // A batch that is one micro-batch proves little.
    assert.ok(divided > count / 2, `${split}: llama.cpp divided ${divided} of ${count} batches`);
  }
});

test.run();
