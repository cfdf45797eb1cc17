/** The experiments' pages, typed as they stand. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { runPage } from "./run-page.js";

for (const name of ["inspect", "compare", "probe", "sae", "features"]) {
  test(`${name}: every command on its page works`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "tapline-docs-"));
    try {
      const { code, shown, odd } = await runPage(`docs/experiments/${name}.md`, folder);
      assert.is(code, 0, shown);
      assert.equal(odd, []);
      const written = readdirSync(join(folder, "work"));
      assert.is(written.filter((file) => file.endsWith(".html")).length, 1, written.join(" "));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}

test.run();
