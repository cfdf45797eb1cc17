/** What goes wrong around the page, which says so and goes on by itself. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Lab } from "../../../src/client/index.js";
import { aroundBrowser, inBrowser, newContext } from "../../support/browser.js";
import { until } from "../../support/until.js";
import { type Bench, startBench, visit } from "../../workbench/bench.js";

let bench: Bench;
aroundBrowser({
  async start() {
    bench = await startBench();
  },
  end: () => bench?.close(),
});

inBrowser("a job that somebody cancels elsewhere is told in every tab that shows it", async () => {
  const { page, context, troubles } = await visit(bench);
  await page.getByRole("link", { name: "Steer", exact: true }).click();
  // Nothing ends it before it is cancelled: others stand before it.
  const lab = new Lab(bench.lab);
  const texts = Array.from({ length: 40 }, (_, at) => `The capital of country ${at} is far away.`);
  const examples = texts.map(
    (text, at) => ({ text, label: at % 2 === 0 ? 0 : 1, split: at % 4 < 2 ? "train" : "test" }) as const,
  );
  const before = await Promise.all(
    [0, 1, 2].map(() => lab.submit("probe", "demo", { examples, layers: [0, 1, 2, 3, 4, 5, 6, 7] })),
  );
  await page.getByRole("textbox", { name: "layers" }).fill("5");
  await page.getByRole("button", { name: /^Measure at these layers/ }).click();
  await page.waitForURL(/\/steer\/[0-9a-f]{32}$/);
  const id = new URL(page.url()).pathname.split("/")[2] as string;
  const other = await context.newPage();
  await other.goto(page.url());
  await lab.cancel(id);
  for (const { id } of before) await lab.cancel(id);
  for (const tab of [page, other]) await tab.getByText("The job was cancelled.").waitFor();
  assert.equal(troubles, []);
  await context.close();
});

inBrowser(
  "a connection that brings nothing and is not closed, as after a laptop slept, is opened anew",
  async () => {
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
  },
);

test.run();
