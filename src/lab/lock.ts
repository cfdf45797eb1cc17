import { join } from "node:path";
import { UserError } from "../contracts/user-error.js";
import { claim, unclaim } from "../files/claim.js";
import { isRunning, processStat } from "../files/running.js";

export interface Holder {
  pid: number;
  /** When the process with this pid started, if known: a pid alone may have been reused. */
  started: string | null;
  since: string;
}

export interface Lock {
  /** Releases it. Idempotent. */
  release(): Promise<void>;
}

/**
 * Locks a folder for this process. Locks of dead processes are taken over.
 * @throws UserError with the holder's pid
 */
export async function lockFolder(folder: string): Promise<Lock> {
  return lock(join(folder, "lock"), (holder) =>
    holder === null
      ? `${folder} could not be locked, because another tapline lab is starting there.`
      : `${folder} is in use by process ${holder.pid}, a tapline lab running since ${holder.since}; ` +
        "stop it or choose another folder with --home.",
  );
}

/**
 * Creates a lock file for this process, or takes it over from a dead process.
 * @param inUse the error message about a live holder; null if it is unknown
 * @throws UserError
 */
export async function lock(path: string, inUse: (holder: Holder | null) => string): Promise<Lock> {
  const holder: Holder = {
    pid: process.pid,
    started: processStat(process.pid).started,
    since: new Date().toISOString(),
  };
  const text = JSON.stringify(holder);
  for (let attempt = 0; attempt < 10; attempt++) {
    const claimed = await claim(path, text, isDead);
    if (claimed.taken) return { release: () => unclaim(path, text) };
    const other = parseHolder(claimed.holder);
    if (other !== null) throw new UserError(inUse(other));
  }
  throw new UserError(inUse(null));
}

function parseHolder(text = ""): Holder | null {
  try {
    const holder = JSON.parse(text) as Holder;
    return Number.isInteger(holder.pid) && holder.pid > 0 ? holder : null;
  } catch {
    return null;
  }
}

function isDead(text: string): boolean {
  const holder = parseHolder(text);
  if (holder === null) return true;
  if (!isRunning(holder.pid)) return true;
  const { state, started } = processStat(holder.pid);
  // Zombies still have their pid until their parent reaps them.
  if (state === "Z" || state === "X") return true;
  return holder.started !== null && started !== null && started !== holder.started;
}
