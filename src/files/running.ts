import { readFileSync } from "node:fs";

/** Whether there is a process of this id, of any user. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** State of a process, its parent and its start time in system ticks, from /proc if available. */
export function processStat(pid: number): {
  state: string | null;
  parent: number | null;
  started: string | null;
} {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The command name is in parentheses and may contain anything; field 3 is the first after it.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { state: fields[0] ?? null, parent: Number(fields[1]), started: fields[19] ?? null };
  } catch {
    return { state: null, parent: null, started: null };
  }
}
