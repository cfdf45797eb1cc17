/**
 * How much the page does for what arrives: counted, since how long it takes is the machine's business (`npm run bench --
 * workbench` measures that). What grows with an answer's length for each of its tokens is seen here.
 */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { aroundBrowser, inBrowser } from "../../support/browser.js";
import { until } from "../../support/until.js";
import { type Bench, startBench, visit } from "../../workbench/bench.js";
import { fakeServices, jobId, type Stream } from "../../workbench/fast-services.js";

const stream: Stream = { tokens: 400, rate: 400, sent: [] };
let bench: Bench;

aroundBrowser({
  async start() {
    const { url, close } = await fakeServices(stream);
    bench = await startBench(async () => ({ server: url, lab: url, close }));
  },
  end: () => bench?.close(),
});

inBrowser("a new token is appended; nothing on the page is touched", async () => {
  const { page, context, troubles } = await visit(bench);
  const ask = async () => {
    await page.getByRole("textbox", { name: "Message" }).fill("Go on");
    await page.keyboard.press("Enter");
  };
  await ask();
  await page.getByText("400 tokens", { exact: true }).waitFor();
  await page.getByRole("checkbox", { name: "Markdown" }).uncheck();
  await until(async () => (await page.locator(".answer-text .markdown").count()) === 0);
  await page.evaluate(`
    globalThis.work = { added: 0, removed: 0, elsewhere: 0 };
    globalThis.observer = new MutationObserver((records) => {
      for (const { addedNodes, removedNodes, target } of records) {
        const turn = (target.nodeType === 1 ? target : target.parentElement)?.closest(".turn");
        if (turn !== null && turn === document.querySelector(".turn")) work.elsewhere += 1;
        if (target.closest?.(".answer-text") == null) continue;
        work.added += addedNodes.length;
        work.removed += removedNodes.length;
      }
    });
    observer.observe(document.querySelector(".turns"), { childList: true, subtree: true, characterData: true });
  `);
  await ask();
  await until(async () => (await page.getByText("400 tokens", { exact: true }).count()) === 2);
  const { added, removed, elsewhere } = (await page.evaluate("work")) as Record<string, number>;
  assert.is(await page.locator(".turn").nth(1).locator(".answer-text .t").count(), 400);
  // A span a token, a block for 64 of them, and the paragraph.
  assert.is(added, 400 + Math.ceil(400 / 64) + 1);
  assert.is(removed, 0);
  assert.is(elsewhere, 0, "the answer above is left alone");
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("a lens of 256 tokens and 24 layers is one canvas; tables are made when opened", async () => {
  const { page, context, troubles } = await visit(bench, { viewport: { width: 1200, height: 900 } });
  await page.goto(`${bench.workbench.url}/inspect/${jobId}`);
  const lens = page.getByRole("figure", { name: "Logit lens" });
  await lens.locator(".map-cells").waitFor();
  const elements = () => lens.locator("*").count();
  const few = await elements();
  assert.ok(few < 250, `${few} elements for 6,144 cells`);
  assert.is(await lens.locator("tbody tr").count(), 0);
  const map = lens.locator(".map");
  const tip = lens.locator(".map-tip");
  // With the keyboard: from cell to cell, and what is far away comes into the window.
  await map.focus();
  await page.keyboard.press("ArrowRight");
  await until(async () => ((await tip.textContent()) ?? "").startsWith("layer 23, after The (token 0)"));
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("End");
  await until(async () => ((await tip.textContent()) ?? "").startsWith("layer 22, after"));
  assert.match((await tip.textContent()) ?? "", /^layer 22, after \S+ \(token 255\)\n/);
  await until(
    async () => (await map.evaluate((one) => (one as unknown as { scrollLeft: number }).scrollLeft)) > 0,
  );
  await until(async () =>
    ((await lens.locator(".detail").textContent()) ?? "").startsWith("layer 22, after"),
  );
  assert.is(await elements(), few, "scrolling makes none");
  await page.keyboard.press("Enter");
  await page
    .getByRole("region", { name: "Selected cell" })
    .getByText(/layer 22, token 255/)
    .waitFor();
  const selected = (await elements()) - few;
  assert.ok(selected <= 12, `${selected} elements for the outline of the selected cell`);
  // With the mouse: the first cell of the window.
  const box = (await map.boundingBox()) as { x: number; y: number };
  await page.mouse.move(box.x + 60, box.y + 10);
  await until(async () => ((await tip.textContent()) ?? "").startsWith("layer 23, after"));
  await lens.getByText("Data of “Logit lens” as a table").click();
  await until(async () => (await lens.locator("tbody tr").count()) === 256);
  assert.equal(troubles, []);
  await context.close();
});

test.run();
