/** The list of jobs: titles, search, filters, and pinned jobs first. */
import type { JobSummary } from "../../contracts/index.js";
import type { JobNote } from "../wire.js";

export interface JobFilter {
  /** Words that must all occur in the title, the note, the experiment, the model or the id. */
  words: string;
  /** Empty for all. */
  operation: string;
  status: string;
}

export const noFilter: JobFilter = { words: "", operation: "", status: "" };

/** The user's title, the one made from the prompt, or the experiment until that is known. */
export function titleOfJob({ operation }: Pick<JobSummary, "operation">, note: JobNote | undefined): string {
  return note?.own ?? note?.title ?? operation;
}

/** The jobs that match, pinned ones first, in their order otherwise. */
export function filterJobs(
  jobs: readonly JobSummary[],
  notes: Readonly<Record<string, JobNote>>,
  { words, operation, status }: JobFilter,
): JobSummary[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = jobs.filter((job) => {
    if (operation !== "" && job.operation !== operation) return false;
    if (status !== "" && job.status !== status) return false;
    const { own = "", title = "", note = "" } = notes[job.id] ?? {};
    const text = [own, title, note, job.operation, job.model, job.id].join("\n").toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
  const isPinned = ({ id }: JobSummary) => notes[id]?.pinned === true;
  return [...found.filter(isPinned), ...found.filter((job) => !isPinned(job))];
}
