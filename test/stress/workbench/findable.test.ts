/** What was done is found again: jobs by title, note and search, saved things by new names, a session as notebook and study. */
import type { Page } from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { aroundBrowser, assertLooksWell, inBrowser } from "../../support/browser.js";
import { downloaded } from "../../support/downloads.js";
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

const open = (page: Page, view: string) =>
  page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: view, exact: true }).click();

async function inspect(page: Page, text: string): Promise<string> {
  await open(page, "Inspect");
  await page.getByRole("textbox", { name: "Text" }).fill(text);
  const before = page.url();
  await page.getByRole("button", { name: "Inspect", exact: true }).click();
  await page.waitForURL((url) => url.href !== before && /\/inspect\/[0-9a-f]{32}$/.test(url.pathname));
  await page.getByRole("figure", { name: "Next token" }).waitFor();
  return new URL(page.url()).pathname.split("/")[2] as string;
}

inBrowser(
  "jobs have titles and notes, are searched, pinned and deleted, and a study starts from them",
  async () => {
    const { page, context, troubles } = await visit(bench, {
      ...{ viewport: { width: 1400, height: 900 }, bypassCSP: true },
    });
    const ids = [
      await inspect(page, "The capital of France is"),
      await inspect(page, "The capital of Peru is"),
    ];
    const [first, second] = ids as [string, string];
    await open(page, "Jobs");
    const rows = page.getByRole("region", { name: "All jobs" }).locator("tbody tr");
    const names = () => rows.locator("th a").allTextContents();
    await until(async () => (await names()).join() === "“The capital of Peru is”,“The capital of France is”");
    await page.getByRole("button", { name: `Pin job ${first.slice(0, 8)}` }).click();
    await until(async () => /France/.test((await names())[0] ?? ""), "the pinned one is first");
    await rows.first().getByRole("link").first().click();
    await page.getByRole("button", { name: "Rename or add a note" }).click();
    await page.getByRole("textbox", { name: "Title" }).fill("Mine");
    await page.getByRole("textbox", { name: "Note" }).fill("a surprising hand-over");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("heading", { level: 2, name: "Mine" }).waitFor();
    // After a restart of the workbench as well.
    await bench.restart();
    await page.goto(bench.workbench.link());
    await page.getByRole("navigation", { name: "Views" }).waitFor();
    // The page noticed the restart, as it should.
    troubles.length = 0;
    await open(page, "Jobs");
    await page.getByRole("textbox", { name: "Search" }).fill("surprising");
    await until(async () => (await names()).join() === "Mine");
    await page.getByText("1 of 2 jobs").waitFor();
    await page.getByRole("textbox", { name: "Search" }).fill("peru");
    await until(async () => (await names()).join() === "“The capital of Peru is”");
    await assertLooksWell(page, "the jobs, searched");
    await page.getByRole("button", { name: `Delete job ${second.slice(0, 8)}` }).click();
    await page.getByRole("button", { name: `Cancel deleting job ${second.slice(0, 8)}` }).click();
    await page.getByRole("button", { name: `Delete job ${second.slice(0, 8)}` }).click();
    await page.getByRole("button", { name: `Confirm deleting job ${second.slice(0, 8)}` }).click();
    await until(async () => (await rows.count()) === 0);
    await page.getByRole("button", { name: "Show all" }).click();
    await until(async () => (await names()).join() === "Mine");

    await open(page, "Session");
    // It ran before this start of the workbench.
    await page.getByText("Nothing yet.").waitFor();
    await page.getByLabel("Show what ran").selectOption("all");
    await page.getByRole("checkbox", { name: `Include job ${first.slice(0, 8)} in the study` }).check();
    await page.getByText(/“·Paris” is on top/).waitFor();
    await page.getByRole("region", { name: "Study draft" }).waitFor();
    await page.getByRole("region", { name: "Publish" }).getByText("Nothing is public until").waitFor();
    await assertLooksWell(page, "a session with a draft");
    const { name, bytes } = await downloaded(page, () =>
      page.getByRole("button", { name: "Save notebook (.ipynb)" }).click(),
    );
    assert.is(name, "tapline-session.ipynb");
    const cells = JSON.parse(bytes.toString()).cells as { source: string[] }[];
    const text = cells.map(({ source }) => source.join("")).join("\n");
    assert.match(text, /## Mine\n\na surprising hand\\-over\n\n[\s\S]*lab\.submit\("inspect", /);
    assert.equal(troubles, []);
    await context.close();
  },
);

inBrowser("a direction is renamed and deleted, and removing an intervention is undone", async () => {
  const { page, context, troubles } = await visit(bench, { viewport: { width: 1400, height: 900 } });
  await open(page, "Steer");
  await page.getByRole("textbox", { name: "Layers" }).fill("5");
  await page.getByRole("button", { name: "Create direction", exact: true }).click();
  const card = (name: string) => page.getByRole("region", { name: `Direction ${name}` });
  await card("unknown").waitFor();
  await openMenu(card("unknown"), "Rename or delete unknown");
  await page.getByRole("textbox", { name: "New name" }).fill("../other");
  await page.getByRole("button", { name: "Rename", exact: true }).click();
  await card("unknown").getByRole("alert").waitFor();
  // The browser's console reports the refusal as well.
  troubles.length = 0;
  await page.getByRole("textbox", { name: "New name" }).fill("renamed");
  await page.getByRole("button", { name: "Rename", exact: true }).click();
  await card("renamed").waitFor();
  assert.is(await card("unknown").count(), 0);
  await card("renamed").getByRole("link", { name: "Try in chat at layer 5" }).click();
  await page.getByRole("slider").fill("0.5");
  await page.getByRole("button", { name: "Remove steer at layer 5" }).click();
  assert.is(await page.getByRole("slider").count(), 0);
  await page.getByText("Removed steer at layer 5.").waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  assert.is(await page.getByRole("slider").inputValue(), "0.5", "with its strength");
  assert.is(await page.getByRole("button", { name: "Undo" }).count(), 0);
  await page.getByRole("button", { name: "Remove steer at layer 5" }).click();
  await open(page, "Steer");
  await card("renamed").waitFor();
  await openMenu(card("renamed"), "Rename or delete renamed");
  await page.getByText("Delete renamed").click();
  await page.getByRole("button", { name: "Confirm deleting renamed" }).click();
  await page.getByText("No saved directions yet.").waitFor();
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("a wrong address shows a page that leads on; a file is opened by its path", async () => {
  const { page, context } = await visit(bench, { viewport: { width: 390, height: 844 } });
  await page.goto(`${bench.workbench.url}/nowhere/at/all`);
  await page.getByRole("heading", { level: 1, name: "Not found" }).waitFor();
  await page.getByRole("link", { name: "find a job" }).click();
  await page.getByRole("heading", { level: 1, name: "Jobs" }).waitFor();
  await open(page, "Models");
  await page.getByRole("textbox", { name: "Path" }).fill("model.gguf");
  await page.getByRole("button", { name: "Open", exact: true }).click();
  await page.getByRole("alert").getByText("Give the whole path of the file").waitFor();
  await context.close();
});

test.run();
