/** Prometheus' text for the numbers of this file. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { RowStore } from "../../src/inference/live/row-store.js";
import { prometheusText } from "../../src/inference/metrics.js";
import { ServingStats } from "../../src/inference/stats.js";
import type { EngineInfo, EngineMetrics } from "../../src/native/engine.js";

test("Prometheus' text: every number under its name", () => {
  const clock = { ms: 0 };
  const stats = new ServingStats(() => clock.ms);
  const request = stats.begin();
  clock.ms = 2000;
  request.sent([1]);
  clock.ms = 2400;
  request.sent([1]);
  clock.ms = 2500;
  request.ended("completed");
  stats.begin();
  Object.assign(stats.requests, { failed: 3, cancelled: 4, refused: 5 });
  Object.assign(stats.captures, { served: 6, expired: 7, rejected: 8 });
  stats.probes.take('{"choices":[{"tapline":{"tokens":[{"probes":{"calm":0.15}}]}}]}');
  const info = { id: 'a"b\\c\nd', architecture: "llama", slots: 4 } as EngineInfo;
  const metrics = {
    deferred: 9,
    busy_slots: 2,
    prompt_tokens: 10,
    cached_tokens: 11,
    prompt_us: 1_500_000,
    generated_tokens: 12,
    generated_us: 2_500_000,
    decodes: 13,
  } as EngineMetrics;
  const text = prometheusText(stats, info, metrics);
  assert.ok(text.endsWith("\n") && !text.endsWith("\n\n"));
  const lines = text.trimEnd().split("\n");
  for (const expected of [
    'tapline_model_info{model="a\\"b\\\\c\\nd",architecture="llama"} 1',
    "tapline_uptime_seconds 2.5",
    "# TYPE tapline_requests_total counter",
    'tapline_requests_total{outcome="completed"} 1',
    'tapline_requests_total{outcome="failed"} 3',
    'tapline_requests_total{outcome="cancelled"} 4',
    'tapline_requests_total{outcome="refused"} 5',
    "tapline_requests_active 1",
    "tapline_requests_deferred 9",
    'tapline_slots{state="total"} 4',
    'tapline_slots{state="busy"} 2',
    'tapline_prompt_tokens_total{source="computed"} 10',
    'tapline_prompt_tokens_total{source="cache"} 11',
    "tapline_prompt_seconds_total 1.5",
    "tapline_generated_tokens_total 12",
    "tapline_generated_seconds_total 2.5",
    "tapline_decodes_total 13",
    'tapline_captures_total{outcome="served"} 6',
    'tapline_captures_total{outcome="expired"} 7',
    'tapline_captures_total{outcome="rejected"} 8',
    "# TYPE tapline_time_to_first_token_seconds histogram",
    'tapline_time_to_first_token_seconds_bucket{le="1"} 0',
    'tapline_time_to_first_token_seconds_bucket{le="2.5"} 1',
    'tapline_time_to_first_token_seconds_bucket{le="60"} 1',
    'tapline_time_to_first_token_seconds_bucket{le="+Inf"} 1',
    "tapline_time_to_first_token_seconds_sum 2",
    'tapline_inter_token_seconds_bucket{le="0.25"} 0',
    'tapline_inter_token_seconds_bucket{le="0.5"} 1',
    "tapline_inter_token_seconds_count 1",
    'tapline_request_seconds_bucket{le="1"} 0',
    'tapline_request_seconds_bucket{le="5"} 1',
    'tapline_request_seconds_bucket{le="1800"} 1',
    "tapline_request_seconds_sum 2.5",
    'tapline_probe_score_bucket{probe="calm",le="0.1"} 0',
    'tapline_probe_score_bucket{probe="calm",le="0.2"} 1',
    'tapline_probe_score_bucket{probe="calm",le="+Inf"} 1',
    'tapline_probe_score_sum{probe="calm"} 0.15',
    'tapline_probe_score_count{probe="calm"} 1',
  ]) {
    assert.ok(lines.includes(expected), expected);
  }
  const bounds = (name: string) =>
    lines
      .flatMap((line) => /^tapline_(\w+)_bucket\{le="([\d.]+)"/.exec(line) ?? [])
      .filter((_, i, all) => all[i - 1] === name);
  assert.equal(
    bounds("time_to_first_token_seconds").map(Number),
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  );
  assert.equal(
    bounds("inter_token_seconds").map(Number),
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
  );
  assert.equal(bounds("request_seconds").map(Number), [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800]);
  assert.not.match(prometheusText(new ServingStats(), info, metrics), "probe_score");
  const report = stats.report({ ...info, bytes: 77 }, { ...metrics, generated_steps: 6 }, new RowStore());
  assert.equal(report.throughput, {
    prompt_tokens_per_second: 10 / 1.5,
    generated_tokens_per_second: 6 / 2.5,
  });
  assert.equal(
    [report.tokens, report.slots],
    [
      { prompt: 10, cached: 11, generated: 12 },
      { total: 4, busy: 2 },
    ],
  );
  assert.equal(report.requests, { total: 2, active: 1, queued: 9, failed: 3, cancelled: 4 });
  const idle = stats.report(info, { ...metrics, prompt_us: 0 }, new RowStore());
  assert.is(idle.throughput.prompt_tokens_per_second, 0);
});

test.run();
