import { randomBytes } from "node:crypto";
import type { BackendConfig, RouterStats } from "../contracts/router.js";
import { ExecutionRecorder, Histogram, type Outcome, percentiles } from "../executions/index.js";
import { Backend } from "./backend.js";
import { checkBackends } from "./config.js";
import { Health, type HealthEvent, type HealthTiming, usualTiming } from "./health.js";

export interface RouterOptions {
  backends: readonly BackendConfig[];
  /** Key that /v1 asks for. */
  apiKey?: string | undefined;
  /** Origins whose pages may use /v1; none unless told otherwise. */
  cors?: readonly string[] | undefined;
  timing?: Partial<HealthTiming>;
  onEvent?: ((event: HealthEvent) => void) | undefined;
}

/** What the routes of one router share. */
export class RouterService {
  readonly executions = new ExecutionRecorder();
  readonly health: Health;
  readonly apiKey: string | undefined;
  readonly cors: readonly string[];
  /** How it signs what it forwards, so that it knows its own requests again. */
  readonly via = `1.1 tapline-${randomBytes(8).toString("hex")}`;
  readonly requests = {
    total: 0,
    active: 0,
    completed: 0,
    failed: 0,
    cancelled: 0,
    refused: 0,
    retried: 0,
  };
  readonly firstToken = new Histogram();
  readonly total = new Histogram();
  readonly startedAt = Math.floor(Date.now() / 1000);
  readonly #started = performance.now();
  #backends: readonly Backend[] = [];

  constructor(options: RouterOptions) {
    this.apiKey = options.apiKey;
    this.cors = options.cors ?? [];
    this.health = new Health({ ...usualTiming, ...options.timing }, options.onEvent ?? (() => {}));
  }

  get backends(): readonly Backend[] {
    return this.#backends;
  }

  /**
   * Puts these backends in place of those before: what stays keeps its connections and what is known of it, what
   * goes gets nothing new and finishes what it has. Resolves when each new one was asked once.
   * @throws UserError where an address is none or is named twice; then everything stays as it was
   */
  async configure(backends: readonly BackendConfig[]): Promise<void> {
    const configs = checkBackends(backends);
    const before = new Map(this.#backends.map((backend) => [backend.url, backend]));
    this.#backends = configs.map((config) => {
      const known = before.get(config.url);
      if (known === undefined) return new Backend(config);
      before.delete(config.url);
      known.config = config;
      // What kept it aside, a wrong key say, may just have been put right.
      known.nextCheck = 0;
      return known;
    });
    for (const gone of before.values()) gone.retire();
    await this.health.watch(this.#backends);
  }

  ended(outcome: Outcome | "refused", began: number): void {
    this.requests.active--;
    this.requests[outcome]++;
    this.total.add((performance.now() - began) / 1000);
  }

  /** The answer of `GET /stats`. */
  report(): RouterStats {
    const now = performance.now();
    return {
      uptime_seconds: (now - this.#started) / 1000,
      requests: { ...this.requests },
      latency_ms: { time_to_first_token: percentiles(this.firstToken), total: percentiles(this.total) },
      backends: this.#backends.map((backend) => backend.report(now)),
    };
  }

  /** Ends checks and connections. Idempotent. */
  async close(): Promise<void> {
    this.health.close();
    await Promise.all(this.#backends.map((backend) => backend.destroy()));
  }
}
