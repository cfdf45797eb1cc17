import { randomBytes } from "node:crypto";
import { link, rename, rm, stat, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { NotRegular, readRegular } from "./regular.js";

/** What file systems say that have no hard links: exFAT, some that lie on a network. */
const withoutLinks = new Set(["EPERM", "ENOSYS", "ENOTSUP", "EOPNOTSUPP"]);
/** An heir takes milliseconds; one that is there for longer has died over it. */
const heirMs = 10_000;
/** There, a file exists for a moment before it has its content. */
const contentMs = 500;

/** `holder`: what the file of somebody who lives says; undefined when a dead one's was just being cleared away. */
export type Claim = { taken: true } | { taken: false; holder: string | undefined };

/**
 * Tries once to make `path` a file that says `text`, as a lock between processes. The file never appears over another's,
 * unless `isDead` says of that one's text that its holder is gone; where the disk has links, it has its whole content
 * from the first.
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

/** Puts `own` in the place of a dead one's file that says `seen`, unless another process does so. */
async function inherit(own: string, path: string, seen: string): Promise<boolean> {
  // One at a time: between reading and replacing, somebody else might have become the next living holder.
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

/** Gives a claim back. Idempotent; another's claim stays. */
export async function unclaim(path: string, text: string): Promise<void> {
  if ((await read(path)) === text) await rm(path, { force: true });
}

/** Whether somebody who lives holds the lock. */
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

/** Gives the file `from`, which says `text`, the name `to`; false where that is taken. */
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
