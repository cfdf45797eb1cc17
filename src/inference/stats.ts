import type { Stats } from "../contracts/stats.js";
import { Histogram, type Outcome, percentiles } from "../executions/index.js";
import type { AnswerTime, EngineInfo, EngineMetrics } from "../native/engine.js";
import { ProbeScores } from "./live/probe-scores.js";
import type { RowStore } from "./live/row-store.js";

/** Measures one request from arrival to end, and adds its times to the server's statistics. */
export interface RequestClock {
  /** Records the numbers of generated tokens just sent for each of the request's answers. */
  sent(tokens: readonly number[]): void;
  /** Records the engine's times of answers that were not streamed. */
  measured(answers: readonly AnswerTime[]): void;
  ended(outcome: Outcome): void;
}

/** Statistics since the server started. */
export class ServingStats {
  readonly timeToFirstToken = new Histogram();
  readonly interToken = new Histogram();
  readonly total = new Histogram();
  readonly requests = { total: 0, active: 0, completed: 0, failed: 0, cancelled: 0, refused: 0 };
  /** Scores of the probes that requests watch, by name. */
  readonly probes = new ProbeScores();
  readonly captures = { served: 0, expired: 0, rejected: 0 };
  readonly #startedAt: number;

  /** @param now a monotonic time in milliseconds */
  constructor(private readonly now: () => number = () => performance.now()) {
    this.#startedAt = now();
  }

  get uptimeSeconds(): number {
    return (this.now() - this.#startedAt) / 1000;
  }

  begin(): RequestClock {
    this.requests.total++;
    this.requests.active++;
    const start = this.now();
    /** When each answer's last token was sent: answers are generated in parallel. */
    const last: number[] = [];
    let ended = false;
    const secondsSince = (time: number, now: number) => (now - time) / 1000;
    return {
      sent: (tokens) => {
        const now = this.now();
        for (const [answer, count] of tokens.entries()) {
          if (count === 0) continue;
          const before = last[answer];
          if (last.length === 0) this.timeToFirstToken.add(secondsSince(start, now));
          if (before !== undefined) this.interToken.add(secondsSince(before, now) / count, count);
          else if (count > 1) this.interToken.add(0, count - 1);
          last[answer] = now;
        }
      },
      measured: (answers) => {
        if (answers.length === 0) return;
        const answered = secondsSince(start, this.now());
        const promptMs = Math.min(...answers.map((answer) => answer.promptMs));
        const longestMs = Math.max(...answers.map(({ generatedMs }) => generatedMs));
        this.timeToFirstToken.add(Math.max(promptMs / 1000, answered - longestMs / 1000));
        for (const { generatedMs, tokens } of answers) {
          if (tokens > 1) this.interToken.add(generatedMs / 1000 / (tokens - 1), tokens - 1);
        }
      },
      ended: (outcome) => {
        if (ended) return;
        ended = true;
        this.requests.active--;
        this.requests[outcome]++;
        this.total.add(secondsSince(start, this.now()));
      },
    };
  }

  /** The answer of `GET /stats`. */
  report(info: EngineInfo, metrics: EngineMetrics, rows: RowStore): Stats {
    const { total, active, failed, cancelled } = this.requests;
    return {
      uptime_seconds: this.uptimeSeconds,
      model: info.id,
      requests: { total, active, queued: metrics.deferred, failed, cancelled },
      tokens: {
        prompt: metrics.prompt_tokens,
        cached: metrics.cached_tokens,
        generated: metrics.generated_tokens,
      },
      throughput: {
        prompt_tokens_per_second: rate(metrics.prompt_tokens, metrics.prompt_us),
        generated_tokens_per_second: rate(metrics.generated_steps, metrics.generated_us),
      },
      latency_ms: {
        time_to_first_token: percentiles(this.timeToFirstToken),
        inter_token: percentiles(this.interToken),
        total: percentiles(this.total),
      },
      slots: { total: info.slots, busy: metrics.busy_slots },
      memory: { rss_bytes: process.memoryUsage.rss(), model_bytes: info.bytes },
      captures: { ...this.captures },
      row_captures: { kept: rows.count, bytes: rows.bytes, dropped: rows.dropped },
    };
  }
}

function rate(count: number, microseconds: number): number {
  return microseconds > 0 ? (count / microseconds) * 1e6 : 0;
}
