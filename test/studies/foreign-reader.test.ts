import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import { foreignRounds, hasSqlite3 } from "./support/foreign-reader.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-foreign-"));

test("a foreign sqlite3 that reads and copies beside the service removes nothing", async () => {
  if (!(await hasSqlite3())) return console.log("SKIPPED: sqlite3 is not installed (Debian: sqlite3).");
  await foreignRounds(join(folder, "studies.db"), 2);
});

test.after(() => rmSync(folder, { recursive: true, force: true }));
test.run();
