import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";

/** The package's folder: a clone, or node_modules/tapline. */
export const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/[\\/]$/, "");

/** How a person starts the build again; `npm rebuild` does not run the scripts of the package it is called in. */
export const buildCommand = root.includes(`${sep}node_modules${sep}`)
  ? "`npm rebuild tapline`"
  : "`npm run build:native`";

/** Everything that is built lies here. Not build/: `node-gyp rebuild` deletes that folder. */
export const buildRoot = join(root, ".build");

/** The addon that src/native/load.ts loads, whatever backend it was built for. */
export const activeAddon = join(buildRoot, "tapline.node");

/** What the active addon was built from. */
export const stampFile = join(buildRoot, "stamp.json");

/**
 * The CMake tree of one configuration. TAPLINE_TREE names another one for a build alongside, by which `npm run
 * verify:llama` compiles with another llama.cpp; at the same depth, so that the compiler cache has the same paths.
 * @param {string} backend
 * @param {string} [sanitize] e.g. "address,undefined"
 */
export function treeOf(backend, sanitize) {
  const suffix = sanitize ? `-${sanitize.replaceAll(",", "-")}` : "";
  return join(buildRoot, (process.env.TAPLINE_TREE || backend) + suffix);
}

/** Where `npm run verify:…` saves logs and figures, apart for each named tree. */
export const verifyFolder = join(buildRoot, "verify", process.env.TAPLINE_TREE ?? "");
