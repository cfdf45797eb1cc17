/**
 * Every view of the workbench with a result on a real model, SmolLM2-135M-Instruct: `npm run verify:workbench`. It says what
 * the model answers where that is known, and has no finding of axe, wide and narrow, light and dark.
 *   TAPLINE_LOOK=FOLDER  keeps a picture of each
 * The model is prepared in the cache on first use (test/support/real).
 */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { aroundBrowser, assertLooksWell, inBrowser } from "../support/browser.js";
import { smolLm2Model } from "../support/real/models.js";
import { until } from "../support/until.js";
import { type Bench, startBench, visit } from "../workbench/bench.js";
import { keepDictionary } from "../workbench/corner-dictionary.js";
import { resultsOfAllViews } from "../workbench/results.js";

let bench: Bench;
aroundBrowser({
  async start() {
    // In 8 bits "The" and "L" change places as the answer's first token: it is a tie of 0.08 nats.
    const { f16 } = await smolLm2Model();
    bench = await startBench(undefined, f16);
    await keepDictionary(bench.folder, 576);
  },
  end: () => bench?.close(),
});

/** Facts about the results from other sources: the model knows the capitals, and its 30 blocks are all there. */
const known: Record<string, RegExp> = {
  inspect: /[Tt]he most probable next token[^.]*“·Paris”|“·Paris”/,
  patch: /·Paris against ·Tokyo/,
  "a conversation": /Paris/,
  probe: /AUROC|accuracy/i,
  steer: /Direction|unknown/,
  features: /fidelity|explained|texts/i,
  "a feature": /Dictionary corner, layer 5/,
  "two jobs": /Paris/,
};

inBrowser("every view with a result on SmolLM2-135M-Instruct", async () => {
  const {
    page: first,
    context: once,
    troubles,
  } = await visit(bench, { viewport: { width: 1280, height: 900 } });
  await first.locator(".strip").getByText("30 layers, width 576").waitFor();
  const results = await resultsOfAllViews(first);
  // One layer is changed, and the answer with it.
  await first.getByText(/\d+ of \d+ words differ/).waitFor();
  assert.equal(troubles, []);
  await once.close();
  for (const [width, colorScheme] of [
    [1280, "light"],
    [1280, "dark"],
    [360, "light"],
  ] as const) {
    const { page, context, troubles } = await visit(bench, {
      ...{ colorScheme, viewport: { width, height: 900 }, bypassCSP: true },
    });
    const look = async (name: string) => {
      await assertLooksWell(page, `${name}, ${width}, ${colorScheme}`);
      const [folder, file] = [process.env.TAPLINE_LOOK, `real-${name.replaceAll(" ", "-")}`];
      if (folder === undefined) return;
      await page.screenshot({ path: `${folder}/${file}-${width}-${colorScheme}.png`, fullPage: true });
    };
    for (const [name, { path, shown }] of Object.entries(results)) {
      await page.goto(bench.workbench.url + path);
      await shown(page);
      await until(
        async () => (known[name] as RegExp).test((await page.locator("main").textContent()) ?? ""),
        name,
      );
      await look(name);
    }
    await page.goto(`${bench.workbench.url}/models`);
    const row = page.getByRole("region", { name: "Models on this machine" }).locator("tr[aria-current]");
    await row.getByText(/F16/).first().waitFor();
    await row.getByText(/fits/).first().waitFor();
    await look("models");
    assert.equal(troubles, []);
    await context.close();
  }
});

test.run();
