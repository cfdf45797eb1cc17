import { existsSync } from "node:fs";
import type { Providers } from "./auth/providers.js";
import type { PublicPage } from "./http/conditional.js";
import type { Log } from "./log.js";
import type { Metrics } from "./metrics.js";
import type { ActivityLog } from "./store/activity.js";
import { faultOf } from "./store/fault.js";
import type { Store } from "./store/store.js";
import type { VersionedCache } from "./store/versioned-cache.js";

/** State shared by the routes of one running service. */
export interface Service {
  store: Store;
  /** Public origin, without a trailing slash. Absolute URLs are built from it, never from a Host header. */
  origin: string;
  /** Proxies whose X-Forwarded-* headers are trusted; null if this process terminates TLS itself. */
  trustedProxies: readonly string[] | null;
  /** While this file exists, the API answers 503. */
  disableFile: string;
  activity: ActivityLog;
  /** Cached pages of the API's list, by generation. */
  lists: VersionedCache<Buffer>;
  /** Cached public pages of the website, by generation. */
  pages: VersionedCache<PublicPage>;
  providers: Providers;
  metrics: Metrics;
  /** Required for `/metrics`; null disables that page. */
  metricsToken: string | null;
  /** URL for reporting vulnerabilities; null if not configured. */
  securityContact: string | null;
  /** Receives log lines about faults. */
  log: Log;
}

export function isDisabled(service: Service): boolean {
  return existsSync(service.disableFile);
}

/**
 * Logs a fault in one line: its kind, stack and request. Never its message, which may quote parameters; only error codes
 * of the system or the database.
 */
export function logFault(
  service: Pick<Service, "log"> & { metrics?: Metrics },
  requestId: string,
  error: unknown,
): void {
  if (service.metrics !== undefined) service.metrics.faults += 1;
  const { name, code, message, stack } = (error ?? {}) as Partial<Error & { code: unknown }>;
  const known = faultOf(error);
  const fault = known?.text ?? String(code ?? "");
  // The stack begins with the message, whose lines may look like stack frames.
  const [, traced = ""] = (stack ?? "").split(`: ${message}\n`);
  const places = (message === "" ? (stack ?? "") : traced).split("\n").filter((line) => /^\s+at /.test(line));
  const where = places.slice(0, 6).map((line) => line.trim().slice(3));
  const what = `${name ?? typeof error} ${fault}`;
  // An unavailable database fails every request, so its faults are summarized; others get one line each.
  const kind = known?.ofDatabase ? fault : undefined;
  service.log(`request ${requestId} failed: ${what} at ${where.join(" < ")}`, kind);
}
