import { randomBytes } from "node:crypto";
import type { BackendConfig, RouterStats } from "../contracts/router.js";
import { ExecutionRecorder, Histogram, type Outcome, percentiles } from "../executions/index.js";
import { Backend } from "./backend.js";
import { checkBackends } from "./config.js";
import { Health, type HealthEvent, type HealthTiming, usualTiming } from "./health.js";

export interface RouterOptions {
  backends: readonly BackendConfig[];
  /** API key required for /v1. */
  apiKey?: string | undefined;
  /** Origins whose pages may use /v1; default: none. */
  cors?: readonly string[] | undefined;
  timing?: Partial<HealthTiming>;
  onEvent?: ((event: HealthEvent) => void) | undefined;
}

/** State shared by a router's routes. */
export class RouterService {
  readonly executions = new ExecutionRecorder();
  readonly health: Health;
  readonly apiKey: string | undefined;
  readonly cors: readonly string[];
  /** Identifies requests forwarded by this router. */
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
   * Replaces the backends. Remaining ones keep their connections and state; removed ones finish their requests and get no
   * new ones. Resolves when each new one was checked once.
   * @throws UserError if an address is invalid or given twice; nothing then changes
   */
  async configure(backends: readonly BackendConfig[]): Promise<void> {
    const configs = checkBackends(backends);
    const before = new Map(this.#backends.map((backend) => [backend.url, backend]));
    this.#backends = configs.map((config) => {
      const known = before.get(config.url);
      if (known === undefined) return new Backend(config);
      before.delete(config.url);
      known.config = config;
      // The reason for a failure, such as a wrong key, may just have been fixed.
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

  /** The body of `GET /stats`. */
  report(): RouterStats {
    const now = performance.now();
    return {
      uptime_seconds: (now - this.#started) / 1000,
      requests: { ...this.requests },
      latency_ms: { time_to_first_token: percentiles(this.firstToken), total: percentiles(this.total) },
      backends: this.#backends.map((backend) => backend.report(now)),
    };
  }

  /** Stops checks and closes connections. Idempotent. */
  async close(): Promise<void> {
    this.health.close();
    await Promise.all(this.#backends.map((backend) => backend.destroy()));
  }
}
