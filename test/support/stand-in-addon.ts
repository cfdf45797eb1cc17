/**
 * An addon that computes nothing: a test says what each of its functions answers, and sees what it was asked. It has to be
 * taken before anything asks for the real one.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The requests that the test receives instead of llama.cpp. */
// biome-ignore lint/suspicious/noExplicitAny: an addon takes and gives whatever the test says
export type StandIn = Record<string, (...given: any[]) => any>;

/** A token as the addon's, which says whether it was cancelled. */
export class StandInToken {
  cancelled = false;
  cancel(): void {
    this.cancelled = true;
  }
}

/** From now on this process loads these functions in the addon's place; more can be added while it runs. */
export function takeStandIn(functions: StandIn = {}): StandIn {
  const folder = mkdtempSync(join(tmpdir(), "tapline-stand-in-"));
  const path = join(folder, "addon.cjs");
  writeFileSync(path, "module.exports = globalThis.taplineStandIn;");
  const addon = Object.assign(functions, { endOperations() {}, CancelToken: StandInToken });
  Object.assign(globalThis, { taplineStandIn: addon });
  process.env.TAPLINE_ADDON = path;
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return addon as unknown as StandIn;
}
