/** Bundles the workbench's page: its TypeScript on Preact, and the pictures of reports, which load when one is drawn. */
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const source = fileURLToPath(new URL("../../src/workbench/page/", import.meta.url));

/**
 * @param {string} folder is emptied first
 * @returns {Promise<import("esbuild").Metafile>} what is in which file
 */
export async function buildPage(folder) {
  const { build } = await import("esbuild");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const { metafile } = await build({
    absWorkingDir: source,
    entryPoints: ["main.tsx", "style.css"],
    outdir: folder,
    bundle: true,
    splitting: true,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    minify: true,
    metafile: true,
    legalComments: "none",
    logLevel: "warning",
  });
  for (const name of ["index.html", "icon.svg"]) copyFileSync(join(source, name), join(folder, name));
  writeFileSync(join(folder, "licences.txt"), licences(Object.keys(metafile.inputs)));
  return metafile;
}

/**
 * The licences of what was bundled, which ask to go along.
 * @param {string[]} inputs paths of files, from `source`
 */
function licences(inputs) {
  const packages = new Set(
    inputs.flatMap((path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []),
  );
  return [...packages]
    .sort()
    .map((path) => {
      const { name, version } = JSON.parse(readFileSync(join(source, path, "package.json"), "utf8"));
      const file = readdirSync(join(source, path)).find((entry) => /^licen[cs]e/i.test(entry));
      return `${name} ${version}\n\n${file === undefined ? "" : readFileSync(join(source, path, file), "utf8")}`;
    })
    .join(`\n${"-".repeat(72)}\n\n`);
}
