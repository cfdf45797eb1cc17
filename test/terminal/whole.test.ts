/**
 * Whole pictures of small results, as recorded/pictures.txt has them: drawn once, then read against these numbers. Whoever
 * changes a picture on purpose looks at it again and changes the file.
 */
import { readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Execution, ExecutionList } from "../../src/contracts/execution.js";
import type {
  CompareResult,
  DriftResult,
  ExtractResult,
  FeaturesResult,
  JobSummary,
  ProbeResult,
  SaeResult,
} from "../../src/contracts/index.js";
import type { Stats } from "../../src/contracts/stats.js";
import type { Canvas } from "../../src/terminal/canvas.js";
import { comparePicture } from "../../src/terminal/compare-picture.js";
import { driftPicture } from "../../src/terminal/drift-picture.js";
import { executionList, executionPicture } from "../../src/terminal/execution-picture.js";
import { extractPicture } from "../../src/terminal/extract-picture.js";
import { featuresPicture } from "../../src/terminal/features-picture.js";
import { jobList } from "../../src/terminal/job-list.js";
import { probePicture } from "../../src/terminal/probe-picture.js";
import { routingPicture } from "../../src/terminal/routing-grid.js";
import { saePicture } from "../../src/terminal/sae-picture.js";
import { statsPicture } from "../../src/terminal/stats-picture.js";

const wide: Canvas = { width: 100, colors: "none" };
const narrow: Canvas = { width: 56, colors: "none" };

const measured = (value: number) => ({ value, low: value - 0.01, high: value + 0.02 });

const drifted = {
  models: [
    { name: "base", quantization: "F32" },
    { name: "tuned", quantization: "" },
  ],
  ...{ tokens: 120, texts: 8 },
  layers: [
    { layer: 6, cosine: measured(0.8), relative_length: measured(1.25), relative_difference: measured(0.5) },
    { layer: 2, cosine: measured(0.9), relative_length: measured(1), relative_difference: measured(0.25) },
  ],
} as unknown as DriftResult;
const artefacts = {
  dictionary: {
    ...{ name: "dict", layer: 3, jaccard: measured(0.7), loss_recovered: [measured(0.9), measured(0.6)] },
    loss_recovered_difference: measured(-0.3),
  },
  probe: { name: "mood", layer: 4, auroc: [measured(0.95), measured(0.75)], difference: measured(-0.2) },
  vector: { name: "calm", layer: 5, separation: [measured(2), measured(1.5)], difference: measured(-0.5) },
};

const execution: Execution = {
  ...{
    id: "0123456789abcdef0123456789abcdef",
    parent_id: null,
    endpoint: "/v1/chat/completions",
    model: "demo",
  },
  ...{ status: "completed", started: 1000, ended: 1002.5, stream: true, thinking: true, output_tokens: 12 },
  ...{ finish_reason: "stop", truncated: false, preview: "Paris is\nit." },
  input: { messages: [{ role: "user", content: "Where?" }], temperature: 0, stop: ["x"] },
  events: [
    { kind: "lifecycle", time: 1000, choice: 0, text: "started" },
    { kind: "thinking", time: 1000.5, choice: 0, text: "hm" },
    { kind: "output", time: 1001, choice: 1, text: "Paris" },
    { kind: "output", time: 1002, choice: 0, text: "" },
  ],
} as unknown as Execution;

const extracted = {
  ...{
    texts: 12,
    cut_texts: 0,
    tokens: 345,
    rows: "all",
    row_count: 345,
    hidden: 128,
    dtype: "f16",
    files: 3,
  },
  ...{ bytes: 123_456, shard: [0, 1], kept_files: 0, folder: null, tokens_per_second: null },
  data: { name: "texts.jsonl", sha256: "0" },
} as unknown as ExtractResult;

