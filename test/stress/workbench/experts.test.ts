/** Inspect on a model with experts: the switch that one without them has not, its figures, and its script. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { InspectResult, Job } from "../../../src/contracts/index.js";
import { aroundBrowser, inBrowser } from "../../support/browser.js";
import { sizes, writeExpertsModel } from "../../support/experts-model.js";
import { type Bench, startBench, visit } from "../../workbench/bench.js";
import { openMenu } from "../../workbench/menus.js";

let bench: Bench;
let folder: string;
aroundBrowser({
  async start() {
    folder = mkdtempSync(join(tmpdir(), "tapline-experts-"));
    const path = join(folder, "experts.gguf");
    const choice = { groups: 1, groupsUsed: 1, biased: true, normed: true, scale: 1 };
    await writeExpertsModel(path, { ...choice, gate: "softmax" });
    bench = await startBench(undefined, path);
  },
  async end() {
    await bench?.close();
    rmSync(folder, { recursive: true, force: true });
  },
});

inBrowser("inspect: each token's experts, as the Lab found them, and the matching script", async () => {
  const { page, context, troubles } = await visit(bench, { viewport: { width: 1200, height: 900 } });
  await page.getByRole("link", { name: "Inspect" }).click();
  await page.getByRole("textbox", { name: "Text" }).fill("abc def");
  await page.getByRole("textbox", { name: "layers" }).fill("1, 2");
  await page.getByRole("checkbox", { name: "Experts" }).check();
  await page.getByRole("button", { name: "Inspect", exact: true }).click();
  const map = page.getByRole("figure", { name: "Experts of each token" });
  await map.locator('[aria-label="cell"] rect').first().waitFor();
  const id = new URL(page.url()).pathname.split("/")[2] as string;
  const { result } = (await (await fetch(`${bench.lab}/lab/v1/jobs/${id}`)).json()) as Job;
  const { tokens, routing } = result as InspectResult;
  assert.is(routing?.length, 2);
  assert.is(await map.locator('[aria-label="cell"] rect').count(), 2 * tokens.length);
  await map.getByText("Data of “Experts of each token” as a table").click();
  await map.locator("tbody tr").first().waitFor();
  const rows = await map
    .locator("tbody tr")
    .evaluateAll((all) =>
      (all as unknown as { cells: Iterable<{ textContent: string }> }[]).map(({ cells }) =>
        Array.from(cells, ({ textContent }) => textContent),
      ),
    );
  assert.equal(
    rows.map(([, ...experts]) => experts),
    tokens.map((_, at) => routing!.map(({ chosen }) => chosen[at]!.join(", "))),
  );
  const often = page.getByRole("figure", { name: "How often each expert was chosen" });
  await often.locator('[aria-label="cell"] rect').first().waitFor();
  assert.is(await often.locator('[aria-label="cell"] rect').count(), 2 * sizes.experts);
  const script = page.locator("details.code").filter({ has: page.getByText("As a script", { exact: true }) });
  await openMenu(page.locator(".result-tools"), "Export and scripts");
  await script.locator("summary").last().click();
  const code = script.getByRole("region", { name: "As a script, curl" });
  assert.match((await code.textContent()) ?? "", /"routing": ?true/);
  // Opened again, the form shows the request.
  await page.reload();
  const again = page.getByRole("checkbox", { name: "Experts" });
  await again.waitFor();
  await map.locator('[aria-label="cell"] rect').first().waitFor();
  assert.ok(await again.isChecked());
  assert.equal(troubles, []);
  await context.close();
});

test.run();
