import type { Backend } from "./backend.js";

/**
 * Chooses the backend for a request: healthy, serves the model, lowest load per slot; ties go to the shortest recent time
 * to first token, then to the least recently used.
 * @param model the requested model; null lets the router choose
 * @param without backends that refused this request
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
