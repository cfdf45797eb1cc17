import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Job, JobSummary, Operation, PatchGrowth } from "../../contracts/index.js";
import type { JobOf } from "../../contracts/job.js";
import type { Figure } from "../../findings/figure.js";
import { spreadLayers } from "../../findings/layers.js";
import type { ResultOf } from "../../operations/contracts.js";
import type { CodeRequest } from "./scripts.js";
import { call, post } from "./session.js";
import { known, useTopic, useWork } from "./store.js";

/** A completed job with its findings. */
export interface JobFindings<O extends Operation = Operation> {
  job: JobOf<O> & { result: ResultOf<O> };
  summary: string[];
  cautions: string[];
  figures: Figure[];
  passages: { id: string; title: string }[];
}

/** A job in the Lab's current list. */
export function useJobSummary(id: string | undefined): JobSummary | undefined {
  useTopic("state");
  return known.state?.jobs.find((job) => job.id === id);
}

/** Whether a job is queued or running. */
export function isActive(status: Job["status"] | undefined): boolean {
  return status === "running" || status === "queued";
}

/** A job's findings; only the job while it is active, an error message if it ended without a result. */
async function readFindings(id: string): Promise<JobFindings | { job: Job } | string> {
  try {
    const found = await call<JobFindings | { job: Job }>(`/api/jobs/${encodeURIComponent(id)}/findings`);
    const { status, error } = found.job;
    if ("figures" in found || isActive(status)) return found;
    return error ?? `The job was ${status}.`;
  } catch (error) {
    return (error as Error).message;
  }
}

/** A job's findings once it has completed, or an error message. */
export function useFindings(id: string | undefined): JobFindings | string | undefined {
  const summary = useJobSummary(id);
  const [found, set] = useState<{ id: string; findings: JobFindings | string }>();
  const status = summary?.status;
  const reachable = known.state?.lab.ok === true;
  useWork([id, status, reachable], (isOver) => {
    if (id === undefined || (status !== undefined && status !== "completed")) return;
    // Findings do not change; loading them again would redraw the figures and lose the keyboard position.
    if (found?.id === id && typeof found.findings !== "string") return;
    void readFindings(id).then((findings) => {
      // An active job is loaded again when its status changes.
      if (!isOver() && (typeof findings === "string" || "figures" in findings)) set({ id, findings });
    });
  });
  return found?.id === id ? found?.findings : undefined;
}

/** The findings of several jobs by id: only the job while it is active, an error message if it has no result. */
export function useAllFindings(
  ids: readonly string[],
): ReadonlyMap<string, JobFindings | { job: Job } | string> {
  useTopic("state");
  const [found, set] = useState<ReadonlyMap<string, JobFindings | { job: Job } | string>>(new Map());
  const statuses = ids.map((id) => known.state?.jobs.find((job) => job.id === id)?.status);
  const reachable = known.state?.lab.ok === true;
  useWork([ids.join(), statuses.join(), reachable], (isOver) => {
    for (const [at, id] of ids.entries()) {
      const before = found.get(id);
      // After an error, try again: the Lab may be back.
      const isRead = typeof before === "object";
      // An active job is loaded once for its configuration, and again when it has ended.
      if (isRead && (isActive(statuses[at]) || "figures" in before)) continue;
      void readFindings(id).then((what) => !isOver() && set((before) => new Map(before).set(id, what)));
    }
  });
  return found;
}

/** The partial result of a running patch sweep, loaded again after each step. */
export function useGrowth(id: string): PatchGrowth | undefined {
  const summary = useJobSummary(id);
  const [growth, set] = useState<PatchGrowth>();
  const { done } = summary?.progress ?? { done: 0 };
  const runs = summary?.status === "running" && summary.operation === "patch_sweep";
  useWork([id, runs, done], (isOver) => {
    if (!runs) return;
    call<Job>(`/api/jobs/${encodeURIComponent(id)}`).then(
      ({ progress }) => !isOver() && progress.growth !== undefined && set(progress.growth),
      () => {},
    );
  });
  return runs ? growth : undefined;
}

/** The last job submitted by this page, whose form already has its configuration. */
let submitted: string | undefined;

/** Submits a job. @returns its id */
export async function submit(body: Record<string, unknown>): Promise<string> {
  const { id } = await post<Job>("/api/jobs", body);
  submitted = id;
  return id;
}

/**
 * Fills a form with the configuration of the job in the address, ready to submit again. Does nothing if the user types
 * before the configuration has loaded.
 */
export function useConfig<O extends Operation>(
  operation: O,
  id: string | undefined,
  fill: (config: JobOf<O>["config"]) => void,
): void {
  const isShown = useRef(false);
  useLayoutEffect(() => {
    const own = isShown.current && id === submitted;
    isShown.current = true;
    if (id === undefined || own) return;
    const ending = new AbortController();
    const { signal } = ending;
    const leave = () => ending.abort();
    document.addEventListener("input", leave, { signal });
    call<Job>(`/api/jobs/${encodeURIComponent(id)}`, { signal })
      .then(({ config }) => {
        if (!signal.aborted && config.operation === operation) {
          fill(config as JobOf<O>["config"]);
        }
      })
      // The view itself reports a missing job; a job of an older version may lack fields.
      .catch(() => {})
      .finally(leave);
    return leave;
  }, [id]);
}

/** The request that submits a job. */
export function jobRequest(asked: object): CodeRequest {
  return { service: "lab", url: known.state?.lab.url ?? "", path: "/lab/v1/jobs", body: { ...asked } };
}

/** A request to the server. */
export function serverRequest(path: string, body: Record<string, unknown>): CodeRequest {
  return { service: "server", url: known.state?.server.url ?? "", path, body };
}

/** The name or path of the served model for the Lab. */
export function labModel(): string {
  return known.state?.server.path ?? "demo";
}

/** At most `most` evenly spaced layers of the served model. */
export function usualLayers(most: number): number[] {
  return spreadLayers(known.state?.server.n_layer ?? 1, most);
}
