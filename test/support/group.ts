/**
 * Runs several test files one after another in this process: their imports are loaded once.
 * Each file prints uvu's output of a file alone, between two lines that run-process.ts reads. A file's changes to the
 * process are undone after it.
 */
import { pathToFileURL } from "node:url";
import { beginLine, endLine } from "./run-process.js";

const shared = globalThis as { UVU_DEFER?: number; UVU_QUEUE?: unknown[][] };
shared.UVU_DEFER = 1;
shared.UVU_QUEUE = [[]];
const { exec, test } = await import("uvu");

for (const file of process.argv.slice(2)) {
  const before = { env: { ...process.env }, folder: process.cwd(), fetch: globalThis.fetch };
  // Empties the suite that all files share: it may hold tests of a file that forgot to run them.
  test.run();
  shared.UVU_QUEUE.splice(0, Infinity, [null]);
  process.exitCode = 0;
  const started = Date.now();
  console.log(beginLine(file));
  try {
    await import(pathToFileURL(file).href);
    // A file that forgets `test.run()` reports nothing, as it would alone.
    if ((shared.UVU_QUEUE[0]?.length ?? 0) > 1) await exec();
  } catch (error) {
    console.error(error);
    process.exitCode = 1;
  }
  console.log(endLine(Number(process.exitCode), Date.now() - started));
  for (const name of Object.keys(process.env)) if (!(name in before.env)) delete process.env[name];
  Object.assign(process.env, before.env);
  process.chdir(before.folder);
  globalThis.fetch = before.fetch;
}
