/** Each view from end to end with the keyboard alone, narrow and wide; where the focus is can be seen, and has a name. */
import type { Page } from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { aroundBrowser, inBrowser } from "../../support/browser.js";
import { downloaded } from "../../support/downloads.js";
import { until } from "../../support/until.js";
import { visit } from "../../workbench/bench.js";
import { offered, tabTo } from "../../workbench/by-keyboard.js";
import { keepDictionary } from "../../workbench/corner-dictionary.js";
import { broughtId, type ModelsBench, startModelsBench } from "../../workbench/models-bench.js";
import { drawn } from "../../workbench/results.js";

let bench: ModelsBench;
aroundBrowser({
  async start() {
    bench = await startModelsBench();
    await keepDictionary(bench.folder);
  },
  end: () => bench?.close(),
});

async function goTo(page: Page, view: string): Promise<void> {
  await tabTo(page, new RegExp(`^${view}$`), "a");
  await page.keyboard.press("Enter");
  await arrived(page);
}

/** In another view, which has the focus. */
async function arrived(page: Page): Promise<void> {
  await page.getByRole("heading", { level: 1 }).waitFor({ state: "attached" });
  await until(async () => (await page.evaluate("document.activeElement.id")) === "content");
}

async function write(page: Page, text: string): Promise<void> {
  await page.keyboard.press("Control+A");
  await page.keyboard.type(text);
}

async function chat(page: Page): Promise<void> {
  await tabTo(page, /^Message$/);
  await write(page, "What is the capital of France?");
  await page.keyboard.press("Enter");
  await page.getByText("24 tokens", { exact: true }).waitFor();
  await tabTo(page, /^Change a layer$/);
  await page.keyboard.press("Enter");
  await tabTo(page, /^Strength of ablate at layer 0$/);
  await page.keyboard.press("ArrowRight");
  await until(async () => (await page.getByRole("slider").inputValue()) === "0.95");
  await tabTo(page, /^Rerun last question$/);
  await page.keyboard.press("Enter");
  await page.getByText(/\d+ of \d+ words differ/).waitFor();
  await page.getByRole("group", { name: "Version 2 of 2" }).waitFor();
  await tabTo(page, /^Answer to “What is the capital of France/);
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Inside a token" }).waitFor();
  await tabTo(page, /^Resample from here$/);
  await page.keyboard.press("Enter");
  await page.getByRole("group", { name: "Version 3 of 3" }).waitFor();
  await tabTo(page, /^Previous version of question 1$/);
  await page.keyboard.press("Enter");
  await page.getByRole("group", { name: "Version 2 of 3" }).waitFor();
}

async function inspectAndPatch(page: Page): Promise<void> {
  await goTo(page, "Inspect");
  await tabTo(page, /^Text/);
  await write(page, "The capital of France is");
  await tabTo(page, /Attention heads/);
  await page.keyboard.press("Space");
  await tabTo(page, /^Inspect$/, "button");
  await page.keyboard.press("Enter");
  await drawn(page, "Attention of layer");
  await tabTo(page, /^Colour by/);
  await page.keyboard.press("ArrowDown");
  await page.locator(".legend", { hasText: "entropy of the reading, in nats" }).waitFor();
  await tabTo(page, /^Logit lens$/, "div");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Selected cell" }).waitFor();
  await tabTo(page, /^Patch here$/);
  await page.keyboard.press("Enter");
  await arrived(page);
  await tabTo(page, /^Corrupted/);
  await write(page, "The capital of Japan is");
  await tabTo(page, /^Patch$/, "button");
  await page.keyboard.press("Enter");
  // Until then there is a map of what is computed so far, which gives way to this one.
  await page.getByRole("region", { name: "Alignment" }).waitFor();
  await drawn(page, "Recovery by layer and token");
  await tabTo(page, /^Recovery by layer and token$/, "div");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Selected site" }).waitFor();
}

async function graph(page: Page): Promise<void> {
  await goTo(page, "Graph");
  await tabTo(page, /^Prompt/);
  await write(page, "The capital of Italy is");
  await tabTo(page, /^Nodes$/);
  await write(page, "60");
  await tabTo(page, /^Compute graph$/, "button");
  await page.keyboard.press("Enter");
  await offered(page.getByRole("application"));
  await tabTo(page, /^Nodes of the graph/, "svg");
  // From the target to the strongest head or neuron below it.
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await tabTo(page, /^Pin$/);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Unpin" }).waitFor();
  await tabTo(page, /^Clear selection$/);
  await page.keyboard.press("Enter");
  await page.getByText("No node selected.").waitFor();
}

async function compare(page: Page): Promise<void> {
  await goTo(page, "Compare");
  await tabTo(page, /^Second text/);
  await write(page, "The capital of Italy is");
  await tabTo(page, /^Compare$/, "button");
  await page.keyboard.press("Enter");
  await drawn(page, /^Difference/);
  await tabTo(page, /^Show/);
  await page.keyboard.press("ArrowDown");
  await drawn(page, /^Norms/);
  await tabTo(page, /^Difference/, "div");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Selected cell" }).waitFor();
  await tabTo(page, /^Clear selection$/);
  await page.keyboard.press("Enter");
  await goTo(page, "Drift");
  await tabTo(page, /^Measure drift$/);
  await page.keyboard.press("Enter");
  await drawn(page, "Block outputs by layer");
}

