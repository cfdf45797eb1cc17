/** Faults around the page, which reports them and continues without help. */
import type { Page } from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Lab } from "../../../src/client/index.js";
import { meddleEnvironment } from "../../lab/harness.js";
import { aroundBrowser, inBrowser, newContext } from "../../support/browser.js";
import { until } from "../../support/until.js";
import { type Bench, startBench, visit } from "../../workbench/bench.js";
import { Killable } from "../../workbench/killable.js";

let bench: Bench;
let server: Killable;
let lab: Killable;

aroundBrowser({
  async start() {
    bench = await startBench(async (home) => {
      [server, lab] = await Promise.all([
        Killable.start(["serve", "demo"], home),
        Killable.start(["lab", "--queue", "8"], home),
      ]);
      const close = () => Promise.all([server.close(), lab.close()]);
      return { server: server.url, lab: lab.url, close };
    });
  },
  end: () => bench?.close(),
});

const strip = async (page: Page) => (await page.locator(".strip").textContent()) ?? "";

inBrowser("a server killed in mid-answer is reported; the conversation continues later", async () => {
  const { page, context } = await visit(bench);
  // Without its seventh block, at its own tokens too, the model finds no end.
  await page.getByRole("button", { name: "Change a layer" }).click();
  await page.getByRole("combobox", { name: "Layer", exact: true }).selectOption("6");
  await page.getByRole("slider").fill("1");
  await page.getByRole("combobox", { name: "Positions", exact: true }).selectOption("all");
  await page.getByRole("spinbutton", { name: "Max tokens" }).fill("4096");
  await page.getByRole("textbox", { name: "Message" }).fill("What is the capital of France?");
  const tokens = page.locator(".answer-text .t");
  // Held before the click: a fast machine soon fills the model's context of 512 tokens.
  await Promise.all([
    server.inMoments(/inference.process.main/, async () => (await tokens.count()) > 0),
    page.getByRole("button", { name: "Send" }).click(),
  ]);
  await server.kill();
  // The baseline, on the left, may have ended before.
  const broken = page.locator(".answer").getByText(/^The connection to .* broke|^The answer ended before/);
  await broken.first().waitFor();
  const came = await tokens.count();
  assert.ok(came > 0, "what came stays");
  await until(async () => /Server: (?!.*Lab:)/.test(await strip(page)), "the strip says so");
  // Meanwhile a question waits where it was written.
  const message = page.getByRole("textbox", { name: "Message" });
  await message.fill("What is the capital of Japan?");
  assert.ok(await page.getByRole("button", { name: "Send" }).isDisabled());

  await server.startAgain();
  await until(async () => !/Server:|Lab:/.test(await strip(page)), "and no longer once it is back");
  assert.is(await message.inputValue(), "What is the capital of Japan?");
  await page.getByRole("button", { name: /^Remove ablate/ }).click();
  // The model's words after that much noise do not matter.
  await page.getByRole("spinbutton", { name: "Max tokens" }).fill("32");
  await page.getByRole("button", { name: "Send" }).click();
  const next = page.locator(".turn").nth(1);
  await next.getByText(/^\d+ tokens?/).waitFor();
  assert.ok((await next.locator(".answer-text .t").count()) > 0);
  assert.is(await page.locator(".turn").count(), 2);
  await context.close();
});

inBrowser("a Lab killed during a job and restarted: every tab says so, the job is repeated", async () => {
  await server.startUnlessRunning();
  // Its worker gives no result, so that the job runs until the Lab ends.
  await lab.kill();
  await lab.startAgain(meddleEnvironment("hang", bench.folder));
  const { page, context } = await visit(bench);
  await page.getByRole("link", { name: "Inspect", exact: true }).click();
  await page.getByRole("textbox", { name: "Text" }).fill("The capital of Norway is");
  await page.getByRole("button", { name: "Inspect", exact: true }).click();
  await page.waitForURL(/\/inspect\/[0-9a-f]{32}$/);
  const id = new URL(page.url()).pathname.split("/")[2] as string;
  const other = await context.newPage();
  await other.goto(`${bench.workbench.url}/jobs/${id}`);
  const cancel = (tab: Page) => tab.getByRole("region", { name: "Progress" }).getByRole("button");
  for (const tab of [page, other]) await cancel(tab).first().waitFor();

  await lab.kill();
  const tabs = [page, other];
  for (const tab of tabs) await until(async () => /^(?!.*Server:).*Lab: /.test(await strip(tab)));
  // A visitor of a job's address now learns why it is not there, and sees it once the Lab is back.
  const late = await context.newPage();
  await late.goto(`${bench.workbench.url}/jobs/${id}`);
  await late.getByRole("heading", { level: 1, name: "Jobs" }).waitFor();

  await lab.startAgain();
  for (const tab of [...tabs, late]) {
    await until(async () => !/Server:|Lab:/.test(await strip(tab)));
    await tab.getByRole("alert").getByText("The service shut down while the job was running.").waitFor();
  }
  await other.getByRole("button", { name: `Repeat job ${id.slice(0, 8)}` }).click();
  await other.getByRole("figure", { name: "Logit lens" }).locator("svg").last().waitFor();
  await other.getByText(/^“·Oslo”/).waitFor();
  await context.close();
});

