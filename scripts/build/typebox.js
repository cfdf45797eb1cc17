/**
 * Joins typebox's files: it comes as 709 of them, and reading these one by one took 0.2 of the 0.5 s in which a service
 * or a command that checks something is loaded.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** By the names under which typebox is imported, where each lies in dist/. */
export const places = { typebox: "typebox/index.js", "typebox/compile": "typebox/compile.js" };

/**
 * Puts the parts of typebox that are used into a folder of compiled files, whose imports lead there from then on; their types
 * still come from the package.
 * @param {string} dist
 */
export async function joinTypebox(dist) {
  const { build } = await import("esbuild");
  rmSync(join(dist, "typebox"), { recursive: true, force: true });
  await build({
    absWorkingDir: root,
    entryPoints: Object.entries(places).map(([name, place]) => ({
      in: name,
      out: place.replace(/\.js$/, ""),
    })),
    outdir: dist,
    chunkNames: "typebox/[name]-[hash]",
    bundle: true,
    splitting: true,
    format: "esm",
    target: "es2022",
    legalComments: "none",
    logLevel: "warning",
  });
  const licence = readFileSync(join(root, "node_modules/typebox/license"), "utf8");
  writeFileSync(join(dist, "typebox/license"), licence);
  for (const file of readdirSync(dist, { recursive: true, encoding: "utf8" })) {
    if (!file.endsWith(".js") || /^typebox[\\/]/.test(file)) continue;
    const code = readFileSync(join(dist, file), "utf8");
    const moved = code.replace(/^(import [^;"]*from )"(typebox(?:\/compile)?)";$/gm, (_, words, name) => {
      const place = relative(dirname(file), places[/** @type {keyof typeof places} */ (name)]);
      return `${words}"${place.startsWith(".") ? "" : "./"}${place.replaceAll("\\", "/")}";`;
    });
    if (moved !== code) writeFileSync(join(dist, file), moved);
  }
}
