import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import { openStore } from "../../../src/studies/store/open.js";
import type { Store } from "../../../src/studies/store/store.js";
import { testClock } from "./clock.js";

export const folder = mkdtempSync(join(tmpdir(), "tapline-store-"));
export const clock = testClock();
export let store: Store;

/** A store for all tests of a file, by a clock that they move; what else they write into its folder goes with it. */
export function aroundStore(): void {
  test.before(async () => {
    store = await openStore(join(folder, "studies.db"), { dialect: clock.dialect });
  });
  test.after(async () => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });
}
