/** Two runs side by side: prompts, settings with profiles, and two forms of a model with their drift. */
import { join } from "node:path";
import type { Page } from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { demoModelPath } from "../../../src/models/resolve.js";
import { aroundBrowser, assertLooksWell, inBrowser } from "../../support/browser.js";
import { writeInF32 } from "../../support/f32-model.js";
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

const views = (page: Page) => page.getByRole("navigation", { name: "Views" });
const open = (page: Page, view: string) => views(page).getByRole("link", { name: view, exact: true }).click();
const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();
const lead = (page: Page) => page.getByRole("region", { name: "Result" }).textContent();
const difference = (page: Page) => page.getByRole("figure", { name: /^Difference/ });
const legends = (page: Page) =>
  page.locator(".multiples figure .legend").evaluateAll((all) => all.map((one) => one.textContent));

inBrowser("two prompts: one scale, differences only from the differing token on", async () => {
  const { page, context, troubles } = await visit(bench, { viewport: { width: 1440, height: 900 } });
  await open(page, "Compare");
  await press(page, "Compare");
  await difference(page).locator("svg").last().waitFor();
  await page.waitForURL(/\/compare\/[0-9a-f]{32}\?with=[0-9a-f]{32}$/);
  assert.match((await lead(page)) ?? "", /continues with “·Paris” .*continues with “·Tokyo”|with “·Tokyo”/);
  // Side by side, on the same scale.
  const boxes = await page
    .locator(".multiples figure")
    .evaluateAll((all) =>
      all.map((one) =>
        (one as unknown as { getBoundingClientRect(): { x: number; y: number } }).getBoundingClientRect(),
      ),
    );
  assert.ok((boxes[0]?.x ?? 0) < (boxes[1]?.x ?? 0) && boxes[0]?.y === boxes[1]?.y);
  const [one, other] = await legends(page);
  assert.ok(one !== "" && one === other, `${one} and ${other}`);
  // Tokens before the differing one are computed alike.
  await page.getByRole("combobox", { name: "Show" }).selectOption("norms");
  await difference(page)
    .getByText(/^Data of/)
    .click();
  await difference(page).locator("tbody tr").first().waitFor();
  const rows = await difference(page)
    .locator("tbody tr")
    .evaluateAll((all) =>
      all.map((row) =>
        [...(row as unknown as { cells: { textContent: string }[] }).cells].map((cell) => cell.textContent),
      ),
    );
  const named = rows.map(([name]) => name);
  assert.equal(named, ["<|bos|>", "The", "·capital", "·of", "·France and ·Japan", "·is"]);
  for (const [, ...cells] of rows.slice(0, 4))
    assert.ok(
      cells.every((cell) => cell === "0.0 %"),
      cells.join(),
    );
  for (const [, ...cells] of rows.slice(4))
    assert.ok(
      cells.some((cell) => cell !== "0.0 %"),
      cells.join(),
    );
  // A cell is selected in every map, with both readings, and the address holds it.
  await difference(page).locator('[aria-label="cell"] rect').last().click();
  await page.getByRole("region", { name: "Selected cell" }).waitFor();
  await page.waitForURL(/[?&]l=\d+&c=\d$/);
  assert.is(await page.locator(".cell-outline").count(), 3);
  await page.reload();
  await page.getByRole("region", { name: "Selected cell" }).waitFor();
  await openMenu(page, "Export and scripts");
  await page.getByText("As a script: both runs").click();
  const code = (await page.getByRole("region", { name: "As a script: both runs, curl" }).textContent()) ?? "";
  assert.is(code.match(/"operation": "inspect"/g)?.length, 2);
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("interventions become a profile; it answers in the chat and as one of two settings", async () => {
  const { page, context, troubles } = await visit(bench, { viewport: { width: 1440, height: 900 } });
  await press(page, "Change a layer");
  await page.getByText("Save as a profile").click();
  const profiles = page.getByRole("region", { name: "Profiles" });
  await profiles.getByRole("textbox", { name: "Name", exact: true }).fill("forgetful");
  await press(page, "Save profile");
  await page.getByText("Saved as forgetful.").waitFor();
  await press(page, "Remove ablate at layer 0");
  await page.getByRole("combobox", { name: "Profile" }).selectOption("forgetful");
  await page.locator(".strip").getByText("profile forgetful").waitFor();
  await page.getByRole("textbox", { name: "Message" }).fill("What is the capital of France?");
  await page.keyboard.press("Enter");
  await page.getByText("With the profile forgetful").waitFor();
  await page.getByText(/\d+ of \d+ words differ/).waitFor();
  await page.getByText(/ablate at layer 0: \d+ positions, mean change 90\.0 %/).waitFor();
  // The baseline is first: on the left, for the eye and the keyboard.
  const first = page.locator(".answer").first();
  assert.match((await first.textContent()) ?? "", /^Baseline \(unmodified\)[\s\S]*Paris/);
  await open(page, "Compare");
  await page.getByRole("combobox", { name: "Compare" }).selectOption("two settings");
  await page.getByRole("combobox", { name: "Interventions" }).nth(1).selectOption("profile forgetful");
  await press(page, "Compare");
  const answers = page.getByRole("region", { name: "Answers" });
  await answers.waitFor();
  await page.waitForURL(/\/compare\/[0-9a-f]{16}\?with=[0-9a-f]{16}$/);
  assert.match((await answers.textContent()) ?? "", /^unmodified.*Paris\.profile forgetful(?!.*Paris)/);
  assert.match((await lead(page)) ?? "", /words of the second answer are not in the first/);
  // Its cell is that of the same request: at layer 0 the edit comes after the reading.
  await difference(page).locator("svg").last().waitFor();
  const address = page.url();
  await bench.restart();
  const later = await visit(bench);
  await later.page.goto(address);
  await later.page.getByRole("region", { name: "Answers" }).getByText("Paris").waitFor();
  await later.context.close();
  assert.equal(
    troubles.filter((one) => !/ERR_|Failed to load/.test(one)),
    [],
  );
  await context.close();
});

inBrowser("two forms of a model: their maps, and their drift over many texts", async () => {
  const { page, context, troubles } = await visit(bench, { viewport: { width: 1440, height: 900 } });
  const path = join(bench.folder, "demo-F32.gguf");
  writeInF32(demoModelPath, path);
  await open(page, "Models");
  await page.getByRole("textbox", { name: /^Path/ }).fill(path);
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Models on this machine" }).getByText("demo-F32").first().waitFor();
  await open(page, "Compare");
  await page.getByRole("combobox", { name: "Compare" }).selectOption("two models, or two forms of one");
  await page.getByRole("combobox", { name: "Second model" }).selectOption("demo-F32");
  await page.getByRole("textbox", { name: "Track token" }).fill(" Paris");
  await press(page, "Compare");
  await difference(page).locator("svg").last().waitFor();
  assert.match((await lead(page)) ?? "", /^Both continue with “·Paris”/);
  await page.getByRole("combobox", { name: "Show" }).selectOption("tracked token");
  await page.getByRole("figure", { name: "Probability of “·Paris”: demo-F32" }).waitFor();
  await open(page, "Drift");
  await page.getByText("Both are the same model").waitFor();
  await page.getByRole("combobox", { name: "Second model" }).selectOption("demo-F32");
  await until(async () => (await page.getByText("Both are the same model").count()) === 0);
  await press(page, "Measure drift");
  await page.getByRole("figure", { name: "Block outputs by layer" }).locator("svg").last().waitFor();
  assert.match((await lead(page)) ?? "", /hardly differ|differ/);
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("comparisons and drift have no axe finding and fit the window, wide and narrow", async () => {
  const { page: first, context: once } = await visit(bench);
  const results: string[] = [];
  await open(first, "Compare");
  await press(first, "Compare");
  await difference(first).locator("svg").last().waitFor();
  results.push(new URL(first.url()).pathname + new URL(first.url()).search);
  await first.getByRole("combobox", { name: "Compare" }).selectOption("two settings");
  await press(first, "Compare");
  await first.getByRole("region", { name: "Answers" }).waitFor();
  results.push(new URL(first.url()).pathname + new URL(first.url()).search);
  await open(first, "Drift");
  await press(first, "Measure drift");
  await first.getByRole("figure").first().locator("svg").last().waitFor();
  results.push(new URL(first.url()).pathname);
  await once.close();
  for (const width of [390, 1440]) {
    for (const colorScheme of ["light", "dark"] as const) {
      const { page, context, troubles } = await visit(bench, {
        ...{ colorScheme, viewport: { width, height: 844 }, bypassCSP: true },
      });
      for (const path of ["/compare", "/drift", ...results, `${results[0]}&l=5&c=3`]) {
        await page.goto(bench.workbench.url + path);
        await page.getByRole("heading", { level: 1 }).waitFor();
        if (path.length > 9) await page.getByRole("figure").first().locator("svg").last().waitFor();
        await assertLooksWell(page, `${path}, ${width}, ${colorScheme}`, [
          ...["minor", "moderate", "serious", "critical"],
        ]);
      }
      assert.equal(troubles, []);
      await context.close();
    }
  }
});

test.run();
