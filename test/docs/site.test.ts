import { existsSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { sitePages } from "../../scripts/docs/site/pages.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const { pages, files, sidebar } = sitePages(root);

test("every link of the site leads to one of its pages or files", () => {
  let count = 0;
  for (const [page, text] of Object.entries(pages)) {
    const prose = text.replace(/^\s*```[\s\S]*?^\s*```/gm, "");
    for (const [, target] of prose.matchAll(/\]\((?!https?:|mailto:|#)([^)#\s]+)/g)) {
      const place = normalize(join(dirname(page), target as string));
      assert.ok(place in pages || place in files || `public/${place}` in files, `${page}: ${target}`);
      count++;
    }
  }
  assert.ok(count > 250, String(count));
});

test("the site has every file that it copies", () => {
  for (const source of Object.values(files)) assert.ok(existsSync(join(root, source)), source);
});

test("the sidebar has the front page's groups, and each link a page", () => {
  const groups = sidebar.map(({ text }) => text);
  for (const name of ["Start", "Experiments", "Reference"]) assert.ok(groups.includes(name), name);
  for (const { link } of sidebar.flatMap(({ items }) => items)) {
    const page = link === "/" ? "index.md" : `${link.slice(1).replace(/#.*/, "")}.md`;
    assert.ok(page in pages, link);
  }
});

test("links to files that the site lacks become text, and pages elsewhere move", () => {
  assert.match(pages["python.md"] as string, "| `tapline-lab` (source) ");
  assert.match(pages["contributing/index.md"] as string, "[Architecture](../architecture.md)");
  assert.match(pages["experiments/patch.md"] as string, "[card](../demo-model.md)");
});

test.run();
