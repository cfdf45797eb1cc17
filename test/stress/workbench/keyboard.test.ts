/** Each view from end to end with the keyboard alone, narrow and wide; where the focus is can be seen, and has a name. */
import type { Page } from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { aroundBrowser, inBrowser } from "../../support/browser.js";
import { until } from "../../support/until.js";
import { type Bench, startBench, visit } from "../../workbench/bench.js";

let bench: Bench;
aroundBrowser({
  async start() {
    bench = await startBench();
  },
  end: () => bench?.close(),
});

/** Tab stops that a view may have before what is looked for. */
const mostStops = 200;

/** In the page: what has the focus, as it is announced, and whether one sees it. */
const focused = `(() => {
  const at = document.activeElement;
  const { outlineStyle, outlineWidth } = getComputedStyle(at);
  const named = (at.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent);
  return {
    name: (at.getAttribute("aria-label") ?? (named.join(" ").trim() || at.labels?.[0]?.textContent || at.textContent) ?? "").trim(),
    tag: at.tagName.toLowerCase(),
    shown: at.tagName === "BODY" || at.id === "content" || (outlineStyle !== "none" && parseFloat(outlineWidth) >= 2),
  };
})()`;

interface Focused {
  name: string;
  tag: string;
  shown: boolean;
}

/** Goes on with Tab until something of that name has the focus. */
async function tabTo(page: Page, name: RegExp, tag?: string): Promise<void> {
  const passed: string[] = [];
  for (let stop = 0; stop < mostStops; stop += 1) {
    await page.keyboard.press("Tab");
    const at = (await page.evaluate(focused)) as Focused;
    assert.ok(at.shown, `the focus is seen on ${at.tag} ${at.name}`);
    if (at.tag !== "body") assert.ok(at.name !== "", `${at.tag} behind ${passed.at(-1)} has a name`);
    if (name.test(at.name) && (tag === undefined || at.tag === tag)) return;
    passed.push(`${at.tag} ${at.name.slice(0, 40)}`);
  }
  assert.unreachable(`${name} is no tab stop; there are ${passed.join(", ")}`);
}

async function goTo(page: Page, view: string): Promise<void> {
  await tabTo(page, new RegExp(`^${view}$`), "a");
  await page.keyboard.press("Enter");
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
  await tabTo(page, /^Strength of ablate at layer 5$/);
  await page.keyboard.press("ArrowRight");
  await until(async () => (await page.getByRole("slider").inputValue()) === "0.85");
  await tabTo(page, /^Ask the last question again$/);
  await page.keyboard.press("Enter");
  await page.getByText(/First difference: token \d+\./).waitFor();
  await page.getByText("way 2 of 2").waitFor();
  await tabTo(page, /^Answer to “What is the capital of France/);
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Inside a token" }).waitFor();
  await tabTo(page, /^Choose again from here$/);
  await page.keyboard.press("Enter");
  await page.getByText("way 3 of 3").waitFor();
  await tabTo(page, /^Previous way on from question 1$/);
  await page.keyboard.press("Enter");
  await page.getByText("way 2 of 3").waitFor();
}

async function inspectAndPatch(page: Page): Promise<void> {
  await goTo(page, "Inspect");
  await tabTo(page, /^Text/);
  await write(page, "The capital of France is");
  await tabTo(page, /attention heads/);
  await page.keyboard.press("Space");
  await tabTo(page, /^Inspect$/, "button");
  await page.keyboard.press("Enter");
  await page.getByRole("figure", { name: "Attention of layer" }).locator("svg").last().waitFor();
  await tabTo(page, /^Colour by/);
  await page.keyboard.press("ArrowDown");
  await page.locator(".legend", { hasText: "least entropy in bits" }).waitFor();
  await tabTo(page, /^Logit lens$/, "div");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Chosen cell" }).waitFor();
  await tabTo(page, /^Patch here$/);
  await page.keyboard.press("Enter");
  await tabTo(page, /^Corrupted/);
  await write(page, "The capital of Japan is");
  await tabTo(page, /^Patch$/, "button");
  await page.keyboard.press("Enter");
  await page.getByRole("figure", { name: "Recovery by layer and token" }).locator("svg").last().waitFor();
  await tabTo(page, /^Recovery by layer and token$/, "div");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Chosen site" }).waitFor();
}

async function others(page: Page): Promise<void> {
  await goTo(page, "Steer");
  await tabTo(page, /^Measure seven strengths/);
  await page.keyboard.press("Enter");
  await page.getByRole("figure").first().locator("svg").last().waitFor();
  await goTo(page, "Probe");
  await tabTo(page, /^Train and measure$/);
  await page.keyboard.press("Enter");
  await page.getByRole("figure").first().locator("svg").last().waitFor();
  await goTo(page, "Features");
  await goTo(page, "Jobs");
  await tabTo(page, /^[0-9a-f]{8}$/, "a");
  await page.keyboard.press("Enter");
  await page.getByRole("figure").first().locator("svg").last().waitFor();
}

for (const [width, colorScheme] of [
  [360, "dark"],
  [1024, "light"],
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
    await others(page);
    assert.equal(await page.evaluate("document.getAnimations().length"), 0);
    assert.equal(troubles, []);
    await context.close();
  });
}

test.run();
