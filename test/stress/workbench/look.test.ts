/**
 * Every view of the workbench and a result of each, narrow, middling and wide, light and dark: no finding of axe of
 * any weight, nothing wider than the window, no element on a tab stop without a name.
 */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { aroundBrowser, assertLooksWell, inBrowser } from "../../support/browser.js";
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

const views = ["chat", "inspect", "patch", "steer", "probe", "features", "jobs", "models"];
const everyImpact = ["minor", "moderate", "serious", "critical"];

inBrowser("every view and a result of each, 360, 1280 and 3840 wide, light and dark", async () => {
  const { page: first, context: once } = await visit(bench, { viewport: { width: 1280, height: 900 } });
  const results = await resultsOfAllViews(first);
  await once.close();
  for (const width of [360, 1280, 3840]) {
    for (const colorScheme of ["light", "dark"] as const) {
      const { page, context, troubles } = await visit(bench, {
        ...{ colorScheme, viewport: { width, height: 900 }, bypassCSP: true },
      });
      const look = async (name: string) => {
        const impacts = name.startsWith("a conversation") ? undefined : everyImpact;
        await assertLooksWell(page, `${name}, ${width}, ${colorScheme}`, impacts);
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
      // With a slider, which stands beside the conversation.
      await page.getByRole("button", { name: "Change a layer" }).click();
      await look("a conversation with a change");
      assert.equal(troubles, []);
      await context.close();
    }
  }
});

test.run();
