/**
 * The time from opening the workbench to a first insight, in a real browser: `npm run verify:first-insight`. One click on a contrast
 * set, with everything measured for the first time; the edited answer has to contain the set's words, and the baseline and the random
 * control have to contain fewer.
 *   --model FILE   instead of SmolLM2-135M-Instruct
 *   --set TITLE    as on the page; default: Refuses
 *   --shots DIR    screenshots at 1440x900 and 390x844, light and dark
 */
import { mkdirSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";
import { fetchSource } from "../support/real/fetch.js";
import { smolLm2 } from "../support/real/sources.js";
import { startBench } from "../workbench/bench.js";

const mostSeconds = 60;

const { values } = parseArgs({
  options: {
    model: { type: "string" },
    set: { type: "string", default: "Refuses" },
    shots: { type: "string" },
  },
});
const bench = await startBench(undefined, values.model ?? (await fetchSource(smolLm2)));
const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args });
const page = await (await browser.newContext({ viewport: { width: 1440, height: 900 } })).newPage();
page.setDefaultTimeout(300_000);

const begun = performance.now();
await page.goto(bench.workbench.link());
await page.getByRole("button", { name: values.set, exact: true }).click();
const finding = page.locator(".control .finding");
await finding.waitFor();
const seconds = (performance.now() - begun) / 1000;
const sentence = (await finding.textContent()) ?? "";
console.log(`${seconds.toFixed(1)} s and 1 click, load ${loadavg()[0]?.toFixed(1)}`);
console.log(await page.locator(".contrast > .soft").textContent());
for (const [name, where] of [
  ["Baseline", ".answer.baseline .answer-text"],
  ["Edited", ".answer:not(.baseline) .answer-text"],
  ["Control", ".control-text"],
] as const)
  console.log(`${name}: ${(await page.locator(where).textContent())?.trim()}`);
console.log(sentence);
if (values.shots !== undefined) {
  mkdirSync(values.shots, { recursive: true });
  for (const [width, height] of [
    [1440, 900],
    [390, 844],
  ] as const)
    for (const colorScheme of ["light", "dark"] as const) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: join(values.shots, `${width}-${colorScheme}.png`) });
    }
}
await browser.close();
await bench.close();
const counts = [...sentence.matchAll(/\d+/g)].map(Number);
const [edited = 0, baseline = 0, control = 0] = counts.slice(0, 3);
const isConcise = values.set === "Concise";
const shows = isConcise ? edited < baseline && edited < control : edited > baseline && edited > control;
process.exit(shows && seconds < mostSeconds ? 0 : 1);
