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
import { compareFindings } from "./figures/compare.js";
import { driftFindings } from "./figures/drift.js";
import { explainFindings } from "./figures/explain.js";
import { extractFindings } from "./figures/extract.js";
import { featuresFindings } from "./figures/features.js";
import { inspectFindings } from "./figures/inspect.js";
import { patchSweepFindings } from "./figures/patch-sweep.js";
import { probeFindings } from "./figures/probe.js";
import { saeFindings } from "./figures/sae.js";
import type { ReportedJob } from "./job.js";
import type { Findings } from "./parts.js";

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