async function others(page: Page): Promise<void> {
  await goTo(page, "Steer");
  await tabTo(page, /^Layers/);
  await write(page, "5");
  await tabTo(page, /^Measure effect/);
  await page.keyboard.press("Enter");
  await page.getByRole("figure").first().locator("svg").last().waitFor();
  await goTo(page, "Probe");
  await tabTo(page, /^Train and evaluate$/);
  await page.keyboard.press("Enter");
  await page.getByRole("figure").first().locator("svg").last().waitFor();
  await goTo(page, "Jobs");
  await tabTo(page, /^“…good\./, "a");
  await page.keyboard.press("Enter");
  await page.getByRole("figure").first().locator("svg").last().waitFor();
}

async function features(page: Page): Promise<void> {
  await goTo(page, "Features");
  await offered(page.getByRole("button", { name: "Run", exact: true }));
  await tabTo(page, /^Run$/);
  await page.keyboard.press("Enter");
  await drawn(page, "Strongest features");
  await tabTo(page, /^Strongest features$/, "div");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await offered(page.getByRole("button", { name: "Compute feature details" }));
  await tabTo(page, /^Compute feature details$/);
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Strongest" }).waitFor();
  await tabTo(page, /^Export “Examples of feature \d”$/);
  await page.keyboard.press("Enter");
  await tabTo(page, /^Save “Examples of feature \d” as CSV$/);
  const { name } = await downloaded(page, () => page.keyboard.press("Enter"));
  assert.match(name, /^tapline-feature-\d-examples\.csv$/);
  await tabTo(page, /^\d$/, "a");
  const next = await page.evaluate("document.activeElement.textContent");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: `Feature ${next}` }).waitFor();
  await tabTo(page, /^Steer with this feature in chat$/);
  await page.keyboard.press("Enter");
  await arrived(page);
  await page.getByText(`feature ${next} of corner`).waitFor();
  await tabTo(page, /^Remove steer at layer 5$/);
  await page.keyboard.press("Enter");
}

async function models(page: Page): Promise<void> {
  await goTo(page, "Models");
  const rows = page.getByRole("region", { name: "Models on this machine" }).locator("tbody tr");
  await tabTo(page, /^Model owner/);
  await write(page, "tiny/demo");
  await page.keyboard.press("Enter");
  await offered(page.getByRole("button", { name: `Download ${broughtId}` }));
  await tabTo(page, new RegExp(`^Download ${broughtId}$`));
  await page.keyboard.press("Enter");
  const serve = (name: string) => page.getByRole("button", { name: `Serve ${name}`, exact: true });
  await offered(serve(broughtId));
  await page.getByRole("region", { name: "Downloads" }).getByText("downloaded: 3.2 MB").last().waitFor();
  await tabTo(page, new RegExp(`^Serve ${broughtId}$`));
  await page.keyboard.press("Enter");
  await rows.filter({ hasText: broughtId }).getByText("served", { exact: true }).waitFor();
  await offered(serve("demo"));
  await tabTo(page, /^Serve demo$/);
  await page.keyboard.press("Enter");
  await rows.first().getByText("served", { exact: true }).waitFor();
  await offered(page.getByRole("button", { name: `Delete ${broughtId}`, exact: true }));
  await tabTo(page, new RegExp(`^Delete ${broughtId}$`));
  await page.keyboard.press("Enter");
  // The harmless one has the focus.
  await until(
    async () => (await page.evaluate("document.activeElement.ariaLabel")) === `Cancel deleting ${broughtId}`,
  );
  await page.keyboard.press("Shift+Tab");
  assert.is(await page.evaluate("document.activeElement.ariaLabel"), `Confirm deleting ${broughtId}`);
  await page.keyboard.press("Enter");
  await rows.filter({ hasText: broughtId }).waitFor({ state: "detached" });
}

inBrowser("continuing immediately in a new view keeps the focus and all typed text", async () => {
  const { page, context } = await visit(bench, { reducedMotion: "reduce" });
  const kept = await page.evaluate(`(async () => {
    document.querySelector('a[href="/patch"]').click();
    // As soon as the view is there, and long before anything is painted.
    const there = () => document.querySelector("h1")?.textContent === "Patch";
    for (let turn = 0; turn < 1000 && !there(); turn += 1) await Promise.resolve();
    const clean = document.querySelector("textarea");
    clean.focus();
    for (let frame = 0; frame < 10; frame += 1) await new Promise(requestAnimationFrame);
    return there() && document.activeElement === clean;
  })()`);
  assert.is(kept, true);
  await context.close();
});

for (const [width, colorScheme] of [
  [360, "dark"],
  [1280, "light"],
  [1920, "dark"],
] as const) {
  inBrowser(`every view with the keyboard alone, ${width} wide, ${colorScheme}`, async () => {
    const { page, context, troubles } = await visit(bench, {
      colorScheme,
      reducedMotion: "reduce",
      viewport: { width, height: 900 },
    });
    await chat(page);
    await inspectAndPatch(page);
    await graph(page);
    await compare(page);
    await others(page);
    await features(page);
    await models(page);
    assert.equal(await page.evaluate("document.getAnimations().length"), 0);
    assert.equal(troubles, []);
    await context.close();
  });
}

test.run();
