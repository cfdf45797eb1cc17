/** Grids, lenses and drafts in a real browser, on the embedded model: what Steer, Patch, Inspect and Jobs measure and keep. */
import type { Locator, Page } from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Lab } from "../../../src/client/index.js";
import { aroundBrowser, assertLooksWell, inBrowser } from "../../support/browser.js";
import { downloaded } from "../../support/downloads.js";
import { until } from "../../support/until.js";
import { type Bench, startBench, visit } from "../../workbench/bench.js";
import { openMenu } from "../../workbench/menus.js";

let bench: Bench;
aroundBrowser({
  async start() {
    bench = await startBench();
    await new Lab(bench.lab).addLens("jacobian", "demo");
  },
  end: () => bench?.close(),
});

const open = (page: Page, view: string) =>
  page.getByRole("link", { name: view, exact: true }).first().click();
const cells = (figure: Locator) => figure.locator('[aria-label="cell"] rect');

/** For a look at the pictures. */
async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.TAPLINE_LOOK;
  if (folder === undefined) return;
  for (const [width, colorScheme] of [
    [360, "light"],
    [1280, "dark"],
    [1920, "light"],
  ] as const) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: `${folder}/${name}-${width}-${colorScheme}.png`, fullPage: true });
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ colorScheme: "light" });
}

/** Saves a picture in all forms. @returns the CSV's rows */
async function saved(page: Page, title: string, svg: RegExp): Promise<string[]> {
  const files: Record<string, Buffer> = {};
  await openMenu(page, `Export “${title}”`);
  for (const kind of ["SVG", "PNG", "CSV"]) {
    const button = page.getByRole("button", { name: `Save “${title}” as ${kind}` });
    files[kind] = (await downloaded(page, () => button.click())).bytes;
  }
  assert.is(files.PNG?.subarray(1, 4).toString(), "PNG");
  assert.match(files.SVG?.toString() ?? "", svg);
  return (files.CSV?.toString() ?? "").trim().split("\r\n");
}

