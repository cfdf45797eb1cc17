/**
 * Photographs reports of real jobs for the documentation: `npm run docs:report-pictures`; behind `--` words of the pictures'
 * names that are wanted, otherwise all. Needs Debian's chromium.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type Browser, chromium } from "playwright-core";
import { readExamples } from "../../src/cli/input-files.js";
import { Lab, type Settings } from "../../src/client/index.js";
import { startLab } from "../../src/lab/index.js";
import { backendInfo } from "../../src/native/index.js";
import { readJob, renderReport } from "../../src/report/index.js";
import { writeExpertsModel } from "../../test/support/experts-model.js";
import { exampleCard } from "./card-example.js";

const images = fileURLToPath(new URL("../../docs/images", import.meta.url));
const examplesFile = fileURLToPath(new URL("../../docs/examples/reviews.csv", import.meta.url));
const capitals = readFileSync(new URL("../../docs/examples/capitals.txt", import.meta.url), "utf8")
  .trim()
  .split("\n");
const layers = [0, 1, 2, 3, 4, 5, 6, 7];
const patch: Settings<"compare", "prompt"> = {
  layers: [5],
  intervention: "patch",
  donor_prompt: "The capital of Japan is",
  strengths: [0, 0.25, 0.5, 0.75, 1],
  max_tokens: 8,
};

const folder = mkdtempSync(join(tmpdir(), "tapline-pictures-"));
const service = await startLab({ port: 0, home: folder, backend: backendInfo().backend, queueCapacity: 8 });
const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args });
try {
  const lab = new Lab(service.url);
  /** A job's report, once somebody wants a picture of it. */
  const job = (submit: () => Promise<{ id: string }>) => {
    let made: Promise<string> | undefined;
    return () => {
      made ??= submit().then(async ({ id }) => page(await lab.wait(id, { intervalMs: 50 })));
      return made;
    };
  };
  const examples = (await readExamples(examplesFile)) as Settings<"probe">["examples"];
  const inspect = job(() => lab.inspect("demo", "The capital of France is", { layers, follow_answer: true }));
  await lab.addLens("demo", "demo");
  const lenses = job(() =>
    lab.inspect("demo", "The language of the country of Osaka is", {
      layers,
      follow_answer: true,
      lens: "demo",
    }),
  );
  const compare = job(() => lab.compare("demo", capitals[0] as string, { ...patch, prompts: capitals }));
  const swap = job(() =>
    lab.compare("demo", capitals[0] as string, {
      layers: [4, 5, 6],
      intervention: "swap",
      swap: [" Paris", " Tokyo"],
      lens: "demo",
      strengths: [0, 0.25, 0.5, 0.75, 1],
      target_token: " Tokyo",
      controls: true,
      max_tokens: 8,
    }),
  );
  // Of random weights: a small model with experts is not to be had.
  const experts = join(folder, "experts.gguf");
  const choice = { groups: 1, groupsUsed: 1, biased: false, normed: true, scale: 1 } as const;
  await writeExpertsModel(experts, { ...choice, gate: "softmax" });
  const routing = job(() => lab.inspect(experts, "The capital of France", { layers: [1, 2], routing: true }));
  const probe = job(() => lab.probe("demo", examples, { layers }));
  const rows = job(() => lab.probe("demo", examples, { layers, rows: "all" }));
  const sweep = job(() => lab.patchSweep("demo", capitals[0] as string, "The capital of Japan is"));
  const gift = (giver: string) => `When Mary and John went to the store, ${giver} gave a drink to`;
  const heads = job(() => lab.patchSweep("demo", gift("John"), gift("Mary"), { points: ["head_out"] }));
  const halves = job(() =>
    lab.patchSweep("demo", capitals[0] as string, "The capital of Japan is", { points: ["attn_out"] }),
  );
  const words = "river stone bread chair apple window garden table paper music";
  const attention = job(() =>
    lab.inspect("demo", `${words} ${words}`, { layers: [7], attention: { layers: [7, 6, 4, 2, 0] } }),
  );
  const sae = job(() => lab.sae("demo", examples, { layers: [2, 5], steps: 200 }));

  await take(browser, inspect, "light", "#logit-lens", "report-lens-light", async (shown) => {
    // The last cell of block 6, as a reader would point at it.
    await shown.locator("#logit-lens .chart").focus();
    for (let step = 0; step < 7 * 6; step += 1) await shown.keyboard.press("ArrowRight");
  });
  await take(browser, lenses, "light", "#logit-lens", "report-lenses-light");
  await take(browser, lenses, "light", "#logit-lens", "report-lenses-kl-light", async (shown) => {
    await shown.getByRole("button", { name: "KL to the output" }).click();
    await shown.mouse.move(0, 0);
  });
  await take(browser, inspect, "light", "#norms", "report-norms-light");
  await take(browser, inspect, "dark", "#answer-by-layer", "report-answer-dark");
  await take(browser, compare, "dark", "#dose-response", "report-dose-dark");
  await take(browser, compare, "light", "#continuations", "report-continuations-light", async (shown) => {
    await shown.evaluate(
      "document.querySelectorAll('details.prompt').forEach((one, index) => { one.open = index < 2 })",
    );
  });
  await take(browser, sweep, "light", "#patch-map", "report-patch-light");
  await take(browser, heads, "light", "#patch-map-head-out", "report-patch-heads-light");
  await take(browser, heads, "dark", "#patch-heads", "report-patch-head-tokens-dark");
  await take(browser, halves, "light", "#patch-map-attn-out", "report-patch-attention-light");
  await take(browser, attention, "light", "#attention-induction", "report-attention-induction-light");
  await take(browser, attention, "light", "#attention-previous", "report-attention-previous-light");
  await take(browser, swap, "light", "#dose-response", "report-swap-light");
  await take(browser, routing, "light", "#routing-tokens", "report-routing-light");
  await take(browser, routing, "dark", "#routing-experts", "report-routing-shares-dark");
  await take(browser, probe, "light", "#accuracy-by-layer", "report-accuracy-light");
  await take(browser, rows, "light", "#rows-by-layer", "report-rows-light");
  await take(browser, probe, "dark", "#scores", "report-scores-dark");
  await take(browser, () => exampleCard(folder), "light", "#effect-against-cost", "report-card-light");
  await take(browser, sae, "dark", "#features", "report-features-dark");
  await take(browser, sae, "light", "#top-features-5", "report-top-features-light", async (shown) => {
    await shown.evaluate(
      "document.querySelectorAll('#top-features-5 .feature').forEach((one, index) => { if (index >= 6) one.remove() })",
    );
  });
} finally {
  await browser.close();
  await service.close();
  rmSync(folder, { recursive: true, force: true });
}

async function page(job: { id: string }): Promise<string> {
  const path = join(folder, `${job.id}.html`);
  writeFileSync(path, await renderReport(readJob(job)));
  return pathToFileURL(path).href;
}

async function take(
  browser: Browser,
  url: () => Promise<string>,
  colorScheme: "light" | "dark",
  part: string,
  name: string,
  prepare: (shown: Awaited<ReturnType<Browser["newPage"]>>) => Promise<void> = async () => {},
): Promise<void> {
  const wanted = process.argv.slice(2);
  if (wanted.length > 0 && !wanted.some((word) => name.includes(word))) return;
  const shown = await browser.newPage({ colorScheme, viewport: { width: 980, height: 1400 } });
  await shown.goto(await url());
  await shown.locator(`${part} .chart svg, ${part} .drawing svg, ${part}.passage`).first().waitFor();
  await prepare(shown);
  await shown.waitForTimeout(200);
  await shown.locator(part).screenshot({ path: join(images, `${name}.png`) });
  await shown.close();
  console.log(`docs/images/${name}.png`);
}
