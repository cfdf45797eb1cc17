import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { NativeBinding } from "./binding.js";
import { remedyFor } from "./load-failure.js";
import { findPrebuilt } from "./prebuilt.js";

// ggml installs a terminate handler that forks a debugger unless this is set before it loads.
process.env.GGML_NO_BACKTRACE ??= "1";

/** The package's folder: the same distance from src/ and from dist/. */
const root = fileURLToPath(new URL("../..", import.meta.url));

/** The addon is missing or does not fit this machine; the message says what to do. */
export class AddonError extends Error {
  override name = "AddonError";
}

const howToBuild = "run `npm rebuild tapline`, or `npm run build:native` in a clone";
const howToReinstall = "reinstall it with `pip install --force-reinstall tapline-lab`";

/** Whether the build scripts are here. A Python wheel has none. */
const canBeBuilt = () => existsSync(join(root, "scripts", "build"));

/** An addon file and where it comes from. */
export interface AddonFile {
  path: string;
  /** A description of the build. */
  variant: string;
}

/**
 * The addons to try, in order: the one in TAPLINE_ADDON (tests: with sanitizers, or with a simulated GPU); the one that was
 * compiled here; prebuilt ones for this processor, the best first.
 */
export function addonFiles(): { files: AddonFile[]; refused: string[] } {
  const named = process.env.TAPLINE_ADDON;
  if (named) return { files: [{ path: named, variant: "named by TAPLINE_ADDON" }], refused: [] };
  const compiled = { path: join(root, ".build", "tapline.node"), variant: "compiled here" };
  if (existsSync(compiled.path)) return { files: [compiled], refused: [] };
  const { candidates, refused } = findPrebuilt(root);
  const files = candidates.map((each) => ({
    path: each.path,
    variant: `prebuilt for ${each.level} by ${each.package}`,
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

function load(): NonNullable<typeof loaded> {
  const { files, refused } = addonFiles();
  const reasons: string[] = [];
  for (const file of files) {
    try {
      const addon = withSpins(() => createRequire(import.meta.url)(file.path)) as NativeBinding;
      // process.exit() does not notify addons: computations must end before the process is torn down.
      process.once("exit", () => addon.endOperations());
      return { addon, file, passedOver: [...refused, ...reasons] };
    } catch (error) {
      reasons.push(error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error));
    }
  }
  const reason = reasons[0] ?? "";
  if (!reason.includes("Cannot find module")) {
    const remedy =
      remedyFor(reason) ?? (canBeBuilt() ? `to build it for this machine, ${howToBuild}` : howToReinstall);
    throw new AddonError(`The native addon does not load (${reason}); ${remedy}.`);
  }
  const prebuilt = refused.length > 0 ? ` (${refused.join(", ")})` : "";
  if (!canBeBuilt()) throw new AddonError(`The native addon is missing${prebuilt}; ${howToReinstall}.`);
  throw new AddonError(
    `The native addon is not built${prebuilt}; ${howToBuild} (npm 12 skips install scripts until \`npm install-scripts approve tapline\`).`,
  );
}
