/** Jobs of each kind, as small as a report needs them; their figures can be checked by hand. */
import type {
  CompareResult,
  ExplainResult,
  InspectResult,
  PatchSweepResult,
  ProbeResult,
  Provenance,
  SaeResult,
} from "../../src/contracts/index.js";
import type { ReportedJob } from "../../src/report/index.js";

export const provenance: Provenance = {
  config_sha256: "ab".repeat(32),
  seed: 7,
  hook: "block output",
  input_mode: "raw text",
  layers: [0, 3],
  versions: { tapline: "0.2.0", "llama.cpp": "0.5.0", node: "20.19.0", backend: "cpu" },
  requested_model: "small.gguf",
  requested_revision: "main",
  resolved_model: { path: "/models/small.gguf", repository: "someone/small", commit: "c0ffee" },
  architecture: "qwen3",
  quantization: "F16",
  n_layer: 4,
  n_embd: 16,
  weights: [{ name: "small.gguf", bytes: 1234, modified_ns: "1700000000000000000" }],
  seconds: { model: 0.25, compute: 1.5 },
  device: "a processor",
};

const id = "0123456789abcdef0123456789abcdef";

/** Two blocks by the tokens of a prompt whose second token differs in the corrupted prompt. */
export function patchJob(tokens = ["The", " cat", " sat"]): ReportedJob {
  const prompt = (all: string[], logit_difference: number) => ({
    tokens: all,
    token_ids: all.map((_, index) => index),
    logit_difference,
  });
  const positions = tokens.map((_, position) => position);
  const result: PatchSweepResult = {
    direction: "denoise",
    layers: [0, 3],
    positions,
    pairs: [
      {
        clean: prompt(tokens, 4),
        corrupted: prompt(tokens.with(1, ` ${tokens.at(-1)} dog`), -4),
        restored: -4.001,
        target_token: ` ${tokens[0]}`,
        target_token_id: 1,
        foil_token: " b",
        foil_token_id: 2,
      },
    ],
    clean: 4,
    corrupted: -4,
    restored: -4.001,
    sites: [0, 3].flatMap((layer) =>
      positions.map((position) => {
        const inside = position > 0 && (layer < 3 || position === tokens.length - 1);
        const recovery = inside ? ((layer === 0) === (position === 1) ? 0.75 : -0.25) : 0;
        return {
          layer,
          position,
          logit_difference: -4 + 8 * recovery,
          change: 8 * recovery,
          recovery,
          change_length: inside ? 3 : layer < 3 ? 0 : null,
          row_length: inside || layer < 3 ? 12 : null,
          control: { logit_difference: -3.9, change: inside ? 0.1 : 0, recovery: 0.0125 },
        };
      }),
    ),
    computed_sites: 7,
    computed_tokens: 11,
    control_seed: 0,
    note: "A note of the Lab.",
    artifacts: ["patch-sweep.npz"],
    provenance,
  };
  const [clean, corrupted] = [tokens.join(""), tokens.with(1, " dog").join("")];
  return {
    id,
    operation: "patch_sweep",
    result,
    config: { operation: "patch_sweep", model: "small.gguf", clean, corrupted, direction: "denoise" },
  };
}

/** What must never become markup, end a script, or turn the reading direction. */
export const hostile = [
  "</script><script>window.broken=1</script>",
  "<!--<script>",
  "]]><img src=x onerror=window.broken=1>",
  "\u202Egnp.exe\u2066",
  "nul\u0000byte\u0007bell\u001b[31mred",
  "\ud800 half a pair",
  '=HYPERLINK("https://example.org")',
  "&lt;b&gt; ' \" `$`",
  "\u2028line\u2029paragraph",
  "שלום مرحبا",
];

export function inspectJob(tokens = ["The", " capital", " of", " France", " is"]): ReportedJob {
  const candidates = (position: number, layer: number) => [
    { token_id: 10 + position, token: tokens[position] as string, probability: 0.5 + layer / 10 },
    { token_id: 2, token: " b", probability: 0.1 },
    { token_id: 3, token: " c", probability: 0.05 },
  ];
  const result: InspectResult = {
    tokens,
    token_ids: tokens.map((_, index) => index),
    layers: [0, 3].map((layer) => ({
      layer,
      norms: tokens.map((_, position) => 10 ** (layer / 3) * (position + 1)),
      predictions: tokens.map((_, position) => candidates(position, layer)),
    })),
    next_tokens: [
      { token_id: 9 + tokens.length, token: tokens.at(-1) as string, probability: 0.9 },
      { token_id: 2, token: " b", probability: 0.01 },
    ],
    note: "A note of the Lab.",
    artifacts: ["activations.npz"],
    provenance,
  };
  const config = { operation: "inspect", model: "small.gguf", prompt: tokens.join(""), layers: [0, 3] };
  return {
    id,
    operation: "inspect",
    result,
    config,
    created: 1_700_000_000,
    started: 1_700_000_001,
    ended: 1_700_000_003,
  };
}

