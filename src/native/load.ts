import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type { NativeBinding } from "./binding.js";

// ggml installs a terminate handler that forks a debugger unless this is set before it loads.
process.env.GGML_NO_BACKTRACE ??= "1";

/** Where the build leaves the addon (scripts/build): the same place from src/ and from dist/. */
export const addonPath = fileURLToPath(new URL("../../.build/tapline.node", import.meta.url));

let loaded: NativeBinding | undefined;

/**
 * Loads the addon on first use, so that commands that need no model start at once.
 * @throws Error with one sentence that says what to do when the addon is missing or does not fit.
 */
export function binding(): NativeBinding {
  if (loaded === undefined) {
    try {
      const addon = createRequire(import.meta.url)(addonPath) as NativeBinding;
      // process.exit() tells no addon: what computes has to end before the process takes itself apart.
      process.once("exit", () => addon.endOperations());
      loaded = addon;
    } catch (error) {
      const reason = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
      throw new Error(
        reason.includes("Cannot find module")
          ? "The native addon is not built; run `npm run build:native`."
          : `The native addon does not load (${reason}); run \`npm run build:native\` to build it for this machine.`,
      );
    }
  }
  return loaded;
}