const features = {
  dictionary: { name: "dict", features: 4096, activation: "relu", layout: "saelens" },
  layer: 5,
  fidelity: {
    ...{ explained_variance: 0.8765, tokens: 9, cosine: 0.91249, l0: 12.34, loss_recovered: 0.5 },
    cross_entropy: { clean: 1, reconstructed: 1.5, ablated: 2 },
  },
  texts: [
    {
      tokens: ["<s>", "The", " cat", " sat"],
      top: [
        [],
        [
          { feature: 7, activation: 2.5 },
          { feature: 9, activation: 1 },
        ],
        [1, 2, 3, 4, 5].map((feature) => ({ feature, activation: 6 - feature })),
        [{ feature: 8, activation: 0.5 }],
      ],
    },
    { tokens: ["<s>", "a", " b", " c", " d", " e", " f", " g", " h"], top: [] },
  ],
  features: [
    { feature: 7, max: 2.5, mean: 1.25, frequency: 0.0123, text: 0, token: 3 },
    { feature: 1, max: 5, mean: 2, frequency: 0.5, text: 1, token: 8 },
  ],
} as unknown as FeaturesResult;
const page = {
  ...{ feature: 7, label: "cats", active_tokens: 3 },
  histogram: [0, 4, 1, 0, 9, 16].map((tokens, i) => ({ least: i, tokens })),
  groups: [
    {
      name: "top",
      examples: [
        { text: 0, token: 2, activation: 2.5, from: 1, activations: [0.5, 2.5, 1] },
        { text: 1, token: 3, activation: 1.5, from: 2, activations: [0, 1.5] },
      ],
    },
    { name: "0-25 %", examples: [{ text: 0, token: 3, activation: 0.25, from: 3, activations: [0.25] }] },
  ],
  raised: [
    { token_id: 1, token: " cat", effect: 3.25 },
    { token_id: 2, token: " dog", effect: 1.5 },
  ],
  lowered: null,
  neighbours: [
    { feature: 9, cosine: 0.876 },
    { feature: 4, cosine: 0.5, label: "dogs" },
  ],
};

const jobs = [
  ["a", "running", 1000, 1001, null],
  ["b", "completed", 900, 910, 985.4],
  ["c", "queued", 1010, null, null],
].map(([letter, status, created, started, ended]) => ({
  ...{ id: String(letter).repeat(32), status, created, started, ended },
  ...{ operation: "compare", model: "owner/a-model-with-a-name" },
})) as unknown as JobSummary[];

const stats = {
  model: "demo",
  uptime_seconds: 3723,
  requests: { total: 12, active: 2, queued: 1, failed: 3, cancelled: 4 },
  tokens: { prompt: 100, cached: 40, generated: 60 },
  throughput: { prompt_tokens_per_second: 1234, generated_tokens_per_second: 56.78 },
  slots: { busy: 1, total: 4 },
  memory: { rss_bytes: 123_456_789, model_bytes: 3_100_000 },
  captures: { served: 5, expired: 6, rejected: 7 },
  row_captures: { kept: 0, dropped: 0, bytes: 0 },
  latency_ms: {
    time_to_first_token: { p50: 12.3, p95: 45.6, p99: 78.9 },
    inter_token: { p50: null, p95: null, p99: null },
    total: { p50: 100, p95: 1000, p99: 2000 },
  },
} as unknown as Stats;

const routing = [
  {
    ...{ layer: 2, experts: 8, used: 2, shares: [0.5, 0, 0.25, 0, 0, 0, 0, 0.25] },
    ...{
      chosen: [
        [0, 2],
        [7, 0],
      ],
      weights: [
        [0.75, 0.25],
        [0.5, 0.5],
      ],
    },
  },
  {
    ...{ layer: 0, experts: 4, used: 1, shares: [0.25, 0.25, 0.25, 0.25] },
    ...{ chosen: [[3], [1]], weights: [[1], [0]] },
  },
];

