import type { Backend } from "./backend.js";

/**
 * The backend for a request: of those that are healthy and serve the model, the one with the least work for each of
 * its slots; among equals the one that was last the quickest with a first token; among those, each in turn.
 * @param model what was asked for; null leaves the choice to the router
 * @param without backends that have refused this request
 */
export function pick(
  backends: readonly Backend[],
  model: string | null,
  without: ReadonlySet<Backend>,
  now: number,
): Backend | null {
  let best: Backend | null = null;
  let bestLoad = 0;
  let bestTime = 0;
  for (const backend of backends) {
    if (backend.state !== "healthy" || without.has(backend) || backend.idOf(model) === null) continue;
    const { load } = backend;
    const time = backend.firstTokenMs(now);
    const better =
      best === null ||
      load < bestLoad ||
      (load === bestLoad && (time < bestTime || (time === bestTime && backend.lastPicked < best.lastPicked)));
    if (!better) continue;
    best = backend;
    bestLoad = load;
    bestTime = time;
  }
  return best;
}
