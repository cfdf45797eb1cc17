import { existsSync, realpathSync } from "node:fs";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";

/** The package's folder: the same distance from src/ and from dist/. */
export const packageRoot = fileURLToPath(new URL("../..", import.meta.url));

/** A Python wheel has no build scripts, and a clone is not in a node_modules folder. */
export type Installation = "wheel" | "npm" | "clone";

/** How tapline was installed: advice names commands that work there. */
export function installation(root = packageRoot): Installation {
  if (!existsSync(join(root, "scripts", "build"))) return "wheel";
  return realpathSync(root).includes(`${sep}node_modules${sep}`) ? "npm" : "clone";
}

/** The command that reinstalls a wheel. */
export const reinstall = "`pip install --force-reinstall tapline-lab`";

/**
 * The command that compiles the addon here, in backticks; a wheel cannot compile, so it is replaced by an npm package.
 * @param settings variables to set, such as `TAPLINE_BACKEND=cpu`
 */
export function compileCommand(settings = "", how = installation()): string {
  const commands = {
    wheel: "npm install tapline",
    npm: "npm rebuild tapline --build-from-source",
    clone: "npm run build:native",
  };
  return `\`${[settings, commands[how]].filter(Boolean).join(" ")}\``;
}
