/**
 * `npm run test:watch -- AREA`: runs the test files whose path holds AREA, and, whenever a file in src/ or test/ changes, those
 * of them that import it. Enter runs all of them again; Ctrl-C ends. Without AREA it watches the quick tests.
 */
import { spawn } from "node:child_process";
import { watch } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { findTests } from "./support/find-tests.js";
import { importsOf, weigh } from "./support/groups.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const tests = join(root, "test");
const runner = join(tests, "run.ts");
const patterns = process.argv.slice(2);
/** Editors write a file in several steps, and a checkout writes many files. */
const quietMs = 150;

const changed = new Set<string>();
let running: ReturnType<typeof spawn> | undefined;
let timer: NodeJS.Timeout | undefined;

async function watched(): Promise<string[]> {
  const found = findTests(tests, patterns);
  if (patterns.length > 0) return found;
  return [...(await weigh(found, tests))].flatMap(([file, weight]) => (weight === "light" ? [file] : []));
}

/** The watched files that import one of the changed files, or are one. */
async function affected(): Promise<string[]> {
  const files = await watched();
  const imports = await importsOf(files, root);
  return files.filter((file) =>
    [...changed].some((path) => relative(root, file) === path || imports.get(file)?.reached.has(path)),
  );
}

function run(files: readonly string[]): void {
  changed.clear();
  if (files.length === 0) {
    console.log("No watched test imports what changed.");
    return;
  }
  const paths = files.map((file) => relative(tests, file));
  running = spawn(process.execPath, ["--import", "tsx", runner, ...paths], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  running.on("exit", () => {
    running = undefined;
    console.log("Waiting for changes; Enter runs all, Ctrl-C ends.");
    if (changed.size > 0) soon();
  });
}

/** Starts a run once files have stopped changing; a run in progress ends first. */
function soon(): void {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    if (running !== undefined) return;
    try {
      run(await affected());
    } catch (error) {
      console.error(error instanceof Error ? error.message : error);
    }
  }, quietMs);
}

for (const folder of ["src", "test"]) {
  watch(join(root, folder), { recursive: true }, (_event, name) => {
    if (name === null || !/\.(?:tsx?|js|json)$/.test(name)) return;
    changed.add(join(folder, name));
    soon();
  });
}
process.stdin.on("data", async () => {
  if (running === undefined) run(await watched());
});

const files = await watched();
if (files.length === 0) {
  console.error(`No test file matches ${patterns.join(" ")}.`);
  process.exit(1);
}
run(files);
