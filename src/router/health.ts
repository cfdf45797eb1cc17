import { ask, Silence } from "./ask.js";
import type { Backend, ModelObject } from "./backend.js";

/** Intervals of health checks, in milliseconds. */
export interface HealthTiming {
  /** Between checks of a silent backend without requests. */
  idle: number;
  /** Silence after which a backend with requests is checked. */
  silent: number;
  /** Timeout of a check; the backend then counts as frozen. */
  answer: number;
  /** Delay of the second check of a failing backend; doubles with each further check. */
  firstBackOff: number;
  longestBackOff: number;
  /** Shortest time between checks for a waiting request. */
  urgent: number;
  /** Silence after which streams of a failed backend are abandoned. */
  lost: number;
  /** Between updates of a backend's models and its load from other clients. */
  news: number;
  /** Time of good health after which the back-off is reset. */
  settled: number;
}

export const usualTiming: HealthTiming = {
  idle: 5000,
  silent: 1000,
  answer: 3000,
  firstBackOff: 250,
  longestBackOff: 30_000,
  urgent: 100,
  lost: 30_000,
  news: 5000,
  settled: 10_000,
};

export type HealthEvent =
  | { event: "healthy"; url: string; models: string[] }
  | { event: "aside"; url: string; sentence: string };

const tickMs = 100;
const capacityMs = 1000;

/**
 * Tracks which backends can take requests. Failing requests count immediately; in addition, /health (or /v1/models if
 * there is no /health) is polled, more often while requests wait in silence. A failing backend is set aside and checked
 * again with exponential back-off, or when a request has no other backend.
 */
export class Health {
  readonly #tick: NodeJS.Timeout;
  readonly #ended = new AbortController();
  #backends: readonly Backend[] = [];

  constructor(
    private readonly timing: HealthTiming,
    private readonly notify: (event: HealthEvent) => void,
  ) {
    this.#tick = setInterval(() => this.#look(), tickMs);
    this.#tick.unref();
  }

  /** Starts monitoring backends; resolves when each new one was checked once. */
  async watch(backends: readonly Backend[]): Promise<void> {
    this.#backends = backends;
    await Promise.all(backends.filter(({ state }) => state === "starting").map((one) => this.check(one)));
  }

  close(): void {
    clearInterval(this.#tick);
    this.#ended.abort();
  }

  /** A request to a backend failed. `epoch` is the backend's epoch when the request began. */
  failed(backend: Backend, epoch: number, sentence: string): void {
    if (backend.epoch !== epoch || backend.state !== "healthy") return;
    this.#setAside(backend, sentence);
  }

  /** A backend answered a request. */
  answered(backend: Backend): void {
    backend.failures = 0;
  }

  /** Seconds until the next check, for Retry-After. */
  retryAfterSeconds(): number {
    const now = performance.now();
    const next = Math.min(...this.#backends.map(({ nextCheck }) => nextCheck));
    return Math.min(30, Math.max(1, Math.ceil((next - now) / 1000)));
  }

  /** Checks unhealthy backends for a request that no healthy one can take. Returns whether one is healthy now. */
  async checkForRequest(might: (backend: Backend) => boolean): Promise<boolean> {
    const hopeful = this.#backends.filter((backend) => backend.state !== "healthy" && might(backend));
    let open = hopeful.length;
    if (open === 0) return false;
    return new Promise((resolve) => {
      let settled = false;
      const settle = (healthy: boolean) => {
        settled = true;
        resolve(healthy);
      };
      // Keep checking failed backends while a frozen one delays the result, since one may recover meanwhile.
      const askOn = async (backend: Backend) => {
        for (let round = 0; !settled; round++) {
          if (await this.#askUrgently(backend)) settle(true);
          else if (round === 0 && --open === 0) settle(false);
        }
      };
      for (const backend of hopeful) void askOn(backend);
    });
  }

  async #askUrgently(backend: Backend): Promise<boolean> {
    // A check in progress may have begun before the backend recovered, so one failure is not conclusive.
    if (backend.checking !== undefined && (await backend.checking)) return true;
    const wait = backend.lastCheckEnded + this.timing.urgent - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    return backend.state === "healthy" || this.check(backend);
  }

  /** Refreshes model lists of healthy backends that are older than a second. */
  async refresh(): Promise<void> {
    const old = performance.now() - 1000;
    const due = this.#backends.filter(({ state, listedAt }) => state === "healthy" && listedAt < old);
    await Promise.all(
      due.map((backend) => {
        backend.listedAt = Number.NEGATIVE_INFINITY;
        return this.check(backend);
      }),
    );
  }

  /** Checks a backend; concurrent calls share the result. */
  check(backend: Backend): Promise<boolean> {
    backend.checking ??= this.#check(backend).finally(() => {
      backend.checking = undefined;
      backend.lastCheckEnded = performance.now();
    });
    return backend.checking;
  }

