import { createStudiesApp } from "./app.js";
import type { Providers } from "./auth/providers.js";
import { serve } from "./http/serve.js";
import type { Service } from "./service.js";
import { ActivityLog } from "./store/activity.js";
import { Kept } from "./store/kept.js";
import { openStore, type StoreOptions } from "./store/store.js";
import { cleanUp } from "./store/upkeep.js";

export interface StudiesOptions {
  /** Public origin; https. With port 0, a `:0` in it becomes the port taken. */
  origin: string;
  host: string;
  port: number;
  /** Path of an SQLite file, or a `postgres://` URL. */
  database: string;
  tls: { cert: string; key: string } | null;
  trustedProxies: readonly string[] | null;
  disableFile: string;
  providers: (origin: string) => Promise<Providers> | Providers;
  store?: StoreOptions;
  log?: (line: string) => void;
}

export interface RunningStudies {
  readonly service: Service;
  readonly origin: string;
  readonly port: number;
  /** Idempotent. */
  close(): Promise<void>;
}

const hourMs = 3_600_000;

/** Starts the studies service. */
export async function startStudies(options: StudiesOptions): Promise<RunningStudies> {
  const store = await openStore(options.database, options.store);
  try {
    const service: Service = {
      store,
      origin: options.origin,
      trustedProxies: options.trustedProxies,
      disableFile: options.disableFile,
      activity: new ActivityLog(store),
      lists: new Kept(400),
      providers: [],
      log: options.log ?? ((line) => void process.stderr.write(`${line}\n`)),
    };
    await cleanUp(store);
    const serving = await serve(options, async (port) => {
      service.origin = options.origin.replace(/:0$/, `:${port}`);
      service.providers = await options.providers(service.origin);
      return createStudiesApp(service);
    });
    void store.wordSets.readAhead();
    const upkeep = setInterval(() => void cleanUp(store).catch(() => {}), hourMs).unref();
    let closed: Promise<void> | undefined;
    return {
      service,
      origin: service.origin,
      port: serving.port,
      close() {
        closed ??= (async () => {
          clearInterval(upkeep);
          await serving.close();
          await service.activity.flush().catch(() => {});
          await store.close();
        })();
        return closed;
      },
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}
