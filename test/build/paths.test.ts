import { execFileSync } from "node:child_process";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { root } from "../../scripts/build/paths.js";

/** Paths relative to the checkout, as a process with this TAPLINE_TREE computes them. */
function pathsWith(tree: string): unknown {
  const program = `import { buildRoot, root, treeOf, verifyFolder } from "./scripts/build/paths.js";
    import { relative } from "node:path";
    const all = [buildRoot, treeOf("cpu"), treeOf("cpu", "address,undefined"), verifyFolder];
    console.log(JSON.stringify(all.map((path) => relative(root, path).replaceAll("\\\\", "/"))));`;
  const env = { ...process.env, TAPLINE_TREE: tree };
  const options = { cwd: root, env, encoding: "utf8" } as const;
  return JSON.parse(execFileSync(process.execPath, ["--input-type=module", "-e", program], options));
}

test("TAPLINE_TREE names a separate tree at the same depth, with its own logs", () => {
  assert.equal(pathsWith(""), [".build", ".build/cpu", ".build/cpu-address-undefined", ".build/verify"]);
  assert.equal(pathsWith("llama-v9"), [
    ".build",
    ".build/llama-v9",
    ".build/llama-v9-address-undefined",
    ".build/verify/llama-v9",
  ]);
});

test.run();
