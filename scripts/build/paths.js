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

/** The inputs that the active addon was built from. */
export const stampFile = join(buildRoot, "stamp.json");

/**
 * The CMake tree of one configuration. TAPLINE_TREE names a separate tree, in which `npm run verify:llama` builds with
 * another llama.cpp. It has the same depth, so relative paths in the compiler cache match.
 * @param {string} backend
 * @param {string} [sanitize] e.g. "address,undefined"
 */
export function treeOf(backend, sanitize) {
  const suffix = sanitize ? `-${sanitize.replaceAll(",", "-")}` : "";
  return join(buildRoot, (process.env.TAPLINE_TREE || backend) + suffix);
}

/** Folder for logs and figures of `npm run verify:…`, separate per named tree. */
export const verifyFolder = join(buildRoot, "verify", process.env.TAPLINE_TREE ?? "");
