import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { BrowserContextOptions, Page } from "playwright-core";
import * as assert from "uvu/assert";
import { type ReportedJob, renderReport } from "../../src/report/index.js";
import { aroundBrowser, newContext } from "../support/browser.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-report-"));

/** Starts a browser for all tests of a file. */
export function aroundReports(): void {
  aroundBrowser({ end: () => rmSync(folder, { recursive: true, force: true }) });
}

/** A report on a page without a network, and everything that went wrong on it. */
export interface OpenReport {
  page: Page;
  /** Errors, refusals of the policy, and requests for anything but the file itself. */
  troubles: string[];
  close(): Promise<void>;
}

let pages = 0;

export async function openReport(job: ReportedJob, options: BrowserContextOptions = {}): Promise<OpenReport> {
  const context = await newContext({ offline: true, acceptDownloads: true, ...options });
  const page = await context.newPage();
  const troubles: string[] = [];
  page.on("pageerror", (error) => troubles.push(String(error)));
  page.on("console", (message) => {
    if (message.type() !== "log") troubles.push(`${message.type()}: ${message.text()}`);
  });
  pages += 1;
  const path = join(folder, `${pages}.html`);
  writeFileSync(path, await renderReport(job));
  const own = pathToFileURL(path).href;
  page.on("request", (request) => {
    if (request.url() !== own && !/^(?:data|blob):/.test(request.url())) troubles.push(request.url());
  });
  await page.goto(own);
  if (options.javaScriptEnabled !== false) {
    for (const chart of await page.locator(".chart").all()) {
      await chart.locator("svg").first().waitFor({ state: "attached" });
    }
  }
  return { page, troubles, close: () => context.close() };
}

/** An SVG file that a strict reader accepts, with something on it. */
export async function assertDrawable(page: Page, svg: string): Promise<{ width: number }> {
  const read = await page.evaluate((text) => {
    // biome-ignore lint/suspicious/noExplicitAny: a global of the page
    const parsed = new (globalThis as any).DOMParser().parseFromString(text, "image/svg+xml");
    return {
      faults: parsed.querySelectorAll("parsererror").length,
      scripts: parsed.querySelectorAll("script, foreignObject, a, use").length,
      marks: parsed.querySelectorAll("path, rect, circle, text").length,
      width: Number(parsed.documentElement.getAttribute("width")),
    };
  }, svg);
  assert.is(read.faults, 0);
  assert.is(read.scripts, 0);
  assert.ok(read.marks > 5);
  assert.ok(read.width > 100);
  return read;
}
