import { ask, Silence } from "./ask.js";
import type { Backend, ModelObject } from "./backend.js";

/** When a backend is asked how it is, and for how long it is left alone. In milliseconds. */
export interface HealthTiming {
  /** Between two checks of a backend that nothing is heard from, and that has nothing to do. */
  idle: number;
  /** A backend with requests is asked when it was silent for so long. */
  silent: number;
  /** A check without an answer for so long means that the backend is frozen. */
  answer: number;
  /** The second check of a failing backend comes after so long; each further one after twice as long. */
  firstBackOff: number;
  longestBackOff: number;
  /** A check that a waiting request asks for comes at the earliest so long after the last. */
  urgent: number;
  /** A stream is given up when its backend is set aside and was silent for so long. */
  lost: number;
  /** Between two looks at what a backend serves and how much others give it to do. */
  news: number;
  /** A backend that was healthy for so long starts its back-off anew. */
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
 * Knows which backends can be given work. What requests show counts at once; whether a backend lives is asked at
 * /health (at /v1/models where there is no /health), more often while requests wait there in silence. One that
 * fails is set aside and asked again with exponential back-off, or as soon as a request has nobody else.
 */
export class Health {
  readonly #timing: HealthTiming;
  readonly #tell: (event: HealthEvent) => void;
  readonly #tick: NodeJS.Timeout;
  readonly #ended = new AbortController();
  #backends: readonly Backend[] = [];

  constructor(timing: HealthTiming, tell: (event: HealthEvent) => void) {
    this.#timing = timing;
    this.#tell = tell;
    this.#tick = setInterval(() => this.#look(), tickMs);
    this.#tick.unref();
  }

  /** From now on these are looked after; resolves when each was asked once. */
  async watch(backends: readonly Backend[]): Promise<void> {
    this.#backends = backends;
    await Promise.all(backends.filter(({ state }) => state === "starting").map((one) => this.check(one)));
  }

