#!/usr/bin/env node
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const main = new URL("../dist/cli/main.js", import.meta.url);

// Whether the addon is there is asked by those commands that need it (src/native/load.ts).
if (existsSync(fileURLToPath(main))) {
  await import(main.href);
} else {
  console.error(
    "tapline: its JavaScript is not built; run `npm run build` in the clone, or reinstall the package.",
  );
  process.exitCode = 1;
}
