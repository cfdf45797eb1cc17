/** Every view of the workbench at three widths, light and dark: nothing serious for axe, nothing wider than the window. */

import { test } from "uvu";
import * as assert from "uvu/assert";
import { aroundBrowser, assertLooksWell, inBrowser } from "../../support/browser.js";
import { until } from "../../support/until.js";
import { type Bench, startBench, visit } from "../../workbench/bench.js";

let bench: Bench;
aroundBrowser({
  async start() {
    bench = await startBench();
  },
  end: () => bench?.close(),
});

const views = ["Chat", "Inspect", "Patch", "Steer", "Probe", "Features", "Jobs", "Models"];

inBrowser("every view and a result of each, 360, 768, 1440 and 3840 wide, light and dark", async () => {
  for (const width of [360, 768, 1440, 3840]) {
    for (const colorScheme of ["light", "dark"] as const) {
      const { page, context, troubles } = await visit(bench, {
        colorScheme,
        viewport: { width, height: 900 },
        bypassCSP: true,
      });
      const name = `${width}, ${colorScheme}`;
      for (const view of views) {
        await page.getByRole("link", { name: view, exact: true }).first().click();
        await page.getByRole("heading", { level: 1 }).waitFor({ state: "attached" });
        await assertLooksWell(page, `${view}, ${name}`);
      }
      for (const [view, button] of [
        ["Inspect", "Inspect"],
        ["Patch", "Patch"],
        ["Probe", "Train and measure"],
        ["Steer", "Measure seven strengths beside random vectors"],
      ] as const) {
        await page.getByRole("link", { name: view, exact: true }).first().click();
        await page.getByRole("button", { name: button, exact: true }).click();
        await page.getByRole("figure").first().locator("svg").first().waitFor();
        await assertLooksWell(page, `a result of ${view}, ${name}`);
      }
      await page.getByRole("link", { name: "Chat", exact: true }).first().click();
      await page.getByRole("textbox", { name: "Message" }).fill("What is the capital of France?");
      await page.keyboard.press("Enter");
      const answer = page.locator(".answer-text > p .t");
      await until(
        async () => (await page.getByText("answering …").count()) === 0 && (await answer.count()) > 0,
      );
      await answer.first().click();
      await page.getByLabel("Colour by").selectOption("probability");
      await page.getByRole("button", { name: "Change a layer" }).click();
      await assertLooksWell(page, `a conversation, ${name}`);
      assert.equal(troubles, []);
      await context.close();
    }
  }
});

test.run();
