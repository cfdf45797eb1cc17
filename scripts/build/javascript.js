#!/usr/bin/env node
/**
 * Compiles src/ to dist/ and bundles the workbench's page: `npm run build`. With --changed, npm's prepare script, only where something changed since:
 * npm prepares a clone again when npx first runs there, and commands that run at the same time must find dist/ whole.
 */
import { spawnSync } from "node:child_process";
import { cpSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isCompiled, mark } from "./compiled.js";
import { buildPage } from "./page.js";
import { joinTypebox } from "./typebox.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

if (!(process.argv.includes("--changed") && isCompiled())) {
  rmSync(join(root, mark), { force: true });
  const { status, error } = spawnSync("tsc", ["-p", "tsconfig.build.json"], {
    cwd: root,
    stdio: "inherit",
    shell: process.platform === "win32",
  });
  if (error !== undefined) {
    console.error(
      `tapline: tsc did not run (${error.message}); \`npm ci\` without --omit=dev installs it, \`npm run build\` runs it.`,
    );
  }
  process.exitCode = status ?? 1;
  if (status === 0) {
    await joinTypebox(join(root, "dist"));
    await buildPage(join(root, "dist/workbench/page"));
    rmSync(join(root, "dist/report/page"), { recursive: true, force: true });
    cpSync(join(root, "src/report/page"), join(root, "dist/report/page"), {
      recursive: true,
      filter: (path) => !/\.(ts|json)$/.test(path),
    });
    writeFileSync(join(root, mark), "");
  }
}
