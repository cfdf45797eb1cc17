/** The README's blocks, pasted as they stand, one after the other. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { runPage } from "./run-page.js";

test("README: every block as it stands", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tapline-readme-"));
  try {
    const { code, shown, odd, blocks } = await runPage("README.md", folder);
    assert.is(code, 0, shown);
    assert.ok(blocks >= 8, String(blocks));
    assert.equal(odd, []);
    assert.match(shown, "The capital of Japan is Tokyo.");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test.run();
