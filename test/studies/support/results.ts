import { randomUUID } from "node:crypto";
import type { DriftResult, ExtractResult, FeaturesResult } from "../../../src/contracts/index.js";
import type { StudyPackage } from "../../../src/contracts/studies/index.js";
import type { ReportedJob } from "../../../src/report/index.js";
import { compareJob, inspectJob, patchJob, probeJob, provenance, saeJob } from "../../report/jobs.js";
import { samplePackage } from "./packages.js";

function featuresJob(): ReportedJob {
  const result: FeaturesResult = {
    dictionary: {
      name: "words",
      sha256: "ab".repeat(32),
      layout: "sae_lens",
      activation: "relu",
      features: 64,
      trained_on: null,
    },
    layer: 3,
    texts: [{ tokens: ["The", " cat"], token_ids: [1, 2], top: [[], [{ feature: 7, activation: 2.5 }]] }],
    features: [{ feature: 7, max: 2.5, mean: 2.5, frequency: 0.5, text: 0, token: 1 }],
    fidelity: {
      tokens: 2,
      l0: 1,
      explained_variance: 0.9,
      cosine: 0.95,
      cross_entropy: null,
      loss_recovered: null,
    },
    note: "A note of the Lab.",
    artifacts: [],
    provenance,
  };
  return { operation: "features", result };
}

/** Two models at two layers, with a dictionary, a probe and a vector that were made on the first. */
export function driftJob(name = "small"): ReportedJob {
  const about = (value: number) => ({ value, low: value - 0.05, high: value + 0.05 });
  const layer = (index: number) => ({
    layer: index,
    cosine: about(0.9 - index / 10),
    relative_length: about(1 + index / 10),
    relative_difference: about(0.2 + index / 10),
  });
  const result: DriftResult = {
    models: [
      { name, quantization: "F16", bytes: 2000 },
      { name: `${name} tuned`, quantization: "Q8_0", bytes: 1000 },
    ],
    texts: 8,
    tokens: 90,
    layers: [0, 1, 2, 3].map(layer),
    dictionary: {
      name: "words",
      sha256: "ab".repeat(32),
      layer: 3,
      features: 64,
      jaccard: about(0.6),
      l0: [12, 14],
      loss_recovered: [about(0.8), about(0.7)],
      loss_recovered_difference: about(-0.1),
    },
    probe: {
      name: "tense",
      sha256: "cd".repeat(32),
      layer: 3,
      auroc: [about(0.9), about(0.8)],
      difference: about(-0.1),
    },
    vector: {
      name: "polite",
      sha256: "ef".repeat(32),
      layer: 3,
      separation: [about(0.9), about(0.7)],
      difference: about(-0.2),
    },
    note: "A note of the Lab.",
    artifacts: [],
    provenance,
  };
  return { operation: "drift", result };
}

export function extractJob(name = "texts.jsonl"): ReportedJob {
  const result: ExtractResult = {
    folder: null,
    index: "index.json",
    data: { name, sha256: "ab".repeat(32) },
    layers: [0, 3],
    hidden: 16,
    rows: "all",
    dtype: "f16",
    shard: [1, 1],
    texts: 8,
    cut_texts: 0,
    tokens: 90,
    row_count: 90,
    bytes: 5760,
    files: 2,
    kept_files: 0,
    tokens_per_second: 450.5,
    note: "A note of the Lab.",
    artifacts: [],
    provenance,
  };
  return { operation: "extract", result };
}

/** A result as a fenced block for machines. */
export function resultBlock({ operation, result }: ReportedJob): string {
  const { provenance: _, artifacts: __, ...bare } = result;
  return `\`\`\`tapline-result\n${JSON.stringify({ schemaVersion: 1, operation, result: bare })}\n\`\`\``;
}

/** A study with a result of every operation, formulas and tables. */
export function studyWithResults(change: Partial<StudyPackage> = {}): StudyPackage {
  const jobs = [
    inspectJob(),
    compareJob(),
    probeJob(),
    saeJob(),
    featuresJob(),
    patchJob(),
    driftJob(),
    extractJob(),
  ];
  return samplePackage({
    title: "Where the capital comes up",
    question: "At which block can **the capital** be read off?\n\n1. By the lens\n2. By a probe",
    method:
      "We ablate $h \\leftarrow (1 - s)\\,h$ and fit\n\n$$\n\\min_{w,b} \\sum_{i=1}^{n} \\log\\left(1 + e^{-y_i (w^\\top x_i + b)}\\right) + \\frac{\\lambda}{2} \\lVert w \\rVert^2\n$$\n\non $x_i \\in \\mathbb{R}^{d}$.\n\n```python\nlab.inspect(prompt)\n```",
    finding:
      "| layer | accuracy |\n| --- | ---: |\n| 0 | 0.75 |\n| 3 | 0.75 |\n\nSee <https://example.org/paper>.",
    entries: jobs.map((job) => ({
      id: randomUUID(),
      kind: "result" as const,
      title: `Result of ${job.operation}`,
      note: resultBlock(job),
    })),
    ...change,
  });
}
