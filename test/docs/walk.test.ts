/** Pages that a reader pastes from, block by block: none may fail, show nothing, or show an error. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { runPage } from "./run-page.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const walked = ["docs/serving.md", "docs/lab.md", "docs/live.md", "docs/reproduce.md"];
/** Pages with blocks that another test runs, or that need what no test has. */
const elsewhere: Record<string, string> = {
  "README.md": "readme.test.ts",
  "docs/first-experiment.md": "commands.test.ts",
  "docs/troubleshooting.md": "commands.test.ts",
  "docs/experiments/inspect.md": "experiments.test.ts",
  "docs/experiments/compare.md": "experiments.test.ts",
  "docs/experiments/probe.md": "experiments.test.ts",
  "docs/experiments/sae.md": "experiments.test.ts",
  "docs/experiments/features.md": "experiments.test.ts",
  "docs/command-line.md": "test/cli/page.test.ts",
  "docs/python.md": "test/clients/docs.test.ts",
  "docs/agents.md": "test/mcp/agents-page.test.ts",
  "docs/models.md": "names a repository of the hub",
  "docs/router.md": "names other machines",
  "docs/scaling.md": "names other machines",
};

test("every page with commands or programs is walked, here or elsewhere", () => {
  const pages = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name.replaceAll("\\", "/")}`);
  const withBlocks = ["README.md", ...pages].filter((page) =>
    /^```(sh|python|js|ts)\b/m.test(readFileSync(join(root, page), "utf8")),
  );
  assert.equal(withBlocks.sort(), [...walked, ...Object.keys(elsewhere)].sort());
});

for (const page of walked) {
  test(`${page}: every block as it stands`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "tapline-walk-"));
    try {
      const { code, shown, odd, blocks } = await runPage(page, folder);
      assert.is(code, 0, shown);
      assert.ok(blocks > 0);
      assert.equal(odd, []);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}

test.run();
