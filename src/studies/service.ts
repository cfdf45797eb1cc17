import { existsSync } from "node:fs";
import type { Providers } from "./auth/providers.js";
import type { PublicPage } from "./http/conditional.js";
import type { Log } from "./log.js";
import type { Metrics } from "./metrics.js";
import type { ActivityLog } from "./store/activity.js";
import { faultOf } from "./store/fault.js";
import type { Kept } from "./store/kept.js";
import type { Store } from "./store/store.js";

/** What the routes of one running service share. */
export interface Service {
  store: Store;
  /** Public origin, without a trailing slash. Every absolute address comes from here, none from a Host header. */
  origin: string;
  /** Peers that may say that a request came by HTTPS; null where this process holds the TLS end itself. */
  trustedProxies: readonly string[] | null;
  /** A file whose existence makes the API answer 503. */
  disableFile: string;
  activity: ActivityLog;
  /** Pages of the API's list, by the number of the public state. */
  lists: Kept<Buffer>;
  /** The website's pages as everybody gets them, the same way. */
  pages: Kept<PublicPage>;
  providers: Providers;
  metrics: Metrics;
  /** Opens `/metrics`; null where nobody may read it. */
  metricsToken: string | null;
  /** Where to report a vulnerability, as a URL; null where no address was given. */
  securityContact: string | null;
  /** Receives lines about faults. */
  log: Log;
}

export function isDisabled(service: Service): boolean {
  return existsSync(service.disableFile);
}

/**
 * A fault in one line: its kind and place, and the request it belongs to. Never its message, which may quote
 * parameters, except where it is a system's or database's code.
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
  // The stack begins with the message, whose own lines may look like places.
  const [, traced = ""] = (stack ?? "").split(`: ${message}\n`);
  const places = (message === "" ? (stack ?? "") : traced).split("\n").filter((line) => /^\s+at /.test(line));
  const where = places.slice(0, 6).map((line) => line.trim().slice(3));
  const what = `${name ?? typeof error} ${fault}`;
  // A database that is gone fails every statement of every request; other faults are a line each, with the request's id.
  const kind = known?.ofDatabase ? fault : undefined;
  service.log(`request ${requestId} failed: ${what} at ${where.join(" < ")}`, kind);
}
