import { randomBytes } from "node:crypto";
import { link, mkdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** The holder says so often that it is alive, by the time of the lock file. */
const heartbeatMs = 5000;
/** A holder that was silent for so long is gone, wherever it ran. */
const silentMs = 60_000;
const pollMs = 200;

/**
 * Holds `path` as a lock while `run` runs. Whoever finds it held waits; `waiting` is called now and then and may
 * end the wait by returning true, when what the lock protects has been done. A lock whose holder died is taken
 * over: at once on the same machine, after a minute of silence elsewhere (caches lie on shared disks, too).
 * @returns what `run` gave, or undefined when `waiting` ended the wait
 */
export async function underLock<T>(
  path: string,
  run: () => Promise<T>,
  waiting: () => Promise<boolean>,
  signal?: AbortSignal,
): Promise<T | undefined> {
  await mkdir(dirname(path), { recursive: true });
  const own = JSON.stringify({ pid: process.pid, host: hostname(), id: randomBytes(8).toString("hex") });
  while (!(await take(path, own))) {
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
    if ((await readFile(path, "utf8").catch(() => "")) === own) await rm(path, { force: true });
  }
}

/** Whether somebody who lives holds the lock. */
export async function isHeld(path: string): Promise<boolean> {
  const seen = await readFile(path, "utf8").catch(() => undefined);
  return seen !== undefined && !(await isDead(path, seen));
}

async function take(path: string, own: string): Promise<boolean> {
  const temporary = `${path}.${process.pid}.${randomBytes(4).toString("hex")}`;
  await writeFile(temporary, own);
  try {
    // A link appears with its whole content or not at all, and never over another's.
    if (await linked(temporary, path)) return true;
    const seen = await readFile(path, "utf8").catch(() => undefined);
    if (seen === undefined || !(await isDead(path, seen))) return false;
    // Two may find the same dead lock: whoever moved another's living one away puts it back.
    const aside = `${temporary}.dead`;
    await rename(path, aside).catch(() => {});
    if ((await readFile(aside, "utf8").catch(() => seen)) !== seen) await linked(aside, path);
    await rm(aside, { force: true });
    return linked(temporary, path);
  } finally {
    await rm(temporary, { force: true });
  }
}

async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

async function isDead(path: string, text: string): Promise<boolean> {
  const beat = await stat(path).catch(() => undefined);
  if (beat === undefined) return false; // just released
  if (Date.now() - beat.mtimeMs > silentMs) return true;
  try {
    const { pid, host } = JSON.parse(text) as { pid: number; host: string };
    if (host !== hostname()) return false;
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH" || error instanceof SyntaxError;
  }
}
