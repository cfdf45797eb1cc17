import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Execution } from "../../src/contracts/execution.js";
import type { Stats } from "../../src/contracts/stats.js";
import { width } from "../../src/findings/text.js";
import { type Canvas, executionList, executionPicture, statsPicture } from "../../src/terminal/index.js";

const canvas = (columns: number): Canvas => ({ width: columns, colors: "none" });

const execution: Execution = {
  id: "0123456789abcdef0123456789abcdef",
  parent_id: null,
  endpoint: "/v1/chat/completions",
  started: 1000,
  ended: 1002.5,
  status: "completed",
  model: "tapline-demo",
  thinking: true,
  stream: true,
  truncated: false,
  finish_reason: "stop",
  output_tokens: 12,
  usage: null,
  preview: "The capital\u001b[2J of France is Paris.",
  input: { messages: [{ role: "user", content: "What is\u0007 it?" }], stream: true, temperature: 0 },
  events: [
    { id: 0, kind: "lifecycle", text: "received", time: 1000, updated: 1000, choice: 0 },
    { id: 1, kind: "thinking", text: "They ask.", time: 1000.5, updated: 1001, choice: 0 },
    { id: 2, kind: "output", text: "It is\nParis.", time: 1001, updated: 1002, choice: 1 },
  ],
};

const stats: Stats = {
  uptime_seconds: 3700,
  model: "tapline-demo",
  requests: { total: 1234, active: 2, queued: 1, failed: 0, cancelled: 3 },
  tokens: { prompt: 123456, cached: 1234, generated: 99999 },
  throughput: { prompt_tokens_per_second: 7312.4, generated_tokens_per_second: 1900.5 },
  latency_ms: {
    time_to_first_token: { p50: 6.36, p95: 12.5, p99: 1234 },
    inter_token: { p50: 0.43, p95: 0.67, p99: 0.9 },
    total: { p50: null, p95: null, p99: null },
  },
  slots: { total: 4, busy: 3 },
  memory: { rss_bytes: 167_000_000, model_bytes: 3_150_000 },
  captures: { served: 5, expired: 0, rejected: 1 },
};

test("no line is wider than the terminal, and nothing reaches its controls", () => {
  for (const columns of [40, 60, 80, 120]) {
    const lines = [
      ...executionList(
        { executions: [execution], capacity: 64, text_limit: 262144, dropped: 2 },
        canvas(columns),
        1010,
      ),
      ...executionPicture(execution, canvas(columns), 1010),
      ...statsPicture(stats, canvas(columns)),
    ];
    for (const line of lines) {
      assert.ok(width(line) <= columns, `${columns}: ${line}`);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
      assert.not.match(line, /[\u0000-\u001f]/);
    }
  }
});

test("a request: its question and its timed events", () => {
  const text = executionPicture(execution, canvas(100), 1010).join("\n");
  assert.match(text, /completed in 2\.5 s, 10 s ago/);
  assert.match(text, /^user +What is␇ it\?$/m);
  assert.match(text, /^settings +stream true, temperature 0$/m);
  assert.match(text, /^\+500 ms thinking +They ask\.$/m);
  assert.match(text, /^\+1\.0 s output +\[choice 1\] It is Paris\.$/m);
});

test("statistics: unknown figures are dashes, busy slots a bar", () => {
  const text = statsPicture(stats, canvas(100)).join("\n");
  assert.match(text, /^Slots +███· 3 of 4 busy$/m);
  assert.match(text, /^whole answer +– +– +–$/m);
  assert.match(text, /^first token +6\.36 ms +12\.5 ms +1\.2k ms$/m);
  assert.match(text, /^Up +1 h 2 min$/m);
});

test.run();
