/**
 * How soon the workbench's page shows what arrives, before services that cost nothing: tokens at a fixed rate, a long
 * conversation that is scrolled, a large lens. Chromium's own trace says how long the page's tasks are.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { buildPage } from "../../scripts/build/page.js";
import { estimateMemory } from "../../src/native/index.js";
import { startWorkbench, type WorkbenchService } from "../../src/workbench/index.js";
import { blocks, clock, fakeServices, jobId, type Stream } from "../../test/workbench/fast-services.js";
import { percentile, type Row, row } from "../figures.js";
import { type Tasks, traced } from "./trace.js";

interface Bench {
  browser: Browser;
  workbench: WorkbenchService;
  stream: Stream;
  rounds: number;
  seconds: number;
}

/** @param options.only parts whose name matches: `100 tokens/s`, `200 tokens/s`, `seventh tab`, `scroll`, `lens` */
export async function benchWorkbench(options: { quick: boolean; only?: string }): Promise<Row[]> {
  const { quick, only = "" } = options;
  const folder = mkdtempSync(join(tmpdir(), "tapline-bench-workbench-"));
  const stream: Stream = { tokens: 0, rate: 0, sent: [] };
  const page = join(folder, "page");
  const [services] = await Promise.all([fakeServices(stream), buildPage(page)]);
  const { url } = services;
  const models = { layOut: (path: string) => estimateMemory({ path }) };
  const workbench = await startWorkbench({ port: 0, home: folder, server: url, lab: url, models, page });
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args });
  const bench = { browser, workbench, stream, rounds: quick ? 1 : 3, seconds: quick ? 3 : 10 };
  try {
    const parts: [string, () => Promise<Row[]>][] = [
      ["100 tokens/s", () => streaming(bench, 100)],
      ["200 tokens/s", () => streaming(bench, 200)],
      ["seventh tab", () => seventhTab(bench)],
      ["scroll", () => scrolling(bench)],
      ["lens", () => lens(bench)],
    ];
    const rows: Row[] = [];
    for (const [name, measure] of parts) if (new RegExp(only).test(name)) rows.push(...(await measure()));
    return rows;
  } finally {
    await browser.close();
    await workbench.close();
    await services.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function opened({ browser, workbench }: Bench): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  await page.addInitScript({ content: noteTokens });
  await page.goto(workbench.link());
  await page.getByRole("navigation", { name: "Views" }).waitFor();
  return page;
}

/**
 * In the page: when each token of the last answer was painted, in milliseconds since 1970. Tokens are added where a frame
 * is made; a message that is sent from there comes when it is painted.
 */
const noteTokens = `
  globalThis.painted = [];
  const channel = new MessageChannel();
  let waiting = [];
  channel.port1.onmessage = () => {
    for (const at of waiting) painted[at] ??= performance.timeOrigin + performance.now();
    waiting = [];
  };
  new MutationObserver((records) => {
    for (const { addedNodes } of records) {
      for (const node of addedNodes) if (node.dataset?.at !== undefined) waiting.push(Number(node.dataset.at));
    }
    if (waiting.length > 0) channel.port2.postMessage(0);
  }).observe(document, { childList: true, subtree: true });
`;

/** Asks once; the answer has this many tokens at that rate. */
async function ask(page: Page, stream: Stream, tokens: number, rate: number): Promise<void> {
  Object.assign(stream, { tokens, rate });
  await page.evaluate("painted.length = 0");
  await page.getByRole("textbox", { name: "Message" }).fill("Go on");
  await page.keyboard.press("Enter");
  await page.getByText(`${tokens} tokens`, { exact: true }).last().waitFor({ timeout: 300_000 });
}

/** From when a token was written by the server to when it stood on the screen. */
async function delays(page: Page, { sent }: Stream): Promise<number[]> {
  const painted = (await page.evaluate("painted")) as (number | null)[];
  return sent.flatMap((at, token) => {
    const shown = painted[token];
    return shown == null ? [] : [shown - at];
  });
}

async function streaming(bench: Bench, rate: number): Promise<Row[]> {
  const late: number[] = [];
  const rounds: Tasks[] = [];
  for (let round = 0; round < bench.rounds; round += 1) {
    const page = await opened(bench);
    // The first answer warms up.
    await ask(page, bench.stream, 20, rate);
    await page.goto(`${bench.workbench.url}/chat`);
    rounds.push(await traced(bench.browser, page, () => ask(page, bench.stream, rate * bench.seconds, rate)));
    late.push(percentile(await delays(page, bench.stream), 0.95));
    await page.context().close();
  }
  return [
    row(`${rate} tokens/s: from written to painted, p95`, late, "ms", { most: 50 }),
    ...longTasks(`${rate} tokens/s`, rounds),
  ];
}

