import { realpath } from "node:fs/promises";
import type { StoredProbe } from "../contracts/library.js";
import type { MeasuredProbeRequest } from "../contracts/workbench.js";
import { decodeNpz } from "../formats/npz.js";
import { encodeSafetensors } from "../formats/safetensors.js";
import { HttpError } from "../http/index.js";
import type { Services } from "./services.js";
import { trainedReport } from "./trained-report.js";

/** Largest size of the unpacked arrays of a probe, in bytes. */
const mostBytes = 64 * 1024 ** 2;

/**
 * Stores the probe that a job has trained and measured at one layer, with its held-out figures.
 * @throws HttpError if the job has no such probe, or ran on another model than the served one
 */
export async function storeMeasuredProbe(
  services: Services,
  { name, job: id, layer }: MeasuredProbeRequest,
): Promise<StoredProbe> {
  const [job, served] = await Promise.all([services.lab.job(id), services.modelPath()]);
  const { result, report } = trainedReport(job, "probe", layer);
  const { provenance, point, rows = "last" } = result;
  const { path } = provenance.resolved_model;
  if (served === null || (await real(path)) !== (await real(served))) {
    throw new HttpError(
      409,
      `Job ${id.slice(0, 8)} ran on ${path}; the server has loaded ${served ?? "an unnamed file"}. Serve the job's model to use its probe.`,
    );
  }
  const artifact = `/lab/v1/jobs/${id}/artifacts/probe-layer-${layer}.npz`;
  const arrays = decodeNpz(await services.labHttp.bytes(artifact), mostBytes);
  const { auc, shuffled_labels: shuffled, train_size: train, test_size: test } = report;
  const metadata = {
    operation: "probe",
    layer: String(layer),
    ...(point !== undefined && { point }),
    note: `Probe job ${id}: logistic regression on ${train} examples (activations: ${rows}), ${test} held out.`,
    report: JSON.stringify({
      separation: auc,
      ...(shuffled !== undefined && { shuffled_separation: shuffled.auc.mean }),
    }),
  };
  return services.model.putProbe(name, encodeSafetensors(Object.fromEntries(arrays), metadata));
}

function real(path: string): Promise<string> {
  return realpath(path).catch(() => path);
}
