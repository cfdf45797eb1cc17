import { Lab, ServingModel, TaplineError } from "../client/index.js";
import { Transport } from "../client/transport.js";
import type { JobSummary } from "../contracts/index.js";
import type { Events } from "./events.js";
import type { LabStatus, ServerStatus, TextTokens } from "./wire.js";

/** Polling interval of the services while a page is open, in milliseconds. */
const lookMs = 1000;

export interface ServiceAddresses {
  server: string;
  lab: string;
  /** The served model for the Lab, if the caller started the server. */
  model?: string;
}

/** The last known state of the server and the Lab. While a page is open, it polls both and publishes changes. */
export class Services {
  readonly lab: Lab;
  readonly model: ServingModel;
  /** The same services, for endpoints without a client method. */
  readonly http: Transport;
  readonly labHttp: Transport;
  #addresses: ServiceAddresses;
  readonly #events: Events;
  #server: ServerStatus;
  #labStatus: LabStatus;
  #jobs: JobSummary[] = [];
  #looking: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;
  /** Called with the Lab's jobs when they change. */
  onJobs: (jobs: readonly JobSummary[]) => void = () => {};

  constructor(addresses: ServiceAddresses, events: Events) {
    this.#addresses = addresses;
    this.#events = events;
    this.lab = new Lab(addresses.lab);
    this.model = new ServingModel(addresses.server);
    this.http = new Transport(addresses.server, 75_000, { service: "serve" });
    this.labHttp = new Transport(addresses.lab, 60_000, { service: "lab" });
    const unknown = { ok: false, sentence: "Not checked yet." };
    this.#server = { url: addresses.server, ...unknown, ...nothingKnown };
    this.#labStatus = { url: addresses.lab, ...unknown, active: null, queued: 0 };
    events.onReaders = () => this.#schedule(0);
  }

  get server(): ServerStatus {
    return this.#server;
  }

  get labStatus(): LabStatus {
    return this.#labStatus;
  }

  get jobs(): JobSummary[] {
    return this.#jobs;
  }

  /** The model that the caller started the server with, if it did. */
  get served(): string | undefined {
    return this.#addresses.model;
  }

  set served(model: string | undefined) {
    const { model: _, ...rest } = this.#addresses;
    this.#addresses = { ...rest, ...(model !== undefined && { model }) };
  }

  /** The file that the server has loaded; null if it does not report one. @throws TaplineError */
  async modelPath(): Promise<string | null> {
    const { model_path: path } = await this.http.json<{ model_path?: unknown }>("/props");
    return typeof path === "string" ? path : null;
  }

  /**
   * The tokens of a text. A raw text gets the model's BOS token, and its control tokens are not parsed; a part of an answer
   * gets no BOS token.
   * @throws TaplineError
   */
  async tokens(text: string, raw = true): Promise<TextTokens> {
    const special = { add_special: raw, ...(raw && { parse_special: false }) };
    const body = { content: text, ...special, with_pieces: true };
    type Answer = { tokens: { id: number; piece: string | number[] }[] };
    const { tokens } = await this.http.json<Answer>("/tokenize", { method: "POST", body });
    return tokens.map(({ id, piece }) => ({
      id,
      // Incomplete UTF-8 arrives as bytes.
      text: typeof piece === "string" ? piece : Buffer.from(piece).toString("utf8"),
    }));
  }

  /** Checks both services now, or waits for the check in progress. */
  look(): Promise<void> {
    this.#looking ??= this.#lookAtBoth().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#closed || this.#events.readers === 0) return;
    this.#timer = setTimeout(() => {
      void this.look().finally(() => this.#schedule(lookMs));
    }, ms);
    this.#timer.unref();
  }

  async #lookAtBoth(): Promise<void> {
    await Promise.all([this.#lookAtServer(), this.#lookAtLab()]);
  }

  async #lookAtServer(): Promise<void> {
    const { server: url, model } = this.#addresses;
    let next: ServerStatus;
    try {
      const found = await this.model.capabilities();
      const known = this.#server.ok && this.#server.model === found.model ? this.#server.path : null;
      const path = model ?? known ?? (await this.modelPath());
      const ok = found.model !== null;
      next = {
        url,
        ok,
        sentence: ok ? "ready" : "no model loaded",
        path,
        ...{ model: found.model, n_layer: found.n_layer, n_embd: found.n_embd },
        ...{ architecture: found.architecture, backend: found.backend, points: found.points ?? [] },
        chat_template: found.chat_template ?? true,
        ...(found.fingerprint !== undefined && { fingerprint: found.fingerprint }),
      };
    } catch (error) {
      next = { url, ok: false, sentence: sentenceOf(error), ...nothingKnown };
    }
    if (same(next, this.#server)) return;
    this.#server = next;
    this.#events.publish({ type: "server", server: next });
  }

  async #lookAtLab(): Promise<void> {
    const { lab: url } = this.#addresses;
    let next: LabStatus;
    let jobs = this.#jobs;
    try {
      const [health, list] = await Promise.all([this.lab.health(), this.lab.jobs()]);
      jobs = list;
      next = { url, ok: true, sentence: "ready", active: health.active_job, queued: health.queued };
    } catch (error) {
      next = { url, ok: false, sentence: sentenceOf(error), active: null, queued: 0 };
    }
    if (!same(next, this.#labStatus)) {
      this.#labStatus = next;
      this.#events.publish({ type: "lab", lab: next });
    }
    if (!same(jobs, this.#jobs)) {
      this.#jobs = jobs;
      this.#events.publish({ type: "jobs", jobs });
      this.onJobs(jobs);
    }
  }
}

const nothingKnown = {
  ...{ model: null, path: null, n_layer: null, n_embd: null, architecture: null, backend: null },
  chat_template: true,
  points: [],
};

function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

export function sentenceOf(error: unknown): string {
  if (error instanceof TaplineError || (error instanceof Error && error.name === "TimeoutError")) {
    return error.message;
  }
  return "The service failed; see its log.";
}
