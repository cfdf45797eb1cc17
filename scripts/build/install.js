#!/usr/bin/env node
/**
 * The package's install script: takes a prebuilt addon, or compiles one, if that is needed. Also `npm run build:native`, with options:
 *   --verbose               show the compiler's output
 *   --force                 build even if nothing changed
 *   --no-activate           leave the addon that tapline loads as it is (a compile check)
 *   --sanitize LIST         with sanitizers, e.g. address,undefined; in a separate tree, not activated
 *   --activate              make it the addon that tapline loads all the same
 *   --target NAME           build one of llama.cpp's own tools instead; may be repeated
 */
import { parseArgs } from "node:util";
import { makeAddon } from "./addon.js";
import { BuildError, sentenceOf } from "./errors.js";
import { buildCommand } from "./paths.js";
import { usePrebuilt } from "./prebuilt.js";
import { buildTools } from "./tools.js";

/** @param {string} sentence */
const say = (sentence) => console.log(`tapline: ${sentence}`);

function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    throw new BuildError(`tapline needs Node 20.19 or newer, and this is ${process.versions.node}.`);
  }
}

async function main() {
  checkNode();
  if (process.env.TAPLINE_SKIP_BUILD === "1") {
    say(`TAPLINE_SKIP_BUILD=1, so the addon is not built; ${buildCommand} does it later`);
    return;
  }
  const { values } = parseArgs({
    allowNegative: true,
    options: {
      verbose: { type: "boolean" },
      force: { type: "boolean" },
      activate: { type: "boolean" },
      sanitize: { type: "string" },
      target: { type: "string", multiple: true },
    },
  });
  const { verbose, force, activate, sanitize, target } = values;
  if (target) {
    for (const [name, path] of Object.entries(await buildTools(target, { say, verbose }))) {
      console.log(`${name}\t${path}`);
    }
    return;
  }
  if (process.argv.length === 2 && (await usePrebuilt(say))) return;
  const { addon, backend, built } = await makeAddon(say, { verbose, force, activate, sanitize });
  if (!built) {
    say(`the ${backend} addon is up to date (${addon})`);
  }
}

try {
  await main();
} catch (error) {
  const sentence = sentenceOf(error);
  if (!sentence) {
    throw error;
  }
  console.error(`tapline: ${sentence}`);
  process.exitCode = 1;
}