const saeReport = (layer: number, more: object = {}) => ({
  ...{ layer, explained_variance: 0.625, held_out_mse: 0.0375, train_mse: 0.03, mean_active: 4.26 },
  ...{ dead_features: 8, dead_fraction: 0.25 },
  losses: [0, 10, 20, 30, 40].map((step) => ({ step, loss: 100 / (1 + step) })),
  features: [
    {
      feature: 3,
      mean: 1.5,
      frequency: 0.456,
      examples: [
        ["the cat", 2],
        ["a dog", 1],
        ["no", 0.5],
      ],
    },
    { feature: 5, mean: 0.5, frequency: 0.01, examples: [] },
  ].map((one) => ({ ...one, examples: one.examples.map(([text, activation]) => ({ text, activation })) })),
  ...more,
});
const sae = (...reports: object[]) => ({ reports }) as unknown as SaeResult;

const scored = (label: 0 | 1, score: number, text: string, split = "test") => ({ label, score, text, split });
const probeReport = (layer: number, auc: number, more: object = {}) => ({
  ...{ layer, accuracy: 0.75, auc, brier: 0.125, majority_accuracy: 0.5, shuffled_label_accuracy: 0.45 },
  ...{ train_size: 20, test_size: 8, converged: true, iterations: 6 },
  scores: [
    scored(1, 0.95, "good"),
    scored(1, 0.9, "fine"),
    scored(1, 0.7, "nice"),
    scored(1, 0.2, "not bad"),
    scored(0, 0.6, "so so"),
    scored(0, 0.3, "poor"),
    scored(0, 0.1, "bad"),
    scored(0, 0.05, "worse"),
    scored(0, 0.99, "seen", "train"),
  ],
  ...more,
});
const intervals = {
  accuracy_interval: { low: 0.5, high: 0.9 },
  auc_interval: { low: 0.61, high: 0.98 },
  shuffled_labels: {
    ...{ permutations: 100, accuracy: { mean: 0.48, std: 0.1, low: 0.25, high: 0.7 }, auc: {} },
    ...{ p_accuracy: 0.05, p_auc: 0.0198 },
  },
};
const probe = (...reports: object[]) => ({ reports }) as unknown as ProbeResult;

const trial = (prompt: string, strength: number, probability: number, output: string, more: object = {}) => ({
  ...{ prompt, strength, layer: 5, target_token: " Paris", target_token_id: 3, baseline_probability: 0.5 },
  ...{ probability, delta: probability - 0.5, baseline: " a b c", output, ...more },
});
const compared = (...trials: object[]) =>
  ({ intervention: "steer", trials }) as unknown as Pick<CompareResult, "trials" | "intervention">;
