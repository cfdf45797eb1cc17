/**
 * Every view of the workbench and a result of each, from narrow to wide, light and dark: no finding of axe of any weight,
 * nothing wider than the window, no element on a tab stop without a name.
 */
import type { Page } from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { aroundBrowser, assertLooksWell, inBrowser } from "../../support/browser.js";
import { until } from "../../support/until.js";
import { type Bench, startBench, visit } from "../../workbench/bench.js";
import { keepDictionary } from "../../workbench/corner-dictionary.js";
import { resultsOfAllViews } from "../../workbench/results.js";

let bench: Bench;
aroundBrowser({
  async start() {
    bench = await startBench();
    await keepDictionary(bench.folder);
  },
  end: () => bench?.close(),
});

const views = [
  ...["chat", "inspect", "compare", "patch", "graph", "steer", "probe", "features", "drift", "jobs"],
  ...["session", "models"],
];
const everyImpact = ["minor", "moderate", "serious", "critical"];

/** Goes on otherwise from a token of the conversation that is shown. @returns the new one's address */
async function branch(page: Page): Promise<string> {
  await page.getByRole("region", { name: "Inside a token" }).waitFor();
  await page.getByRole("button", { name: "Resample from here" }).click();
  await page.getByRole("group", { name: "Version 2 of 2" }).waitFor();
  await until(async () => (await page.getByText("Generating…").count()) === 0);
  return new URL(page.url()).pathname;
}

inBrowser("every view and a result of each, 360, 768, 1280 and 3840 wide, light and dark", async () => {
  const { page: first, context: once } = await visit(bench, { viewport: { width: 1280, height: 900 } });
  const results = await resultsOfAllViews(first);
  await first.goto(bench.workbench.url + results["a conversation"]?.path);
  const other = await branch(first);
  await once.close();
  for (const width of [360, 768, 1280, 3840]) {
    for (const colorScheme of ["light", "dark"] as const) {
      const { page, context, troubles } = await visit(bench, {
        ...{ colorScheme, viewport: { width, height: 900 }, bypassCSP: true },
      });
      const look = async (name: string) => {
        await assertLooksWell(page, `${name}, ${width}, ${colorScheme}`, everyImpact);
        const folder = process.env.TAPLINE_LOOK;
        const file = `${name.replaceAll(" ", "-")}-${width}-${colorScheme}.png`;
        if (folder !== undefined) await page.screenshot({ path: `${folder}/${file}`, fullPage: true });
      };
      for (const view of views) {
        await page.goto(`${bench.workbench.url}/${view}`);
        await page.getByRole("heading", { level: 1 }).waitFor({ state: "attached" });
        await look(`the view ${view}`);
      }
      for (const [name, { path, shown }] of Object.entries(results)) {
        await page.goto(bench.workbench.url + path);
        await shown(page);
        await look(name);
      }
      // With a slider next to the conversation; the thinking is unfolded.
      await page.getByRole("button", { name: "Change a layer" }).click();
      await page.locator(".thinking summary").first().click();
      await page.locator(".thinking p .t").first().waitFor();
      await look("a conversation with a change");
      await page.goto(bench.workbench.url + other);
      await page.getByRole("group", { name: "Version 2 of 2" }).waitFor();
      await page.getByRole("button", { name: "Edit question" }).click();
      await look("a conversation with an edited question");
      assert.equal(troubles, []);
      await context.close();
    }
  }
});

test.run();
