import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Job, JobSummary, Operation, PatchGrowth } from "../../contracts/index.js";
import type { JobOf } from "../../contracts/job.js";
import type { Figure } from "../../findings/figure.js";
import { spreadLayers } from "../../findings/layers.js";
import type { ResultOf } from "../../operations/contracts.js";
import type { CodeRequest } from "./scripts.js";
import { call, post } from "./session.js";
import { known, useTopic, useWork } from "./store.js";

/** A completed job with what its figures show. */
export interface JobFindings<O extends Operation = Operation> {
  job: JobOf<O> & { result: ResultOf<O> };
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

/** Whether a job has still to end; of one that is not known nobody can say so. */
export function isGoing(status: Job["status"] | undefined): boolean {
  return status === "running" || status === "queued";
}

/** What a job found; the job alone while it is under way, a sentence where it ended without a result. */
async function readFindings(id: string): Promise<JobFindings | { job: Job } | string> {
  try {
    const found = await call<JobFindings | { job: Job }>(`/api/jobs/${encodeURIComponent(id)}/findings`);
    const { status, error } = found.job;
    if ("figures" in found || isGoing(status)) return found;
    return error ?? `The job was ${status}.`;
  } catch (error) {
    return (error as Error).message;
  }
}

/** A job's findings once it has completed; a sentence where there are none. */
export function useFindings(id: string | undefined): JobFindings | string | undefined {
  const summary = useJobSummary(id);
  const [found, set] = useState<{ id: string; findings: JobFindings | string }>();
  const status = summary?.status;
  const reachable = known.state?.lab.ok === true;
  useWork([id, status, reachable], (isOver) => {
    if (id === undefined || (status !== undefined && status !== "completed")) return;
    // What a job found does not change: read again, its pictures would be drawn again under the keys of who looks at them.
    if (found?.id === id && typeof found.findings !== "string") return;
    void readFindings(id).then((findings) => {
      // One that is under way is asked for again when its state changes.
      if (!isOver() && (typeof findings === "string" || "figures" in findings)) set({ id, findings });
    });
  });
  return found?.id === id ? found?.findings : undefined;
}

/**
 * The findings of several jobs as they come, by id: of one that has no result yet the job alone, of one that has none a
 * sentence.
 */
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
      // Why something is not there is asked again: the Lab may be back.
      const isRead = typeof before === "object";
      // One that is under way is asked for once, for its settings, and again when it has ended.
      if (isRead && (isGoing(statuses[at]) || "figures" in before)) continue;
      void readFindings(id).then((what) => !isOver() && set((before) => new Map(before).set(id, what)));
    }
  });
  return found;
}

/** What is known of a patch sweep that runs; asked for when the list says that it has gone on. */
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

/** What this page handed in last: the form that it was handed in with says what it was. */
let handedIn: string | undefined;

/** Hands an experiment in. @returns its id */
export async function submit(body: Record<string, unknown>): Promise<string> {
  const { id } = await post<Job>("/api/jobs", body);
  handedIn = id;
  return id;
}

/**
 * Fills a form with what a job was asked, where the page is opened at the job's address: it then shows what one would
 * hand in to have the same again. What one types before that is known stays.
 */
export function useAsked<O extends Operation>(
  operation: O,
  id: string | undefined,
  fill: (config: JobOf<O>["config"]) => void,
): void {
  const isShown = useRef(false);
  useLayoutEffect(() => {
    const own = isShown.current && id === handedIn;
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
      // That it is not there, the view itself says; a job of an earlier version may not say all that the form has.
      .catch(() => {})
      .finally(leave);
    return leave;
  }, [id]);
}

/** The same as a script hands it in. */
export function jobRequest(asked: object): CodeRequest {
  return { service: "lab", url: known.state?.lab.url ?? "", path: "/lab/v1/jobs", body: { ...asked } };
}

/** Something that the server is asked, as a script asks it. */
export function serverRequest(path: string, body: Record<string, unknown>): CodeRequest {
  return { service: "server", url: known.state?.server.url ?? "", path, body };
}

/** What the Lab opens the served model by. */
export function labModel(): string {
  return known.state?.server.path ?? "demo";
}

/** Evenly spread blocks of the served model, as many as a job takes. */
export function usualLayers(most: number): number[] {
  return spreadLayers(known.state?.server.n_layer ?? 1, most);
}
