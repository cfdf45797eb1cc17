/** Kinds of faults tracked at the same time. */
const mostKinds = 100;

/**
 * Writes a line. With `kind`, only the first line of its kind is written and later ones are counted, so that an outage
 * takes a few lines however many requests fail.
 */
export type Log = (line: string, kind?: string) => void;

export interface SummarizingLog {
  log: Log;
  /** Writes the counts since the last call; to be called every minute, and at the end. */
  summarize(): void;
}

export function summarizing(write: (line: string) => void): SummarizingLog {
  /** Suppressed lines by kind: since the last summary, and in total. */
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
        if (seen.now > 0)
          write(`repeated ${seen.now} more ${seen.now === 1 ? "time" : "times"}; latest: ${seen.line}`);
        else {
          if (seen.all > 0) write(`stopped after ${seen.all + 1} times: ${kind}`);
          kinds.delete(kind);
        }
        seen.now = 0;
      }
    },
  };
}

/** The default log: standard error, with the UTC time. */
export function toStandardError(line: string): void {
  process.stderr.write(`${new Date().toISOString()} ${line}\n`);
}
