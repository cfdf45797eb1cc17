/**
 * The test runner: `npm test`, `npm test -- lab` (a folder), `npm test -- http/app` (any part of a path),
 * `npm run test:stress`. Files that can share a process do (test/support/groups.ts); test/support/run-file.ts says what
 * counts as a pass.
 *   --quick        only files that use no model, server, program, database or browser: `npm run test:quick`
 *   --alone        a separate process for each file
 *   --jobs N       processes at the same time (default: the cores, 4 at most)
 *   --timeout S    seconds per file, after which it hangs rather than being slow (default: 600)
 *   --verbose      also show the output of files that pass
 */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { isCompiled } from "../scripts/build/compiled.js";
import { findTests } from "./support/find-tests.js";
import { groupTests, weigh } from "./support/groups.js";
import { runAll } from "./support/run-all.js";
import { leftBehind, ownTemporaryFolder } from "./support/temporary.js";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    jobs: {
      type: "string",
      default: process.env.TAPLINE_TEST_JOBS ?? String(Math.min(4, os.availableParallelism())),
    },
    timeout: { type: "string", default: "600" },
    verbose: { type: "boolean", default: false },
    alone: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    root: { type: "string", default: fileURLToPath(new URL(".", import.meta.url)) },
  },
});

// Commands that tests start are much faster compiled: the whole suite sees to that, a part of it takes what is there.
if (!isCompiled() && positionals.length === 0 && !values.quick && !process.env.TAPLINE_TEST) {
  console.log("compiling src/ to dist/, which the tests start commands from");
  spawnSync("npm", ["run", "--silent", "build"], { stdio: "inherit", shell: process.platform === "win32" });
}
process.env.TAPLINE_TEST_BUILT ??= isCompiled() ? "1" : "0";

// What several files need, and what the first of them makes. Open, because a database may run as somebody else.
const shared = mkdtempSync(join(os.tmpdir(), "tapline-tests-"));
chmodSync(shared, 0o755);
process.env.TAPLINE_TEST_SHARED ??= shared;
process.on("exit", () => rmSync(shared, { recursive: true, force: true }));
const temporary = ownTemporaryFolder(shared);
process.env.TMPDIR = temporary;

const found = findTests(values.root, positionals);
const weights = await weigh(found, values.root);
if (values.quick) for (const [file, weight] of weights) if (weight !== "light") weights.delete(file);
const files = [...weights.keys()];
const { passed, failed, skipped } = await runAll(
  values.alone ? files.map((file) => [file]) : groupTests(weights),
  {
    root: values.root,
    jobs: Math.max(1, Number(values.jobs)),
    timeoutMs: Number(values.timeout) * 1000,
    verbose: values.verbose,
    write: (text) => process.stdout.write(text),
  },
);
if (files.length === 0) {
  console.log(`No test file matches ${positionals.join(" ") || "test/**/*.test.ts"}.`);
}
const left = failed === 0 ? leftBehind(temporary) : [];
if (left.length > 0) console.log(`Tests passed and left ${left.join(", ")} in the temporary folder.`);
const failures = failed + (left.length > 0 ? 1 : 0);
console.log(`${passed} passed, ${failures} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
process.exitCode = failures === 0 && passed > 0 ? 0 : 1;
