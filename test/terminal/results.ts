/** Small results, whose figures can be read off: for the terminal's pictures and the report's figures. */
import type { Execution } from "../../src/contracts/execution.js";
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

export const measured = (value: number) => ({ value, low: value - 0.01, high: value + 0.02 });

export const drifted = {
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
export const artefacts = {
  dictionary: {
    ...{ name: "dict", layer: 3, jaccard: measured(0.7), loss_recovered: [measured(0.9), measured(0.6)] },
    loss_recovered_difference: measured(-0.3),
  },
  probe: { name: "mood", layer: 4, auroc: [measured(0.95), measured(0.75)], difference: measured(-0.2) },
  vector: { name: "calm", layer: 5, separation: [measured(2), measured(1.5)], difference: measured(-0.5) },
};

export const execution: Execution = {
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

export const extracted = {
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

export const features = {
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
export const page = {
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

export const jobs = [
  ["a", "running", 1000, 1001, null],
  ["b", "completed", 900, 910, 985.4],
  ["c", "queued", 1010, null, null],
].map(([letter, status, created, started, ended]) => ({
  ...{ id: String(letter).repeat(32), status, created, started, ended },
  ...{ operation: "compare", model: "owner/a-model-with-a-name" },
})) as unknown as JobSummary[];

export const stats = {
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

export const routing = [
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

export const saeReport = (layer: number, more: object = {}) => ({
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
export const sae = (...reports: object[]) => ({ reports }) as unknown as SaeResult;

export const scored = (label: 0 | 1, score: number, text: string, split = "test") => ({
  label,
  score,
  text,
  split,
});
export const probeReport = (layer: number, auc: number, more: object = {}) => ({
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
export const intervals = {
  accuracy_interval: { low: 0.5, high: 0.9 },
  auc_interval: { low: 0.61, high: 0.98 },
  shuffled_labels: {
    ...{ permutations: 100, accuracy: { mean: 0.48, std: 0.1, low: 0.25, high: 0.7 }, auc: {} },
    ...{ p_accuracy: 0.05, p_auc: 0.0198 },
  },
};
export const probe = (...reports: object[]) => ({ reports }) as unknown as ProbeResult;

export const trial = (
  prompt: string,
  strength: number,
  probability: number,
  output: string,
  more: object = {},
) => ({
  ...{ prompt, strength, layer: 5, target_token: " Paris", target_token_id: 3, baseline_probability: 0.5 },
  ...{ probability, delta: probability - 0.5, baseline: " a b c", output, ...more },
});
export const compared = (...trials: object[]) =>
  ({ intervention: "steer", trials }) as unknown as Pick<CompareResult, "trials" | "intervention">;
export const change = (length: number) => ({ change: { rows: 1, length, row_length: 20 } });
