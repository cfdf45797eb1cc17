import { readdirSync, readFileSync } from "node:fs";

/** The kernel counts in hundredths of a second, whatever its own clock (USER_HZ). */
const tickMs = 10;

/** Processor time of a process and its children in milliseconds, with threads that have ended: Linux only. */
export function processorMs(pid: number): number {
  return withChildren(pid)
    .map((each) => {
      const fields = readFileSync(`/proc/${each}/stat`, "utf8");
      // Behind the name, which may contain spaces: the fields from the third on.
      const [utime, stime] = fields
        .slice(fields.lastIndexOf(")") + 2)
        .split(" ")
        .slice(11, 13)
        .map(Number);
      return tickMs * ((utime as number) + (stime as number));
    })
    .reduce((sum, ms) => sum + ms, 0);
}

/** A process, its children, theirs and so on. */
export function withChildren(pid: number): number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8")
      .trim()
      .split(" ")
      .filter(Boolean)
      .map(Number),
  );
  return [pid, ...children.flatMap(withChildren)];
}
