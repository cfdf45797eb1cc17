/** The study that is being drafted: its text, and its jobs in the address. */
import type { StudyRequest } from "../../contracts/workbench.js";

export type StudyWords = StudyRequest["words"];

export const noWords: StudyWords = {
  ...{ title: "", question: "", hypothesis: "", method: "", finding: "", limitations: "", license: "" },
  omissions: [],
};

/** The jobs of a study in the address; undefined without a study. */
export function studyJobs(query: URLSearchParams): string[] | undefined {
  const text = query.get("study");
  return text === null ? undefined : [...new Set(text.split(",").filter((id) => /^[0-9a-f]{32}$/.test(id)))];
}

/** The jobs for the address, with one added or removed. */
export function withJob(jobs: readonly string[], id: string, on: boolean): string {
  return [...jobs.filter((other) => other !== id), ...(on ? [id] : [])].join(",");
}

/** The address of a job, with another job to compare and the study's jobs. */
export function jobPath(
  id: string,
  { beside, study }: { beside?: string | undefined; study?: readonly string[] | undefined },
): string {
  const parts = [
    ...(beside === undefined ? [] : [`with=${beside}`]),
    ...(study === undefined ? [] : [`study=${study.join(",")}`]),
  ];
  return `/jobs/${id}${parts.length === 0 ? "" : `?${parts.join("&")}`}`;
}
