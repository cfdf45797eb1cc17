import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const settings = ["tsconfig.json", "tsconfig.build.json", "package-lock.json"];
const steps = ["javascript", "page", "typebox"].map((name) => `scripts/build/${name}.js`);

/** Written when a compilation has come to its end. */
export const mark = "dist/.compiled";

/**
 * Whether dist/ was compiled, to its end, after the last change of what it is made of.
 * @param {string} [folder] a clone
 */
export function isCompiled(folder = root) {
  const written = (/** @type {string} */ path) =>
    statSync(join(folder, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const compiled = written("dist/cli/main.js") > 0 ? written(mark) : 0;
  const sources = readdirSync(join(folder, "src"), { recursive: true, encoding: "utf8" });
  return [...settings, ...steps, ...sources.map((name) => join("src", name))].every(
    (path) => written(path) <= compiled,
  );
}