/** By the clock, as the page's user has it, and of the processor, as it is where nobody else uses the machine. */
function longTasks(name: string, rounds: readonly Tasks[]): Row[] {
  const longest = (times: readonly number[]) => times.reduce((most, time) => Math.max(most, time), 0);
  return [
    row(
      `${name}: tasks over 50 ms`,
      rounds.map(({ wall }) => wall.filter((time) => time > 50).length),
      "",
      { most: 0 },
    ),
    row(
      `${name}: longest task`,
      rounds.map(({ wall }) => longest(wall)),
      "ms",
    ),
    row(
      `${name}: longest task, processor time`,
      rounds.map(({ processor }) => longest(processor)),
      "ms",
      { most: 50 },
    ),
  ];
}

/** Six tabs are open, and the seventh asks. */
async function seventhTab(bench: Bench): Promise<Row[]> {
  const first = await opened(bench);
  const tabs = [first];
  for (let count = 1; count < 7; count += 1) {
    const page = await first.context().newPage();
    await page.addInitScript({ content: noteTokens });
    await page.goto(`${bench.workbench.url}/chat`);
    await page.getByRole("navigation", { name: "Views" }).waitFor();
    tabs.push(page);
  }
  const seventh = tabs.at(-1) as Page;
  const late: number[] = [];
  for (let round = 0; round < bench.rounds; round += 1) {
    await ask(seventh, bench.stream, 100 * bench.seconds, 100);
    late.push(percentile(await delays(seventh, bench.stream), 0.95));
    await seventh.goto(`${bench.workbench.url}/chat`);
    await seventh.getByRole("navigation", { name: "Views" }).waitFor();
  }
  await first.context().close();
  return [row("100 tokens/s in the seventh tab: from written to painted, p95", late, "ms", { most: 50 })];
}

/** A conversation of 5,000 tokens, coloured, a step a frame from its beginning to its end. */
async function scrolling(bench: Bench): Promise<Row[]> {
  const page = await opened(bench);
  for (let turn = 0; turn < 5; turn += 1) await ask(page, bench.stream, 1000, 0);
  await page.getByLabel("Colour by").selectOption("probability");
  const dropped: number[] = [];
  const rounds: Tasks[] = [];
  for (let round = 0; round < bench.rounds; round += 1) {
    rounds.push(
      await traced(bench.browser, page, async () => {
        dropped.push((await page.evaluate(scrollThrough)) as number);
      }),
    );
  }
  await page.context().close();
  return [
    row("5,000 tokens: frames that came late while it was scrolled", dropped, "", { most: 0 }),
    row(
      "5,000 tokens scrolled: tasks that take a whole frame of processor time",
      rounds.map(({ processor }) => processor.filter((time) => time > 16).length),
      "",
      { most: 0 },
    ),
    ...longTasks("5,000 tokens scrolled", rounds),
  ];
}

/** In the page: scrolls 120 steps. @returns frames that took more than one and a half of their time */
const scrollThrough = `new Promise((resolve) => {
  const root = document.scrollingElement;
  const step = (root.scrollHeight - innerHeight) / 120;
  const times = [];
  root.scrollTop = 0;
  // It begins when the beginning is shown.
  let before = 10;
  const next = (now) => {
    if (before > 0) {
      before -= 1;
      requestAnimationFrame(next);
      return;
    }
    times.push(now);
    if (times.length > 120) {
      resolve(times.slice(1).filter((time, at) => time - times[at] > 25).length);
      return;
    }
    root.scrollTop += step;
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
})`;

/** The lens of 256 tokens at 24 layers, drawn again in other colours. */
async function lens(bench: Bench): Promise<Row[]> {
  const page = await opened(bench);
  const begun = clock();
  await page.goto(`${bench.workbench.url}/inspect/${jobId}`);
  await page.getByRole("figure", { name: "Logit lens" }).locator(".map-cells").waitFor();
  const first = clock() - begun;
  const drawn: number[] = [];
  for (let round = 0; round < 4 * bench.rounds; round += 1) {
    const by = ["entropy", "norm", "probability"][round % 3] as string;
    drawn.push((await page.evaluate(recolour(by))) as number);
  }
  await page.context().close();
  return [
    row(`256 tokens x ${blocks} layers: from the choice of a colour to its paint`, drawn, "ms", { most: 50 }),
    row("opened with all its figures", [first], "ms"),
  ];
}

const recolour = (by: string) => `new Promise((resolve) => {
  const field = document.querySelector("figure select");
  const begun = performance.now();
  field.value = ${JSON.stringify(by)};
  field.dispatchEvent(new Event("change", { bubbles: true }));
  requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => resolve(performance.now() - begun);
    channel.port2.postMessage(0);
  });
})`;
