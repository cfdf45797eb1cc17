/** Different faults that are counted at a time. */
const mostKinds = 100;

/**
 * Writes a line. With `kind`, the first of its kind is written and those after it are counted: an outage is a few lines,
 * however many requests it meets.
 */
export type Log = (line: string, kind?: string) => void;

export interface SummarizingLog {
  log: Log;
  /** Writes what was counted since the last time; to be called every minute, and at the end. */
  summarize(): void;
}

export function summarizing(write: (line: string) => void): SummarizingLog {
  /** Lines that were held back, by kind: since the last summary, and in all. */
  const kinds = new Map<string, { now: number; all: number; line: string }>();
  return {
    log(line, kind) {
      const known = kind === undefined ? undefined : kinds.get(kind);
      if (known !== undefined) {
        known.now += 1;
        known.all += 1;
        known.line = line;
        return;
      }
      write(line);
      if (kind === undefined) return;
      kinds.set(kind, { now: 0, all: 0, line });
      if (kinds.size > mostKinds) kinds.delete(kinds.keys().next().value as string);
    },
    summarize() {
      for (const [kind, seen] of kinds) {
        if (seen.now > 0) write(`${seen.now} more since the last line like it; the newest: ${seen.line}`);
        else {
          if (seen.all > 0) write(`over, after ${seen.all + 1} times: ${kind}`);
          kinds.delete(kind);
        }
        seen.now = 0;
      }
    },
  };
}

/** A line as it is written where nothing else was asked for: with the time, in UTC. */
export function toStandardError(line: string): void {
  process.stderr.write(`${new Date().toISOString()} ${line}\n`);
}
