/** Files that a page gives to keep. */
import { readFileSync } from "node:fs";
import { setTimeout as after } from "node:timers/promises";
import type { Page } from "playwright-core";

/**
 * Chromium lets a page begin a limited number of downloads within a second, and drops the next one silently. Users do not
 * press buttons that quickly; a test on an idle machine does.
 */
const mostAtOnce = 10;
const withinMs = 1000;
/** When the latest files of a page had come. */
const arrivals = new WeakMap<Page, number[]>();

/** The download that an action in a page starts, such as a pressed button: the file's name and bytes. */
export async function downloaded(
  page: Page,
  act: () => Promise<unknown>,
): Promise<{ name: string; bytes: Buffer }> {
  const times = arrivals.get(page) ?? [];
  arrivals.set(page, times);
  const tenth = times.at(-mostAtOnce);
  if (tenth !== undefined) await after(Math.max(0, tenth + 1.1 * withinMs - performance.now()));
  const [file] = await Promise.all([page.waitForEvent("download"), act()]);
  times.push(performance.now());
  return { name: file.suggestedFilename(), bytes: readFileSync(await file.path()) };
}
