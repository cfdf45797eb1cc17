/** A system's own sqlite3 beside writers that are killed: 100 rounds, nothing that was acknowledged is lost. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import { foreignRounds, hasSqlite3 } from "../../studies/support/foreign-reader.js";

const rounds = Number(process.env.TAPLINE_STRESS_KILLS ?? 100);
const folder = mkdtempSync(join(tmpdir(), "tapline-foreign-"));

test(`${rounds} rounds alongside a system's sqlite3 lose nothing`, async () => {
  if (!(await hasSqlite3())) return console.log("SKIPPED: sqlite3 is not installed (Debian: sqlite3).");
  let drafts = 0;
  // A database for each ten: a full read takes longer the larger it is, and the writers continue meanwhile.
  for (let done = 0; done < rounds; done += 10) {
    drafts += await foreignRounds(join(folder, `${done}.db`), Math.min(10, rounds - done));
  }
  console.log(`${drafts} drafts acknowledged, all there`);
});

test.after(() => rmSync(folder, { recursive: true, force: true }));
test.run();
