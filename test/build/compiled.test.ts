import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { isCompiled } from "../../scripts/build/compiled.js";

test("a build is current until a source or setting changes and only if it finished", () => {
  const folder = mkdtempSync(join(os.tmpdir(), "tapline-compiled-"));
  const write = (name: string, seconds: number) => {
    mkdirSync(join(folder, name, ".."), { recursive: true });
    writeFileSync(join(folder, name), "");
    utimesSync(join(folder, name), seconds, seconds);
  };
  try {
    write("src/cli/main.ts", 100);
    write("tsconfig.json", 100);
    for (const folders of ["src/cli", "src"]) utimesSync(join(folder, folders), 100, 100);
    assert.is(isCompiled(folder), false);
    write("dist/cli/main.js", 200); // the compiler was ended in its middle
    assert.is(isCompiled(folder), false);
    write("dist/.compiled", 200);
    assert.is(isCompiled(folder), true);
    write("src/cli/main.ts", 300);
    assert.is(isCompiled(folder), false);
    write("dist/.compiled", 301);
    assert.is(isCompiled(folder), true);
    write("tsconfig.json", 302);
    assert.is(isCompiled(folder), false);
    write("dist/.compiled", 303);
    rmSync(join(folder, "dist/cli/main.js"));
    assert.is(isCompiled(folder), false);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test.run();
