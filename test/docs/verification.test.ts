import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { readResults, tablesPage, verificationTables } from "../../scripts/docs/verification.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

test("the verification tables are up to date", () => {
  assert.is(readFileSync(tablesPage, "utf8"), verificationTables(), "run npm run docs:verification");
});

test("the tables list every verify command of package.json and no other", () => {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const [commands] = readResults("checks").tables;
  const listed = new Set(
    commands?.rows.map(([command]) => /^`([\w:-]+)/.exec(command as string)?.[1] as string),
  );
  const known = Object.keys(scripts).filter((name) => name.startsWith("verify:") || name === "mutate");
  assert.equal([...listed].sort(), known.sort());
});

test("every row of a table has a cell per column", () => {
  for (const section of ["checks", "architectures", "live", "quantised", "real", "mutation"] as const) {
    for (const { title, head, rows } of readResults(section).tables) {
      for (const row of rows) {
        assert.is(row.length, head.length, `${section}, ${title}: ${row[0]}`);
        assert.not.match(row.join(""), /[|\n]/, `${section}, ${title}: ${row[0]}`);
      }
    }
  }
});

test.run();
