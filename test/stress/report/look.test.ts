/**
 * How reports look: an axe audit, and whether pages fit their window. TAPLINE_SCREENSHOTS=<folder> also keeps
 * pictures of the pages.
 */
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { SaeResult } from "../../../src/contracts/index.js";
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

inBrowser("the names of crowded points do not overlap", async () => {
  const job = saeJob();
  const [report] = (job.result as SaeResult).reports as [SaeResult["reports"][number]];
  const features = Array.from({ length: 16 }, (_, feature) => ({
    feature: 100 + feature,
    mean: 1 + (feature % 4) / 100,
    frequency: 0.5 + feature / 200,
    examples: [],
  }));
  const result = { ...job.result, reports: [{ ...report, features }] } as SaeResult;
  const { page, close } = await openReport({ ...job, result });
  const boxes = await page
    .locator("#features .chart text")
    .evaluateAll((all) =>
      all
        .filter(({ textContent }) => /^1\d\d$/.test(textContent ?? ""))
        .map((one) => one.getBoundingClientRect()),
    );
  assert.ok(boxes.length > 4 && boxes.length <= 16, `${boxes.length} names`);
  for (const [index, one] of boxes.entries()) {
    for (const other of boxes.slice(index + 1)) {
      const apart =
        one.right <= other.left ||
        other.right <= one.left ||
        one.bottom <= other.top + 3 ||
        other.bottom <= one.top + 3;
      assert.ok(apart, JSON.stringify([one, other]));
    }
  }
  await close();
});

test.run();
