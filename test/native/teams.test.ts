/** The threads of released addons, in which native/openmp takes the place of an OpenMP library. */
import { execFileSync } from "node:child_process";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { builtTool } from "../support/built-tool.js";

const onLinux = process.platform === "linux" ? test : test.skip;

for (const spins of ["0", "4000"]) {
  onLinux(`parallel regions share what threads wrote, after ${spins} spins`, async () => {
    const program = await builtTool("tapline-teams");
    const env = { ...process.env, GOMP_SPINCOUNT: spins };
    const line = execFileSync(program, ["400"], { encoding: "utf8", env });
    assert.equal(JSON.parse(line), { regions: 1200, wrong: 0 });
  });
}

test.run();
