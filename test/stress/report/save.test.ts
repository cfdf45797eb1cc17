/** The files that a report's buttons save. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { ReportedJob } from "../../../src/report/index.js";
import { aroundReports, assertDrawable, type OpenReport, openReport } from "../../report/browser.js";
import { compareJob, inspectJob, probeJob, saeJob } from "../../report/jobs.js";
import { inBrowser } from "../../support/browser.js";
import { downloaded } from "../../support/downloads.js";

aroundReports();

inBrowser("every figure of every kind can be saved as SVG, PNG and CSV, and the job as JSON", async () => {
  for (const job of [inspectJob(), compareJob(), probeJob(), saeJob()]) {
    const open = await openReport(job);
    const figures = await open.page.locator("figure").evaluateAll((all) => all.map(({ id }) => id));
    assert.ok(figures.length >= 2);
    for (const id of figures) await assertSaves(open, job, id);
    const whole = await downloaded(open.page, () =>
      open.page.getByRole("button", { name: "Job as JSON" }).click(),
    );
    // Without the folder that the model lies in.
    const wanted = JSON.parse(JSON.stringify(job).replace("/models/small.gguf", "small.gguf"));
    assert.equal(JSON.parse(whole.bytes.toString()), wanted);
    assert.equal(open.troubles, []);
    await open.close();
  }
});

inBrowser("thirty files saved in quick succession all arrive", async () => {
  const { page, close } = await openReport(inspectJob());
  page.setDefaultTimeout(30_000);
  // Without the mouse's ways, which take longer than a tenth of a second on a slow machine.
  const ask = () => page.evaluate("document.querySelector('[data-save=csv]').click()");
  for (let kept = 0; kept < 30; kept++) assert.ok((await downloaded(page, ask)).bytes.length > 20);
  await close();
});

async function assertSaves({ page }: OpenReport, job: ReportedJob, id: string): Promise<void> {
  const save = async (kind: string) => {
    const { name, bytes } = await downloaded(page, () => page.locator(`#${id} [data-save=${kind}]`).click());
    assert.is(name, `tapline-${job.operation}-01234567-${id}.${kind}`);
    return bytes;
  };
  const svg = (await save("svg")).toString();
  assert.not.match(svg, /aria-label="tip"/);
  const { width } = await assertDrawable(page, svg);
  const png = await save("png");
  assert.is(png.subarray(1, 4).toString(), "PNG");
  assert.is(png.readUInt32BE(16), 2 * width, `${id} at double size`);
  const table = page.locator(`#${id} table`);
  assert.ok((await table.locator("tbody tr").count()) > 0);
  const lines = (await save("csv")).toString().trimEnd().split("\r\n");
  assert.ok(lines.length > 1);
  const points = (await page.evaluate("JSON.parse(document.getElementById('data').textContent).figures")) as {
    id: string;
    rows: unknown[];
  }[];
  assert.is(lines.length - 1, points.find((figure) => figure.id === id)?.rows.length);
}

test.run();
