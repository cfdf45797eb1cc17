/**
 * How reports look: an axe audit, and whether pages fit their window. TAPLINE_SCREENSHOTS=<folder> also keeps
 * pictures of the pages.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { aroundBrowserTests, inBrowser, openReport } from "../../report/browser.js";
import { compareJob, inspectJob, probeJob, saeJob } from "../../report/jobs.js";

const pictures = process.env.TAPLINE_SCREENSHOTS;

aroundBrowserTests();

inBrowser("axe finds nothing serious, and everything fits, light and dark, wide and narrow", async () => {
  const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  for (const job of [inspectJob(), compareJob(), probeJob(), saeJob()]) {
    for (const [scheme, width] of [
      ["light", 1200],
      ["dark", 380],
    ] as const) {
      const { page, troubles, close } = await openReport(job, {
        colorScheme: scheme,
        viewport: { width, height: 900 },
        bypassCSP: true,
      });
      const name = `${job.operation}, ${scheme}, ${width}`;
      await page.evaluate("for (const closed of document.querySelectorAll('details')) closed.open = true");
      await page.evaluate(axe);
      const serious = await page.evaluate(async () => {
        // biome-ignore lint/suspicious/noExplicitAny: axe is a global of the page
        const { violations } = await (globalThis as any).axe.run();
        return violations
          .filter(({ impact }: { impact: string }) => impact === "serious" || impact === "critical")
          .map(({ id, nodes }: { id: string; nodes: { html: string }[] }) => `${id}: ${nodes[0]?.html}`);
      });
      assert.equal(serious, [], name);
      const overflow = await page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth",
      );
      assert.ok((overflow as number) <= 0, `${name} fits its window`);
      assert.equal(troubles, [], name);
      if (pictures !== undefined) {
        const path = join(pictures, `report-${job.operation}-${scheme}-${width}.png`);
        await page.screenshot({ path, fullPage: true });
      }
      await close();
    }
  }
});

test.run();
