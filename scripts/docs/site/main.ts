/**
 * Builds a static site with search from docs/: `npm run docs:site`. VitePress, which only this needs, is installed from
 * docs/site/package-lock.json into tapline's cache folder the first time; later builds need no network.
 *   --out DIR     default: .build/site
 *   --base PATH   where a web server has the site (default: /)
 *   --serve       serve the result on this machine afterwards
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { buildRoot } from "../../build/paths.js";
import { cacheFolder } from "../../build/source.js";
import { sitePages } from "./pages.js";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const manifests = ["package.json", "package-lock.json"].map((name) => join(root, "docs/site", name));

/** The folder with VitePress's packages; installed once per lock file. */
function installed(): string {
  const hash = createHash("sha256");
  for (const file of manifests) hash.update(readFileSync(file));
  const folder = join(cacheFolder(process.env), `site-${hash.digest("hex").slice(0, 12)}`);
  if (existsSync(join(folder, "node_modules/vitepress"))) return folder;
  mkdirSync(dirname(folder), { recursive: true });
  const part = mkdtempSync(`${folder}-`);
  try {
    for (const file of manifests) cpSync(file, join(part, file.slice(dirname(file).length)));
    console.log(`Installing VitePress (100 MB) into ${folder}`);
    run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], part);
    renameSync(part, folder);
  } catch (error) {
    rmSync(part, { recursive: true, force: true });
    if (!existsSync(join(folder, "node_modules/vitepress"))) throw error;
  }
  return folder;
}

function run(program: string, words: readonly string[], cwd: string, env = process.env): void {
  const { status, error } = spawnSync(program, words, { cwd, env, stdio: "inherit" });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${program} ${words.join(" ")} ended with ${status}.`);
}

/** Writes pages, files and settings into a folder. */
function stage(folder: string): void {
  const { pages, files, sidebar } = sitePages(root);
  const place = (path: string) => {
    const whole = join(folder, path);
    mkdirSync(dirname(whole), { recursive: true });
    return whole;
  };
  for (const [path, text] of Object.entries(pages)) writeFileSync(place(path), text);
  for (const [path, source] of Object.entries(files)) cpSync(join(root, source), place(path));
  cpSync(join(root, "docs/site/config.js"), place(".vitepress/config.mjs"));
  writeFileSync(place(".vitepress/sidebar.json"), JSON.stringify(sidebar));
}

function main(): void {
  const { values } = parseArgs({
    options: {
      out: { type: "string", default: join(buildRoot, "site") },
      base: { type: "string", default: "/" },
      serve: { type: "boolean", default: false },
    },
  });
  const out = resolve(values.out);
  const tools = installed();
  // Below the packages, where VitePress's settings find them.
  const folder = mkdtempSync(join(tools, "pages-"));
  try {
    stage(folder);
    const vitepress = join(tools, "node_modules/vitepress/bin/vitepress.js");
    // Links to these are files, not pages.
    const env = { ...process.env, TAPLINE_SITE_BASE: values.base, VITE_EXTRA_EXTENSIONS: "ipynb,jsonl,py" };
    run(process.execPath, [vitepress, "build", folder, "--outDir", out], tools, env);
    console.log(`The site is in ${out}.`);
    if (values.serve) {
      cpSync(out, join(folder, ".vitepress/dist"), { recursive: true });
      run(process.execPath, [vitepress, "preview", folder], tools, env);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

try {
  main();
} catch (error) {
  console.error(`The site was not built: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
