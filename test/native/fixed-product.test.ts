/** The products of attribution graphs, which take matrices and rows in pieces. */
import { execFileSync } from "node:child_process";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { builtTool } from "../support/built-tool.js";

for (const kernels of ["avx512", "avx2", "portable"]) {
  test(`products of all sizes are those of plain loops, with kernels for ${kernels}`, async () => {
    const program = await builtTool("tapline-fixed-product");
    const env = { ...process.env, TAPLINE_KERNELS: kernels };
    const line = execFileSync(program, ["12"], { encoding: "utf8", env });
    assert.equal(JSON.parse(line), { products: 72, wrong: 0 });
  });
}

test.run();
