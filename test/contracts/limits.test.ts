/**
 * Every limit, written out by hand from the specification, and from the documentation where the specification is
 * silent: code that reads a limit from the contract cannot notice that it changed.
 */
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  ChatRequest,
  CompletionRequest,
  InfillRequest,
  NativeCompletionRequest,
} from "../../src/contracts/chat.js";
import { inferenceLimits } from "../../src/contracts/inference-limits.js";
import { defaults, limits, ports, topCounts } from "../../src/contracts/limits.js";
import { LiveRequest } from "../../src/contracts/live.js";
import { liveLimits } from "../../src/contracts/live-limits.js";
import { mcpLimits } from "../../src/contracts/mcp.js";
import { CountRequest, MessagesRequest } from "../../src/contracts/messages.js";
import { researchLimits } from "../../src/contracts/research.js";
import { ResponsesRequest } from "../../src/contracts/responses.js";
import { routerLimits } from "../../src/contracts/router.js";
import { errorCodes } from "../../src/contracts/studies/errors.js";
import { siteLimits, studiesPort, studyLimits } from "../../src/contracts/studies/limits.js";
import { validate } from "../../src/contracts/validate.js";

test("the Lab's and the serving model's limits", () => {
  assert.equal(limits, {
    job_body_bytes: 500_000,
    worker_deadline_seconds: 30 * 60,
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
    probe_rows: 16_384,
    probe_bytes: 2 ** 28,
    probe_grid_values: 32,
    probe_cells: 1024,
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
    feature_index: 2 ** 26 - 1,
    feature_pages: 16,
    extract_parts: 4096,
    drift_examples_min: 2,
    shard_tokens_min: 256,
    shard_tokens: 2 ** 20,
    path_characters: 4096,
    patch_pairs: 64,
    patch_sites: 32_768,
    patch_spans: 64,
    explain_positions: 16,
    explain_samples: 8,
    explain_tokens: 512,
    explain_temperature: 2,
    explain_length: 10_000_000,
    ...{ graph_nodes_min: 1, graph_nodes: 7500, graph_measured: 500, graph_targets: 10, graph_edges: 4000 },
    ...{ graph_links: 100_000, graph_zero_positions: 64, graph_described: 100 },
    attention_heads: 256,
    attention_bytes: 2 ** 28,
    swap_places: 256,
    capture_body_bytes: 500_000,
    capture_layers: 4,
    capture_input_tokens: 256,
    capture_prompt_characters: 32_768,
    concurrent_captures: 1,
    capture_queue_seconds: 60,
    execution_history: 64,
    execution_text_bytes: 256 * 1024,
    execution_events: 1024,
    execution_preview_characters: 180,
    lens_activations: 16_384,
  });
  assert.equal(defaults, {
    layers: [0],
    max_input_tokens: 256,
    max_tokens: 32,
    seed: 0,
    intervention: "scale",
    strengths: [0, 0.5, 1, 1.5],
    clamp_strengths: [0, 0.5, 1],
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
    explain_positions: [-1],
    explain_tokens: 128,
    explain_samples: 1,
    explain_temperature: 0,
    explain_controls: true,
    ...{ graph_position: -1, graph_first_token: false, graph_nodes: 500, graph_measured: 50 },
    ...{ graph_node_threshold: 0.8, graph_edge_threshold: 0.98 },
    capture_input_tokens: 128,
  });
  assert.equal(topCounts, { predictions: 3, next_tokens: 5, features: 16, graph_places: 3, graph_raised: 5 });
  assert.equal([ports, studiesPort], [{ lab: 8980, inference: 8971, router: 8970, workbench: 8972 }, 8990]);
});

