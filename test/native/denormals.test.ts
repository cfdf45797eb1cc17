/** How trainers keep denormals out of their arithmetic; `.ci/arm64` checks the same program on ARM. */
import { execFileSync } from "node:child_process";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { builtTool } from "../support/built-tool.js";

test("denormals are zero while they are flushed, and no longer", async () => {
  const program = await builtTool("tapline-denormals");
  const found = JSON.parse(execFileSync(program, { encoding: "utf8" }));
  const exact = { result: 1, operand: 1, double: 1 };
  assert.equal(found.before, exact);
  assert.equal(found.during, { result: 0, operand: 0, double: 0 });
  assert.equal(found.after, exact);
});

test.run();
