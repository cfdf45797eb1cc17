import type { Stats } from "../contracts/stats.js";
import type { EngineInfo, EngineMetrics } from "../native/engine.js";
import { Histogram, type Outcome, percentiles } from "../requests/index.js";

/** Follows one request from its arrival to its end, and adds its times to the server's. */
export interface RequestClock {
  /** `tokens` generated tokens have just been sent. */
  sent(tokens: number): void;
  /** The times of an answer that was not streamed, as the engine measured them. */
  measured(promptMs: number, generatedMs: number, tokens: number): void;
  ended(outcome: Outcome): void;
}

/** What the server has done since it started. */
export class ServingStats {
  readonly timeToFirstToken = new Histogram();
  readonly interToken = new Histogram();
  readonly total = new Histogram();
  readonly requests = { total: 0, active: 0, completed: 0, failed: 0, cancelled: 0, refused: 0 };
  readonly captures = { served: 0, expired: 0, rejected: 0 };
  readonly #startedAt = performance.now();

  get uptimeSeconds(): number {
    return (performance.now() - this.#startedAt) / 1000;
  }

  begin(): RequestClock {
    this.requests.total++;
    this.requests.active++;
    const start = performance.now();
    let last: number | undefined;
    let ended = false;
    const secondsSince = (time: number, now: number) => (now - time) / 1000;
    return {
      sent: (tokens) => {
        if (tokens === 0) return;
        const now = performance.now();
        if (last === undefined) {
          this.timeToFirstToken.add(secondsSince(start, now));
          if (tokens > 1) this.interToken.add(0, tokens - 1);
        } else {
          this.interToken.add(secondsSince(last, now) / tokens, tokens);
        }
        last = now;
      },
      measured: (promptMs, generatedMs, tokens) => {
        const answered = secondsSince(start, performance.now());
        this.timeToFirstToken.add(Math.max(promptMs / 1000, answered - generatedMs / 1000));
        if (tokens > 1) this.interToken.add(generatedMs / 1000 / (tokens - 1), tokens - 1);
      },
      ended: (outcome) => {
        if (ended) return;
        ended = true;
        this.requests.active--;
        this.requests[outcome]++;
        this.total.add(secondsSince(start, performance.now()));
      },
    };
  }

  /** The answer of `GET /stats`. */
  report(info: EngineInfo, metrics: EngineMetrics): Stats {
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
    };
  }
}

function rate(count: number, microseconds: number): number {
  return microseconds > 0 ? (count / microseconds) * 1e6 : 0;
}