test("limits of a server and a router", () => {
  assert.equal(inferenceLimits, {
    body_bytes: 8 * 1024 * 1024,
    json_depth: 64,
    messages: 4096,
    tools: 128,
    prompts: 2048,
    answers: 16_384,
    infill_files: 64,
    embedding_inputs: 2048,
    prompt_tokens: 1024 * 1024,
    stop_strings: 64,
    stop_characters: 1024,
    top_logprobs: 20,
    penalty_window: 65_536,
    logit_biases: 4096,
    grammar_characters: 65_536,
    grammar_depth: 64,
    pattern_characters: 1024,
    slots: 256,
    waiting: 256,
    prompt_logprobs: 1024 * 1024,
  });
  assert.equal(liveLimits, {
    interventions: 16,
    layers: 8,
    ranges: 64,
    probes: 8,
    projections: 8,
    lens: 10,
    lenses: 2,
    dictionaries: 4,
    features: 50,
    strength: 1_000_000,
    condition_tokens: 1024,
    name_characters: 64,
    file_bytes: 67_108_864,
    stored: 1000,
    capture_bytes: 67_108_864,
    captures_bytes: 268_435_456,
    texts: 512,
    probe_texts: 5,
    text_characters: 32_768,
    text_tokens: 256,
  });
  assert.equal(routerLimits, {
    backends: 64,
    url_characters: 2048,
    slots: 1024,
    active: 4096,
    deaths: 5,
    answer_bytes: 4_194_304,
  });
  assert.equal(mcpLimits, {
    page_characters: 40_000,
    piece_characters: 12_000,
    wait_seconds: 50,
    answer_tokens: 4096,
    usual_answer_tokens: 256,
    scope_check_ms: 10_000,
  });
});

test("the studies service's limits, and its clients' timeouts", () => {
  const day = 24 * 60 * 60 * 1000;
  assert.equal(studyLimits, {
    package_bytes: 1_000_000,
    json_depth: 32,
    title: 160,
    question: 4000,
    method: 8000,
    limitations: 8000,
    long_text: 100_000,
    omissions: 100,
    omission: 1000,
    entries: 200,
    entry_title: 300,
    model_name: 300,
    model_revision: 200,
    model_runtime: 200,
    context_messages: 200,
    finish_reason: 100,
    temperature: 10,
    seed: 9_007_199_254_740_991,
    max_tokens: 1_000_000,
    q: 160,
    list_limit: 50,
    list_limit_default: 20,
    offset: 10_000,
    discussion_page: 50,
    summary_question: 300,
    requests: 60,
    request_window_ms: 60_000,
    drafts: 10,
    draft_window_ms: day,
    active_tokens: 10,
    token_days: 30,
    token_name: 100,
    idempotency_key: 200,
    idempotency_ms: day,
    comment: 10_000,
    comment_depth: 32,
    comment_edit_ms: 900_000,
    reason: 1000,
    activity_days: 30,
    audit_days: 365,
    notification_days: 180,
    session_days: 14,
  });
  assert.equal(siteLimits, {
    form: { account: 300, address: 900, window_ms: 600_000 },
    comment: { account: 30, address: 90, window_ms: 3_600_000 },
    vote: { account: 120, address: 360, window_ms: 3_600_000 },
    report: { account: 20, address: 60, window_ms: day },
    appeal: { account: 5, address: 20, window_ms: day },
    export: { account: 5, address: 30, window_ms: 3_600_000 },
    "sign-in": { account: 30, address: 60, window_ms: 600_000 },
  });
  assert.equal(researchLimits, {
    answer_bytes: 4_194_304,
    deadline_ms: 30_000,
    read_attempts: 3,
    retry_wait_ms: 2000,
    error_characters: 500,
  });
});

test("each error code of the studies service has its status", () => {
  const withStatus = (status: number) =>
    Object.entries(errorCodes)
      .filter(([, each]) => each === status)
      .map(([code]) => code)
      .sort();
  assert.equal(
    [401, 403, 404, 405, 410, 429, 503].map((status) => [status, ...withStatus(status)]),
    [
      [401, "token_expired", "token_invalid", "token_missing", "token_revoked"],
      [403, "browser_request", "https_required", "scope_missing"],
      [404, "not_found"],
      [405, "method_not_allowed"],
      [410, "draft_deleted", "removed", "withdrawn"],
      [429, "draft_quota", "request_quota"],
      [503, "disabled", "unavailable"],
    ],
  );
  // All others are faults of what was sent.
  assert.equal([withStatus(400).length, Object.keys(errorCodes).length], [22, 22 + 16]);
});

