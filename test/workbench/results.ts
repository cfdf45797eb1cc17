/** A result of every view, made once, and the address under which each of them is shown again. */
import type { Page } from "playwright-core";
import { until } from "../support/until.js";

export type Results = Record<string, { path: string; shown: (page: Page) => Promise<void> }>;

const open = (page: Page, view: string) =>
  page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: view, exact: true }).click();
const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();
/** Waits until all pictures of the figures of that name are drawn. */
export const drawn = (page: Page, name: string | RegExp) =>
  page.getByRole("figure", { name }).locator("svg").last().waitFor();

/** @param page of a bench that has the dictionary `corner` */
export async function resultsOfAllViews(page: Page): Promise<Results> {
  const results: Results = {};
  const keep = (name: string, shown: (page: Page) => Promise<void>, query = "") => {
    const { pathname, search } = new URL(page.url());
    results[name] = { path: query === "" ? pathname + search : `${pathname}?${query}`, shown };
  };

  await open(page, "Probe");
  await page.getByRole("textbox", { name: "layers" }).fill("5");
  await press(page, "Train and evaluate");
  await drawn(page, "ROC");
  await press(page, "Save for chat");
  await page.getByRole("region", { name: "Probe praise" }).waitFor();
  keep("probe", (one) => drawn(one, "ROC"));

  await open(page, "Steer");
  await page.getByRole("textbox", { name: "layers" }).fill("5");
  await press(page, "Create direction");
  await page.getByRole("region", { name: "Direction unknown" }).waitFor();
  await press(page, "Measure effect (with random control)");
  await page.waitForURL(/\/steer\/[0-9a-f]{32}/);
  await page.getByRole("figure").first().locator("svg").last().waitFor();
  keep("steer", async (one) => {
    await one.getByRole("figure").first().locator("svg").last().waitFor();
    await one.getByRole("region", { name: "Direction unknown" }).waitFor();
  });

  await open(page, "Features");
  await page.getByRole("textbox", { name: "Features", exact: true }).fill("0, 1");
  await press(page, "Run");
  await drawn(page, "Strongest features");
  keep("features", (one) => drawn(one, "Strongest features"));
  keep(
    "a feature",
    async (one) => {
      await one.getByRole("region", { name: "Strongest" }).waitFor();
      await one.getByRole("table", { name: "Raises the logits of" }).waitFor();
    },
    "f=0",
  );

  await open(page, "Inspect");
  await page.getByRole("checkbox", { name: "Attention heads" }).check();
  await page.getByRole("checkbox", { name: "Direct logit attribution" }).check();
  await press(page, "Inspect");
  await drawn(page, /^Attention of layer/);
  keep("inspect", (one) => drawn(one, /^Attention of layer/), "l=6&t=4");
  const inspected = new URL(page.url()).pathname.split("/")[2];

  await open(page, "Patch");
  await press(page, "Patch");
  await drawn(page, /^Recovery/);
  keep("patch", (one) => drawn(one, /^Recovery/), "l=6&t=5");
  const patched = new URL(page.url()).pathname.split("/")[2];

  await open(page, "Graph");
  await page.getByRole("spinbutton", { name: "Nodes", exact: true }).fill("60");
  await page.getByRole("spinbutton", { name: "Removals" }).fill("5");
  await press(page, "Compute graph");
  const shownGraph = (one: Page) => one.getByRole("application").waitFor();
  await shownGraph(page);
  await drawn(page, "Strongest nodes");
  keep("graph", async (one) => {
    await shownGraph(one);
    await drawn(one, "Strongest nodes");
  });

  await page.goto(`${new URL(page.url()).origin}/jobs/${inspected}?with=${patched}`);
  await drawn(page, /^Recovery/);
  keep("two jobs", (one) => drawn(one, /^Recovery/));

  await open(page, "Chat");
  await page.getByRole("combobox", { name: "Probe", exact: true }).selectOption("praise");
  await page.getByRole("combobox", { name: "Features", exact: true }).selectOption("corner");
  await press(page, "Change a layer");
  // As strongly as it takes on every model; half of a block's output leaves a larger one its answer to this question.
  await page.getByRole("slider").fill("0.9");
  await page.getByRole("textbox", { name: "Message" }).fill("What is the capital of France?");
  await page.keyboard.press("Enter");
  await page.locator(".answer").nth(1).waitFor();
  await until(async () => (await page.getByText("Generating…").count()) === 0);
  keep(
    "a conversation",
    async (one) => {
      await one.getByRole("region", { name: "Inside a token" }).waitFor();
      // Thinking is folded.
      await one.locator(".shaded").first().waitFor({ state: "attached" });
    },
    "t=0.1.4&show=probability",
  );
  return results;
}
