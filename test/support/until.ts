import { setTimeout as sleep } from "node:timers/promises";

/** Far more than a busy machine takes for anything that a test waits for, and less than the runner's own limit. */
const patienceMs = 300_000;
// Tests may replace it with a simulated clock.
const now = performance.now.bind(performance);

/**
 * Looks again and again until there is something (anything but undefined and false), and gives it. How long that takes
 * is the machine's business: only what does not come to pass at all fails, by its name.
 */
export async function until<T>(
  find: () => T | Promise<T>,
  what: string = String(find),
  pauseMs = 10,
): Promise<Exclude<T, undefined | false>> {
  const deadline = now() + patienceMs;
  for (;;) {
    const found = await find();
    if (found !== undefined && found !== false) return found as Exclude<T, undefined | false>;
    if (now() > deadline) {
      throw new Error(`It did not come to pass within ${patienceMs / 1000} s: ${what}`);
    }
    await sleep(pauseMs);
  }
}