const messages = [{ role: "user", content: "x" }];
const chat = { messages };
const native = { prompt: "x" };
const infill = { input_prefix: "a", input_suffix: "b" };
const count = { model: "m", messages };
const anthropic = { ...count, max_tokens: 1 };
const responses = { input: "x" };
const times = (length: number) => "x".repeat(length);

/** The largest (or smallest) accepted value of a field, and the first refused one. */
const edges: [
  schema: Parameters<typeof validate>[0],
  body: object,
  field: string,
  most: unknown,
  more: unknown,
][] = [
  [ChatRequest, chat, "temperature", 100, 100.1],
  [ChatRequest, chat, "temperature", 0, -0.1],
  [ChatRequest, chat, "top_k", -1, -2],
  [ChatRequest, chat, "top_p", 1, 1.01],
  [ChatRequest, chat, "min_p", 0, -0.01],
  [ChatRequest, chat, "top_n_sigma", 1000, 1000.5],
  [ChatRequest, chat, "repeat_penalty", 0.01, 0],
  [ChatRequest, chat, "presence_penalty", -100, -101],
  [ChatRequest, chat, "mirostat", 2, 3],
  [ChatRequest, chat, "mirostat_tau", 100, 101],
  [ChatRequest, chat, "mirostat_eta", 100, 101],
  [ChatRequest, chat, "adaptive_decay", 0.99, 1],
  [ChatRequest, chat, "dry_sequence_breakers", Array(32).fill(times(64)), [times(65)]],
  [ChatRequest, chat, "dry_sequence_breakers", ["a"], []],
  [ChatRequest, chat, "logit_bias", { a: 1000, b: -1000, c: false }, { a: 1001 }],
  [ChatRequest, chat, "logit_bias", [[1, -1000]], [[1, -1001]]],
  [ChatRequest, chat, "logit_bias", [[times(256), 1]], [[times(257), 1]]],
  [NativeCompletionRequest, native, "response_fields", Array(64).fill(times(256)), Array(65).fill("x")],
  [NativeCompletionRequest, native, "response_fields", [], [times(257)]],
  [InfillRequest, infill, "response_fields", Array(64).fill(times(256)), Array(65).fill("x")],
  [InfillRequest, infill, "response_fields", [], [times(257)]],
  [
    InfillRequest,
    infill,
    "input_extra",
    [{ filename: times(4096), text: "" }],
    [{ filename: times(4097), text: "" }],
  ],
  [CompletionRequest, native, "best_of", 256, 257],
  [CompletionRequest, native, "best_of", 1, 0],
  [CompletionRequest, native, "logprobs", 20, 21],
  [MessagesRequest, anthropic, "max_tokens", 1, 0],
  [
    MessagesRequest,
    anthropic,
    "thinking",
    { type: "enabled", budget_tokens: 0 },
    { type: "enabled", budget_tokens: -1 },
  ],
  [CountRequest, count, "output_config", { effort: times(64) }, { effort: times(65) }],
  [ResponsesRequest, responses, "include", Array(32).fill(times(128)), Array(33).fill("x")],
  [ResponsesRequest, responses, "include", [], [times(129)]],
  [ResponsesRequest, responses, "reasoning", { effort: times(64) }, { effort: times(65) }],
  [ResponsesRequest, responses, "max_output_tokens", 1, 0],
  [LiveRequest, {}, "stop_when", { probe: "p", above: 1, for: 1 }, { probe: "p", above: 1.01 }],
  [LiveRequest, {}, "stop_when", { probe: "p", below: 0, for: 1024 }, { probe: "p", below: 0, for: 1025 }],
  [LiveRequest, {}, "stop_when", { probe: "p", above: 0 }, { probe: "p", above: 0, for: 0 }],
];

test("the bounds of text requests", () => {
  for (const [schema, body, field, most, more] of edges) {
    assert.not.throws(() => validate(schema, { ...body, [field]: most }), undefined, `${field} ${most}`);
    assert.throws(
      () => validate(schema, { ...body, [field]: more }),
      (error: Error) => error.message.startsWith(field),
      `${field}: ${JSON.stringify(more).slice(0, 50)}`,
    );
  }
});

test.run();