const change = (length: number) => ({ change: { rows: 1, length, row_length: 20 } });
const pictures: [name: string, picture: () => string[]][] = [
  ["drift", () => driftPicture(drifted, wide)],
  [
    "drift-artefacts",
    () => driftPicture({ ...drifted, ...artefacts } as DriftResult, { width: 130, colors: "none" }),
  ],
  [
    "drift-point",
    () =>
      driftPicture(
        {
          ...drifted,
          dictionary: { name: "d", point: "mid", layer: 1, jaccard: null },
        } as unknown as DriftResult,
        narrow,
      ),
  ],
  [
    "executions",
    () =>
      executionList(
        {
          executions: [
            execution,
            { ...execution, status: "running", ended: null, started: 1090, output_tokens: 0, preview: "" },
          ],
          capacity: 500,
          dropped: 0,
        } as unknown as ExecutionList,
        wide,
        1100,
      ),
  ],
  [
    "executions-narrow",
    () =>
      executionList(
        { executions: [execution], capacity: 500, dropped: 3 } as unknown as ExecutionList,
        narrow,
        1100,
      ),
  ],
  ["execution", () => executionPicture(execution, wide, 1100)],
  [
    "execution-narrow",
    () =>
      executionPicture(
        {
          ...execution,
          parent_id: "p",
          stream: false,
          truncated: true,
          finish_reason: null,
          ended: null,
          input: { prompt: "The sky" },
        } as Execution,
        narrow,
        1010,
      ),
  ],
  ["extract", () => extractPicture(extracted, wide)],
  [
    "extract-all",
    () =>
      extractPicture(
        {
          ...extracted,
          shard: [2, 3],
          cut_texts: 4,
          kept_files: 2,
          folder: "/out",
          tokens_per_second: 1234.5,
          rows: "response",
          row_count: 12,
        } as ExtractResult,
        wide,
      ),
  ],
  ["features", () => featuresPicture(features, wide)],
  [
    "features-page",
    () =>
      featuresPicture(
        {
          ...features,
          point: "mid",
          texts: [features.texts[0]],
          features: [],
          pages: [
            page,
            {
              ...page,
              feature: 1,
              label: undefined,
              histogram: [],
              groups: [],
              raised: null,
              neighbours: [],
            },
          ],
          fidelity: { ...features.fidelity, cross_entropy: null, explained_variance: null },
        } as unknown as FeaturesResult,
        wide,
      ).slice(1),
  ],
  ["jobs", () => jobList(jobs, wide, 1020)],
  ["jobs-narrow", () => jobList(jobs.slice(0, 1), narrow, 1020)],
  ["stats", () => statsPicture(stats, wide)],
  [
    "stats-more",
    () =>
      statsPicture(
        {
          ...stats,
          model: null,
          slots: { busy: 20, total: 32 },
          row_captures: { kept: 2, dropped: 1, bytes: 2e6 },
        } as Stats,
        narrow,
      ),
  ],
  ["routing", () => routingPicture({ tokens: ["The", " cat"], routing }, wide)],
  ["sae", () => saePicture(sae(saeReport(5)), 32, wide)],
  [
    "sae-two",
    () =>
      saePicture(
        sae(
          saeReport(36, { explained_variance: null, note: "All alike." }),
          saeReport(2, { dead_fraction: 1 / 3 }),
        ),
        32,
        { width: 72, colors: "none" },
      ),
  ],
  ["probe", () => probePicture(probe(probeReport(5, 0.875)), { width: 84, colors: "none" })],
  [
    "probe-two",
    () =>
      probePicture(
        probe(probeReport(12, 0.9, { ...intervals, converged: false }), probeReport(3, 0.8, intervals)),
        { width: 120, colors: "none" },
      ),
  ],
  [
    "compare",
    () =>
      comparePicture(
        compared(
          trial("Where?", -2, 0.25, " a b d", change(0.5)),
          trial("Where?", 0, 0.5, " a b c", change(0)),
          trial("Where?", 2, 0.625, " x", change(3)),
        ),
        3,
        { width: 80, colors: "none" },
      ),
  ],
  [
    "compare-two",
    () =>
      comparePicture(
        {
          ...compared(
            trial("One?", 1, 0.5, " a b c", { control: { probability: 0.4 } }),
            trial("One?", 2, 0.9, " a", { control: { probability: 0.3 } }),
            trial("Two?", 1, 0.1, "", { control: { probability: 0.2 } }),
            trial("Two?", 2, 0.3, " a b c d", { control: { probability: 0.1 } }),
          ),
          intervention: "scale",
        },
        2,
        { width: 60, colors: "none" },
      ),
  ],
];

/** The recorded pictures by name. */
const recorded = new Map(
  readFileSync(new URL("./recorded/pictures.txt", import.meta.url), "utf8")
    .replace(/\n$/, "")
    .split(/^##### /m)
    .slice(1)
    .map((part): [string, string] => {
      const [name = "", ...lines] = part.replace(/\n$/, "").split("\n");
      return [name, lines.join("\n")];
    }),
);

for (const [name, picture] of pictures) {
  test(`the picture ${name} is the one that was looked at`, () => {
    assert.is(picture().join("\n"), recorded.get(name) as string);
  });
}

test("every recorded picture is drawn", () => {
  assert.equal(
    [...recorded.keys()],
    pictures.map(([name]) => name),
  );
});

test.run();
