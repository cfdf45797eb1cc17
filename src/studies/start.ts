import { createStudiesApp } from "./app.js";
import type { Providers } from "./auth/providers.js";
import { serve, type Tls } from "./http/serve.js";
import { summarizing, toStandardError } from "./log.js";
import { Metrics } from "./metrics.js";
import type { Service } from "./service.js";
import { ActivityLog } from "./store/activity.js";
import { faultOf } from "./store/fault.js";
import { openStore, type StoreOptions } from "./store/open.js";
import { cleanUp } from "./store/upkeep.js";
import { VersionedCache } from "./store/versioned-cache.js";

export interface StudiesOptions {
  /** Public https origin. With port 0, a `:0` in it is replaced by the actual port. */
  origin: string;
  host: string;
  port: number;
  /** Path of an SQLite file, or a `postgres://` URL. */
  database: string;
  tls: Tls | null;
  /** Reads certificate and key again, to pick up renewals while the service runs. */
  renewedTls?: () => Tls;
  trustedProxies: readonly string[] | null;
  disableFile: string;
  /** Token required for `/metrics`; without it that page does not exist. */
  metricsToken?: string | null;
  /** URL for reporting vulnerabilities. */
  securityContact?: string | null;
  providers: (origin: string) => Promise<Providers> | Providers;
  store?: StoreOptions;
  /** Receives the log line by line; default: standard error, with timestamps. */
  log?: (line: string) => void;
}

export interface RunningStudies {
  readonly service: Service;
  readonly origin: string;
  readonly port: number;
  /** Reloads certificate and key if their files have changed; also runs every minute. */
  renewTls(): void;
  /** Idempotent. */
  close(): Promise<void>;
}

const minuteMs = 60_000;
const hourMs = 3_600_000;

/** Switches to a changed certificate and key if they are usable; otherwise the old ones stay in use. */
function renewal(
  { tls, renewedTls }: StudiesOptions,
  renew: (tls: Tls) => void,
  log: (line: string) => void,
): () => void {
  let last = JSON.stringify(tls === null ? null : [tls.cert, tls.key]);
  return () => {
    if (renewedTls === undefined) return;
    try {
      const renewed = renewedTls();
      const now = JSON.stringify([renewed.cert, renewed.key]);
      if (now === last) return;
      last = now;
      renew(renewed);
      log("reloaded the TLS certificate");
    } catch (error) {
      // Certificate and key are replaced one after the other; the next check sees both.
      log(`the TLS certificate is unusable: ${(error as { code?: string }).code ?? "unreadable"}`);
    }
  };
}

/** Starts the studies service. */
export async function startStudies(options: StudiesOptions): Promise<RunningStudies> {
  const { log, summarize } = summarizing(options.log ?? toStandardError);
  const store = await openStore(options.database, options.store);
  try {
    const service: Service = {
      store,
      origin: options.origin,
      trustedProxies: options.trustedProxies,
      disableFile: options.disableFile,
      activity: new ActivityLog(store),
      lists: new VersionedCache(400),
      pages: new VersionedCache(100),
      providers: [],
      metrics: new Metrics(),
      metricsToken: options.metricsToken ?? null,
      securityContact: options.securityContact ?? null,
      log,
    };
    await cleanUp(store);
    const serving = await serve(options, async (port) => {
      service.origin = options.origin.replace(/:0$/, `:${port}`);
      service.providers = await options.providers(service.origin);
      return createStudiesApp(service);
    });
    void store.wordSets.readAhead();
    const renewTls = renewal(options, serving.renew, service.log);
    const minutely = setInterval(() => {
      renewTls();
      summarize();
    }, minuteMs).unref();
    const upkeep = setInterval(() => {
      cleanUp(store).catch((error) => log(`upkeep failed: ${faultOf(error)?.text ?? error.name}`));
    }, hourMs).unref();
    let closed: Promise<void> | undefined;
    return {
      service,
      origin: service.origin,
      port: serving.port,
      renewTls,
      close() {
        closed ??= (async () => {
          clearInterval(upkeep);
          clearInterval(minutely);
          await serving.close();
          await service.activity.flush().catch(() => {});
          await store.close();
          summarize();
        })();
        return closed;
      },
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}
