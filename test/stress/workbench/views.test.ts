/** The workbench end to end in a real browser, on the embedded model. */
import type { Page } from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { aroundBrowser, assertLooksWell, inBrowser } from "../../support/browser.js";
import { downloaded } from "../../support/downloads.js";
import { until } from "../../support/until.js";
import { type Bench, startBench, visit } from "../../workbench/bench.js";
import { keepDictionary } from "../../workbench/corner-dictionary.js";
import { openMenu } from "../../workbench/menus.js";

let bench: Bench;
aroundBrowser({
  async start() {
    bench = await startBench();
    await keepDictionary(bench.folder);
  },
  end: () => bench?.close(),
});

interface CSSLike {
  getPropertyValue(name: string): string;
}

const answers = (page: Page) => page.locator(".answer-text");
/** An answer's text, without the thinking. */
const said = (page: Page, at: number) => answers(page).nth(at).locator(":scope > p").textContent();
/** An answer's tokens, thoughts among them. */
const words = async (page: Page, at: number) =>
  (await answers(page).nth(at).locator(".t").allTextContents()).join("");
const text = async (page: Page, selector: string) => (await page.locator(selector).textContent()) ?? "";

async function ask(page: Page, question: string): Promise<void> {
  const before = await page.locator(".turn").count();
  await page.getByRole("textbox", { name: "Message" }).fill(question);
  await page.keyboard.press("Enter");
  await answered(page, before);
}

async function answered(page: Page, turn: number): Promise<void> {
  const shown = page.locator(".turn").nth(turn);
  await shown.waitFor();
  await until(async () => (await shown.getByText("Generating…").count()) === 0);
}

