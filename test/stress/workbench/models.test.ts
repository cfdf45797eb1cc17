/** The Models view in a real browser: a model is found at a hub, downloaded, served instead of the other, and removed. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { aroundBrowser, assertLooksWell, inBrowser } from "../../support/browser.js";
import { visit } from "../../workbench/bench.js";
import { holdBack } from "../../workbench/hold-back.js";
import { broughtId as id, type ModelsBench, startModelsBench } from "../../workbench/models-bench.js";

let bench: ModelsBench;
aroundBrowser({
  async start() {
    bench = await startModelsBench();
  },
  end: () => bench?.close(),
});

inBrowser("a model is found, downloaded, served, asked, and removed when not served", async () => {
  const { page, context, troubles } = await visit(bench, { viewport: { width: 1280, height: 900 } });
  await page.getByRole("link", { name: "Models", exact: true }).click();
  const rows = page.getByRole("region", { name: "Models on this machine" }).locator("tbody tr");
  await rows.filter({ hasText: /demo.*served.*qwen3, 1\.5 M, F16/ }).waitFor();
  await rows.filter({ hasText: /MB, fits/ }).waitFor();

  await page.getByRole("textbox", { name: /^Model/ }).fill("tiny/demo");
  await page.keyboard.press("Enter");
  const offers = page.getByRole("region", { name: "Files of tiny/demo" }).locator("tbody tr");
  await offers.first().waitFor();
  assert.match(page.url(), /\/models\?of=tiny%2Fdemo$/);
  assert.is(await offers.count(), 2);
  await page.getByRole("button", { name: `Download ${id}` }).click();
  await page.getByRole("region", { name: "Downloads" }).getByText("downloaded: 3.2 MB").waitFor();
  const brought = rows.filter({ hasText: id });
  await brought.waitFor();

  await page.getByRole("button", { name: `Serve ${id}` }).click();
  await brought.getByText("served", { exact: true }).waitFor();
  await page
    .locator(".strip")
    .getByText(/^tiny\/demo\/demo-F16\.gguf/)
    .waitFor();
  assert.ok(await page.getByRole("button", { name: `Delete ${id} (not while it is served)` }).isDisabled());
  await page.getByRole("link", { name: "Chat", exact: true }).click();
  await page.getByRole("textbox", { name: "Message" }).fill("What is the capital of France?");
  await page.keyboard.press("Enter");
  await page.locator(".answer-text > p", { hasText: "is Paris" }).waitFor();

  // What cannot be loaded leaves the server as it was.
  await page.getByRole("link", { name: "Models", exact: true }).click();
  await page.getByRole("textbox", { name: /^Model/ }).fill("tiny/demo/broken-Q8_0.gguf");
  await page.getByRole("button", { name: "Download", exact: true }).click();
  const broken = rows.filter({ hasText: "broken-Q8_0" });
  await broken.getByText("unreadable header").waitFor();
  await page.getByRole("button", { name: "Serve tiny/demo/broken-Q8_0.gguf" }).click();
  await page
    .getByRole("alert")
    .filter({ hasText: /GGUF|load/ })
    .waitFor();
  await brought.getByText("served", { exact: true }).waitFor();

  await page.getByRole("button", { name: "Serve demo", exact: true }).click();
  await rows.first().getByText("served", { exact: true }).waitFor();
  for (const name of [id, "tiny/demo/broken-Q8_0.gguf"]) {
    await page.getByRole("button", { name: `Delete ${name}` }).click();
    await page.getByRole("button", { name: `Confirm deleting ${name}` }).click();
    await rows.filter({ hasText: name }).waitFor({ state: "detached" });
  }
  assert.is(await rows.count(), 1);
  const refused = troubles.filter((trouble) => /status of 409/.test(trouble));
  assert.is(refused.length, 1, "the one that cannot be served");
  assert.equal(troubles, refused);
  await context.close();
});

inBrowser("a model removed while the page asks for its size causes no trouble", async () => {
  const { page, context, troubles } = await visit(bench);
  await page.getByRole("link", { name: "Models", exact: true }).click();
  const rows = page.getByRole("region", { name: "Models on this machine" }).locator("tbody tr");
  const release = await holdBack(
    page,
    "/api/models/fits",
    "POST",
    (request) => request.postDataJSON().model === id,
  );
  await page.getByRole("textbox", { name: /^Model/ }).fill(id);
  await page.getByRole("button", { name: "Download", exact: true }).click();
  await page.getByRole("button", { name: `Delete ${id}` }).click();
  await page.getByRole("button", { name: `Confirm deleting ${id}` }).click();
  await rows.filter({ hasText: id }).waitFor({ state: "detached" });
  const answers = await release();
  assert.ok(answers.length > 0 && answers.every((status) => status === 200), `answered ${answers}`);
  assert.is(await rows.count(), 1);
  assert.equal(troubles, []);
  await context.close();
});

inBrowser("the view at three widths, light and dark", async () => {
  const { page: first, context: once } = await visit(bench);
  await first.goto(`${bench.workbench.url}/models`);
  await first.getByRole("textbox", { name: /^Model/ }).fill(id);
  await first.getByRole("button", { name: "Download", exact: true }).click();
  await first.getByRole("button", { name: `Serve ${id}` }).waitFor();
  await once.close();
  for (const [width, colorScheme] of [
    [360, "light"],
    [768, "dark"],
    [1440, "light"],
  ] as const) {
    const { page, context } = await visit(bench, {
      ...{ viewport: { width, height: 900 }, colorScheme },
      bypassCSP: true,
    });
    await page.goto(`${bench.workbench.url}/models?of=tiny/demo`);
    await page.getByRole("button", { name: "Browse files" }).click();
    await page.getByRole("region", { name: "Files of tiny/demo" }).waitFor();
    await page
      .getByText(/MB, fits/)
      .first()
      .waitFor();
    await assertLooksWell(page, `${width}, ${colorScheme}`);
    // The main content is in sight, however narrow the window is.
    for (const name of [/^Serve /, /^Download tiny/]) {
      const box = await page.getByRole("button", { name }).first().boundingBox();
      assert.ok(
        box !== null && box.x >= 0 && box.x + box.width <= width,
        `${name} at ${box?.x}, ${width} wide`,
      );
    }
    if (process.env.TAPLINE_LOOK)
      await page.screenshot({ path: `${process.env.TAPLINE_LOOK}/models-${width}.png`, fullPage: true });
    await context.close();
  }
});

test.run();