inBrowser("steer: a grid with random controls, a cell's answers, reload, into the chat", async () => {
  const { page, context, troubles } = await visit(bench, {
    viewport: { width: 1280, height: 900 },
    bypassCSP: true,
  });
  await open(page, "Steer");
  await page.getByRole("textbox", { name: "layers" }).fill("2, 5");
  await page.getByRole("button", { name: "Create direction", exact: true }).click();
  const separation = page.getByRole("figure", { name: "Separation by unknown" });
  await separation.locator(".chart > svg").nth(1).waitFor();
  await page.waitForURL(({ searchParams }) => searchParams.get("v") === "unknown");
  assert.match((await separation.textContent()) ?? "", /layer 5: AUROC [01]\.\d{3}, shuffled 0\.\d\d/);
  const table = await page.getByRole("region", { name: "Layers of unknown" }).textContent();
  const told = /layer 5: AUROC (\S+),/.exec((await separation.textContent()) ?? "")?.[1] as string;
  assert.match(table ?? "", told, "the same number as the service told");
  await saved(page, "Separation by unknown", /^<svg .*towards \(above\)/s);

  await page.getByRole("textbox", { name: "strengths" }).fill("0, 0.8");
  await page.getByRole("button", { name: /^Measure effect/ }).click();
  const effect = page.getByRole("figure", { name: "Effect by layer and strength" });
  const control = page.getByRole("figure", { name: "Control: random vectors" });
  await control.locator("svg").last().waitFor();
  await until(async () => (await cells(effect).count()) === 4, "two layers and two strengths");
  await effect.getByText(/the rest are dashed/).waitFor({ state: "detached" });
  const csv = await saved(page, "Effect by layer and strength", /^<svg .*layer/s);
  assert.is(csv.length, 5);
  assert.is(csv[0]?.split(",").slice(0, 2).join(), "layer,strength");
  const change = (layer: number, strength: number) =>
    Number(csv.find((line) => line.startsWith(`${layer},${strength},`))?.split(",")[3]);
  assert.ok(Math.abs(change(5, 0)) < 1e-3, `at 0 nothing is changed: ${change(5, 0)}`);
  assert.ok(change(5, 0.8) < -0.5, `the answer goes: ${change(5, 0.8)}`);

  await effect.locator(".chart").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  const chosen = page.getByRole("region", { name: "Selected cell" });
  await chosen.getByRole("heading", { name: "Layer 2, strength 0", exact: true }).waitFor();
  const address = new URL(page.url());
  address.search = address.search.replace("l=2", "l=5").replace("s=0", "s=0.8");
  await page.goto(address.href);
  await chosen.getByRole("heading", { name: "Layer 5, strength 0.8" }).waitFor();
  // The form is as it was asked.
  const strengths = page.getByRole("textbox", { name: "strengths" });
  await until(async () => (await strengths.inputValue()) === "0, 0.8");
  await control.locator("svg").last().waitFor();
  assert.is(await chosen.locator("tbody tr").count(), 3);
  const answer = (row: number) => chosen.locator("tbody tr").nth(row).locator("td").nth(2).textContent();
  assert.is.not(await answer(1), await answer(0), "another answer than the model's own");

  const grid = page.getByRole("region", { name: "Dose-response" });
  const script = grid.getByText("As a script").first();
  // With a key: the pictures above may still move it.
  await page.getByRole("figure", { name: "Dose-response" }).locator("svg").last().waitFor();
  await grid.locator('.menu > summary[aria-label="Script"]').press("Enter");
  await script.press("Enter");
  const code = page.locator("details.code[open]");
  await code.getByRole("button", { name: "Python" }).click();
  assert.match((await code.locator("pre").textContent()) ?? "", /"layers": \[2\][\s\S]*"layers": \[5\]/);
  await code.getByRole("button", { name: "curl" }).click();
  assert.is(((await code.locator("pre").textContent()) ?? "").split("curl -s ").length, 3);
  await assertLooksWell(page, "a grid of Steer");
  await picture(page, "steer");

  await chosen.getByRole("button", { name: "Try in chat as unknown" }).click();
  await page.getByRole("slider").waitFor();
  assert.is(await page.getByRole("slider").inputValue(), "0.8");
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("patch: attention and single heads, with controls; unequal marked spans", async () => {
  const { page, context, troubles } = await visit(bench, {
    viewport: { width: 1280, height: 900 },
    bypassCSP: true,
  });
  await open(page, "Patch");
  await page.getByRole("checkbox", { name: "block outputs" }).uncheck();
  await page.getByRole("checkbox", { name: "Attention outputs" }).check();
  await page.getByRole("checkbox", { name: "single heads" }).check();
  await page.getByRole("textbox", { name: "layers" }).fill("4-6");
  await page.getByRole("button", { name: "Patch", exact: true }).click();
  const heads = page.getByRole("figure", { name: "Recovery by layer and head" });
  await cells(heads).first().waitFor();
  await cells(page.getByRole("figure", { name: "Recovery by layer and token, attn_out" }))
    .first()
    .waitFor();
  const byLayer = page.getByRole("figure", { name: "Best recovery by layer" });
  await byLayer.locator(".chart > svg").first().waitFor();
  assert.match((await byLayer.textContent()) ?? "", /norm-matched random change/);
  const [, ...rows] = await saved(page, "Recovery by layer and head", /^<svg .*h0/s);
  assert.ok(rows.length >= 3 * 2, `${rows.length} heads`);
  await heads.locator(".chart").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  const chosen = page.getByRole("region", { name: "Selected site" });
  await chosen.getByText(/layer 4 head 0, token \d/).waitFor();
  assert.match(page.url(), /[?&]p=head_out&h=0/);
  await chosen.getByRole("button", { name: "Generate with this patch" }).click();
  const effect = chosen.getByRole("region", { name: "Data of “next tokens”" }).locator("tbody tr");
  await effect.first().waitFor();
  assert.is(await effect.count(), 3);
  await page.reload();
  await effect.first().waitFor();
  // The form is the job's.
  const layers = page.getByRole("textbox", { name: "layers" });
  await until(async () => (await layers.inputValue()) === "4, 5, 6");
  assert.ok(await page.getByRole("checkbox", { name: "single heads" }).isChecked());
  await heads.locator("svg").last().waitFor();
  await assertLooksWell(page, "a patch of heads");
  await picture(page, "patch-heads");

  await open(page, "Patch");
  await page.getByRole("combobox", { name: "Positions", exact: true }).selectOption("aligned");
  await page.getByText("The clean text contains no span").waitFor();
  await page.getByRole("textbox", { name: "Clean" }).fill("The capital of[[ France]][[ is]]");
  await page.getByRole("textbox", { name: "Corrupted" }).fill("The big capital of[[ Japan]][[ is]]");
  await page.getByText("2 spans; each span's last-token state is patched into the matching span.").waitFor();
  await page.getByRole("button", { name: "Patch", exact: true }).click();
  const map = page.getByRole("figure", { name: "Recovery by layer and token" });
  await page.getByRole("region", { name: "Alignment" }).waitFor();
  await cells(map).first().waitFor();
  await map.locator(".chart").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await chosen.getByText(/layer 4 attn_out, span 0/).waitFor();
  await picture(page, "patch-spans");
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("inspect: a lens is chosen by name; entropy and output distance color the map", async () => {
  const { page, context, troubles } = await visit(bench, {
    viewport: { width: 1280, height: 900 },
    bypassCSP: true,
  });
  await open(page, "Inspect");
  await page.getByRole("combobox", { name: "Lens", exact: true }).selectOption("jacobian");
  await page.getByRole("textbox", { name: "layers" }).fill("3, 5");
  await page.getByRole("button", { name: "Inspect", exact: true }).click();
  const lens = page.getByRole("figure", { name: "Lens readings" });
  await cells(lens).first().waitFor();
  assert.is(await cells(lens).count(), (8 + 2) * 6, "the logit lens at all layers, the other at the two");
  await lens.getByLabel("Colour by").selectOption("divergence");
  await page.waitForURL(({ searchParams }) => searchParams.get("by") === "divergence");
  await until(async () => /KL/.test((await lens.locator(".legend").textContent()) ?? ""));
  await page.getByRole("figure", { name: "Distance to the output by layer" }).locator("svg").last().waitFor();
  await page.reload();
  await cells(lens).first().waitFor();
  const kept = page.getByRole("combobox", { name: "Lens", exact: true });
  await until(async () => (await kept.inputValue()) === "jacobian");
  await until(async () => /KL/.test((await lens.locator(".legend").textContent()) ?? ""));
  await assertLooksWell(page, "two lenses");
  await picture(page, "inspect-lens");
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("jobs: two results side by side, and a study of both whose words are a person's", async () => {
  const { page, context, troubles } = await visit(bench, {
    viewport: { width: 1280, height: 900 },
    bypassCSP: true,
  });
  const lab = new Lab(bench.lab);
  const ids: string[] = [];
  for (const place of ["France", "Japan"]) {
    const prompt = `The capital of ${place} is`;
    const { id } = await lab.wait(await lab.inspect("demo", prompt, { layers: [5] }));
    ids.push(id);
  }
  const [first, second] = ids as [string, string];
  await page.goto(`${bench.workbench.url}/jobs/${first}?with=${second}`);
  const lenses = page.getByRole("figure", { name: "Logit lens" });
  await until(async () => (await lenses.locator(".chart > svg").count()) >= 2);
  const twice = await page.evaluate(
    "[...document.querySelectorAll('[id]')].map(({ id }) => id).filter((id, at, all) => all.indexOf(id) !== at)",
  );
  assert.equal(twice, [], "no two elements have one id");
  await assertLooksWell(page, "two results side by side");
  await picture(page, "jobs-beside");

  await page.getByRole("button", { name: "Draft a study" }).click();
  await page.getByRole("heading", { level: 1, name: "Session" }).waitFor();
  await page.getByRole("checkbox", { name: `Job ${second.slice(0, 8)} in the study` }).check();
  await page.waitForURL(({ searchParams }) => searchParams.get("study") === `${first},${second}`);
  const draft = page.getByRole("region", { name: "Study draft" });
  const method = draft.getByRole("textbox", { name: "Method" });
  await until(async () => /2 times inspect/.test(await method.inputValue()));
  assert.is(
    await draft.getByRole("textbox", { name: "Title" }).inputValue(),
    "",
    "nothing is written for a person",
  );
  await draft.getByRole("button", { name: "Save package" }).click();
  await draft.getByText("title must not be blank.").waitFor();
  for (const [name, text] of [
    ["Title", "Two capitals"],
    ["Question", "Where do they stand?"],
    ["Limitations", "Two prompts."],
  ] as const) {
    await draft.getByRole("textbox", { name }).fill(text);
  }
  await draft.getByRole("combobox", { name: "license" }).selectOption("CC0-1.0");
  await assertLooksWell(page, "a study draft");
  await picture(page, "jobs-study");
  await page.reload();
  await until(
    async () => (await draft.getByRole("textbox", { name: "Title" }).inputValue()) === "Two capitals",
  );
  await until(async () => /2 times inspect/.test(await method.inputValue()));
  const { name, bytes } = await downloaded(page, () =>
    draft.getByRole("button", { name: "Save package" }).click(),
  );
  assert.is(name, "tapline-study.json");
  const study = JSON.parse(bytes.toString());
  assert.equal([study.title, study.finding, study.schemaVersion], ["Two capitals", "", 1]);
  assert.equal(troubles, []);
  await context.close();
});

test.run();