inBrowser("chat: an answer streams in, a token opens, a layer and the answer change", async () => {
  const { page, context, troubles } = await visit(bench, { viewport: { width: 1440, height: 900 } });
  // The example is written already; with the keyboard alone.
  await page.getByRole("textbox", { name: "Message" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("24 tokens", { exact: true }).waitFor();
  assert.is(await said(page, 0), "The capital of France is Paris.");
  assert.match(await text(page, ".thinking summary"), /^Thinking, 17 tokens, \d+(?:\.\d)? m?s$/);
  assert.match(page.url(), /\/chat\/[0-9a-f]{16}$/);

  await answers(page).first().focus();
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Enter");
  const inside = page.getByRole("region", { name: "Inside a token" });
  await inside.waitFor();
  assert.match(
    (await inside.textContent()) ?? "",
    /Inside ·ParisToken 22 · id 1366 · probability (?:9\d|100)\.\d % · rank 1/,
  );
  const rows = await inside.locator("table").nth(1).locator("tbody tr").allTextContents();
  assert.is(rows.length, 8);
  assert.match(rows[0] ?? "", /^▸7·Paris(?:9\d|100)\.\d %\d/);
  // The address holds what is selected.
  await page.waitForURL(/\?t=0\.0\.22$/);

  await page.getByLabel("Colour by").selectOption("probability");
  const share = await answers(page)
    .locator(".t.shaded")
    .last()
    .evaluate((span) => Number((span as unknown as { style: CSSLike }).style.getPropertyValue("--share")));
  assert.ok(share > 0.5 && share <= 1, String(share));

  await page.getByRole("button", { name: "Change a layer" }).click();
  await ask(page, "What is the capital of Japan?");
  assert.match(
    await text(page, ".turn:nth-of-type(2)"),
    /ablate at layer 0: \d+ positions, mean change 90\.0 % of the activation norm\./,
  );
  assert.is(await said(page, 1), "The capital of Japan is Tokyo.", "the baseline is first");
  assert.is.not(await words(page, 1), await words(page, 2));
  await page.getByText(/\d+ of \d+ words differ/).waitFor();
  assert.ok((await page.locator(".t.differs").count()) > 0);

  await openMenu(page.locator(".turn").nth(1), "Script");
  await page.locator(".turn").nth(1).getByText("As a script").click();
  for (const [language, found] of [
    ["curl", /^curl -s http:\/\/127\.0\.0\.1:\d+\/v1\/chat\/completions -d '\{/],
    ["Python", /^from tapline_lab import ServingModel\n[\s\S]*"strength": 0\.9/],
    ["TypeScript", /^import \{ ServingModel \} from "tapline\/client";/],
  ] as const) {
    await page.locator(".turn").nth(1).getByRole("button", { name: language }).click();
    assert.match((await page.locator(".turn").nth(1).locator("pre").textContent()) ?? "", found);
  }
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("another token in an answer continues from there without a new tokenization", async () => {
  const { page, context, troubles } = await visit(bench);
  await ask(page, "What is the capital of Italy?");
  const whole = (await words(page, 0)).replace("<|im_end|>", "");
  await answers(page).first().locator(":scope > p .t").nth(3).click();
  const inside = page.getByRole("region", { name: "Inside a token" });
  const before = page.url();
  await inside.getByRole("button", { name: "Resample from here" }).click();
  await page.waitForURL((url) => url.pathname !== new URL(before).pathname);
  await answered(page, 0);
  const again = (await words(page, 0)).replace("<|im_end|>", "");
  assert.is(again, whole, "greedily, the same tokens lead to the same end");
  // Its thoughts are the other answer's; how long they took nobody says here.
  assert.is(await text(page, ".thinking summary"), "Thinking, 17 tokens");
  await page.goBack();
  await answers(page).first().locator(":scope > p .t").nth(3).click();
  const other = inside.getByRole("button", { name: /^Use this token: / }).nth(1);
  const name = ((await other.getAttribute("aria-label")) ?? "")
    .replace("Use this token: ", "")
    .replaceAll("·", " ");
  await other.click();
  await page.waitForURL((url) => url.pathname !== new URL(before).pathname);
  await answered(page, 0);
  const kept = await answers(page).first().locator(":scope > p .t").allTextContents();
  assert.is(kept[3], name);
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("edited tokens and questions keep each version; buttons switch between them", async () => {
  const { page, context, troubles } = await visit(bench);
  await ask(page, "What is the capital of France?");
  const first = page.url();
  await answers(page).first().locator(":scope > p .t").nth(3).click();
  await page.getByRole("textbox", { name: "Replace with" }).fill(" Germany");
  await page.keyboard.press("Enter");
  await page.getByRole("group", { name: "Version 2 of 2" }).waitFor();
  await answered(page, 0);
  assert.match((await said(page, 0)) ?? "", /^The capital of Germany/);
  await page.getByRole("link", { name: "Previous version of question 1" }).click();
  await page.waitForURL(first.split("?")[0] as string);
  await page.getByRole("group", { name: "Version 1 of 2" }).waitFor();
  assert.is(await said(page, 0), "The capital of France is Paris.");
  await page.getByRole("button", { name: "Edit question" }).click();
  await page.getByRole("textbox", { name: "Edit your question" }).fill("What is the capital of Norway?");
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await page.getByRole("group", { name: "Version 3 of 3" }).waitFor();
  await answered(page, 0);
  assert.is(await said(page, 0), "The capital of Norway is Oslo.");
  const { name, bytes } = await downloaded(page, () =>
    page.getByRole("button", { name: "Save as Markdown" }).click(),
  );
  assert.match(name, /^conversation-[0-9a-f]{16}\.md$/);
  assert.match(
    bytes.toString(),
    /^# What is the capital of Norway\?\n[\s\S]*\n> Thinking, \d+ tokens, [\d.]+ m?s:\n[\s\S]*\nThe capital of Norway is Oslo\.\n$/,
  );
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("a dictionary's features are read in every token; one steers the next answer", async () => {
  const { page, context, troubles } = await visit(bench);
  const features = page.getByRole("combobox", { name: "features" });
  await features.selectOption("corner");
  await ask(page, "What is the capital of Spain?");
  await answers(page).first().locator(":scope > p .t").nth(4).click();
  const inside = page.getByRole("region", { name: "Inside a token" });
  const table = inside.getByRole("table", { name: /Strongest features of corner at layer 5/ });
  await table.waitFor();
  const [feature, , activation] = await table.locator("tbody tr").first().locator("th, td").allTextContents();
  assert.match(feature ?? "", /^[0-3]$/);
  assert.ok(Number(activation) > 0, activation);
  await table.getByRole("button", { name: `Steer with feature ${feature}` }).click();
  await page
    .getByRole("region", { name: "Interventions" })
    .getByText(`feature ${feature} of corner`)
    .waitFor();
  await ask(page, "What is the capital of Italy?");
  await page.getByText(/steer at layer 5: \d+ positions, mean change/).waitFor();
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("two tabs of a browser share one stream; the one that reads it can be closed", async () => {
  const { page: first, context, troubles } = await visit(bench);
  await ask(first, "What is the capital of Spain?");
  const tabs = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const page = await context.newPage();
      await page.goto(first.url());
      await page.locator(".answer-text > p", { hasText: "is Madrid." }).waitFor();
      return page;
    }),
  );
  const last = tabs.at(-1) as Page;
  await ask(last, "What is the capital of Poland?");
  for (const page of [first, ...tabs]) {
    await answered(page, 1);
    assert.is(await said(page, 1), "The capital of Poland is Warsaw.");
  }
  await first.close();
  await ask(last, "What is the capital of Norway?");
  for (const page of tabs) await page.locator(".answer-text > p", { hasText: "is Oslo." }).waitFor();
  await last.reload();
  assert.is(await said(last, 2), "The capital of Norway is Oslo.", "and after a reload");
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("inspect: the lens's map; a cell opens a patch, whose map shows the origin", async () => {
  const { page, context, troubles } = await visit(bench, { viewport: { width: 1200, height: 900 } });
  await page.getByRole("link", { name: "Inspect" }).click();
  await page.getByRole("textbox", { name: "Text" }).fill("The capital of France is");
  await page.getByRole("checkbox", { name: "Attention heads" }).check();
  assert.is(await page.getByRole("checkbox", { name: "Experts" }).count(), 0, "the model has no experts");
  await page.getByRole("checkbox", { name: "Direct logit attribution" }).check();
  await page.getByRole("textbox", { name: "Track token" }).fill(" Paris");
  await page.getByRole("button", { name: "Inspect", exact: true }).click();
  const lens = page.getByRole("figure", { name: "Logit lens" });
  await lens.locator('[aria-label="cell"] rect').first().waitFor();
  assert.is(await lens.locator('[aria-label="cell"] rect').count(), 8 * 6);
  assert.match(page.url(), /\/inspect\/[0-9a-f]{32}$/);
  await openMenu(lens, "Export “Logit lens”");
  for (const kind of ["SVG", "PNG", "CSV"]) {
    const { name, bytes } = await downloaded(page, () =>
      page.getByRole("button", { name: `Save “Logit lens” as ${kind}` }).click(),
    );
    assert.match(name, new RegExp(`^tapline-inspect-[0-9a-f]{8}-logit-lens\\.${kind.toLowerCase()}$`));
    if (kind === "PNG") assert.is(bytes.subarray(1, 4).toString(), "PNG");
    if (kind === "CSV") assert.is(bytes.toString().split("\r\n").length, 8 * 6 + 2);
    if (kind === "SVG") assert.match(bytes.toString(), /^<svg .*·Paris/s);
  }
  // Every quantity that the result has can colour the same cells; the address keeps which.
  const switched = lens.getByLabel("Colour by");
  assert.equal(await switched.locator("option").allTextContents(), [
    "probability of the top token",
    "entropy",
    "KL to the output",
    "probability of ·Paris",
    "rank of ·Paris",
    "norm",
  ]);
  await switched.selectOption("rank");
  const words = lens.locator(".chart > svg text");
  await until(async () => (await words.allTextContents()).some((word) => word.startsWith("#1")));
  await page.waitForURL(({ searchParams }) => searchParams.get("by") === "rank");
  await switched.selectOption("probability");
  await page.waitForURL(({ searchParams }) => !searchParams.has("by"));
  // The attention of one head, a row for each token.
  const head = page.getByRole("figure", { name: "Attention of layer 7, head 0" });
  await head.locator('[aria-label="cell"] rect').first().waitFor();
  assert.is(
    await head.locator('[aria-label="cell"] rect').count(),
    (6 * 7) / 2,
    "no token reads a later one",
  );
  // A click on a head in the map of all leads to its own.
  const heads = page.getByRole("figure", { name: "Attention: the previous token" });
  await heads.locator('[aria-label="cell"] rect').first().click();
  await page.getByRole("figure", { name: "Attention of layer 0, head 0" }).locator("svg").last().waitFor();
  await page.waitForURL(({ searchParams }) => searchParams.get("al") === "0");
  const one = page.getByRole("region", { name: "One head" });
  await one.getByRole("combobox", { name: /^Attention of layer/ }).selectOption("3");
  await one.getByRole("combobox", { name: /^Head/ }).selectOption("2");
  const chosenHead = page.getByRole("figure", { name: "Attention of layer 3, head 2" });
  await chosenHead.getByText("Data of “Attention of layer 3, head 2” as a table").click();
  await chosenHead.locator("tbody tr").first().waitFor();
  const rows = await chosenHead.locator("tbody tr").allTextContents();
  assert.is(rows.length, 6);
  assert.match(rows[0] ?? "", /100 %/, "the first token reads itself");
  await page
    .getByRole("figure", { name: "Direct logit attribution of ·Paris" })
    .locator("svg")
    .last()
    .waitFor();
  // With the keyboard: the first row is layer 0, token 0.
  await lens.locator(".chart").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  const chosen = page.getByRole("region", { name: "Selected cell" });
  assert.match((await chosen.textContent()) ?? "", /layer 0, token 0/);
  // With the mouse: some other cell.
  await lens.locator('[aria-label="cell"] rect').last().click();
  await until(async () => /layer 7, token 5/.test((await chosen.textContent()) ?? ""));
  await page.waitForURL(/[?&]l=7&t=5$/);
  await chosen.getByRole("button", { name: "Patch here" }).click();
  assert.is(await page.getByRole("textbox", { name: "Clean" }).inputValue(), "The capital of France is");
  await page.getByRole("textbox", { name: "Corrupted" }).fill("The capital of Japan is");
  await page.getByRole("button", { name: "Patch", exact: true }).click();
  const map = page.getByRole("figure", { name: "Recovery by layer and token", exact: true });
  await map.locator('[aria-label="cell"] rect').first().waitFor();
  assert.match(
    (await page.getByRole("region", { name: "Alignment" }).textContent()) ?? "",
    /·Paris versus ·Tokyo/,
  );
  assert.match(
    (await page.getByRole("region", { name: "Selected site" }).textContent()) ?? "",
    /layer 7, token 5[\s\S]*recovery/,
  );
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("jobs: listed in every tab, repeated with changes, compared, saved as a report", async () => {
  const { page, context, troubles } = await visit(bench, { viewport: { width: 1400, height: 900 } });
  await page.getByRole("link", { name: "Jobs", exact: true }).click();
  const rows = page.getByRole("region", { name: "All jobs" }).locator("tbody tr");
  const count = await until(async () => (await rows.count()) || false);
  await rows.last().getByRole("link").first().click();
  await page.getByRole("figure", { name: "Next token" }).waitFor();
  const first = new URL(page.url()).pathname.split("/")[2];
  await page.getByText("Repeat with changes").click();
  const settings = page.getByRole("textbox", { name: "Configuration" });
  await settings.fill((await settings.inputValue()).replace("France", "Greece"));
  await page.getByRole("button", { name: "Run" }).click();
  await page.waitForURL((url) => !url.pathname.endsWith(String(first)));
  await page
    .getByText(/“·Athens”/)
    .first()
    .waitFor();
  await until(async () => (await rows.count()) === count + 1);
  await page.getByRole("link", { name: `Compare with job ${first?.slice(0, 8)}` }).click();
  // Two inspections are compared cell by cell; the address of both jobs in full remains.
  await page.getByRole("figure", { name: /^Difference/ }).waitFor();
  await page.goto(page.url().replace("/compare/", "/jobs/"));
  await until(async () => (await page.getByRole("figure", { name: "Next token" }).count()) === 2);
  await openMenu(page.locator(".result-tools").first(), /^Export and scripts of/);
  const kept = async (name: string) =>
    (await downloaded(page, () => page.getByRole("button", { name }).first().click())).bytes;
  assert.match((await kept("Report as HTML")).toString(), /^<!doctype html>[\s\S]*The capital of Greece is/);
  assert.is((await kept("activations.npz")).subarray(0, 2).toString(), "PK");
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("steer and probe: made from two lists of texts, with controls, used in the chat", async () => {
  const { page, context, troubles } = await visit(bench, { viewport: { width: 1400, height: 900 } });
  await page.getByRole("link", { name: "Steer", exact: true }).click();
  await page.getByRole("textbox", { name: "layers" }).fill("5");
  await page.getByRole("button", { name: "Create direction", exact: true }).click();
  const direction = page.getByRole("region", { name: "Direction unknown" });
  await direction.locator("tbody tr").first().waitFor();
  const [layer, separation] = await direction.locator("tbody tr").first().locator("th, td").allTextContents();
  assert.is(layer, "5");
  assert.ok(Number(separation) > 0.5, separation);
  await direction.getByRole("link", { name: "Try in chat at layer 5" }).click();
  await page.getByRole("slider").fill("0.5");
  await page.getByRole("checkbox", { name: "Raw text (no chat template)" }).check();
  await ask(page, "The capital of Spain is");
  assert.match((await said(page, 0)) ?? "", /^ Madrid/, "the model's own");
  assert.match((await said(page, 1)) ?? "", /unknown/, "steered");
  await page.getByText(/starting at token 0\./).waitFor();

  await page.getByRole("link", { name: "Probe", exact: true }).click();
  await page.getByRole("textbox", { name: "layers" }).fill("3, 5");
  await page.getByRole("button", { name: "Train and evaluate" }).click();
  const saving = page.getByRole("region", { name: "Save this probe" });
  await saving.waitFor();
  const options = await saving.getByRole("combobox", { name: "Layer" }).locator("option").allTextContents();
  const [, held] = /^5 \(AUROC ([\d.]+)\)$/.exec(options[1] ?? "") ?? [];
  await saving.getByRole("combobox", { name: "Layer" }).selectOption("5");
  await saving.getByRole("button", { name: "Save for chat" }).click();
  const stored = page.getByRole("region", { name: "Probe praise" });
  await stored.getByText(`Layer 5, held-out AUROC ${held}`).waitFor();
  await stored.getByRole("link", { name: "Use in chat" }).click();
  await ask(page, "What is the capital of Spain?");
  assert.match(page.url(), /\?show=probe\+praise$/);
  const title = await answers(page).first().locator(".t.shaded").first().getAttribute("title");
  assert.match(title ?? "", /^praise [01]\.\d\d$/);
  // Thinking is read as well, and its scores are visible while it is folded.
  const own = answers(page).first();
  const thoughts = own.locator(".thinking p .t");
  const titles = await thoughts.evaluateAll((spans) =>
    (spans as unknown as { title: string }[]).map(({ title }) => title),
  );
  const scores = titles.map((one) => Number(/^praise ([01]\.\d\d)$/.exec(one)?.[1])).sort();
  const strip = own.locator(".thought-strip");
  assert.is(await strip.locator("span").count(), scores.length);
  const told = [scores[0], scores.at(-1)].map((score) => `praise ${score?.toFixed(2)}`);
  assert.is(await strip.getAttribute("aria-label"), `from ${told[0]} to ${told[1]}`);
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("no view has a serious axe finding or overflows, light or dark, narrow or wide", async () => {
  for (const [colorScheme, width] of [
    ["light", 360],
    ["dark", 1280],
  ] as const) {
    const { page, context, troubles } = await visit(bench, {
      colorScheme,
      viewport: { width, height: 800 },
      bypassCSP: true,
    });
    for (const view of ["Steer", "Features"]) {
      await page.getByRole("link", { name: view, exact: true }).first().click();
      await page.getByRole("heading", { level: 1 }).waitFor({ state: "attached" });
      await assertLooksWell(page, `${view}, ${colorScheme}, ${width}`);
    }
    await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Chat" }).click();
    await page.getByRole("navigation", { name: "Conversations" }).locator("li a").first().click();
    await answers(page).first().locator(":scope > p .t").first().click();
    await page.getByRole("button", { name: "Change a layer" }).click();
    await assertLooksWell(page, `a conversation, ${colorScheme}, ${width}`);
    await page.getByRole("link", { name: "Jobs", exact: true }).click();
    await page.getByRole("region", { name: "All jobs" }).getByRole("link").first().click();
    await page.getByRole("figure").first().waitFor();
    await assertLooksWell(page, `a job, ${colorScheme}, ${width}`);
    assert.equal(troubles, []);
    await context.close();
  }
});

test.run();
