import { randomBytes } from "node:crypto";
import { link, rename, rm, stat, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { NotRegular, readRegular } from "./regular.js";

/** Error codes of file systems without hard links, such as exFAT and some network file systems. */
const withoutLinks = new Set(["EPERM", "ENOSYS", "ENOTSUP", "EOPNOTSUPP"]);
/** Taking over a lock takes milliseconds; an older .heir file was left by a crash. */
const heirMs = 10_000;
/** Without links, a file exists briefly before it has its content. */
const contentMs = 500;

/** `holder`: text of the live holder's file; undefined if a dead holder's file was just being removed. */
export type Claim = { taken: true } | { taken: false; holder: string | undefined };

/**
 * Tries once to create the lock file `path` with the content `text`. It never replaces another's file unless `isDead`
 * returns true for that file's text. On file systems with hard links, it appears with its whole content.
 */
export async function claim(
  path: string,
  text: string,
  isDead: (text: string) => boolean | Promise<boolean>,
): Promise<Claim> {
  const own = `${path}.${process.pid}.${randomBytes(4).toString("hex")}`;
  await writeFile(own, text, { mode: 0o600 });
  try {
    if (await appear(own, path, text)) return { taken: true };
    let seen = await read(path);
    if (seen === "") {
      await sleep(contentMs);
      seen = await read(path);
    }
    if (seen === undefined) return { taken: await appear(own, path, text), holder: undefined };
    if (!(await isDead(seen))) return { taken: false, holder: seen };
    return { taken: await inherit(own, path, seen), holder: undefined };
  } finally {
    await rm(own, { force: true });
  }
}

/** Replaces a dead holder's file, which contains `seen`, unless another process does so. */
async function inherit(own: string, path: string, seen: string): Promise<boolean> {
  // Only one process at a time: another could become the new holder between reading and replacing.
  const heir = `${path}.heir`;
  const since = await stat(heir).catch(() => undefined);
  if (since !== undefined && Date.now() - since.mtimeMs > heirMs) await rm(heir, { force: true });
  if (!(await appear(own, heir, ""))) return false;
  try {
    if ((await read(path)) !== seen) return false;
    await rename(own, path);
    return true;
  } finally {
    await rm(heir, { force: true });
  }
}

/** Releases a claim. Idempotent; another holder's claim stays. */
export async function unclaim(path: string, text: string): Promise<void> {
  if ((await read(path)) === text) await rm(path, { force: true });
}

/** Whether a live holder has the lock. */
export async function isClaimed(
  path: string,
  isDead: (text: string) => boolean | Promise<boolean>,
): Promise<boolean> {
  const seen = await read(path);
  return seen !== undefined && !(await isDead(seen));
}

function read(path: string): Promise<string | undefined> {
  return readRegular(path).catch((error) => {
    if (error instanceof NotRegular) throw error;
    return undefined;
  });
}

/** Links `from`, which contains `text`, to `to`; false if that exists. */
async function appear(from: string, to: string, text: string): Promise<boolean> {
  try {
    await link(from, to).catch((error: NodeJS.ErrnoException) => {
      if (!withoutLinks.has(error.code ?? "")) throw error;
      return writeFile(to, text, { flag: "wx", mode: 0o600 });
    });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}
