#!/usr/bin/env node
/**
 * `npm run dev -- COMMAND...`: runs a command of tapline from its sources and starts it again when a file in src/ changes.
 * `npm run dev -- serve demo`. The workbench's page is bundled before each start of the workbench.
 */
import { spawn } from "node:child_process";
import { watch } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildPage } from "./build/page.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const command = process.argv.slice(2);
/** Editors write a file in several steps, and a checkout writes many files. */
const quietMs = 200;
/** A service that does not end within this time is killed. */
const patienceMs = 10_000;

if (command.length === 0) {
  console.error(
    "Name a command: npm run dev -- serve demo, npm run dev -- lab, npm run dev -- workbench --model demo.",
  );
  process.exit(2);
}

/** @type {import("node:child_process").ChildProcess | undefined} */
let child;
let restarting = false;

async function start() {
  if (command[0] === "workbench") {
    await buildPage(join(root, "dist/workbench/page")).catch((error) =>
      console.error(`[dev] ${error.message}`),
    );
  }
  child = spawn(process.execPath, ["--import", "tsx", join(root, "src/cli/main.ts"), ...command], {
    stdio: "inherit",
  });
  child.on("exit", (code, signal) => {
    child = undefined;
    if (restarting) {
      restarting = false;
      void start();
    } else {
      console.log(`[dev] the command ended (${signal ?? `exit ${code}`}); a change in src/ starts it again`);
    }
  });
}

function restart() {
  console.log("[dev] src/ changed");
  if (child === undefined) return void start();
  if (restarting) return;
  restarting = true;
  const ending = child;
  ending.kill("SIGTERM");
  setTimeout(() => ending.exitCode === null && ending.kill("SIGKILL"), patienceMs).unref();
}

/** @type {NodeJS.Timeout | undefined} */
let timer;
watch(join(root, "src"), { recursive: true }, (_event, name) => {
  if (name === null || !/\.(?:tsx?|css|html|json|svg)$/.test(name)) return;
  clearTimeout(timer);
  timer = setTimeout(restart, quietMs);
});
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM"])) {
  process.on(signal, () => {
    restarting = false;
    if (child === undefined) process.exit(0);
    child.once("exit", () => process.exit(0));
    if (signal === "SIGTERM") child.kill(signal);
  });
}
await start();
