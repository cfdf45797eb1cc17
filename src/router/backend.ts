import { Pool } from "undici";
import type { BackendConfig, BackendStats } from "../contracts/router.js";
import { isLoopback } from "../http/index.js";

/** How many requests a server generates at once that does not tell: what most start with. */
const usualSlots = 4;
/** A measured time loses half its weight in so many milliseconds, so that a slow backend is tried again. */
const halfLifeMs = 30_000;
/** Shorter than any server's, so that the router ends an idle connection first. */
const keepAliveMs = 4000;
const connectMs = 3000;

/** A model as a backend lists it. */
export type ModelObject = { id: string } & Record<string, unknown>;

/** One server behind the router: its connections, what it serves, how it is, what it has to do. */
export class Backend {
  readonly url: string;
  /** What stands before /v1 in its paths. */
  readonly prefix: string;
  readonly pool: Pool;
  /** For requests that need a connection of their own. */
  readonly fresh: Pool;
  /** Requests that are there, each of which can be given up before its first byte, or in the middle, too. */
  readonly attempts = new Set<{ abandon(): void; giveUp(): void }>();
  config: BackendConfig;
  /** Set once it was taken out of the configuration: what runs there goes on. */
  retired = false;

  state: BackendStats["state"] = "starting";
  /** Counts its recoveries: who saw it fail before the last one has nothing to say about it now. */
  epoch = 0;
  /** Failures in a row; the first answer ends them. */
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
  /** What models are called, however they are asked for, and their ids. */
  names = new Map<string, string>();
  listedAt = Number.NEGATIVE_INFINITY;
  /** Which pages it is asked for: not again for what it does not have. */
  pages = { health: true, stats: true };
  /** Slots that it told of. */
  toldSlots: number | null = null;
  elsewhere = 0;
  requests = 0;
  lastPicked = 0;
  #firstToken: { ms: number; at: number } | null = null;

  /** Whether it is a tapline server on this machine, which may be asked to open its model. */
  get opensModels(): boolean {
    const host = new URL(this.url).hostname.replace(/^\[|\]$/g, "");
    return (
      (host === "localhost" || isLoopback(host)) && this.models.some(({ owned_by }) => owned_by === "tapline")
    );
  }

  constructor(config: BackendConfig) {
    const { origin, pathname } = new URL(config.url);
    this.config = config;
    this.url = config.url;
    this.prefix = pathname === "/" ? "" : pathname;
    const options = {
      connections: null,
      // What a stream may take is not the router's to say; whether the backend lives, its health tells.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: keepAliveMs,
      connect: { timeout: connectMs },
    };
    this.pool = new Pool(origin, { ...options, pipelining: 1 });
    this.fresh = new Pool(origin, { ...options, pipelining: 0 });
  }

  get slots(): number {
    return this.config.slots ?? this.toldSlots ?? usualSlots;
  }

  /** Requests there for each that it can generate at once. */
  get load(): number {
    return (this.attempts.size + this.elsewhere) / this.slots;
  }

  /** Whether it has told which models it serves. */
  get listed(): boolean {
    return this.listedAt > 0;
  }

  setModels(models: ModelObject[], now: number): void {
    this.models = models;
    this.listedAt = now;
    this.names = new Map();
    for (const { id, aliases } of models) {
      // Ollama takes a name without its tag for the latest one; llama-server lists other names.
      if (id.endsWith(":latest")) this.names.set(id.slice(0, -":latest".length), id);
      for (const alias of Array.isArray(aliases) ? aliases : []) {
        if (typeof alias === "string") this.names.set(alias, id);
      }
    }
    for (const { id } of models) this.names.set(id, id);
  }

  /** The id under which it serves what was asked for; null where it does not. */
  idOf(model: string | null): string | null {
    if (model !== null) return this.names.get(model) ?? null;
    return this.config.model ?? this.models[0]?.id ?? null;
  }

  /** Adds the time to the first token of one stream. */
  measured(ms: number, now: number): void {
    const before = this.#firstToken;
    this.#firstToken = { ms: before === null ? ms : 0.7 * before.ms + 0.3 * ms, at: now };
  }

  /** Expected milliseconds to the first token; zero where nothing recent is known. */
  firstTokenMs(now: number): number {
    if (this.#firstToken === null) return 0;
    return this.#firstToken.ms * 2 ** ((this.#firstToken.at - now) / halfLifeMs);
  }

  /** Its part of `GET /stats`. */
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

  /** Lets what runs finish, then ends the connections. */
  retire(): void {
    this.retired = true;
    void this.pool.close();
    void this.fresh.close();
  }

  /** Ends the connections, whatever they are doing. */
  async destroy(): Promise<void> {
    await Promise.all([this.pool.destroy(), this.fresh.destroy()]);
  }
}
