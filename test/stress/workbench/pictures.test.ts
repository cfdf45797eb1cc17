/** Every picture of every view can be saved as SVG, PNG and CSV: the page shows none without a way to save it. */
import type { Locator, Page } from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { aroundBrowser, inBrowser, newContext } from "../../support/browser.js";
import { downloaded } from "../../support/downloads.js";
import { type Bench, startBench, visit } from "../../workbench/bench.js";
import { keepDictionary } from "../../workbench/corner-dictionary.js";
import { openMenu } from "../../workbench/menus.js";
import { type Results, resultsOfAllViews } from "../../workbench/results.js";

let bench: Bench;
aroundBrowser({
  async start() {
    bench = await startBench();
    await keepDictionary(bench.folder);
  },
  end: () => bench?.close(),
});

/** In the page: drawings and colors that mean a number, outside of anything that can be saved. */
const unsaved = `[...document.querySelectorAll("main :is(svg, canvas, .bar, .shaded, .aligned)")].filter((one) => {
  const names = [...(one.closest(".picture")?.querySelectorAll(":scope > .menu .tools button") ?? [])].map((button) => button.ariaLabel);
  return !["SVG", "PNG", "CSV"].every((kind) => names.some((name) => name.startsWith("Save “") && name.endsWith("as " + kind)));
}).map((one) => one.outerHTML.slice(0, 200))`;
const drawn = `document.querySelectorAll("main :is(svg, canvas, .bar, .shaded, .aligned)").length`;

/** Saves a picture as each kind and looks into the files, with a page that may read XML. */
async function save(page: Page, tools: Locator, reader: Page): Promise<void> {
  const title = /^Save “(.*)”$/s.exec((await tools.getAttribute("aria-label")) ?? "")?.[1] as string;
  await openMenu(tools.locator("xpath=../../.."), `Export “${title}”`);
  const of = (kind: string) => downloaded(page, () => tools.getByRole("button", { name: kind }).click());
  const svg = await of("SVG");
  assert.match(svg.name, /^[\w.-]+\.svg$/);
  const told = await reader.evaluate((text) => {
    // biome-ignore lint/suspicious/noExplicitAny: a global of the page
    const parsed = new (globalThis as any).DOMParser().parseFromString(text, "image/svg+xml");
    const width = (name: string) => Number(parsed.documentElement.getAttribute(name));
    return {
      broken: parsed.querySelector("parsererror") !== null,
      title: parsed.querySelector("title")?.textContent,
      size: [width("width"), width("height")],
      marks: parsed.querySelectorAll("rect, path, circle, text").length,
      active: parsed.querySelectorAll("script, foreignObject, a").length,
    };
  }, svg.bytes.toString());
  assert.equal(
    { broken: told.broken, title: told.title, active: told.active },
    { broken: false, title, active: 0 },
  );
  assert.ok(told.marks > 2 && told.size.every((one) => one > 32), `${title}: ${JSON.stringify(told)}`);
  // A legend's ramp is an image that is in the file.
  assert.not.match(svg.bytes.toString(), /<image[^>]*href="(?!data:)/);
  const png = await of("PNG");
  assert.is(png.bytes.subarray(1, 4).toString(), "PNG");
  const [width, height] = [png.bytes.readUInt32BE(16), png.bytes.readUInt32BE(20)];
  const ratio = (told.size[0] as number) / (told.size[1] as number);
  assert.ok(Math.abs(width / height - ratio) < 0.02 * ratio, `${title}: ${width} x ${height}`);
  const csv = await of("CSV");
  const lines = csv.bytes.toString().split("\r\n");
  assert.ok(lines.length > 2 && lines.at(-1) === "", `${title}: ${lines.length} lines`);
  if (process.env.TAPLINE_LOOK !== undefined) {
    const { writeFileSync } = await import("node:fs");
    for (const { name, bytes } of [svg, png, csv])
      writeFileSync(`${process.env.TAPLINE_LOOK}/${name}`, bytes);
  }
}

inBrowser("no view has a picture that cannot be saved; each is saved", async () => {
  const { page, context, troubles } = await visit(bench, { viewport: { width: 1280, height: 900 } });
  const results: Results = await resultsOfAllViews(page);
  const titles = new Set<string>();
  // In a separate window: in a background tab a page draws once a second, and every click waits for two of its frames.
  const reading = await newContext({});
  const reader = await reading.newPage();
  for (const [name, { path, shown }] of Object.entries(results)) {
    await page.goto(bench.workbench.url + path);
    await shown(page);
    assert.ok(((await page.evaluate(drawn)) as number) > 0, `${name} has pictures`);
    assert.equal(await page.evaluate(unsaved), [], name);
    const shownTitles = await page
      .locator("main .picture > .menu .tools")
      .evaluateAll((all) => all.map((one) => String(one.getAttribute("aria-label"))));
    for (const title of shownTitles) {
      // The same figure of another view is the same.
      if (titles.has(title)) continue;
      titles.add(title);
      // By title and not by place: a form's picture may appear above later.
      const tools = page.locator(`main .picture > .menu .tools[aria-label=${JSON.stringify(title)}]`).last();
      await save(page, tools, reader);
    }
  }
  // Pictures of HTML and of figures are both among them.
  for (const title of [
    /^Save “Answer to /,
    /^Save “Inside /,
    /^Save “Examples of feature/,
    /^Save “Logit lens”/,
    /^Save “Attribution graph”/,
  ]) {
    assert.ok(
      [...titles].some((one) => title.test(one)),
      String(title),
    );
  }
  assert.equal(troubles, []);
  await reading.close();
  await context.close();
});

inBrowser("an answer is saved with its words, its colors and its numbers", async () => {
  const { page, context } = await visit(bench, { viewport: { width: 1280, height: 900 } });
  await page.getByRole("textbox", { name: "Message" }).fill("What is the capital of France?");
  await page.keyboard.press("Enter");
  await page.getByText("24 tokens", { exact: true }).waitFor();
  await page.getByLabel("Colour by").selectOption("probability");
  await openMenu(page, /^Export “Answer to “What is the capital of France\?”, coloured by/);
  const tools = page.getByRole("group", {
    name: /^Save “Answer to “What is the capital of France\?”, coloured by/,
  });
  const kept = async (kind: string) =>
    (await downloaded(page, () => tools.getByRole("button", { name: kind }).click())).bytes.toString();
  const svg = await kept("SVG");
  const words = [...svg.matchAll(/<text[^>]*textLength[^>]*>([^<]*)<\/text>/g)].map(([, text]) => text);
  assert.match(
    words.join("").replaceAll(" ", ""),
    /^Thinking,17tokens,\d+(?:\.\d)?m?sThecapitalofFranceisParis\.$/,
  );
  // Each token has its tint and the bar below it.
  const tints = [...svg.matchAll(/fill-opacity="(0\.\d+)"/g)].map(([, share]) => Number(share));
  assert.ok(tints.length >= 7 && tints.some((share) => share > 0.2 && share <= 0.26), tints.join(" "));
  const csv = (await kept("CSV")).split("\r\n");
  assert.match(
    csv[0] ?? "",
    /^token,id,text,part,probability,"entropy \(lower bound, bits\)",norm at layer 0,lens at layer 0,/,
  );
  assert.is(csv.length, 24 + 2);
  assert.match(csv[23] ?? "", /^22,1366," Paris",answer,0\.9\d*,/);
  await context.close();
});

test.run();
