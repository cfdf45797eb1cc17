import type { Serving, ServingEvent, SupervisedOptions } from "../inference/process/supervisor.js";

export interface OwnServerOptions {
  host: string;
  /** 0 picks a free port. */
  port: number;
  signal: AbortSignal;
  onEvent: (event: ServingEvent) => void;
  /** Replaces the serving process in tests. */
  serve?: (options: SupervisedOptions) => Promise<Serving>;
}

/** A server started by this command, which can switch its model at the same address. */
export class OwnServer {
  readonly #options: OwnServerOptions;
  #model: string;
  #serving: Serving | undefined;
  #closed = false;
  #switching: Promise<void> = Promise.resolve();
  #giveUp: (error: unknown) => void = () => {};
  /** Rejects if the serving process keeps failing. */
  readonly ended = new Promise<void>((_, reject) => {
    this.#giveUp = reject;
  });
  readonly url: string;

  private constructor(options: OwnServerOptions, model: string, serving: Serving) {
    this.#options = { ...options, port: serving.port };
    this.#model = model;
    this.url = serving.url;
    this.ended.catch(() => {});
    this.#take(serving);
  }

  /** Resolves when the model is served. @throws UserError */
  static async start(model: string, options: OwnServerOptions): Promise<OwnServer> {
    return new OwnServer(options, model, await start(model, options, options.onEvent));
  }

  /**
   * Stops the server and starts one with another model at the same address. If that fails, starts the old model again.
   * @throws UserError with the reason why the new model is not served
   */
  serve(model: string, onProgress: (stage: string, fraction: number) => void): Promise<void> {
    const switched = this.#switching.then(() => this.#serve(model, onProgress));
    this.#switching = switched.catch(() => {});
    return switched;
  }

  async #serve(model: string, onProgress: (stage: string, fraction: number) => void): Promise<void> {
    await this.#serving?.close();
    this.#serving = undefined;
    const onEvent = (event: ServingEvent) => {
      if (event.event === "loading") onProgress(event.stage, event.fraction);
      else this.#options.onEvent(event);
    };
    const bring = async (named: string) => {
      this.#options.signal.throwIfAborted();
      const serving = await start(named, this.#options, onEvent);
      this.#take(serving);
      this.#model = named;
      if (this.#closed) await serving.close();
    };
    try {
      await bring(model);
    } catch (error) {
      if (!this.#closed) await bring(this.#model).catch(() => {});
      throw error;
    }
  }

  #take(serving: Serving): void {
    this.#serving = serving;
    serving.ended.catch((error: unknown) => {
      if (this.#serving === serving) this.#giveUp(error);
    });
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#serving?.close();
    await this.#switching;
  }
}

async function start(
  model: string,
  options: Omit<SupervisedOptions, "model" | "onEvent"> & Pick<OwnServerOptions, "serve">,
  onEvent: (event: ServingEvent) => void,
): Promise<Serving> {
  const { serve = (await import("../inference/process/supervisor.js")).serve, ...rest } = options;
  return serve({ ...rest, model, onEvent });
}

/** Starts a temporary server on a free local port. @throws UserError, the signal's reason */
export function serveHere(
  model: string,
  onStage: (stage: string) => void,
  more: Pick<SupervisedOptions, "signal" | "revision" | "home">,
): Promise<Serving> {
  const onEvent = (event: ServingEvent) => {
    if (event.event === "loading") onStage(`loading ${model}: ${Math.round(event.fraction * 100)} %`);
  };
  return start(model, { host: "127.0.0.1", port: 0, ...more }, onEvent);
}
