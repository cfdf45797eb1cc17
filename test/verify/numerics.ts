/**
 * Checks the native core's arithmetic against independent programs in Python: `npm run verify:numerics`.
 * Runs every `*.check.ts` in numerics/ and prints each figure with its bound; exits non-zero when one is missed,
 * a check fails to run, or a Debian package is missing. `--only PATTERN` picks checks by file name.
 */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { holds, printFigure } from "./figures.js";
import type { NumericCheck } from "./numerics/check.js";
import { findPython, MissingPackage } from "./numerics/python.js";

const folder = fileURLToPath(new URL("./numerics", import.meta.url));

async function runCheck(file: string): Promise<{ passed: number; failed: number }> {
  const { default: check } = (await import(pathToFileURL(join(folder, file)).href)) as {
    default: NumericCheck;
  };
  console.log(check.title);
  const work = await mkdtemp(join(tmpdir(), "tapline-numerics-"));
  try {
    const figures = await check.run(findPython(check.modules), work);
    figures.forEach(printFigure);
    const passed = figures.filter(holds).length;
    return { passed, failed: figures.length === 0 ? 1 : figures.length - passed };
  } catch (error) {
    console.log(`  FAILED ${error instanceof MissingPackage ? error.message : (error as Error).stack}`);
    return { passed: 0, failed: 1 };
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function main(): Promise<boolean> {
  const { values } = parseArgs({ options: { only: { type: "string", default: "" } } });
  const files = (await readdir(folder)).filter((file) => file.endsWith(".check.ts")).sort();
  const total = { passed: 0, failed: 0 };
  for (const file of files.filter((name) => new RegExp(values.only).test(name))) {
    const { passed, failed } = await runCheck(file);
    total.passed += passed;
    total.failed += failed;
  }
  console.log(`\n${total.passed} figures hold, ${total.failed} failed.`);
  return total.passed > 0 && total.failed === 0;
}

main().then(
  (good) => {
    process.exitCode = good ? 0 : 1;
  },
  (error) => {
    console.error(error);
    process.exitCode = 1;
  },
);
