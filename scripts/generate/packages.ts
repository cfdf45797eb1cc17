/** The Python packages' types: their schemas, and names for schemas without a title. */

import { readFileSync } from "node:fs";
import { Capabilities, CaptureResult } from "../../src/contracts/capture.js";
import { LabHealth } from "../../src/contracts/health.js";
import { JobSummary, statuses } from "../../src/contracts/job.js";
import { blockPoints, changedPoints, modelPoints } from "../../src/contracts/names.js";
import { licenses } from "../../src/contracts/studies/licenses.js";
import { StudyPackage } from "../../src/contracts/studies/package.js";
import { DraftCreated, StudyEnvelope, StudyPage } from "../../src/contracts/studies/responses.js";
import { contracts, operations } from "../../src/operations/contracts.js";
import { submitting } from "./submitting.js";
import { type Module, pythonModule } from "./typed-dicts.js";

const source = "Generated from src/contracts and src/operations by `npm run generate`.";

const local = "clients/python/tapline_lab/src/tapline_lab";
const labSource = readFileSync(new URL(`../../${local}/_lab.py`, import.meta.url), "utf8");

const tapline: Module = {
  description: `Requests and responses of the services, for type checkers: each is a plain dictionary.\n\n${source}\n`,
  schemas: [
    LabHealth,
    JobSummary,
    ...operations.flatMap((operation) => [contracts[operation].submission, contracts[operation].result]),
    Capabilities,
    CaptureResult,
  ],
  words: {
    Operation: operations,
    Status: statuses,
    Split: ["train", "test"],
    BlockPoint: blockPoints,
    ChangedPoint: changedPoints,
    ModelPoint: modelPoints,
  },
  // A title in the contracts would also appear as a name in the OpenAPI document.
  names: {
    LabHealth: "Health",
    "Provenance.resolved_model": "ResolvedModel",
    "Provenance.weights": "WeightFile",
    "InspectResult.layers": "InspectLayer",
    "InspectResult.lens": "InspectLens",
    "AttentionHead.last": "Read",
    "Decomposition.blocks": "BlockContributions",
    "CompareResult.swapped": "SwappedToken",
    "CompareResult.lens": "InspectLens",
    "ProbeReport.scores": "ProbeScore",
    "ProbeReport.accuracy_interval": "Interval",
    "ProbeReport.auc_interval": "Interval",
    "ProbeRows.accuracy_interval": "Interval",
    "ProbeRows.auc_interval": "Interval",
    "SaeReport.losses": "Loss",
    "SaeReport.features": "Feature",
    "Feature.examples": "FeatureExample",
    "SaeTraining.evaluations": "SaeEvaluation",
    "SaeTraining.densities": "SaeDensity",
    "Fidelity.cross_entropy": "CrossEntropy",
    "FeatureExampleGroup.examples": "FeaturePageExample",
    "FeaturePage.histogram": "ActivationBin",
    "FeaturePage.neighbours": "FeatureNeighbour",
    "FeaturesResult.dictionary": "ReadDictionary",
    "FeaturesResult.texts": "FeatureText",
    "FeaturesResult.features": "StrongestFeature",
    "ExtractResult.data": "ExtractedData",
    "DriftResult.models": "DriftModel",
    "PatchSite.change_interval": "Bounds",
    "PatchSite.recovery_interval": "Bounds",
    "PatchedPrompt.spans": "PatchedSpan",
    "CaptureResult.layers": "CaptureLayer",
  },
  types: {
    // A service of a different version may have different limits, and its versions have names that are not identifiers.
    "Health.limits": "dict[str, float]",
    "Provenance.versions": "dict[str, str]",
    "Capabilities.max_layers": "int",
    "Capabilities.max_input_tokens": "int",
  },
  more: submitting(labSource),
};

const agentResearch: Module = {
  description: `Studies as the service sends and accepts them, for type checkers: each is a plain dictionary.\n\n${source}\n`,
  schemas: [StudyPackage, StudyPage, StudyEnvelope, DraftCreated],
  words: { License: licenses },
  names: {},
  types: {},
};

/** Every generated file by its path in the repository. */
export function generated(): Record<string, string> {
  return {
    [`${local}/types.py`]: pythonModule(tapline),
    "clients/python/agent_research/src/agent_research/types.py": pythonModule(agentResearch),
  };
}
