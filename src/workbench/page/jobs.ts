import { useEffect, useState } from "preact/hooks";
import type { Job, JobSummary, PatchGrowth } from "../../contracts/index.js";
import type { Figure } from "../../report/figure.js";
import { call } from "./session.js";
import { known, useTopic } from "./store.js";

/** A finished job with what its figures show. */
export interface JobFindings {
  job: Job;
  summary: string[];
  cautions: string[];
  figures: Figure[];
  passages: { id: string; title: string }[];
}

/** A job as the Lab's list has it now. */
export function useJobSummary(id: string | undefined): JobSummary | undefined {
  useTopic("state");
  return known.state?.jobs.find((job) => job.id === id);
}

/** A job's findings once it has completed; a sentence where there are none. */
export function useFindings(id: string | undefined): JobFindings | string | undefined {
  const summary = useJobSummary(id);
  const [found, set] = useState<{ id: string; findings: JobFindings | string }>();
  const status = summary?.status;
  useEffect(() => {
    if (id === undefined || (status !== undefined && status !== "completed")) return;
    let ended = false;
    call<JobFindings | { job: Job }>(`/api/jobs/${encodeURIComponent(id)}/findings`).then(
      (findings) => {
        if (ended) return;
        if ("figures" in findings) set({ id, findings });
        // Otherwise it is under way, and is asked for again when its state changes.
        else if (!["running", "queued"].includes(findings.job.status)) {
          set({ id, findings: findings.job.error ?? `The job was ${findings.job.status}.` });
        }
      },
      (error: Error) => !ended && set({ id, findings: error.message }),
    );
    return () => {
      ended = true;
    };
  }, [id, status]);
  return found?.id === id ? found?.findings : undefined;
}

/** What is known of a patch sweep that runs; asked for when the list says that it has gone on. */
export function useGrowth(id: string): PatchGrowth | undefined {
  const summary = useJobSummary(id);
  const [growth, set] = useState<PatchGrowth>();
  const { done } = summary?.progress ?? { done: 0 };
  const runs = summary?.status === "running" && summary.operation === "patch_sweep";
  useEffect(() => {
    if (!runs) return;
    let ended = false;
    call<Job>(`/api/jobs/${encodeURIComponent(id)}`).then(
      ({ progress }) => !ended && progress.growth !== undefined && set(progress.growth),
      () => {},
    );
    return () => {
      ended = true;
    };
  }, [id, runs, done]);
  return runs ? growth : undefined;
}

/** Hands an experiment in. @returns its id */
export async function submit(body: Record<string, unknown>): Promise<string> {
  return (await call<Job>("/api/jobs", { method: "POST", body })).id;
}

/** What the Lab opens the served model by. */
export function labModel(): string {
  return known.state?.server.path ?? "demo";
}

/** Blocks of the served model, as many as a job takes, evenly, the last among them. */
export function spreadLayers(most: number): number[] {
  const count = known.state?.server.n_layer ?? 1;
  if (count <= most) return Array.from({ length: count }, (_, layer) => layer);
  return Array.from({ length: most }, (_, at) => Math.round((at * (count - 1)) / (most - 1)));
}
