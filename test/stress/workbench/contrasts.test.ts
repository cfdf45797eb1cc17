/** Contrast sets over the chat, on the embedded model: measured on first use, moved by a slider, with their control. */
import type { Page } from "playwright-core";
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

const panel = (page: Page) => page.getByRole("region", { name: "Change the answer" });
const control = (page: Page) => page.getByRole("region", { name: "Control" });
const settled = (page: Page) =>
  until(
    async () =>
      (await page.locator(".answer").count()) === 2 &&
      (await page.getByText(/[Gg]enerating…/).count()) === 0 &&
      (await control(page).locator(".control-text").count()) === 1,
  );

inBrowser("one click measures a set and shows baseline, edited answer and control", async () => {
  const { page, context, troubles } = await visit(bench, {
    viewport: { width: 1440, height: 900 },
    bypassCSP: true,
  });
  const chip = panel(page).getByRole("button", { name: "Doesn't know" });
  await chip.focus();
  await page.keyboard.press("Enter");
  await settled(page);
  assert.is(await chip.getAttribute("aria-pressed"), "true");
  const address = page.url();
  assert.match(address, /\/chat\/[0-9a-f]{16}$/);
  const sides = async () => {
    const boxes = await Promise.all(
      [".answer.baseline", ".answer:not(.baseline)"].map((one) => page.locator(one).boundingBox()),
    );
    return boxes.map((box) => box as { x: number; y: number });
  };
  const [baseline, edited] = (await sides()) as [{ x: number; y: number }, { x: number; y: number }];
  assert.ok(baseline.x < edited.x && Math.abs(baseline.y - edited.y) < 2, "next to each other");
  await control(page)
    .getByText(
      /^\d+ markers? of “Doesn't know” with the direction, \d+ in the baseline, \d+ in the control\.$/,
    )
    .waitFor();
  const slider = panel(page).getByRole("slider");
  const measured = Number(await slider.inputValue());
  assert.ok(measured > 0);
  await panel(page).getByText("Measurements and controls").click();
  await panel(page).getByRole("table").waitFor();
  await assertLooksWell(page, "contrasts, wide");

  // At zero nothing changes; the answers are replaced in the same conversation.
  await slider.fill("0");
  await page.getByText("The answers are identical.", { exact: false }).waitFor();
  await settled(page);
  assert.is(page.url(), address);
  assert.is(await page.getByRole("navigation", { name: "Conversations" }).locator("li").count(), 1);
  await page.setViewportSize({ width: 390, height: 844 });
  const [above, below] = (await sides()) as [{ x: number; y: number }, { x: number; y: number }];
  assert.ok(above.y < below.y && above.x === below.x, "stacked");
  await assertLooksWell(page, "contrasts, narrow");
  // Pressed again, the direction is removed.
  await chip.click();
  await until(async () => (await panel(page).getByRole("slider").count()) === 0);
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("an answer's exact tokens are inspected, with the chat template", async () => {
  const { page, context, troubles } = await visit(bench, { viewport: { width: 1440, height: 900 } });
  await page.getByRole("textbox", { name: "Message" }).fill("What is the capital of France?");
  await page.keyboard.press("Enter");
  await until(
    async () =>
      (await page.locator(".answer").count()) > 0 && (await page.getByText("Generating…").count()) === 0,
  );
  await page.locator(".answer-text > p .t").last().click();
  await page.getByRole("button", { name: "Inspect all layers up to this token" }).click();
  const text = page.getByRole("region", { name: "Text of the tokens" });
  await text.waitFor();
  assert.match(
    (await text.textContent()) ?? "",
    /user[\s\S]*What is the capital of France\?[\s\S]*assistant[\s\S]*Paris/,
  );
  await page.getByRole("button", { name: "Inspect", exact: true }).click();
  await page.getByRole("figure", { name: "Next token" }).waitFor();
  assert.equal(troubles, []);
  await context.close();
});

test.run();
