import { randomUUID } from "node:crypto";
import type { FeaturesResult } from "../../../src/contracts/index.js";
import type { StudyPackage } from "../../../src/contracts/studies/index.js";
import type { ReportedJob } from "../../../src/report/index.js";
import { compareJob, inspectJob, probeJob, provenance, saeJob } from "../../report/jobs.js";
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

/** A result as a fenced block for machines. */
export function resultBlock({ operation, result }: ReportedJob): string {
  const { provenance: _, artifacts: __, ...bare } = result;
  return `\`\`\`tapline-result\n${JSON.stringify({ schemaVersion: 1, operation, result: bare })}\n\`\`\``;
}

/** A study with a result of every operation, formulas and tables. */
export function studyWithResults(change: Partial<StudyPackage> = {}): StudyPackage {
  const jobs = [inspectJob(), compareJob(), probeJob(), saeJob(), featuresJob()];
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
