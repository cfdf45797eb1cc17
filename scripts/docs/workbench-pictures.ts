/**
 * Photographs the workbench's views for the documentation: `npm run docs:workbench-pictures`, all or those that are named.
 * Needs Debian's chromium. `--model FILE` and `--to FOLDER` look at the views of another model, `--as NAME` begins the
 * pictures' names.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Browser, chromium, type Page } from "playwright-core";
import { startBench } from "../../test/workbench/bench.js";

const images = fileURLToPath(new URL("../../docs/images", import.meta.url));

const { values, positionals } = parseArgs({
  options: {
    model: { type: "string" },
    to: { type: "string", default: images },
    as: { type: "string", default: "workbench" },
  },
  allowPositionals: true,
});
mkdirSync(values.to, { recursive: true });

const go = (page: Page, view: string) =>
  page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: view, exact: true }).click();
const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();
const figure = (page: Page, name: string | RegExp) => page.getByRole("figure", { name });
const drawn = (page: Page, name: string | RegExp) => figure(page, name).locator("svg").last().waitFor();

async function answered(page: Page): Promise<void> {
  await page.getByText("Generating…").last().waitFor({ state: "hidden" });
}

/** Done before each picture; the element that it returns is drawn on top of it. */
const pictures: Record<string, (page: Page) => Promise<ReturnType<Page["locator"]> | undefined>> = {
  async "workbench-chat"(page) {
    await page.getByRole("textbox", { name: "Message" }).fill("What is the capital of France?");
    await page.keyboard.press("Enter");
    await page.getByText(/^\d+ tokens/).waitFor();
    await press(page, "Change a layer");
    await press(page, "Rerun last question");
    await page.getByText(/words differ|answers are identical/).waitFor();
    await answered(page);
    await page.getByLabel("Colour by").selectOption("probability");
    await page.locator(".answer-text").first().locator(":scope > p .t, .markdown .t").nth(-3).click();
    return undefined;
  },
  async "workbench-inspect"(page) {
    await inspect(page);
    await page.getByLabel("Colour by").first().selectOption("rank");
    return figure(page, "Logit lens");
  },
  async "workbench-attention"(page) {
    await inspect(page);
    return page.getByRole("region", { name: "One head" });
  },
  async "workbench-patch"(page) {
    await go(page, "Patch");
    await press(page, "Patch");
    await drawn(page, /^Recovery/);
    return figure(page, /^Recovery/);
  },
  async "workbench-steer"(page) {
    await steer(page);
    return page.getByRole("region", { name: "Dose-response" });
  },
  async "workbench-study"(page) {
    await study(page);
    return undefined;
  },
};

/** A direction's effect by layer and strength, and what one cell's answers say. */
async function steer(page: Page): Promise<void> {
  await go(page, "Steer");
  await press(page, "Measure effect (with random control)");
  await drawn(page, "Control: random vectors");
  await page.getByText(/layers measured/).waitFor({ state: "hidden" });
  const shown = new URL(page.url());
  shown.searchParams.set("l", "5");
  shown.searchParams.set("s", "0.4");
  await page.goto(shown.href);
  await drawn(page, "Control: random vectors");
  await page.getByRole("region", { name: "Selected cell" }).waitFor();
}

/** Two jobs, and a study that is begun with both. */
async function study(page: Page): Promise<void> {
  await inspect(page);
  await go(page, "Patch");
  await press(page, "Patch");
  await drawn(page, /^Recovery/);
  await go(page, "Jobs");
  await press(page, "Draft a study");
  await page.getByLabel("Show what ran").selectOption("all");
  const boxes = page.getByRole("checkbox", { name: /^Include job \w+ in the study$/ });
  await boxes.nth(1).waitFor();
  for (const box of await boxes.all()) await box.check();
  const write = (place: RegExp, text: string) => page.getByRole("textbox", { name: place }).fill(text);
  await write(/^Title/, "Where the demo model keeps a country's capital");
  await write(
    /^Question/,
    "At which layer does the answer to “The capital of France is” stand at the last token?",
  );
  await page.getByText(/entries of evidence/).waitFor();
}

async function inspect(page: Page): Promise<void> {
  await go(page, "Inspect");
  await page
    .getByRole("textbox", { name: "Text" })
    .fill("The capital of France is Paris. The capital of Japan is");
  await page.getByRole("textbox", { name: "Track token" }).fill(" Tokyo");
  await page.getByRole("checkbox", { name: "Attention heads" }).check();
  await page.getByRole("checkbox", { name: "Direct logit attribution" }).check();
  await press(page, "Inspect");
  await drawn(page, /^Attention of layer/);
}

/** With separate services, so that no picture contains leftovers of another one. */
async function take(browser: Browser, name: string): Promise<void> {
  const bench = await startBench(undefined, values.model);
  const dark = name === "workbench-attention" || name === "workbench-patch";
  const context = await browser.newContext({
    viewport: { width: 1280, height: 760 },
    colorScheme: dark ? "dark" : "light",
  });
  context.setDefaultTimeout(300_000);
  const page = await context.newPage();
  await page.goto(bench.workbench.link());
  await page.getByRole("navigation", { name: "Views" }).waitFor();
  const top = await (pictures[name] as (typeof pictures)[string])(page);
  await top?.evaluate((one) => (one as unknown as { scrollIntoView(): void }).scrollIntoView());
  await page.mouse.move(0, 0);
  await page.evaluate("document.activeElement?.blur()");
  const file = `${name.replace("workbench", values.as)}.png`;
  await page.screenshot({ path: join(values.to, file) });
  await context.close();
  await bench.close();
  console.log(file);
}

const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args });
try {
  for (const name of Object.keys(pictures)) {
    if (positionals.length === 0 || positionals.includes(name)) await take(browser, name);
  }
} finally {
  await browser.close();
}
