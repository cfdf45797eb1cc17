/**
 * Who is faster than the page: whatever is held back here arrives when one has typed, looked and gone on already. Nothing
 * that somebody did is lost by it, and nobody is taken away from where one is.
 */
import type { Page, Route } from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Lab } from "../../../src/client/index.js";
import { aroundBrowser, inBrowser, newContext } from "../../support/browser.js";
import { until } from "../../support/until.js";
import { type Bench, startBench, visit } from "../../workbench/bench.js";
import { fakeServices } from "../../workbench/fast-services.js";
import { holdBack } from "../../workbench/hold-back.js";
import { openMenu } from "../../workbench/menus.js";

let bench: Bench;
/** Its answers are Markdown. */
let writing: Bench;

aroundBrowser({
  async start() {
    bench = await startBench();
    const { url, close } = await fakeServices({
      ...{ tokens: 24, rate: 0, sent: [] },
      words: ["Some ", "**words", "** and ", "others", ".\n\n- one", "\n- two\n\n"],
    });
    writing = await startBench(async () => ({ server: url, lab: url, close }));
  },
  async end() {
    await bench?.close();
    await writing?.close();
  },
});

/** Asks what is answered with 24 tokens, and waits for them. */
async function ask(page: Page, question: string): Promise<void> {
  await page.getByRole("textbox", { name: "Message" }).fill(question);
  await page.keyboard.press("Enter");
  await page.getByText("24 tokens", { exact: true }).waitFor();
}

/** The page reads everything again, as after its connection was lost. */
const readAnew = (page: Page) =>
  page.evaluate(`new BroadcastChannel("tapline-workbench-events").postMessage({ missed: true })`);

/** The page has done whatever it does with what it was answered before. */
async function settled(page: Page): Promise<void> {
  await page.evaluate(`(async () => {
    for (let turn = 0; turn < 5; turn += 1) await (await fetch("/health")).json();
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  })()`);
}

const open = (page: Page, view: string) =>
  page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: view, exact: true }).click();
const pathOf = (page: Page) => page.evaluate("location.pathname + location.search");

inBrowser("a refused question returns to its field, unless another was begun", async () => {
  const { page, context } = await visit(writing);
  const field = page.getByRole("textbox", { name: "Message" });
  const refuse = async (meanwhile: string) => {
    const asked = new Promise<Route>((resolve) => {
      void page.route("**/api/conversations", (route) =>
        route.request().method() === "POST" ? resolve(route) : route.continue(),
      );
    });
    await field.fill("What is the capital of France?");
    await field.press("Enter");
    const route = await asked;
    if (meanwhile !== "") await field.fill(meanwhile);
    const sentence = `It is full${meanwhile === "" ? "" : ", still"}.`;
    await route.fulfill({ status: 503, json: { error: sentence } });
    await page.getByRole("alert").getByText(sentence, { exact: true }).waitFor();
    await page.unroute("**/api/conversations");
    await settled(page);
    return field.inputValue();
  };
  assert.is(await refuse(""), "What is the capital of France?");
  assert.is(await refuse("And of Japan?"), "And of Japan?");
  await context.close();
});

