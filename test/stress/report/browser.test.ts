/** Reports in a real browser without a network: Debian's chromium, driven by playwright-core. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { aroundReports, assertDrawable, openReport } from "../../report/browser.js";
import { hostileJobs, inspectJob, probeJob } from "../../report/jobs.js";
import { inBrowser } from "../../support/browser.js";
import { downloaded } from "../../support/downloads.js";
import { until } from "../../support/until.js";

aroundReports();

inBrowser("hostile texts break nothing: no error, no request, no foreign script", async () => {
  for (const job of hostileJobs()) {
    const { page, troubles, close } = await openReport(job);
    assert.equal(troubles, [], job.operation);
    assert.is(await page.evaluate("window.broken"), undefined);
    assert.is(await page.locator("main img, main iframe, main script").count(), 0);
    for (const kind of ["svg", "png", "csv"]) {
      const button = page.locator(`figure [data-save=${kind}]`).first();
      const { bytes } = await downloaded(page, () => button.click());
      assert.ok(bytes.length > 20, `${job.operation} ${kind}`);
      if (kind === "svg") await assertDrawable(page, bytes.toString());
      if (kind === "csv") assert.not.match(bytes.toString(), /(?:^|[,\n])"?[=@]/);
    }
    await close();
  }
});

inBrowser("the mouse and the arrow keys show the same detail", async () => {
  const { page, troubles, close } = await openReport(inspectJob());
  const chart = page.locator("#logit-lens .chart");
  const tip = chart.locator('[aria-label="tip"]');
  await chart.scrollIntoViewIfNeeded();
  const cell = chart.locator('[aria-label="cell"] rect').first();
  await cell.hover();
  // Plot begins its lines with zero-width spaces.
  const shown = async () => (await tip.textContent())?.replaceAll("\u200b", "") ?? "";
  const byMouse = await until(async () => (await shown()).startsWith("layer") && shown());
  assert.match(byMouse, /layer 0, after The \(token 0\)The {2}50\.0 %·b {2}10\.0 %·c {2}5 %/);

  await page.mouse.move(5, 5);
  await until(async () => (await shown()) === "");
  await chart.focus();
  await page.keyboard.press("ArrowRight");
  const status = page.locator("#logit-lens .detail");
  // 0.5 log 2 + 0.1 log 10 + 0.4 log 20: no token of the rest is more probable than the third.
  assert.is(
    await status.textContent(),
    "layer 0, after The (token 0), The  50.0 %, ·b  10.0 %, ·c  5 %, entropy  2.56 bits or more, norm  1",
  );
  await until(async () => (await shown()) === byMouse);
  await page.keyboard.press("End");
  assert.match((await status.textContent()) ?? "", /layer 3, after ·is \(token 4\)/);
  await page.keyboard.press("Escape");
  assert.is(await status.textContent(), "");
  assert.equal(troubles, []);
  await close();
});

inBrowser("the theme can be chosen, and paper is always light", async () => {
  const { page, close } = await openReport(inspectJob(), { colorScheme: "dark" });
  const background = () => page.evaluate("getComputedStyle(document.documentElement).backgroundColor");
  const label = () =>
    page
      .locator("#norms .chart svg")
      .last()
      .evaluate((svg) => (svg as unknown as { style: { color: string } }).style.color);
  const onPaper = async () => {
    await page.emulateMedia({ media: "print" });
    assert.is(await background(), "rgb(255, 255, 255)");
    const ink = await page.evaluate("getComputedStyle(document.documentElement).color");
    assert.is(ink, "rgb(29, 31, 35)");
    const caution = "getComputedStyle(document.querySelector('.notice')).backgroundColor";
    assert.is(await page.evaluate(caution), "rgb(255, 243, 228)");
    await page.emulateMedia({ media: "screen" });
  };
  assert.is(await background(), "rgb(21, 23, 26)");
  await onPaper();
  assert.is(await label(), "rgb(232, 230, 225)");
  await page.getByRole("button", { name: "Theme: system" }).click();
  assert.is(await background(), "rgb(251, 250, 247)");
  assert.is(await label(), "rgb(29, 31, 35)");
  await page.getByRole("button", { name: "Theme: light" }).click();
  await page.getByRole("button", { name: "Theme: dark" }).waitFor();
  await onPaper();
  // The style of a printed page, seen between the two events of printing.
  await page.evaluate(
    "addEventListener('beforeprint', () => { window.printed = document.querySelector('#norms .chart > svg').style.color })",
  );
  await page.pdf({ format: "A4" });
  assert.is(await page.evaluate("window.printed"), "rgb(29, 31, 35)");
  assert.is(await label(), "rgb(232, 230, 225)", "and back");
  await close();
});

inBrowser("without JavaScript the data are readable", async () => {
  const { page, close } = await openReport(probeJob(), { javaScriptEnabled: false });
  assert.ok(await page.getByText("Figures need JavaScript. The tables below have their data.").isVisible());
  await page.locator("#roc details summary").click();
  assert.is(await page.locator("#roc tbody tr").count(), 8);
  assert.ok(await page.locator("#roc table").isVisible());
  await close();
});

inBrowser("a text of a thousand tokens continues in lines that fit", async () => {
  const tokens = Array.from({ length: 1024 }, (_, index) => ` w${index}`);
  const { page, troubles, close } = await openReport(inspectJob(tokens), {
    viewport: { width: 700, height: 800 },
  });
  const lines = await page.locator("#logit-lens .chart > svg").count();
  assert.ok(lines > 80, String(lines));
  assert.is(await page.locator("#logit-lens .chart [aria-label=cell] rect").count(), 2048);
  await page.setViewportSize({ width: 1200, height: 800 });
  // Pages forbid eval, which Playwright's own waiting needs.
  await until(
    async () => (await page.locator("#logit-lens .chart > svg").count()) < lines,
    "a wider window takes fewer lines",
  );
  assert.equal(troubles, []);
  await close();
});

test.run();