  #look(): void {
    const now = performance.now();
    for (const backend of this.#backends) {
      if (backend.state === "aside" && now - backend.lastSeen > this.timing.lost) {
        for (const attempt of backend.attempts) attempt.giveUp();
      }
      if (backend.checking !== undefined) continue;
      const quiet = now - backend.lastSeen;
      const due =
        backend.state !== "healthy"
          ? now >= backend.nextCheck
          : quiet > (backend.attempts.size > 0 ? this.timing.silent : this.timing.idle) ||
            now - backend.listedAt > this.timing.news;
      if (due) void this.check(backend);
    }
  }

  async #check(backend: Backend): Promise<boolean> {
    const began = performance.now();
    try {
      await this.#askHealth(backend);
      const now = performance.now();
      if (backend.state !== "healthy" || now - backend.listedAt > this.timing.news) {
        await this.#readNews(backend);
      }
    } catch (error) {
      if (this.#ended.signal.aborted || backend.retired) return false;
      // On a busy machine a check may time out although streams show that the backend is alive.
      if (error instanceof Silence && backend.state === "healthy" && backend.lastSeen > began) return true;
      this.#checkFailed(backend, sentenceOf(error));
      return false;
    }
    if (this.#ended.signal.aborted || backend.retired) return false;
    const now = performance.now();
    backend.lastSeen = now;
    if (backend.state === "healthy") {
      if (now - backend.healthySince > this.timing.settled) backend.failures = 0;
    } else {
      backend.state = "healthy";
      backend.healthySince = now;
      backend.epoch++;
      this.notify({ event: "healthy", url: backend.url, models: backend.models.map(({ id }) => id) });
    }
    return true;
  }

  /** After a failed check, unlike a failed request, all waiting requests are abandoned. */
  #checkFailed(backend: Backend, sentence: string): void {
    this.#setAside(backend, sentence);
    for (const attempt of backend.attempts) attempt.abandon();
  }

  #setAside(backend: Backend, sentence: string): void {
    const { firstBackOff, longestBackOff } = this.timing;
    const known = backend.state === "aside";
    // An early check, for a waiting request, does not lengthen the back-off.
    if (known && performance.now() < backend.nextCheck) return;
    backend.failures++;
    // Another program may come back at this address.
    backend.pages = { health: true, stats: true };
    backend.state = "aside";
    backend.lastError = sentence;
    // The first failure may be just a closed connection, so check immediately.
    const wait =
      backend.failures === 1 ? 0 : Math.min(longestBackOff, firstBackOff * 2 ** (backend.failures - 2));
    backend.nextCheck = performance.now() + wait;
    if (known) return;
    backend.timesAside++;
    this.notify({ event: "aside", url: backend.url, sentence });
    // A check in progress began before this failure; the next tick checks again.
    if (wait === 0 && backend.checking === undefined) void this.check(backend);
  }

  async #askHealth(backend: Backend): Promise<void> {
    if (!backend.pages.health) return this.#readModels(backend);
    const { status, body } = await this.#ask(backend, "/health");
    if (status >= 500 || status === 429) throw new Error(`/health answered ${status}`);
    if (status === 200 && (body as { error?: unknown } | undefined)?.error === undefined) return;
    // Some servers lack this page, or deny it, and log each request for it.
    await this.#readModels(backend);
    backend.pages.health = false;
  }

  async #readNews(backend: Backend): Promise<void> {
    if (backend.pages.health) await this.#readModels(backend);
    const before = backend.attempts.size;
    // A busy engine may report its load late or never; that does not mean bad health.
    const capacity = await this.#askCapacity(backend).catch(() => null);
    backend.reportedSlots = capacity?.slots ?? backend.reportedSlots;
    const own = Math.max(before, backend.attempts.size);
    backend.elsewhere = Math.max(0, (capacity?.active ?? 0) - own);
  }

  async #readModels(backend: Backend): Promise<void> {
    const { status, body } = await this.#ask(backend, "/v1/models");
    const data = (body as { data?: unknown } | undefined)?.data ?? [];
    if (status === 401) throw new Error("it requires an API key");
    if (status !== 200 || !Array.isArray(data)) throw new Error(`/v1/models answered ${status}`);
    const models = data.filter(
      (model): model is ModelObject => typeof (model as { id?: unknown } | null)?.id === "string",
    );
    backend.setModels(models, performance.now());
  }

  /** Number of slots and active requests. tapline reports both, llama-server only the slots. */
  async #askCapacity(backend: Backend): Promise<{ slots?: number; active?: number } | null> {
    if (!backend.pages.stats) return null;
    const stats = (await this.#ask(backend, "/stats", capacityMs)).body as CapacityAnswer | undefined;
    if (typeof stats?.requests?.active === "number") {
      const slots = stats.slots?.total ?? stats.backends?.reduce((sum, one) => sum + (one.slots ?? 0), 0);
      return { active: stats.requests.active, ...(slots ? { slots } : {}) };
    }
    backend.pages.stats = false;
    const props = (await this.#ask(backend, "/props", capacityMs)).body as CapacityAnswer | undefined;
    return typeof props?.total_slots === "number" && props.total_slots > 0
      ? { slots: props.total_slots }
      : null;
  }

  /** A backend's status page, requested for a client through the routers in `route`. */
  statusPage(backend: Backend, path: string, route: string) {
    return ask(backend.url + path, backend.config.api_key, this.timing.answer, this.#ended.signal, route);
  }

  #ask(backend: Backend, path: string, timeoutMs = this.timing.answer) {
    return ask(backend.url + path, backend.config.api_key, timeoutMs, this.#ended.signal);
  }
}

interface CapacityAnswer {
  requests?: { active?: number };
  slots?: { total?: number };
  backends?: { slots?: number }[];
  total_slots?: number;
}

function sentenceOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
    case "ECONNREFUSED":
      return "nothing listens at this address";
    case "ECONNRESET":
      return "the connection was closed";
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return "the host name does not resolve";
    default:
      return message;
  }
}
