#!/usr/bin/env node
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const main = new URL("../dist/cli/main.js", import.meta.url);
const addon = new URL("../.build/tapline.node", import.meta.url);
const needsAddon = !process.argv.slice(2).every((word) => /^(-h|--help|help|-V|--version)$/.test(word));

if (!existsSync(fileURLToPath(main))) {
  console.error(
    "tapline: its JavaScript is not built; run `npm run build` in the clone, or reinstall the package.",
  );
  process.exitCode = 1;
} else if (needsAddon && !existsSync(fileURLToPath(addon))) {
  console.error(
    "tapline: its native addon is not built (were install scripts skipped?); run `npm rebuild tapline`, or `npm run build:native` in a clone.",
  );
  process.exitCode = 1;
} else {
  await import(main.href);
}
