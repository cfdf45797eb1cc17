/** The words of the study that is being drafted, and the jobs that it is of. */
import type { StudyRequest } from "../../contracts/workbench.js";

export type StudyWords = StudyRequest["words"];

export const noWords: StudyWords = {
  ...{ title: "", question: "", hypothesis: "", method: "", finding: "", limitations: "", license: "" },
  omissions: [],
};

/** The jobs that an address puts into a study; undefined where no study is drafted. */
export function studyJobs(query: URLSearchParams): string[] | undefined {
  const text = query.get("study");
  return text === null ? undefined : [...new Set(text.split(",").filter((id) => /^[0-9a-f]{32}$/.test(id)))];
}

/** The jobs with one more, or without it, as an address has them. */
export function withJob(jobs: readonly string[], id: string, on: boolean): string {
  return [...jobs.filter((other) => other !== id), ...(on ? [id] : [])].join(",");
}

/** The address of a job, beside another and while a study is drafted. */
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
