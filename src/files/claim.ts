import { randomBytes } from "node:crypto";
import { link, readFile, rename, rm, writeFile } from "node:fs/promises";

/** `holder`: what the file of somebody who lives says; undefined when a dead one's was just being cleared away. */
export type Claim = { taken: true } | { taken: false; holder: string | undefined };

/**
 * Tries once to make `path` a file that says `text`, as a lock between processes. The file appears with its whole
 * content or not at all, and never over another's, unless `isDead` says of that one's text that its holder is gone.
 */
export async function claim(
  path: string,
  text: string,
  isDead: (text: string) => boolean | Promise<boolean>,
): Promise<Claim> {
  const own = `${path}.${process.pid}.${randomBytes(4).toString("hex")}`;
  await writeFile(own, text);
  try {
    if (await linked(own, path)) return { taken: true };
    const seen = await read(path);
    if (seen !== undefined) {
      if (!(await isDead(seen))) return { taken: false, holder: seen };
      // Two may find the same dead lock: whoever moved another's living one away puts it back.
      const aside = `${own}.dead`;
      await rename(path, aside).catch(() => {});
      if (((await read(aside)) ?? seen) !== seen) await linked(aside, path);
      await rm(aside, { force: true });
    }
    return (await linked(own, path)) ? { taken: true } : { taken: false, holder: undefined };
  } finally {
    await rm(own, { force: true });
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
  return readFile(path, "utf8").catch(() => undefined);
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
