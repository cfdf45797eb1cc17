/** Results as a dashboard: one large figure, small ones in two columns, and details next to the click. */
import type { Locator, Page } from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { aroundBrowser, inBrowser } from "../../support/browser.js";
import { until } from "../../support/until.js";
import { type Bench, startBench, visit } from "../../workbench/bench.js";
import { openMenu } from "../../workbench/menus.js";

let bench: Bench;
aroundBrowser({
  async start() {
    bench = await startBench();
  },
  end: () => bench?.close(),
});

const boxOf = async (one: Locator) =>
  (await one.boundingBox()) as { x: number; y: number; width: number; height: number };

async function run(page: Page, view: string): Promise<void> {
  await page.getByRole("link", { name: view, exact: true }).click();
  await page.getByRole("button", { name: view, exact: true }).click();
}

inBrowser("a patch's card opens next to the outlined cell, in view, wide and narrow", async () => {
  for (const width of [1440, 390]) {
    const { page, context, troubles } = await visit(bench, { viewport: { width, height: 844 } });
    await run(page, "Patch");
    // The map of a running job, "..., so far", gives way to this one.
    const map = page.getByRole("figure", { name: "Recovery by layer and token", exact: true });
    const cells = map.locator('[aria-label="cell"] rect');
    await cells.first().waitFor();
    // The row of layer 5; the cells that can change anything are drawn last.
    const cell = cells.last();
    await cell.click();
    const card = page.getByRole("region", { name: "Selected site" });
    await card.waitFor();
    const least = width === 390 ? (await boxOf(page.getByRole("navigation", { name: "Views" }))).y : 844;
    await until(async () => (await boxOf(card)).y + (await boxOf(card)).height <= least + 1, "in view");
    const [at, shown, outline] = await Promise.all([
      boxOf(cell),
      boxOf(card),
      boxOf(map.locator(".cell-outline")),
    ]);
    assert.ok(
      Math.abs(outline.x - at.x) < 6 && Math.abs(outline.y - at.y) < 6,
      JSON.stringify([outline, at]),
    );
    assert.ok(Math.abs(outline.width - at.width) < 12, JSON.stringify([outline, at]));
    const beside = shown.x >= at.x + at.width;
    assert.is(beside, width === 1440, "next to the map where there is room");
    if (beside) assert.ok(Math.abs(shown.y - at.y) < 40, `${shown.y - at.y} pixels from the cell`);
    else {
      // Below the picture with the cell: it covers no cell, and the views' bar does not cover it.
      const picture = await boxOf(
        map
          .locator("svg")
          .filter({ has: page.locator('[aria-label="cell"]') })
          .last(),
      );
      assert.ok(shown.y >= picture.y + picture.height && shown.y < picture.y + picture.height + 40);
      const bar = await boxOf(page.getByRole("navigation", { name: "Views" }));
      assert.ok(shown.y + shown.height <= bar.y + 1, JSON.stringify([shown, bar]));
    }
    // Another cell takes both along; without a selection both are gone.
    await page.reload();
    await map.locator(".cell-outline").waitFor();
    await card.getByRole("button", { name: "Clear selection" }).click();
    await map.locator(".cell-outline").waitFor({ state: "detached" });
    assert.is(await card.count(), 0);
    assert.equal(troubles, []);
    await context.close();
  }
});

inBrowser("a site clicked while the patch runs shows its numbers so far", async () => {
  const { page, context, troubles } = await visit(bench, { viewport: { width: 1440, height: 3000 } });
  await page.getByRole("link", { name: "Patch", exact: true }).click();
  for (const point of ["MLP outputs", "MLP inputs", "Block outputs"]) {
    await page.getByRole("checkbox", { name: point }).check();
  }
  const long = " is the capital".repeat(50);
  await page.getByRole("textbox", { name: "Clean" }).fill(`The capital of France${long}`);
  await page.getByRole("textbox", { name: "Corrupted" }).fill(`The capital of Japan${long}`);
  await page.getByRole("button", { name: "Patch", exact: true }).click();
  const map = page.getByRole("figure", { name: /^Recovery by layer and token.* so far$/ });
  // The map is drawn again after each step, so no cell stays as long as click() waits.
  const { x, y, width, height } = await until(
    async () => (await map.locator('[aria-label="cell"] rect').last().boundingBox()) ?? undefined,
  );
  await page.mouse.click(x + width / 2, y + height / 2);
  const card = page.getByRole("region", { name: "Selected site" });
  await card.getByText(/layer \d, token \d+/).waitFor();
  await map.locator(".cell-outline").waitFor();
  await card.getByRole("button", { name: "Clear selection" }).click();
  await card.waitFor({ state: "detached" });
  await page.getByRole("button", { name: /^Cancel job/ }).click();
  await page.getByRole("alert").first().waitFor();
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("one figure has the whole width, the others two columns, on phones one", async () => {
  const { page, context, troubles } = await visit(bench, { viewport: { width: 1440, height: 900 } });
  await run(page, "Inspect");
  const figures = page.locator(".result figure");
  await figures.nth(3).locator("svg").first().waitFor();
  const lens = await boxOf(page.getByRole("figure", { name: "Logit lens" }));
  const [one, two] = [
    await boxOf(page.locator(".multiples figure").first()),
    await boxOf(page.locator(".multiples figure").nth(1)),
  ];
  assert.ok(one.width < lens.width / 2 + 1 && two.x > one.x + one.width - 1 && Math.abs(one.y - two.y) < 1);
  await page.setViewportSize({ width: 390, height: 844 });
  await until(async () => (await boxOf(page.locator(".multiples figure").nth(1))).x < 30);
  // The answer comes before the form, which one line opens.
  const lead = await boxOf(page.getByRole("region", { name: "Result" }));
  assert.ok(lead.y < 260, String(lead.y));
  const text = page.getByRole("textbox", { name: "Text" });
  assert.not(await text.isVisible());
  await page.getByText("Change the settings").click();
  await text.waitFor();
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("a result's exports are in one menu, which Escape and a click elsewhere close", async () => {
  const { page, context } = await visit(bench, { viewport: { width: 1440, height: 900 } });
  await run(page, "Inspect");
  const menu = page.locator(".result-tools .menu");
  await menu.waitFor();
  const report = page.getByRole("button", { name: "Report as HTML" });
  assert.not(await report.isVisible());
  await openMenu(page, "Export and scripts");
  await report.waitFor();
  await report.focus();
  await page.keyboard.press("Escape");
  assert.not(await report.isVisible());
  assert.is(await page.evaluate("document.activeElement.getAttribute('aria-label')"), "Export and scripts");
  await openMenu(page, "Export and scripts");
  // As a view that has just been shown does.
  await page.evaluate("document.getElementById('content').focus()");
  assert.ok(await report.isVisible());
  await page.getByRole("heading", { level: 1 }).click();
  await until(async () => !(await report.isVisible()));
  // What is ready is not worth a word.
  assert.not.match((await page.locator(".strip").textContent()) ?? "", /ready|Server|Lab/);
  await context.close();
});

test.run();
