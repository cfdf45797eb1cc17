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

const executable = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) => existsSync(path));
let browser: Browser;
/** For what does not happen at all; how long the rest takes is the machine's business. */
const patienceMs = 300_000;

/** What a file's tests need beside the browser. */
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
  });
  test.after(async () => {
    await browser?.close();
    await end();
  });
}

/** A test that is skipped, with a note, where there is no chromium. */
export function inBrowser(name: string, body: () => Promise<void>): void {
  if (executable === undefined) {
    console.log(`SKIPPED: ${name}: chromium is not installed (Debian: chromium).`);
    test.skip(name, () => {});
  } else test(name, body);
}

/** A visitor of its own: no cookies, no cache. */
export async function newContext(options: BrowserContextOptions): Promise<BrowserContext> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(patienceMs);
  return context;
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
