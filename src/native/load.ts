import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type { NativeBinding } from "./binding.js";

// ggml installs a terminate handler that forks a debugger unless this is set before it loads.
process.env.GGML_NO_BACKTRACE ??= "1";

/**
 * Where the build leaves the addon (scripts/build): the same place from src/ and from dist/. Tests name another build
 * of it: with sanitizers, or with a GPU that is none.
 */
export const addonPath =
  process.env.TAPLINE_ADDON ?? fileURLToPath(new URL("../../.build/tapline.node", import.meta.url));

/** The addon is not there or does not fit this machine; the message is one sentence that says what to do. */
export class AddonError extends Error {
  override name = "AddonError";
}

const howToBuild = "run `npm rebuild tapline`, or `npm run build:native` in a clone";

let loaded: NativeBinding | undefined;

/**
 * Loads the addon on first use, so that whatever needs no model works without one and starts at once.
 * @throws AddonError
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
      throw new AddonError(
        reason.includes("Cannot find module")
          ? `The native addon is not built; ${howToBuild} (npm 12 skips install scripts until \`npm install-scripts approve tapline\`).`
          : `The native addon does not load (${reason}); to build it for this machine, ${howToBuild}.`,
      );
    }
  }
  return loaded;
}
