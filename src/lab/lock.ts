import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { link, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { UserError } from "../contracts/user-error.js";

interface Holder {
  pid: number;
  /** When the process with this pid started, where the system tells: a pid alone may have been reused. */
  started: string | null;
  since: string;
}

export interface FolderLock {
  /** Gives the folder free. Idempotent. */
  release(): Promise<void>;
}

/**
 * Takes a folder for this process. A lock whose holder has died is taken over.
 * @throws UserError that names the holder
 */
export async function lockFolder(folder: string): Promise<FolderLock> {
  const path = join(folder, "lock");
  const holder: Holder = {
    pid: process.pid,
    started: processStart(process.pid),
    since: new Date().toISOString(),
  };
  const text = JSON.stringify(holder);
  const unique = () => `${path}.${process.pid}.${randomBytes(4).toString("hex")}`;
  const own = unique();
  await writeFile(own, text, { mode: 0o600 });
  try {
    for (let attempt = 0; attempt < 10; attempt++) {
      // A link appears with its whole content or not at all, and never over another's.
      if (await linked(own, path)) return { release: () => release(path, text) };
      const seen = await readFile(path, "utf8").catch(() => null);
      if (seen === null) continue;
      const other = parseHolder(seen);
      if (other !== null && isAlive(other)) {
        throw new UserError(
          `${folder} is in use by process ${other.pid}, a tapline lab running since ${other.since}; ` +
            "stop it or choose another folder with --home.",
        );
      }
      // Two services may find the same dead lock: whoever renamed another's live one puts it back.
      const aside = unique();
      await rename(path, aside).catch(() => {});
      if ((await readFile(aside, "utf8").catch(() => seen)) !== seen) await linked(aside, path);
      await rm(aside, { force: true });
    }
    throw new UserError(`${folder} could not be locked; another tapline lab is starting there.`);
  } finally {
    await rm(own, { force: true });
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

async function release(path: string, text: string): Promise<void> {
  if ((await readFile(path, "utf8").catch(() => null)) === text) await rm(path, { force: true });
}

function parseHolder(text: string): Holder | null {
  try {
    const holder = JSON.parse(text) as Holder;
    return Number.isInteger(holder.pid) && holder.pid > 0 ? holder : null;
  } catch {
    return null;
  }
}

function isAlive(holder: Holder): boolean {
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return false;
  }
  const started = processStart(holder.pid);
  return holder.started === null || started === null || started === holder.started;
}

/** Start time of a process in the system's own ticks, where /proc tells it. */
function processStart(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The command name is in parentheses and may hold anything; field 22 counts from behind it.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null;
  } catch {
    return null;
  }
}
