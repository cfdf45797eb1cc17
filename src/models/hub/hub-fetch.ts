import { version } from "../../contracts/version.js";
import { answerFault, connectionFault, RangeIgnored, type Subject } from "./fault.js";
import type { HubSettings } from "./settings.js";

/**
 * A fetch for the hub's library: sends the token only to the hub, and turns error responses into HubFaults while their
 * headers are available.
 */
export function hubFetch(settings: HubSettings, subject: Subject, signal?: AbortSignal): typeof fetch {
  const { origin } = new URL(settings.endpoint);
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const headers = new Headers(init?.headers);
    headers.set("User-Agent", `tapline/${version}`);
    // A redirect to another origin drops the header.
    if (settings.token !== undefined && url.origin === origin) {
      headers.set("Authorization", `Bearer ${settings.token}`);
    }
    // Compression would prevent counting the file's bytes.
    headers.set("Accept-Encoding", "identity");
    const range = headers.get("range");
    let response: Response;
    const patience = new AbortController();
    const timer = setTimeout(
      () => patience.abort(new DOMException("No answer.", "TimeoutError")),
      settings.idleMs,
    );
    try {
      const either = AbortSignal.any([patience.signal, ...(signal === undefined ? [] : [signal])]);
      response = await fetch(url, { ...init, headers, signal: either });
    } catch (error) {
      signal?.throwIfAborted();
      throw connectionFault(settings, subject, error);
    } finally {
      clearTimeout(timer);
    }
    if (!response.ok) {
      await response.body?.cancel().catch(() => {});
      if (response.status === 416) throw new RangeIgnored();
      throw answerFault(settings, subject, response);
    }
    if (range !== null && !range.startsWith("bytes=0-") && !continues(response, range)) {
      await response.body?.cancel().catch(() => {});
      throw new RangeIgnored();
    }
    return response;
  };
}

/** Whether the response starts at the requested range. */
function continues(response: Response, range: string): boolean {
  const wanted = /^bytes=(\d+)-/.exec(range)?.[1];
  const got = /^bytes (\d+)-/.exec(response.headers.get("content-range") ?? "")?.[1];
  return response.status === 206 && got === wanted;
}
