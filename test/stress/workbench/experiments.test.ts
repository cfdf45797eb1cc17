/** The views of experiments in a real browser, on the embedded model: what they ask for, show and hand on. */
import type { Page } from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { scripted, sendJson } from "../../client/scripted.js";
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

const open = (page: Page, view: string) =>
  page.getByRole("link", { name: view, exact: true }).first().click();

/** For a look at the pictures. */
async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.TAPLINE_LOOK;
  if (folder !== undefined) await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
}

inBrowser("a feature has a page: from the list, with neighbours, saved as CSV, to the chat", async () => {
  const { page, context, troubles } = await visit(bench, {
    viewport: { width: 1280, height: 900 },
    bypassCSP: true,
  });
  await open(page, "Features");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  const list = page.getByRole("figure", { name: "Strongest features" });
  await list.locator("svg").first().waitFor();
  await list.locator(".chart").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  const card = page.getByRole("region", { name: /^Feature \d$/ });
  await card.getByText(/Dictionary corner, layer 5/).waitFor();
  const feature = new URL(page.url()).searchParams.get("f") as string;
  await card.getByRole("button", { name: "Compute feature details" }).click();
  await card.getByRole("region", { name: "Strongest" }).waitFor();
  assert.is(new URL(page.url()).searchParams.get("f"), feature, "the address is the feature's");
  assert.ok((await card.locator(".shaded").count()) > 0);
  for (const name of ["Raises the logits of", "Lowers the logits of", "Similar features"]) {
    assert.ok((await card.getByRole("table", { name }).locator("tbody tr").count()) > 0, name);
  }
  await card.getByRole("region", { name: "Activations" }).locator(".columns").waitFor();
  // Everything about it is on one screen.
  const whole = await card.boundingBox();
  assert.ok((whole?.height ?? 9999) < 900, `${whole?.height} pixels`);
  await assertLooksWell(page, "a feature's page");
  await picture(page, "feature");
  await openMenu(card, /^Export “Examples of feature/);
  const csv = await downloaded(page, () =>
    card.getByRole("button", { name: /^Save “Examples of feature \d” as CSV$/ }).click(),
  );
  assert.match(
    csv.bytes.toString(),
    /^group,example,text,position,token,activation,strongest\r\nstrongest,1,/,
  );
  const neighbour = card.getByRole("link", { name: /^\d$/ }).first();
  const other = await neighbour.textContent();
  await neighbour.click();
  await page
    .getByRole("region", { name: `Feature ${other}` })
    .getByRole("region", { name: "Strongest" })
    .waitFor();
  await page.getByRole("link", { name: "Steer with this feature in chat" }).click();
  await page.getByRole("slider").waitFor();
  await page.getByRole("textbox", { name: "Message" }).fill("What is the capital of Spain?");
  await page.keyboard.press("Enter");
  await page.locator(".answer").nth(1).waitFor();
  await until(async () => (await page.getByText("Generating…").count()) === 0);
  assert.is(await page.locator(".answer .problem").count(), 0);
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("a dictionary is trained and saved with one button, then searched by a word", async () => {
  const { page, context, troubles } = await visit(bench, {
    viewport: { width: 1280, height: 900 },
    bypassCSP: true,
  });
  await open(page, "Features");
  await page.getByText("Train a dictionary").click();
  await page.getByRole("button", { name: "Train and save" }).click();
  await page.getByRole("group", { name: "Training own" }).getByRole("progressbar").waitFor();
  await page.getByText("Saved as own and selected above.").waitFor();
  const chosen = page.getByRole("combobox", { name: "Dictionary" });
  assert.match(
    (await chosen.locator("option:checked").textContent()) ?? "",
    /^own, 256 features at layer 4$/,
  );
  const texts = ["France", "Japan", "Spain"].map((name) => `The capital of ${name} is`);
  await page
    .getByRole("textbox", { name: "Texts" })
    .first()
    .fill([...texts, "I like my dog", "The weather is good", "A bird sings"].join("\n"));
  await page.getByRole("button", { name: "Run", exact: true }).click();
  const search = page.getByRole("region", { name: "Search by text" });
  await search.getByText("Japan").click();
  assert.is(await search.getByRole("textbox", { name: "Word" }).inputValue(), "·Japan".slice(1));
  await search.getByText(/^Feature \d+ is the strongest on “Japan”: active on 1 of its 1 token/).waitFor();
  const rows = search.getByRole("region", { name: "Features on “Japan”" }).locator("tbody tr");
  const strengths = (await rows.locator("td:nth-of-type(1)").allTextContents()).map(Number);
  assert.equal(
    strengths,
    strengths.toSorted((a, b) => b - a),
  );
  assert.is(await search.locator(".t.selected").count(), 1);
  await assertLooksWell(page, "a search by text", ["minor", "moderate", "serious", "critical"]);
  const feature = await rows.first().getByRole("link").textContent();
  await rows.first().getByRole("link").click();
  const card = page.getByRole("region", { name: `Feature ${feature}` });
  await card.getByRole("button", { name: "Compute feature details" }).click();
  // The endpoint that is asked answers with markup, which stays text.
  const hostile = "<img src=x onerror=window.broken=1> countries";
  const endpoint = await scripted(({ body }, response) => {
    const { messages } = JSON.parse(body) as { messages: [{ content: string }] };
    const content = messages[0].content.startsWith("In the excerpts") ? hostile : "No.";
    sendJson(response, 200, { choices: [{ message: { content } }] });
  });
  await card.getByText("Propose a label").click();
  await card.getByRole("combobox", { name: "Asked" }).selectOption("endpoint");
  await card.getByRole("textbox", { name: "Address" }).fill(`${endpoint.url}/v1`);
  await card.getByRole("textbox", { name: "Model" }).fill("judge");
  await card.getByRole("button", { name: "Propose and test" }).click();
  const proposed = page.getByRole("region", { name: "Proposed label" });
  await proposed.waitFor();
  assert.match(
    (await proposed.textContent()) ?? "",
    /^machine-made <img src=x onerror=window\.broken=1> countries by judge at 127\.0\.0\.1:\d+, from \d excerpts?/,
  );
  assert.match((await proposed.textContent()) ?? "", /Too few held-out examples to conclude/);
  assert.is(await page.evaluate("window.broken"), undefined);
  await assertLooksWell(page, "a proposed label", ["minor", "moderate", "serious", "critical"]);
  await endpoint.close();
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("patch: unequal prompts are refused early; a patched state changes later tokens", async () => {
  const { page, context, troubles } = await visit(bench, {
    viewport: { width: 1280, height: 900 },
    bypassCSP: true,
  });
  await open(page, "Patch");
  const tokens = page.getByRole("region", { name: "Tokens" });
  await tokens.getByText("6 tokens each; 1 differs.").waitFor();
  const run = page.getByRole("button", { name: "Patch", exact: true });
  await page.getByRole("textbox", { name: "Corrupted" }).fill("The capital of Japan is is");
  await tokens
    .getByText(
      "The clean text has 6 tokens, the corrupted one 7. The prompts must have the same number of tokens.",
    )
    .waitFor();
  assert.ok(await run.isDisabled());
  await page.getByRole("textbox", { name: "Corrupted" }).fill("The capital of Japan is");
  await tokens.getByText("6 tokens each; 1 differs.").waitFor();
  await run.click();
  const map = page.getByRole("figure", { name: "Recovery by layer and token", exact: true });
  await page.getByRole("region", { name: "Alignment" }).waitFor();
  await map.locator('[aria-label="cell"] rect').last().click();
  const chosen = page.getByRole("region", { name: "Selected site" });
  await chosen
    .getByText(/layer \d, token \d/)
    .first()
    .waitFor();
  // The last token at block 6 has the answer: its state alone brings the clean one.
  await page.goto(`${page.url().replace(/\?.*/, "")}?l=6&t=5`);
  await chosen.getByRole("button", { name: "Generate with this patch" }).click();
  const effect = chosen.getByRole("region", { name: "Data of “next tokens”" }).locator("tbody tr");
  await effect.first().waitFor();
  assert.match(page.url(), /\?l=6&t=5&e=[0-9a-f]{32}$/);
  assert.match((await effect.nth(0).textContent()) ?? "", /^unpatched Tokyo/);
  assert.match((await effect.nth(1).textContent()) ?? "", /^patched Paris/);
  await assertLooksWell(page, "a site's effect");
  await picture(page, "patch");
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("probe: accepts a file of examples or names its mistake; lists the worst errors", async () => {
  const { page, context, troubles } = await visit(bench, {
    viewport: { width: 768, height: 900 },
    bypassCSP: true,
    colorScheme: "dark",
  });
  await open(page, "Probe");
  const give = (name: string, content: string) =>
    page
      .getByLabel(/^Examples from a file/)
      .setInputFiles({ name, mimeType: "text/csv", buffer: Buffer.from(content) });
  await give("odd.csv", "text,label\ngood,yes\n");
  await page.getByRole("alert").getByText('Row 2: label must be 0 or 1, got "yes".').waitFor();
  const words = [
    "good",
    "great",
    "lovely",
    "superb",
    "fine",
    "nice",
    "bad",
    "poor",
    "awful",
    "weak",
    "dull",
    "grim",
  ];
  const rows = words.map((word, at) => `"The film, they say, was ${word}.",${at < 6 ? 1 : 0}`);
  await give("films.csv", `text,label\n${rows.join("\n")}\n`);
  await page.getByText("films.csv: 6 texts of class 1, 6 of class 0.").waitFor();
  await page.getByRole("textbox", { name: "layers" }).fill("5");
  await page.getByRole("button", { name: "Train and evaluate" }).click();
  const worst = page.getByRole("region", { name: "Largest errors", exact: true });
  await worst.waitFor();
  assert.is(await worst.locator("tbody tr").count(), 4, "every third text of each class is held out");
  for (const name of ["ROC", "Calibration"])
    await page.getByRole("figure", { name }).locator("svg").first().waitFor();
  await assertLooksWell(page, "a probe of a file");
  await picture(page, "probe");
  // In a narrow window the form has given way to the result.
  await page.getByText("Change the settings").click();
  await page.getByRole("combobox", { name: "Activation used" }).selectOption("every token");
  await page.getByRole("button", { name: "Train and evaluate" }).click();
  const single = page.getByRole("figure", { name: "Single activations by layer" });
  await single.locator("svg").first().waitFor();
  await page
    .getByRole("region", { name: "Result" })
    .getByText(/^A text's score is the mean over its activations\./)
    .waitFor();
  assert.is(await worst.locator("tbody tr").count(), 4, "of texts, as before");
  assert.equal(troubles, []);
  await context.close();
});

test.run();
