import { readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";

interface Entry {
  version?: string;
  resolved?: string;
  optionalDependencies?: Record<string, string>;
}

const read = (name: string) => JSON.parse(readFileSync(new URL(`../../${name}`, import.meta.url), "utf8"));
const packages: Record<string, Entry> = read("package-lock.json").packages;

test("the lock file lists the optional packages of other platforms", () => {
  for (const [path, { optionalDependencies = {} }] of Object.entries(packages)) {
    for (const name of Object.keys(optionalDependencies)) {
      assert.ok(packages[`node_modules/${name}`]?.version, `${name}, which ${path} may need, has no version`);
    }
  }
});

test("no registry is named, so that everybody's own is used", () => {
  const named = Object.entries(packages).filter(([, { resolved }]) => resolved);
  assert.equal(named, []);
});

test("dependencies are pinned to one version each", () => {
  const { dependencies, devDependencies } = read("package.json");
  for (const [name, range] of Object.entries<string>({ ...dependencies, ...devDependencies })) {
    assert.match(range, /^\d+\.\d+\.\d+$/, name);
  }
});

test.run();
