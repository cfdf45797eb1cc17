import { type GraphMarks, marksIn, noMarks, withMarks } from "./graph-marks.js";

const storageKey = (job: string) => `tapline-graph-${job}`;

/** The marks of a job's graph, saved in this browser. */
export function savedMarks(job: string, ids: readonly string[]): GraphMarks {
  try {
    return marksIn(JSON.parse(localStorage.getItem(storageKey(job)) ?? "{}"), ids);
  } catch {
    return noMarks;
  }
}

export function saveMarks(job: string, marks: GraphMarks): void {
  if (marks.pinned.length + marks.supernodes.length === 0) localStorage.removeItem(storageKey(job));
  else localStorage.setItem(storageKey(job), JSON.stringify(JSON.parse(withMarks("{}", marks)).qParams));
}
