import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isCompiled } from "../../scripts/build/compiled.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const built = join(root, "dist/cli/main.js");

// The runner looks once for all files.
const fromDist =
  process.env.TAPLINE_TEST_BUILT === undefined ? isCompiled() : process.env.TAPLINE_TEST_BUILT === "1";
const tsx = import.meta.resolve("tsx");

/**
 * What Node is given to be `tapline`: the compiled program where it is the present one, which starts in a fifth of the
 * time that the sources take; else the sources.
 */
export const program: readonly string[] = fromDist
  ? [built]
  : ["--import", tsx, join(root, "src/cli/main.ts")];

/** The worker of Labs that a test's own process holds: compiled, where that is the present one, as commands are. */
export const compiledWorker = fromDist
  ? { worker: { entry: join(root, "dist/lab/worker/main.js"), execArgv: [] } }
  : {};

/** The same for a program of somebody's own, and the module that `tapline/client` names. */
export const module: readonly string[] = fromDist ? [] : ["--import", tsx];
export const clientModule = moduleAt("client/index");

/** Where a module of the sources is: compiled, where that is the present one. Started with {@link module}. */
export function moduleAt(name: string): string {
  return join(root, fromDist ? `dist/${name}.js` : `src/${name}.ts`);
}