inBrowser("a late job does not move the user away; a user who stayed sees it", async () => {
  const { page, context, troubles } = await visit(bench);
  const started = async (view: string, button: string | RegExp) => {
    await open(page, view);
    await page.getByRole("button", { name: button, exact: true }).click();
  };
  for (const [view, button] of [
    ["Inspect", "Inspect"],
    ["Patch", "Patch"],
    ["Graph", "Compute graph"],
    ["Probe", "Train and evaluate"],
  ] as const) {
    const release = await holdBack(page, "/api/jobs");
    await started(view, button);
    await open(page, "Models");
    await release();
    await settled(page);
    assert.is(await pathOf(page), "/models", `${view} was asked, and then one went to the models`);
    // Back in the view is not where one was: the job is in the list.
    const again = await holdBack(page, "/api/jobs");
    await started(view, button);
    await open(page, "Chat");
    await open(page, view);
    await again();
    await settled(page);
    assert.is(await pathOf(page), `/${view.toLowerCase()}`);
  }
  // Two that are asked for in one view: the later one is shown.
  const release = await holdBack(page, "/api/jobs");
  await open(page, "Inspect");
  const text = page.getByRole("textbox", { name: "Text" });
  for (const place of ["Spain", "Sweden"]) {
    await text.fill(`The capital of ${place} is`);
    await page.getByRole("button", { name: "Inspect", exact: true }).click();
  }
  await release(2);
  await page
    .getByText(/“·Stockholm”/)
    .first()
    .waitFor();
  assert.is(await text.inputValue(), "The capital of Sweden is");
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("an answer that begins late takes nobody away", async () => {
  const { page, context } = await visit(bench);
  const release = await holdBack(page, "/api/conversations");
  await page.getByRole("textbox", { name: "Message" }).fill("What is the capital of Greece?");
  await page.getByRole("button", { name: "Send" }).click();
  await open(page, "Steer");
  await release();
  await settled(page);
  assert.is(await pathOf(page), "/steer");
  await open(page, "Chat");
  const list = page.getByRole("navigation", { name: "Conversations" });
  await list.getByRole("link", { name: "What is the capital of Greece?" }).click();
  await page.getByText("24 tokens", { exact: true }).waitFor();
  await context.close();
});

inBrowser("text typed before a job's settings load stays; the request is shown again", async () => {
  const { page, context } = await visit(bench);
  await open(page, "Inspect");
  const text = page.getByRole("textbox", { name: "Text" });
  await text.fill("The capital of Poland is");
  await page.getByRole("button", { name: "Inspect", exact: true }).click();
  await page.waitForURL(/\/inspect\/[0-9a-f]{32}$/);
  const path = new URL(page.url()).pathname;
  await open(page, "Chat");
  await page.goBack();
  await until(async () => (await text.inputValue()) === "The capital of Poland is", "as it was asked");

  const release = await holdBack(page, `/api/jobs/${path.split("/")[2]}`, "GET");
  await page.goto(bench.workbench.url + path);
  await text.fill("The capital of Norway is");
  await release();
  await settled(page);
  assert.is(await text.inputValue(), "The capital of Norway is");
  await context.close();
});

inBrowser("a figure that a user steps through is not redrawn when its job completes", async () => {
  const context = await newContext({});
  const page = await context.newPage();
  // The stream brings nothing until it is released.
  await page.addInitScript(`
    const { fetch } = globalThis;
    globalThis.flow = undefined;
    const flowing = new Promise((resolve) => { globalThis.flow = resolve; });
    globalThis.fetch = async (path, options) => {
      if (String(path).startsWith("/api/events")) await flowing;
      return fetch(path, options);
    };
  `);
  await page.goto(bench.workbench.link());
  await open(page, "Inspect");
  const findings = "**/api/jobs/*/findings";
  await page.route(findings, async (route) => {
    const id = new URL(route.request().url()).pathname.split("/")[3] as string;
    await new Lab(bench.lab).wait(id);
    await route.continue();
  });
  await page.getByRole("button", { name: "Inspect", exact: true }).click();
  const lens = page.getByRole("figure", { name: "Logit lens" });
  await lens.locator('[aria-label="cell"] rect').last().waitFor();
  await lens.locator(".chart").focus();
  await page.keyboard.press("ArrowRight");
  await page.evaluate("document.querySelector('.chart > svg:last-of-type').dataset.mine = 'yes'");
  const [response] = await Promise.all([
    page.waitForResponse((answer) => answer.url().includes("/api/events")),
    page.evaluate("flow()"),
  ]);
  assert.is(response.status(), 200);
  await settled(page);
  assert.is(await page.locator(".chart > svg[data-mine]").count(), 1, "it is the same drawing");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Selected cell" }).getByText("layer 0, token 0").waitFor();
  await context.close();
});

inBrowser("a figure takes the keys as soon as it can have the focus", async () => {
  const { page, context } = await visit(bench);
  await open(page, "Compare");
  await page.getByRole("textbox", { name: "Second text" }).fill("The capital of Italy is");
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  await page
    .getByRole("figure", { name: /^Difference/ })
    .locator(".chart svg")
    .last()
    .waitFor();
  await page.evaluate(`(async () => {
    const former = document.querySelector("figure .chart");
    const show = [...document.querySelectorAll("select")].find((one) => [...one.options].some(({ value }) => value === "norm"));
    show.value = "norm";
    show.dispatchEvent(new Event("change", { bubbles: true }));
    // As soon as the new figure is there, and before anything is painted.
    const next = () => document.querySelector("figure .chart");
    for (let turn = 0; turn < 1000 && next() === former; turn += 1) await Promise.resolve();
    next().focus();
    for (const key of ["ArrowRight", "Enter"]) next().dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  })()`);
  await page.getByRole("region", { name: "Selected cell" }).waitFor({ timeout: 20_000 });
  assert.match(String(await pathOf(page)), /q=norm&l=\d+&c=0$/);
  await context.close();
});

inBrowser("another version of a turn never shows the former one's answer", async () => {
  const { page, context, troubles } = await visit(bench);
  await ask(page, "What is the capital of France?");
  await page.getByRole("button", { name: "Edit question" }).click();
  await page.getByRole("textbox", { name: "Edit your question" }).fill("What is the capital of Norway?");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("group", { name: "Version 2 of 2" }).waitFor();
  await page.getByText("24 tokens", { exact: true }).waitFor();
  const shown = await page.evaluate(`(async () => {
    const said = (selector) => document.querySelector(selector)?.textContent;
    const before = said(".answer-text > p");
    document.querySelector('a[aria-label="Previous version of question 1"]').click();
    // As soon as the other way is there, and long before anything is painted.
    const there = () => said(".branches")?.includes("1/2");
    for (let turn = 0; turn < 1000 && !there(); turn += 1) await Promise.resolve();
    return [before, there(), said(".question"), said(".answer-text > p")];
  })()`);
  assert.equal(shown, [
    "The capital of Norway is Oslo.",
    true,
    "What is the capital of France?",
    "The capital of France is Paris.",
  ]);
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("items removed in another tab disappear without an error; all others are reloaded", async () => {
  const { page, context, troubles } = await visit(writing);
  const begin = async (question: string) => {
    await page.getByRole("link", { name: "New conversation" }).click();
    await page.getByRole("textbox", { name: "Message" }).fill(question);
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/chat\/[0-9a-f]{16}/);
    await page.getByText("24 tokens", { exact: true }).waitFor();
    return new URL(page.url()).pathname.replace("/chat/", "");
  };
  const first = await begin("The first");
  const second = await begin("The second");
  const other = await context.newPage();
  await other.goto(`${writing.workbench.url}/chat`);
  for (const tab of [page, other]) tab.on("dialog", (dialog) => void dialog.accept());
  const remove = (tab: Page, title: string) => tab.getByRole("button", { name: `Delete “${title}”` }).click();
  const left = (tab: Page, title: string) =>
    tab.getByRole("navigation", { name: "Conversations" }).getByText(title, { exact: true });
  await remove(other, "The first");
  await left(page, "The first").waitFor({ state: "detached" });
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await readAnew(page);
  await until(() => asked.includes(`/api/conversations/${second}`), "the other one is read");
  await settled(page);
  assert.not(asked.includes(`/api/conversations/${first}`));
  assert.equal(troubles, []);
  // Both remove it, and this page is notified of that last.
  const release = await holdBack(page, `/api/conversations/${second}`, "DELETE");
  await remove(page, "The second");
  await remove(other, "The second");
  await left(other, "The second").waitFor({ state: "detached" });
  await release();
  await page.waitForURL(/\/chat$/);
  assert.is(await page.getByRole("alert").count(), 0);
  await context.close();
});

inBrowser("failures to remove or sign out are reported", async () => {
  const { page, context } = await visit(writing);
  page.on("dialog", (dialog) => void dialog.accept());
  await ask(page, "It stays");
  await page.route("**/api/**", (route) =>
    route.request().method() === "DELETE"
      ? route.fulfill({ status: 500, json: { error: "The disk is full." } })
      : route.continue(),
  );
  for (const [button, place] of [
    ["Delete “It stays”", page.getByRole("navigation", { name: "Conversations" })],
    ["Sign out everywhere", page.getByRole("banner")],
  ] as const) {
    await openMenu(place, "Settings");
    await page.getByRole("button", { name: button, exact: true }).click();
    await place.getByRole("alert").getByText("The disk is full.").waitFor();
  }
  await context.close();
});

inBrowser("a token keeps the focus when its answer turns into Markdown, and back", async () => {
  const { page, context, troubles } = await visit(writing);
  const release = await holdBack(page, "/page/*markdown*", "GET");
  await ask(page, "Go on");
  await page.locator(".answer-text").focus();
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowLeft");
  const focused = () => page.evaluate("document.activeElement.dataset.at");
  assert.is(await focused(), "22");
  await release();
  const markdown = page.locator(".answer-text .markdown");
  await markdown.waitFor();
  assert.is(await focused(), "22");
  await page.keyboard.press("ArrowLeft");
  assert.is(await focused(), "21");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Inside a token" }).getByText("Token 21 ·").waitFor();
  // The same where the page reads everything again.
  await readAnew(page);
  await settled(page);
  assert.is(await focused(), "21");
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("an edited question takes the focus once, and not on every redraw", async () => {
  const { page, context, troubles } = await visit(writing);
  await ask(page, "Go on");
  await page.getByRole("button", { name: "Edit question" }).click();
  const focused = () => page.evaluate("document.activeElement.id || document.activeElement.tagName");
  assert.is(await focused(), "TEXTAREA");
  await page.getByRole("textbox", { name: "Message" }).focus();
  await readAnew(page);
  await settled(page);
  assert.is(await focused(), "question");
  assert.equal(troubles, []);
  await context.close();
});

test.run();
