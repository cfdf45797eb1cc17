/** Debian's chromium for tests of pages, started once a test file. */
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from "playwright-core";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { whatPagesShow } from "./what-pages-show.js";

const executable = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) => existsSync(path));
let browser: Browser;
/** For what does not happen at all; how long the rest takes is the machine's business. */
const patienceMs = 300_000;
/** So long before the runner ends a file that hangs, the file says what its pages show. */
const lastWordsMs = 30_000;

/** Services that a file's tests need in addition to the browser. */
export interface Surroundings {
  start?(): Promise<void>;
  end(): void | Promise<void>;
}

/** Starts a browser, and what else the tests need, for all tests of a file. */
export function aroundBrowser({ start, end }: Surroundings): void {
  test.before(async () => {
    if (executable === undefined) return;
    await start?.();
    const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
    browser = await chromium.launch({ executablePath: executable, args, timeout: patienceMs });
    sayBeforeTheEnd();
  });
  test.after(async () => {
    await browser?.close();
    await end();
  });
}

/** A test that is skipped, with a note, where chromium is missing. */
export function inBrowser(name: string, body: () => Promise<void>): void {
  if (executable === undefined) {
    console.log(`SKIPPED: ${name}: chromium is not installed (Debian: chromium).`);
    test.skip(name, () => {});
  } else test(name, () => telling(body));
}

/** A test that fails says what the pages showed, and leaves none of them to the next one. */
async function telling(body: () => Promise<void>): Promise<void> {
  try {
    await body();
  } catch (thrown) {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    // The stack repeats the message as it was.
    const { stack } = error;
    error.message += `\n\nWhat the pages showed:\n${await whatPagesShow(browser)}\n`;
    if (stack !== undefined) error.stack = stack;
    await Promise.all(browser.contexts().map((context) => context.close()));
    throw error;
  }
}

/** A file that the runner is about to end has no error to report, and would print nothing. */
function sayBeforeTheEnd(): void {
  const limitMs = Number(process.env.TAPLINE_TEST_LIMIT_MS ?? Number.NaN);
  if (!Number.isFinite(limitMs)) return;
  const left = Math.max(limitMs / 2, limitMs - lastWordsMs) - performance.now();
  setTimeout(async () => {
    console.log(`\nThis file will not end in time. What its pages show:\n${await whatPagesShow(browser)}`);
  }, left).unref();
}

/** A separate visitor: no cookies, no cache. */
export async function newContext(options: BrowserContextOptions): Promise<BrowserContext> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(patienceMs);
  if (slowness > 1) context.on("page", slowDown);
  return context;
}

/** TAPLINE_SLOW_PAGES=5: pages think five times as slowly, which shows where a test hurries ahead of them. */
const slowness = Number(process.env.TAPLINE_SLOW_PAGES ?? 1);

function slowDown(page: Page): void {
  const slow = async () => {
    const session = await page.context().newCDPSession(page);
    await session.send("Emulation.setCPUThrottlingRate", { rate: slowness });
  };
  // One that is closed already has no hurry.
  void slow().catch(() => {});
}

/**
 * Nothing that axe calls serious or critical, and nothing wider than the window. The page's context has to allow
 * foreign scripts (`bypassCSP`).
 * @param impacts what of axe's findings counts
 */
export async function assertLooksWell(
  page: Page,
  name: string,
  impacts: readonly string[] = ["serious", "critical"],
): Promise<void> {
  await page.evaluate(readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"));
  const serious = await page.evaluate(async (counting) => {
    // biome-ignore lint/suspicious/noExplicitAny: axe is a global of the page
    const { violations } = await (globalThis as any).axe.run();
    return violations
      .filter(({ impact }: { impact: string }) => counting.includes(impact))
      .map(({ id, nodes }: { id: string; nodes: { html: string }[] }) => `${id}: ${nodes[0]?.html}`);
  }, impacts);
  assert.equal(serious, [], name);
  const overflow = await page.evaluate(
    "document.documentElement.scrollWidth - document.documentElement.clientWidth",
  );
  assert.ok((overflow as number) <= 0, `${name} fits its window`);
}
