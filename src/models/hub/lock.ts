import { randomBytes } from "node:crypto";
import { mkdir, stat, utimes } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { claim, isClaimed, unclaim } from "../../files/claim.js";
import { isRunning } from "../../files/running.js";

/** Interval at which the holder updates the lock file's time. */
const heartbeatMs = 5000;
/** A lock not updated for this long is stale, on any machine. */
const silentMs = 60_000;
const pollMs = 200;

/**
 * Holds the lock file `path` while `run` runs. While waiting for the lock, `waiting` is called repeatedly; it may return
 * true to stop waiting, if the work has been done meanwhile. A dead holder's lock is taken over: immediately on the same
 * machine, after a minute of silence otherwise (caches may be on shared disks).
 * @returns the result of `run`, or undefined if `waiting` returned true
 */
export async function underLock<T>(
  path: string,
  run: () => Promise<T>,
  waiting: () => Promise<boolean>,
  signal?: AbortSignal,
): Promise<T | undefined> {
  await mkdir(dirname(path), { recursive: true });
  const own = JSON.stringify({ pid: process.pid, host: hostname(), id: randomBytes(8).toString("hex") });
  const isDead = (text: string) => isSilent(path, text);
  while (!(await claim(path, own, isDead)).taken) {
    if (await waiting()) return undefined;
    await sleep(pollMs, undefined, { signal });
  }
  const heartbeat = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => {});
  }, heartbeatMs);
  heartbeat.unref();
  try {
    return await run();
  } finally {
    clearInterval(heartbeat);
    await unclaim(path, own);
  }
}

/** Whether a live holder has the lock. */
export function isHeld(path: string): Promise<boolean> {
  return isClaimed(path, (text) => isSilent(path, text));
}

async function isSilent(path: string, text: string): Promise<boolean> {
  const beat = await stat(path).catch(() => undefined);
  if (beat === undefined) return false; // just released
  if (Date.now() - beat.mtimeMs > silentMs) return true;
  try {
    const { pid, host } = JSON.parse(text) as { pid: number; host: string };
    return host === hostname() && !isRunning(pid);
  } catch (error) {
    return error instanceof SyntaxError;
  }
}
