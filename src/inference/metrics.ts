import type { Histogram } from "../executions/index.js";
import type { EngineInfo, EngineMetrics } from "../native/engine.js";
import { scoreBounds } from "./live/probe-scores.js";
import type { ServingStats } from "./stats.js";

const firstTokenBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const interTokenBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const totalBounds = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800];

/** The server's metrics in Prometheus' text format, version 0.0.4. */
export function prometheusText(stats: ServingStats, info: EngineInfo, metrics: EngineMetrics): string {
  const lines: string[] = [];
  const add = (
    kind: "counter" | "gauge",
    name: string,
    help: string,
    samples: [labels: string, value: number][],
  ) => {
    lines.push(`# HELP tapline_${name} ${help}`, `# TYPE tapline_${name} ${kind}`);
    for (const [labels, value] of samples) lines.push(`tapline_${name}${labels} ${value}`);
  };
  const { requests, captures } = stats;
  add("gauge", "model_info", "The served model.", [
    [`{model="${label(info.id)}",architecture="${label(info.architecture)}"}`, 1],
  ]);
  add("gauge", "uptime_seconds", "Seconds since the model was loaded.", [["", stats.uptimeSeconds]]);
  add(
    "counter",
    "requests_total",
    "Chats and completions that ended, by outcome, and requests of any kind that were refused.",
    [
      ['{outcome="completed"}', requests.completed],
      ['{outcome="failed"}', requests.failed],
      ['{outcome="cancelled"}', requests.cancelled],
      ['{outcome="refused"}', requests.refused],
    ],
  );
  add("gauge", "requests_active", "Requests that are waiting or being generated.", [["", requests.active]]);
  add("gauge", "requests_deferred", "Requests that wait for a slot.", [["", metrics.deferred]]);
  add("gauge", "slots", "Slots, and how many are busy.", [
    ['{state="total"}', info.slots],
    ['{state="busy"}', metrics.busy_slots],
  ]);
  add("counter", "prompt_tokens_total", "Prompt tokens, computed or taken from the cache.", [
    ['{source="computed"}', metrics.prompt_tokens],
    ['{source="cache"}', metrics.cached_tokens],
  ]);
  add("counter", "prompt_seconds_total", "Seconds spent on prompts.", [["", metrics.prompt_us / 1e6]]);
  add("counter", "generated_tokens_total", "Generated tokens.", [["", metrics.generated_tokens]]);
  add("counter", "generated_seconds_total", "Seconds spent generating.", [["", metrics.generated_us / 1e6]]);
  add("counter", "decodes_total", "Batches decoded.", [["", metrics.decodes]]);
  add("counter", "captures_total", "Resident captures, by outcome.", [
    ['{outcome="served"}', captures.served],
    ['{outcome="expired"}', captures.expired],
    ['{outcome="rejected"}', captures.rejected],
  ]);
  add("gauge", "resident_memory_bytes", "Memory of the serving process.", [["", process.memoryUsage.rss()]]);
  const histogram = (name: string, help: string, values: Histogram, bounds: number[]) => {
    lines.push(`# HELP tapline_${name} ${help}`, `# TYPE tapline_${name} histogram`);
    for (const bound of bounds) lines.push(`tapline_${name}_bucket{le="${bound}"} ${values.atMost(bound)}`);
    lines.push(`tapline_${name}_bucket{le="+Inf"} ${values.count}`);
    lines.push(`tapline_${name}_sum ${values.sum}`, `tapline_${name}_count ${values.count}`);
  };
  histogram(
    "time_to_first_token_seconds",
    "From request to first token.",
    stats.timeToFirstToken,
    firstTokenBounds,
  );
  histogram("inter_token_seconds", "Between two tokens of an answer.", stats.interToken, interTokenBounds);
  histogram("request_seconds", "From request to the end of its answer.", stats.total, totalBounds);
  const probes = [...stats.probes.entries()];
  if (probes.length > 0) {
    lines.push("# HELP tapline_probe_score Scores of generated tokens by the probes that requests watched.");
    lines.push("# TYPE tapline_probe_score histogram");
  }
  for (const [name, { atMost, sum, count }] of probes) {
    const probe = `probe="${label(name)}"`;
    for (const [place, bound] of scoreBounds.entries()) {
      lines.push(`tapline_probe_score_bucket{${probe},le="${bound}"} ${atMost[place]}`);
    }
    lines.push(`tapline_probe_score_bucket{${probe},le="+Inf"} ${count}`);
    lines.push(`tapline_probe_score_sum{${probe}} ${sum}`, `tapline_probe_score_count{${probe}} ${count}`);
  }
  return `${lines.join("\n")}\n`;
}

function label(text: string): string {
  return text.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n");
}
