import { Pool } from "undici";
import type { BackendConfig, BackendStats } from "../contracts/router.js";
import { isLoopback } from "../http/index.js";

/** Assumed number of slots for servers that do not report it: the usual default. */
const usualSlots = 4;
/** Half-life of a measured time, so that a slow backend is tried again. */
const halfLifeMs = 30_000;
/** Shorter than any server's, so that the router closes idle connections first. */
const keepAliveMs = 4000;
const connectMs = 3000;

/** A model as listed by a backend. */
export type ModelObject = { id: string } & Record<string, unknown>;

/** One server behind the router: its connections, models, health and load. */
export class Backend {
  readonly url: string;
  /** Path prefix before /v1. */
  readonly prefix: string;
  readonly pool: Pool;
  /** For requests that need a new connection. */
  readonly fresh: Pool;
  /** Running requests, which can be abandoned before the first byte or in the middle. */
  readonly attempts = new Set<{ abandon(): void; giveUp(): void }>();
  /** Set when it was removed from the configuration; running requests continue. */
  retired = false;

  state: BackendStats["state"] = "starting";
  /** Number of recoveries, to ignore failures of requests from before the last one. */
  epoch = 0;
  /** Consecutive failures; an answer resets them. */
  failures = 0;
  timesAside = 0;
  lastError: string | null = null;
  /** Milliseconds of performance.now(). */
  nextCheck = 0;
  lastSeen = 0;
  healthySince = 0;
  lastCheckEnded = Number.NEGATIVE_INFINITY;
  checking: Promise<boolean> | undefined;

  models: ModelObject[] = [];
  /** Ids of models by all their names. */
  names = new Map<string, string>();
  listedAt = Number.NEGATIVE_INFINITY;
  /** Which pages to request: not those that it does not have. */
  pages = { health: true, stats: true };
  /** Number of slots that it reported. */
  reportedSlots: number | null = null;
  elsewhere = 0;
  requests = 0;
  lastPicked = 0;
  #firstToken: { ms: number; at: number } | null = null;

  /** Whether it is a tapline server on this machine, which accepts requests with interventions. */
  get opensModels(): boolean {
    const host = new URL(this.url).hostname.replace(/^\[|\]$/g, "");
    return (
      (host === "localhost" || isLoopback(host)) && this.models.some(({ owned_by }) => owned_by === "tapline")
    );
  }

  constructor(public config: BackendConfig) {
    const { origin, pathname } = new URL(config.url);
    this.url = config.url;
    this.prefix = pathname === "/" ? "" : pathname;
    const options = {
      connections: null,
      // Streams may take any time; health checks detect dead backends.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: keepAliveMs,
      connect: { timeout: connectMs },
    };
    this.pool = new Pool(origin, { ...options, pipelining: 1 });
    this.fresh = new Pool(origin, { ...options, pipelining: 0 });
  }

  get slots(): number {
    return this.config.slots ?? this.reportedSlots ?? usualSlots;
  }

  /** Requests per slot. */
  get load(): number {
    return (this.attempts.size + this.elsewhere) / this.slots;
  }

  /** Whether its models are known. */
  get listed(): boolean {
    return this.listedAt > 0;
  }

  setModels(models: ModelObject[], now: number): void {
    this.models = models;
    this.listedAt = now;
    this.names = new Map();
    for (const { id, aliases } of models) {
      // Ollama accepts names without the tag :latest; llama-server lists aliases.
      if (id.endsWith(":latest")) this.names.set(id.slice(0, -":latest".length), id);
      for (const alias of Array.isArray(aliases) ? aliases : []) {
        if (typeof alias === "string") this.names.set(alias, id);
      }
    }
    for (const { id } of models) this.names.set(id, id);
  }

  /** Its id for the requested model; null if it does not serve it. */
  idOf(model: string | null): string | null {
    if (model !== null) return this.names.get(model) ?? null;
    return this.config.model ?? this.models[0]?.id ?? null;
  }

  /** Records the time to first token of a stream. */
  measured(ms: number, now: number): void {
    const before = this.#firstToken;
    this.#firstToken = { ms: before === null ? ms : 0.7 * before.ms + 0.3 * ms, at: now };
  }

  /** Expected milliseconds to the first token; 0 without recent measurements. */
  firstTokenMs(now: number): number {
    if (this.#firstToken === null) return 0;
    return this.#firstToken.ms * 2 ** ((this.#firstToken.at - now) / halfLifeMs);
  }

  /** Its entry in `GET /stats`. */
  report(now: number): BackendStats {
    return {
      url: this.url,
      state: this.state,
      models: this.models.map(({ id }) => id),
      slots: this.slots,
      active: this.attempts.size,
      elsewhere: this.elsewhere,
      requests: this.requests,
      failures: this.timesAside,
      time_to_first_token_ms: this.#firstToken === null ? null : Math.round(this.#firstToken.ms * 100) / 100,
      next_check_seconds: this.state === "aside" ? Math.max(0, this.nextCheck - now) / 1000 : null,
      last_error: this.lastError,
    };
  }

  /** Lets running requests finish, then closes the connections. */
  retire(): void {
    this.retired = true;
    void this.pool.close();
    void this.fresh.close();
  }

  /** Closes the connections immediately. */
  async destroy(): Promise<void> {
    await Promise.all([this.pool.destroy(), this.fresh.destroy()]);
  }
}
