/**
 * Every limit of the local services, once. Names are those of `limits` in `GET /lab/v1/health`; a bare name is
 * the most that is accepted, `_min` the least.
 */
export const limits = {
  job_body_bytes: 500_000,
  worker_deadline_seconds: 1800,
  concurrent_jobs: 1,
  queue_capacity: 64,
  job_list: 100,
  model_characters: 4096,
  layers: 8,
  layer_index: 255,
  max_input_tokens: 1024,
  max_tokens: 128,
  seed: 2_147_483_647,
  examples_min: 8,
  examples_per_split_min: 4,
  examples: 512,
  strengths: 9,
  strength: 5,
  strength_vector: 100,
  strength_row_norm: 10,
  projection: 1_000_000,
  direction_texts: 256,
  position_ranges: 16,
  token_index: 4095,
  prompts: 32,
  features_min: 8,
  features: 512,
  steps: 500,
  dictionary_features: 65_536,
  sae_batch: 65_536,
  sae_sparsity: 1000,
  feature_texts: 512,
  feature_tokens: 16_384,
  feature_top: 64,
  feature_index: 67_108_863,
  extract_parts: 4096,
  drift_examples_min: 2,
  shard_tokens_min: 256,
  shard_tokens: 1_048_576,
  path_characters: 4096,
  patch_pairs: 64,
  patch_sites: 32_768,
  capture_body_bytes: 500_000,
  capture_layers: 4,
  capture_input_tokens: 256,
  capture_prompt_characters: 32_768,
  concurrent_captures: 1,
  capture_queue_seconds: 60,
  execution_history: 64,
  execution_text_bytes: 262_144,
  execution_events: 1024,
  execution_preview_characters: 180,
} as const;

/** What a submission or capture request means where it says nothing. */
export const defaults = {
  layers: [0],
  max_input_tokens: 256,
  max_tokens: 32,
  seed: 0,
  intervention: "scale",
  strengths: [0, 0.5, 1, 1.5],
  features: 64,
  steps: 100,
  feature_top: 8,
  extract_rows: "all",
  extract_dtype: "f32",
  too_long: "refuse",
  shard_tokens: 32_768,
  patch_direction: "denoise",
  patch_controls: true,
  patch_points: ["block_out"],
  capture_input_tokens: 128,
} as const;

/** How many candidates the results name. */
export const topCounts = { predictions: 3, next_tokens: 5, features: 16 } as const;

/** Ports that the services take unless told otherwise. */
export const ports = { lab: 8980, inference: 8971, router: 8970, workbench: 8972 } as const;
