import { createRequire } from "node:module";
import { setImmediate as turn } from "node:timers/promises";
import * as assert from "uvu/assert";
import { addonInUse } from "../../src/native/index.js";

/** The addon's counts, in all threads of this process. */
export interface Alive {
  models: number;
  contexts: number;
  engines: number;
  handles: number;
  operations: number;
  /** Of saved lenses, in a device's memory. */
  translators: number;
  /** References and thread-safe functions of Node-API's that were not given back. */
  kept: number;
  /** Of these, given back on another thread than took them, ever. */
  astray: number;
}

export const nothing: Alive = {
  models: 0,
  contexts: 0,
  engines: 0,
  handles: 0,
  operations: 0,
  translators: 0,
  kept: 0,
  astray: 0,
};

/** The addon without the TypeScript in front of it. */
export function rawAddon<T>(): T {
  return createRequire(import.meta.url)(addonInUse().path) as T;
}

export function alive(): Alive {
  return rawAddon<{ alive(): Alive }>().alive();
}

/** Waits until nothing is left. A handle's last share goes with Node's own, some turns after its close has settled. */
export async function nothingIsLeft(): Promise<void> {
  for (let turns = 0; turns < 10_000; turns++) {
    if (JSON.stringify(alive()) === JSON.stringify(nothing)) return;
    await turn();
  }
  assert.equal(alive(), nothing);
}