export function compareJob(prompts = ["The capital of France is", "The capital of Italy is"]): ReportedJob {
  const result: CompareResult = {
    trials: prompts.flatMap((prompt, index) =>
      [0, 0.5, 1].map((strength) => ({
        prompt,
        strength,
        layer: 3,
        target_token: ` ${prompt.slice(0, 30)}`,
        target_token_id: index,
        baseline_probability: 0.8,
        probability: 0.8 - 0.6 * strength,
        delta: -0.6 * strength,
        baseline: "one two three",
        output: strength === 0 ? "one two three" : `one ${prompt} three`,
      })),
    ),
    intervention: "ablate",
    position: "last token",
    note: "A note of the Lab.",
    artifacts: [],
    provenance,
  };
  return { id, operation: "compare", result, config: { operation: "compare", prompts } };
}

export function probeJob(text = (index: number) => `text ${index}`): ReportedJob {
  const example = (index: number, split: "train" | "test", label: 0 | 1, score: number) => ({
    text: text(index),
    split,
    label,
    score,
  });
  const scores = [
    example(0, "train", 0, 0.05),
    example(1, "train", 1, 0.95),
    example(2, "test", 0, 0.1),
    example(3, "test", 0, 0.7),
    example(4, "test", 1, 0.7),
    example(5, "test", 1, 1),
  ];
  const report = (layer: number): ProbeResult["reports"][number] => ({
    layer,
    accuracy: 0.75,
    auc: 0.875,
    brier: 0.15,
    majority_accuracy: 0.5,
    shuffled_label_accuracy: 0.45,
    train_size: 2,
    test_size: 4,
    converged: true,
    iterations: 6,
    scores,
  });
  const result: ProbeResult = {
    reports: [report(3), report(0)],
    artifacts: ["probe-layer-0.npz", "probe-layer-3.npz"],
    provenance,
  };
  return { id, operation: "probe", result, config: { operation: "probe" } };
}

export function saeJob(text = (index: number) => `text ${index}`): ReportedJob {
  const result: SaeResult = {
    reports: [
      {
        layer: 3,
        architecture: "relu",
        held_out_mse: 0.3,
        train_mse: 0.2,
        explained_variance: 0.7,
        mean_active: 4.5,
        dead_features: 16,
        dead_fraction: 0.25,
        losses: [
          { step: 10, loss: 2 },
          { step: 20, loss: 1 },
        ],
        features: [4, 9].map((feature, index) => ({
          feature,
          mean: 1.5 - index,
          frequency: 0.5,
          examples: [
            { text: text(feature), activation: 4 },
            { text: text(feature + 1), activation: 1 },
          ],
        })),
      },
    ],
    artifacts: [],
    provenance,
  };
  return { id, operation: "sae", result, config: { operation: "sae" } };
}

/** A report of each kind in which every text is hostile. */
export function hostileJobs(): ReportedJob[] {
  const at = (index: number) => `${hostile[index % hostile.length]} ${index}`;
  return [inspectJob(hostile), compareJob(hostile), probeJob(at), saeJob(at), patchJob(hostile)];
}

/** Two rows in words, with both controls; a model's words may be anything. */
export function explainJob(): ReportedJob {
  const said = (text: string, ended = true) => [{ text, tokens: 4, ended }];
  const result: ExplainResult = {
    layer: 5,
    verbaliser: { name: "av", quantization: "Q8_0", bytes: 2000, prompt_tokens: 30, token_scale: 1 },
    length: 150,
    explained: [
      {
        ...{ position: 4, token: " is", token_id: 9, norm: 10.25 },
        descriptions: said(" a <b>capital</b> of Europe"),
        shuffled: said("a country of words", false),
      },
      {
        ...{ position: 3, token: " France", token_id: 8, norm: 12.5 },
        ...{ descriptions: said("a country"), shuffled: said("noise") },
      },
    ],
    unfilled: said("nothing at all", false),
    note: "Read it beside its controls.",
    ...{ artifacts: ["rows.npz"], provenance },
  };
  const config = {
    ...{
      operation: "explain",
      model: "demo",
      prompt: "The <capital> of France is",
      layer: 5,
      positions: [4, 3],
    },
    ...{ verbaliser: "/home/me/av.gguf", template: "What is X?", marker: "X", length: 150, temperature: 0 },
    ...{ samples: 1, description_tokens: 8, controls: true, seed: 0, max_input_tokens: 256 },
  };
  return { operation: "explain", id: "9".repeat(32), config, result };
}
