import type { BackendConfig } from "../contracts/router.js";
import { listen } from "../http/index.js";
import { routerApp } from "./app.js";
import { frontHandler } from "./front.js";
import { type RouterOptions, RouterService } from "./service.js";

export { readConfig } from "./config.js";
export type { HealthEvent, HealthTiming } from "./health.js";
export type { RouterOptions } from "./service.js";

export interface StartOptions extends RouterOptions {
  /** Address to bind; default: loopback. */
  host?: string;
  /** 0 chooses a free port. */
  port: number;
  /** How long running answers may continue on shutdown, in milliseconds. */
  graceMs?: number;
  /** Receives one line per internal error. */
  log?: (line: string) => void;
}

export interface Router {
  readonly url: string;
  readonly port: number;
  readonly service: RouterService;
  /** Replaces the backends; running requests continue. */
  configure(backends: readonly BackendConfig[]): Promise<void>;
  /** Waits briefly for running answers, then closes everything. Idempotent. */
  close(): Promise<void>;
}

/** Longer than most clients keep idle connections. */
const keepAliveMs = 75_000;

/** Starts a router. It listens immediately; the first request waits for the first health checks. */
export async function startRouter(options: StartOptions): Promise<Router> {
  const service = new RouterService(options);
  const log = options.log ?? ((line: string) => void process.stderr.write(`${line}\n`));
  const handler = frontHandler(service, routerApp(service, log).callback(), log);
  const listening = await listen({ callback: () => handler }, options).catch(async (error) => {
    await service.close();
    throw error;
  });
  listening.server.keepAliveTimeout = keepAliveMs;
  try {
    await service.configure(options.backends);
  } catch (error) {
    await listening.close();
    await service.close();
    throw error;
  }
  let closed: Promise<void> | undefined;
  return {
    url: listening.url,
    port: listening.port,
    service,
    configure: (backends) => service.configure(backends),
    close() {
      closed ??= listening.close().then(() => service.close());
      return closed;
    },
  };
}
