import type {
  CompareResult,
  DriftResult,
  ExplainResult,
  ExtractResult,
  FeaturesResult,
  InspectResult,
  PatchSweepResult,
  ProbeResult,
  SaeResult,
} from "../contracts/index.js";
import type { Findings } from "../report/figure.js";
import { compareFindings } from "./compare/figures.js";
import { driftFindings } from "./drift/figures.js";
import { explainFindings } from "./explain/figures.js";
import { extractFindings } from "./extract/figures.js";
import { featuresFindings } from "./features/figures.js";
import { inspectFindings } from "./inspect/figures.js";
import { patchSweepFindings } from "./patch_sweep/figures.js";
import { probeFindings } from "./probe/figures.js";
import { saeFindings } from "./sae/figures.js";
import type { ReportedJob } from "../report/job.js";

/** What there is to say and to show about a result. */
export function findingsOf({ operation, result }: ReportedJob): Findings {
  switch (operation) {
    case "inspect":
      return inspectFindings(result as InspectResult);
    case "compare":
      return compareFindings(result as CompareResult);
    case "probe":
      return probeFindings(result as ProbeResult);
    case "sae":
      return saeFindings(result as SaeResult);
    case "features":
      return featuresFindings(result as FeaturesResult);
    case "extract":
      return extractFindings(result as ExtractResult);
    case "drift":
      return driftFindings(result as DriftResult);
    case "patch_sweep":
      return patchSweepFindings(result as PatchSweepResult);
    case "explain":
      return explainFindings(result as ExplainResult);
  }
}