  close(): void {
    clearInterval(this.#tick);
    this.#ended.abort();
  }

  /** A request failed at a backend, before or within its answer. `epoch` is that of the backend when it began. */
  failed(backend: Backend, epoch: number, sentence: string): void {
    if (backend.epoch !== epoch || backend.state !== "healthy") return;
    this.#setAside(backend, sentence);
  }

  /** A backend answered a request. */
  answered(backend: Backend): void {
    backend.failures = 0;
  }

  /** Seconds until the next of them is asked again: what a client is told to wait. */
  retryAfterSeconds(): number {
    const now = performance.now();
    const next = Math.min(...this.#backends.map(({ nextCheck }) => nextCheck));
    return Math.min(30, Math.max(1, Math.ceil((next - now) / 1000)));
  }

  /** Asks those that might serve a request for which there is nobody; whether one of them can take it now. */
  async hope(might: (backend: Backend) => boolean): Promise<boolean> {
    const hopeful = this.#backends.filter((backend) => backend.state !== "healthy" && might(backend));
    let open = hopeful.length;
    if (open === 0) return false;
    return new Promise((resolve) => {
      let settled = false;
      const settle = (healthy: boolean) => {
        settled = true;
        resolve(healthy);
      };
      // While a frozen one keeps everybody waiting, another may come back: those that said no are asked again.
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
    // The check that is under way may have begun before the backend came back: one failure is not the last word.
    if (backend.checking !== undefined && (await backend.checking)) return true;
    const wait = backend.lastCheckEnded + this.#timing.urgent - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    return backend.state === "healthy" || this.check(backend);
  }

  /** Reads again what the healthy ones serve, where that is older than a second. */
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

  /** Asks a backend how it is. Whoever asks meanwhile shares the answer. */
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
      if (backend.state === "aside" && now - backend.lastSeen > this.#timing.lost) {
        for (const attempt of backend.attempts) attempt.giveUp();
      }
      if (backend.checking !== undefined) continue;
      const quiet = now - backend.lastSeen;
      const due =
        backend.state !== "healthy"
          ? now >= backend.nextCheck
          : quiet > (backend.attempts.size > 0 ? this.#timing.silent : this.#timing.idle) ||
            now - backend.listedAt > this.#timing.news;
      if (due) void this.check(backend);
    }
  }

  async #check(backend: Backend): Promise<boolean> {
    const began = performance.now();
    try {
      await this.#askHealth(backend);
      const now = performance.now();
      if (backend.state !== "healthy" || now - backend.listedAt > this.#timing.news) {
        await this.#readNews(backend);
      }
    } catch (error) {
      if (this.#ended.signal.aborted || backend.retired) return false;
      // On a busy machine a check may starve while the backend's streams show that it lives.
      if (error instanceof Silence && backend.state === "healthy" && backend.lastSeen > began) return true;
      this.#checkFailed(backend, sentenceOf(error));
      return false;
    }
    if (this.#ended.signal.aborted || backend.retired) return false;
    const now = performance.now();
    backend.lastSeen = now;
    if (backend.state === "healthy") {
      if (now - backend.healthySince > this.#timing.settled) backend.failures = 0;
    } else {
      backend.state = "healthy";
      backend.healthySince = now;
      backend.epoch++;
      this.#tell({ event: "healthy", url: backend.url, models: backend.models.map(({ id }) => id) });
    }
    return true;
  }

  /** A failing check, unlike a failing request, says that whatever waits there waits in vain. */
  #checkFailed(backend: Backend, sentence: string): void {
    this.#setAside(backend, sentence);
    for (const attempt of backend.attempts) attempt.abandon();
  }

  #setAside(backend: Backend, sentence: string): void {
    const { firstBackOff, longestBackOff } = this.#timing;
    const known = backend.state === "aside";
    // Asked before its time, for a request that had nobody else: that does not lengthen its back-off.
    if (known && performance.now() < backend.nextCheck) return;
    backend.failures++;
    // Whoever comes back at this address may be another program.
    backend.pages = { health: true, stats: true };
    backend.state = "aside";
    backend.lastError = sentence;
    // The first failure may be a connection that ended by itself: ask at once.
    const wait =
      backend.failures === 1 ? 0 : Math.min(longestBackOff, firstBackOff * 2 ** (backend.failures - 2));
    backend.nextCheck = performance.now() + wait;
    if (known) return;
    backend.timesAside++;
    this.#tell({ event: "aside", url: backend.url, sentence });
    // A check that is under way asked before this failure; the next tick asks again.
    if (wait === 0 && backend.checking === undefined) void this.check(backend);
  }

  async #askHealth(backend: Backend): Promise<void> {
    if (!backend.pages.health) return this.#readModels(backend);
    const { status, body } = await this.#ask(backend, "/health");
    if (status >= 500 || status === 429) throw new Error(`/health answers ${status}`);
    if (status === 200 && (body as { error?: unknown } | undefined)?.error === undefined) return;
    // Some servers have no such page, or not for us, and log each time that somebody asks for it.
    await this.#readModels(backend);
    backend.pages.health = false;
  }

  async #readNews(backend: Backend): Promise<void> {
    if (backend.pages.health) await this.#readModels(backend);
    const before = backend.attempts.size;
    // What it has to do, a busy engine may tell late or never: that is no sign of bad health.
    const capacity = await this.#askCapacity(backend).catch(() => null);
    backend.toldSlots = capacity?.slots ?? backend.toldSlots;
    const own = Math.max(before, backend.attempts.size);
    backend.elsewhere = Math.max(0, (capacity?.active ?? 0) - own);
  }

  async #readModels(backend: Backend): Promise<void> {
    const { status, body } = await this.#ask(backend, "/v1/models");
    const data = (body as { data?: unknown } | undefined)?.data ?? [];
    if (status === 401) throw new Error("it asks for an API key");
    if (status !== 200 || !Array.isArray(data)) throw new Error(`/v1/models answers ${status}`);
    const models = data.filter(
      (model): model is ModelObject => typeof (model as { id?: unknown } | null)?.id === "string",
    );
    backend.setModels(models, performance.now());
  }

  /** How many requests it can generate at once, and has: tapline and its router tell, llama-server the first. */
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

  /** What a backend says of itself at this path, for a client whose request has come by these routers. */
  told(backend: Backend, path: string, route: string) {
    return ask(backend.url + path, backend.config.api_key, this.#timing.answer, this.#ended.signal, route);
  }

  #ask(backend: Backend, path: string, timeoutMs = this.#timing.answer) {
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
      return "nobody listens there";
    case "ECONNRESET":
      return "it ended the connection";
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return "its name leads nowhere";
    default:
      return message;
  }
}