inBrowser("a page opened without the Lab reads a job's findings once the Lab is back", async () => {
  await Promise.all([server.startUnlessRunning(), lab.startUnlessRunning()]);
  const job = await new Lab(lab.url).inspect("demo", "The capital of France is", {
    layers: [5],
    attention: {},
  });
  const { id } = await new Lab(lab.url).wait(job);
  const compared = await new Lab(lab.url).submit("compare", "demo", {
    ...{ prompt: "The capital of Spain is", layers: [5], intervention: "scale", strengths: [0, 1] },
  });
  await new Lab(lab.url).wait(compared);
  const { page, context } = await visit(bench);
  await lab.kill();
  await until(async () => /Lab: (?!ready)/.test(await strip(page)));
  const tabs = [];
  for (const path of [`/inspect/${id}`, `/steer/${compared.id}`]) {
    const tab = await context.newPage();
    await tab.goto(bench.workbench.url + path);
    await tab
      .getByRole("alert")
      .getByText(/Nothing listens at/)
      .waitFor();
    tabs.push(tab);
  }
  await lab.startAgain();
  const [inspected, steered] = tabs as [Page, Page];
  await inspected
    .getByRole("figure", { name: /^Attention of layer/ })
    .locator("svg")
    .last()
    .waitFor();
  await steered.getByRole("figure").first().locator("svg").last().waitFor();
  assert.is(await inspected.getByRole("alert").count(), 0);
  await context.close();
});

inBrowser("a job cancelled elsewhere is reported in every tab that shows it", async () => {
  await server.startUnlessRunning();
  await lab.kill();
  await lab.startAgain(meddleEnvironment("hang", bench.folder));
  const { page, context, troubles } = await visit(bench);
  await page.getByRole("link", { name: "Steer", exact: true }).click();
  await page.getByRole("textbox", { name: "layers" }).fill("5");
  await page.getByRole("button", { name: /^Measure effect/ }).click();
  await page.waitForURL(/\/steer\/[0-9a-f]{32}$/);
  const id = new URL(page.url()).pathname.split("/")[2] as string;
  const other = await context.newPage();
  await other.goto(page.url());
  for (const tab of [page, other]) await tab.getByRole("region", { name: "Progress" }).first().waitFor();
  await new Lab(bench.lab).cancel(id);
  for (const tab of [page, other]) await tab.getByText("The job was cancelled.").first().waitFor();
  assert.equal(troubles, []);
  await context.close();
  await lab.kill();
  await lab.startAgain();
});

inBrowser("a silent connection that stays open, as after a laptop slept, is opened again", async () => {
  await Promise.all([server.startUnlessRunning(), lab.startUnlessRunning()]);
  const context = await newContext({});
  const page = await context.newPage();
  await page.clock.install();
  // The first stream is one that nobody ends.
  await page.addInitScript(`
    const { fetch } = globalThis;
    globalThis.streams = 0;
    globalThis.fetch = (path, options) => {
      if (!String(path).startsWith("/api/events")) return fetch(path, options);
      streams += 1;
      return streams > 1 ? fetch(path, options) : Promise.resolve(new Response(new ReadableStream({})));
    };
  `);
  await page.goto(bench.workbench.link());
  await page.getByRole("textbox", { name: "Message" }).fill("What is the capital of France?");
  await page.getByRole("button", { name: "Send" }).click();
  await page.waitForURL(/\/chat\/[0-9a-f]{16}$/);
  await until(async () => (await page.evaluate("streams")) === 1);
  // An hour passes.
  await page.clock.fastForward("01:00:00");
  await until(async () => (await page.evaluate("streams")) === 2);
  await page.locator(".answer-text > p", { hasText: "is Paris" }).waitFor();
  await page.getByText("24 tokens", { exact: true }).waitFor();
  await context.close();
});

test.run();
