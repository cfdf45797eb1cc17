import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers/promises";

/** The clocks and timers, by the names with which code uses them. */
const places = {
  "performance.now": [performance, "now"],
  "Date.now": [Date, "now"],
  setTimeout: [globalThis, "setTimeout"],
  clearTimeout: [globalThis, "clearTimeout"],
  setInterval: [globalThis, "setInterval"],
  clearInterval: [globalThis, "clearInterval"],
  "timers.setTimeout": [timers, "setTimeout"],
} as const;

/** A test's replacements; its timers are its own objects. */
interface Time {
  "performance.now": () => number;
  "Date.now": () => number;
  setTimeout: (run: () => void, ms: number, ...given: unknown[]) => unknown;
  clearTimeout: (timer: never) => unknown;
  setInterval: (run: () => void, ms: number) => unknown;
  clearInterval: (timer: never) => unknown;
  /** Of node:timers/promises. */
  "timers.setTimeout": (ms: number, ...given: unknown[]) => Promise<unknown>;
}

/** From now on these replace the clocks and timers. @returns restores the former ones */
export function standIn(others: Partial<Time>): () => void {
  const own = (Object.keys(others) as (keyof Time)[]).map((name) => {
    const [holder, key] = places[name];
    return [holder, key, Reflect.get(holder, key)] as const;
  });
  for (const [name, other] of Object.entries(others)) {
    const [holder, key] = places[name as keyof Time];
    Reflect.set(holder, key, other);
  }
  syncBuiltinESMExports();
  return () => {
    for (const [holder, key, was] of own) Reflect.set(holder, key, was);
    syncBuiltinESMExports();
  };
}

/** While something runs, these replace the clocks and timers; at its end the former ones are restored. */
export function withTime<T>(others: Partial<Time>, run: () => T): T {
  const putBack = standIn(others);
  let done: T;
  try {
    done = run();
  } catch (error) {
    putBack();
    throw error;
  }
  if (done instanceof Promise) return done.finally(putBack) as T;
  putBack();
  return done;
}
