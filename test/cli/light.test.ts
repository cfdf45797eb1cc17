/** A command starts at once because libraries are loaded only where they are used. */
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Packages that a file brings in as soon as it is loaded, by itself or through the files that it imports. */
function packagesOf(file: string, seen = new Set<string>()): Set<string> {
  const packages = new Set<string>();
  if (seen.has(file)) return packages;
  seen.add(file);
  const imports = /^(?:import|export) (?!type\b)(?:[^;"]* from )?"([^"]+)";$/gm;
  for (const [, name] of readFileSync(file, "utf8").matchAll(imports)) {
    const found = name as string;
    if (found.startsWith(".")) {
      const source = resolve(dirname(file), found.replace(/\.js$/, ".ts"));
      for (const further of packagesOf(source, seen)) packages.add(further);
    } else if (!found.startsWith("node:")) packages.add(found);
  }
  return packages;
}

test("start-up loads only the argument parser; the client loads no package", () => {
  assert.equal([...packagesOf(join(root, "src/cli/main.ts"))], ["commander"]);
  assert.equal([...packagesOf(join(root, "src/client/index.ts"))], []);
  assert.ok(packagesOf(join(root, "src/contracts/index.ts")).has("typebox"));
});

test("a worker of the Lab loads its model, and no schema", () => {
  const parts = ["lab/worker/main", "lab/worker/run-job", "operations/runs", "operations/sae/run-in-batches"];
  const packages = parts.flatMap((part) => [...packagesOf(join(root, `src/${part}.ts`))]);
  assert.equal([...new Set(packages)], ["ndarray"]);
});

test.run();
