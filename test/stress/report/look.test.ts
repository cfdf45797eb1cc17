/**
 * How reports look: an axe audit, and whether pages fit their window. TAPLINE_SCREENSHOTS=<folder> also keeps
 * pictures of the pages.
 */
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { aroundReports, openReport } from "../../report/browser.js";
import { compareJob, inspectJob, probeJob, saeJob } from "../../report/jobs.js";
import { assertLooksWell, inBrowser } from "../../support/browser.js";

const pictures = process.env.TAPLINE_SCREENSHOTS;

aroundReports();

inBrowser("axe finds nothing serious, and everything fits, light and dark, wide and narrow", async () => {
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
      await assertLooksWell(page, name);
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
