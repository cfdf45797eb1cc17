import type { Job, ProbeResult, SaeResult } from "../contracts/index.js";
import { HttpError } from "../http/index.js";

interface Results {
  probe: ProbeResult;
  sae: SaeResult;
}

/** What each operation trains. */
const trained = { probe: "probe", sae: "dictionary" } as const;

/**
 * The result of a job that trains, and its report at a layer.
 * @throws HttpError if the job is of another operation, has no result, or has no report at the layer
 */
export function trainedReport<Name extends keyof Results>(
  job: Pick<Job, "id" | "operation" | "status" | "result">,
  operation: Name,
  layer: number,
): { result: Results[Name]; report: Results[Name]["reports"][number] } {
  const short = job.id.slice(0, 8);
  const what = trained[operation];
  if (job.operation !== operation) {
    throw new HttpError(409, `Job ${short} trained no ${what}: it is ${job.operation}.`);
  }
  if (job.result === undefined) throw new HttpError(409, `Job ${short} has no result; it is ${job.status}.`);
  const result = job.result as Results[Name];
  const reports: readonly Results[Name]["reports"][number][] = result.reports;
  const report = reports.find((one) => one.layer === layer);
  if (report === undefined) {
    const layers = reports.map((one) => one.layer).join(", ");
    throw new HttpError(404, `Job ${short} has no ${what} at layer ${layer}; it has layers ${layers}.`);
  }
  return { result, report };
}
