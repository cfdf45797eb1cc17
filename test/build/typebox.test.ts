import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { joinTypebox } from "../../scripts/build/typebox.js";

test("compiled files import typebox joined, and check with it as with the package", async () => {
  const dist = mkdtempSync(join(os.tmpdir(), "tapline-typebox-"));
  try {
    mkdirSync(join(dist, "a/b"), { recursive: true });
    mkdirSync(join(dist, "typebox"));
    writeFileSync(join(dist, "package.json"), '{ "type": "module" }');
    writeFileSync(join(dist, "typebox/left-behind.js"), "");
    writeFileSync(
      join(dist, "a/b/schema.js"),
      [
        '/** As one writes it: import Type from "typebox"; */',
        'import Type, {} from "typebox";',
        "export const few = Type.Object({ k: Type.Integer({ minimum: 1, maximum: 3 }) });",
        "",
      ].join("\n"),
    );
    writeFileSync(
      join(dist, "check.js"),
      [
        'import { Compile } from "typebox/compile";',
        'import { few } from "./a/b/schema.js";',
        "export const checked = [0, 1, 3, 4, 1.5].map((k) => Compile(few).Check({ k }));",
        "",
      ].join("\n"),
    );
    await joinTypebox(dist);
    const { checked } = await import(pathToFileURL(join(dist, "check.js")).href);
    assert.equal(checked, [false, true, true, false, false]);
    const schema = readFileSync(join(dist, "a/b/schema.js"), "utf8");
    assert.match(
      schema,
      /^\/\*\* As one writes it: import Type from "typebox"; \*\/\n.* from "\.\.\/\.\.\/typebox\/index\.js";/,
    );
    assert.match(readFileSync(join(dist, "check.js"), "utf8"), /^import .* from "\.\/typebox\/compile\.js";/);
    assert.match(readFileSync(join(dist, "typebox/license"), "utf8"), /MIT License[\s\S]*Copyright/);
    assert.throws(() => readFileSync(join(dist, "typebox/left-behind.js")), /ENOENT/);
  } finally {
    rmSync(dist, { recursive: true, force: true });
  }
});

test.run();
