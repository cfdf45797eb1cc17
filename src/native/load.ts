import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { NativeBinding } from "./binding.js";
import { compileCommand, installation, packageRoot, reinstall } from "./installed.js";
import { remedyFor } from "./load-failure.js";
import { findPrebuilt } from "./prebuilt.js";

// ggml installs a terminate handler that forks a debugger unless this is set before it loads.
process.env.GGML_NO_BACKTRACE ??= "1";

/** The addon is missing or does not fit this machine; the message says what to do. */
export class AddonError extends Error {
  override name = "AddonError";
}

/** An addon file and where it comes from. */
export interface AddonFile {
  path: string;
  /** A description of the build. */
  variant: string;
  /** Processor levels that it has kernels for, the best first, if there are several. */
  levels?: readonly string[];
}

/**
 * The addons to try, in order: the one in TAPLINE_ADDON (tests: with sanitizers, or with a simulated GPU); the one that was
 * compiled here; prebuilt ones for this processor, the best first.
 */
export function addonFiles(): { files: AddonFile[]; refused: string[] } {
  const named = process.env.TAPLINE_ADDON;
  if (named) return { files: [{ path: named, variant: "named by TAPLINE_ADDON" }], refused: [] };
  const compiled = { path: join(packageRoot, ".build", "tapline.node"), variant: "compiled here" };
  if (existsSync(compiled.path)) return { files: [compiled], refused: [] };
  const { candidates, refused } = findPrebuilt(packageRoot);
  const files = candidates.map((each) => ({
    path: each.path,
    variant: `prebuilt by ${each.package}`,
    levels: each.levels,
  }));
  return { files: files.length > 0 ? files : [compiled], refused };
}

let loaded: { addon: NativeBinding; file: AddonFile; passedOver: string[] } | undefined;

/**
 * Loads the addon on first use, so that code without a model works without it and starts immediately. Each file here
 * declares the part that it calls.
 * @throws AddonError
 */
export function binding<Part extends object = NativeBinding>(): Part {
  loaded ??= load();
  return loaded.addon as unknown as Part;
}

/**
 * The loaded addon, and why better ones were not used.
 * @throws AddonError
 */
export function addonInUse(): AddonFile & { passedOver: readonly string[] } {
  loaded ??= load();
  return { ...loaded.file, passedOver: loaded.passedOver };
}

/**
 * Rounds that a thread of ggml spins at a barrier before it sleeps: about the time of waking it, 40 to 80 µs. By default,
 * GCC's OpenMP spins for 3 ms, at some hundred barriers per token: when other programs use the processors, everything waits
 * for waiting threads (see docs/architecture.md).
 */
const spins = "4000";

/** OpenMP reads it once, when it is loaded with the addon; later child processes do not inherit it. */
function withSpins<T>(work: () => T): T {
  if (process.env.GOMP_SPINCOUNT !== undefined || process.env.OMP_WAIT_POLICY !== undefined) return work();
  process.env.GOMP_SPINCOUNT = spins;
  try {
    return work();
  } finally {
    delete process.env.GOMP_SPINCOUNT;
  }
}

/** TAPLINE_LEVEL names the level of ggml's kernels, for tests: an unknown name must not mean the best one. */
function checkLevel(addon: NativeBinding): void {
  const named = process.env.TAPLINE_LEVEL;
  if (!named) return;
  const { level = "none" } = addon.backendInfo();
  if (level !== named) throw new Error(`TAPLINE_LEVEL is ${named}, and the addon's level is ${level}`);
}

function load(): NonNullable<typeof loaded> {
  const { files, refused } = addonFiles();
  const reasons: string[] = [];
  for (const file of files) {
    try {
      const addon = withSpins(() => createRequire(import.meta.url)(file.path)) as NativeBinding;
      checkLevel(addon);
      // process.exit() does not notify addons: computations must end before the process is torn down.
      process.once("exit", () => addon.endOperations());
      return { addon, file, passedOver: [...refused, ...reasons] };
    } catch (error) {
      reasons.push(error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error));
    }
  }
  throw new AddonError(loadFailure(reasons[0] ?? "", refused));
}

/**
 * @param reason of the best file
 * @param refused why prebuilt addons were not tried
 */
export function loadFailure(reason: string, refused: readonly string[], how = installation()): string {
  const remedies = {
    wheel: `reinstall it with ${reinstall}`,
    npm: `run ${compileCommand("", how)}`,
    clone: `run ${compileCommand("", how)}`,
  };
  if (!reason.includes("Cannot find module")) {
    const build = how === "wheel" ? remedies.wheel : `to build it for this machine, ${remedies[how]}`;
    return `The native addon does not load (${reason}); ${remedyFor(reason, how) ?? build}.`;
  }
  const prebuilt = refused.length > 0 ? ` (${refused.join(", ")})` : "";
  if (how === "wheel") return `The native addon is missing${prebuilt}; ${remedies.wheel}.`;
  const scripts = " (npm 12 skips install scripts until `npm install-scripts approve tapline`)";
  return `The native addon is not built${prebuilt}; ${remedies[how]}${how === "npm" ? scripts : ""}.`;
}
