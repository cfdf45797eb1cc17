import type { BackendConfig } from "../contracts/router.js";
import { listen } from "../http/index.js";
import { routerApp } from "./app.js";
import { frontHandler } from "./front.js";
import { type RouterOptions, RouterService } from "./service.js";

export { readConfig } from "./config.js";
export type { HealthEvent, HealthTiming } from "./health.js";
export type { RouterOptions } from "./service.js";

export interface StartOptions extends RouterOptions {
  /** Address to bind; loopback unless told otherwise. */
  host?: string;
  /** 0 takes any free port. */
  port: number;
  /** How long running answers may go on when the router ends, in milliseconds. */
  graceMs?: number;
  /** Receives one line for each fault of the router itself. */
  log?: (line: string) => void;
}

export interface Router {
  readonly url: string;
  readonly port: number;
  readonly service: RouterService;
  /** Puts other backends in place of the present ones; what runs goes on. */
  configure(backends: readonly BackendConfig[]): Promise<void>;
  /** Lets running answers finish for a moment, then ends everything. Idempotent. */
  close(): Promise<void>;
}

/** Idle connections of clients stay open for longer than most clients keep them. */
const keepAliveMs = 75_000;

/** Starts a router. It listens at once; the first request waits for the backends' first answers. */
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
