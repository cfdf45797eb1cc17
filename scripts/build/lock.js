import {
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const heartbeat = 10_000;
/** A holder that has not shown a sign of life for this long is gone, even if its process number is in use again. */
const abandonedAfter = 15 * 60_000;

/**
 * Runs `work` while no other process holds the same lock file: `npm ci` in two terminals, or two `npx`, would
 * otherwise build in one CMake tree at the same time.
 * @template T
 * @param {string} file
 * @param {(pid: number) => void} onWait called once when another process has to be waited for
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withLock(file, onWait, work) {
  mkdirSync(dirname(file), { recursive: true });
  let told = false;
  while (!tryTake(file)) {
    const holder = readHolder(file);
    if (holder && isGone(holder)) {
      removeStale(file, holder.pid);
      continue;
    }
    if (holder?.pid && !told) {
      // without hard links it may be caught before its number is written
      told = true;
      onWait(holder.pid);
    }
    await sleep(holder ? 300 : 20);
  }
  const beat = setInterval(() => touch(file), heartbeat);
  beat.unref();
  const release = () => rmSync(file, { force: true });
  process.once("exit", release);
  try {
    return await work();
  } finally {
    clearInterval(beat);
    process.off("exit", release);
    release();
  }
}

/** Creates the file with its content in one step: a link either is made whole or fails. @param {string} file */
function tryTake(file) {
  const own = `${file}.${process.pid}`;
  writeFileSync(own, String(process.pid));
  try {
    take(own, file);
    return true;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === "EEXIST") {
      return false;
    }
    throw error;
  } finally {
    rmSync(own, { force: true });
  }
}

/**
 * @param {string} own
 * @param {string} file
 */
function take(own, file) {
  try {
    linkSync(own, file);
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === "EEXIST") {
      throw error;
    }
    // A file system without hard links, such as exFAT or a shared folder of a virtual machine.
    writeFileSync(file, String(process.pid), { flag: "wx" });
  }
}

/** @param {string} file */
function readHolder(file) {
  try {
    return { pid: Number(readFileSync(file, "utf8")), seen: statSync(file).mtimeMs };
  } catch {
    return undefined;
  }
}

/** @param {{ pid: number, seen: number }} holder */
function isGone({ pid, seen }) {
  if (Date.now() - seen > abandonedAfter) {
    return true;
  }
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code !== "EPERM";
  }
}

/**
 * Moves the stale file aside before removing it, and gives it back if another waiter had already replaced it.
 * @param {string} file
 * @param {number} stalePid
 */
function removeStale(file, stalePid) {
  const aside = `${file}.stale-${process.pid}`;
  try {
    renameSync(file, aside);
  } catch {
    return;
  }
  if (readHolder(aside)?.pid !== stalePid) {
    try {
      linkSync(aside, file);
    } catch {
      // a third process holds it now
    }
  }
  rmSync(aside, { force: true });
}

/** @param {string} file */
function touch(file) {
  try {
    utimesSync(file, new Date(), new Date());
  } catch {
    // the folder was removed under us: the build itself will say so
  }
}
