import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";

const runner = fileURLToPath(new URL("../../run.ts", import.meta.url));
const fixtures = fileURLToPath(new URL("fixtures/", import.meta.url));

function run(folder: string, ...args: string[]) {
  const { stdout, status } = spawnSync(
    process.execPath,
    ["--import", "tsx", runner, "--root", fixtures + folder, ...args],
    { encoding: "utf8" },
  );
  return { stdout, status, closing: stdout.trimEnd().split("\n").at(-1) };
}

test("files that pass give their number in the closing line and exit code 0", () => {
  const { closing, status } = run("passing");
  assert.is(closing, "2 passed, 0 failed, 1 skipped");
  assert.is(status, 0);
});

test("stress tests run only on request", () => {
  const { stdout } = run("passing", "stress");
  assert.match(stdout, /stress\/long\.test\.ts/);
  assert.not.match(stdout, /two\.test\.ts/);
});

test("a run whose tests pass and leave a temporary folder fails and removes it", () => {
  const before = new Set(readdirSync(tmpdir()));
  const { stdout, closing, status } = run("leaving");
  assert.match(stdout, /Tests passed and left tapline-left-\w+ in the temporary folder\./);
  assert.is(closing, "1 passed, 1 failed");
  assert.is(status, 1);
  const left = readdirSync(tmpdir()).filter((name) => !before.has(name));
  assert.equal(
    left.filter((name) => name.startsWith("tapline-left-")),
    [],
  );
});

test("files in one process keep their results, and a crash ends one of them", () => {
  const { stdout, closing } = run("sharing", "--jobs", "1");
  assert.match(stdout, /a-changes\.test\.ts {2}1 passed {2}/);
  assert.match(stdout, /b-same-process\.test\.ts {2}1 passed, 1 FAILED/);
  assert.match(stdout, /c-aborts\.test\.ts .*was ended by SIGABRT/);
  assert.match(stdout, /d-after\.test\.ts {2}1 passed {2}/);
  assert.match(stdout, /e-alone\.test\.ts {2}1 passed {2}/);
  assert.match(stdout, /^--- b-same-process\.test\.ts\n(?:(?!---)[\s\S])*a failure of its own/m);
  assert.match(stdout, /^2 processes, 1 at a time/m);
  assert.is(closing, "4 passed, 2 failed");
});

test("only files that use no program, server or browser are quick", () => {
  const { stdout, closing } = run("quick", "--quick");
  assert.match(stdout, /counts\.test\.ts/);
  assert.not.match(stdout, /starts-a-program/);
  assert.is(closing, "1 passed, 0 failed");
});

test("a pattern that matches no file is a failure", () => {
  const { stdout, closing, status } = run("passing", "no-such-folder");
  assert.match(stdout, /No test file matches no-such-folder/);
  assert.is(closing, "0 passed, 0 failed");
  assert.is(status, 1);
});

test("every way of not passing is a failure with the file's name", () => {
  const problems = {
    "before-throws": /before-throws\.test\.ts {2}0 passed, 1 FAILED/,
    crashes: /crashes\.test\.ts .*was ended by SIGABRT/,
    "exits-early": /exits-early\.test\.ts .*reported no result/,
    fails: /fails\.test\.ts {2}1 passed, 1 FAILED/,
    "forgets-run": /forgets-run\.test\.ts .*reported no result/,
    "forgets-second-suite": /forgets-second-suite\.test\.ts .*1 suite\(s\) never run/,
    "throws-late": /throws-late\.test\.ts .*exited with code 1/,
  };
  const { stdout, closing, status } = run("broken", ...Object.keys(problems));
  assert.is(status, 1);
  for (const [name, line] of Object.entries(problems)) {
    assert.match(stdout, line, name);
  }
  assert.is(closing, "3 passed, 7 failed");
  assert.match(stdout, /one is not two/, "the failing assertion's text is shown");
});

test("a file that hangs is ended, and is a failure", () => {
  // By itself: on a busy machine the others may need as long.
  const { stdout, closing, status } = run("broken", "hangs", "--timeout", "4");
  assert.match(stdout, /hangs\.test\.ts .*did not end within 4 s/);
  assert.match(closing ?? "", /^\d passed, 1 failed$/);
  assert.is(status, 1);
});

test("a failing page test prints the pages' contents, and leaves none open", () => {
  const { stdout, closing } = run("pages");
  if (stdout.includes("chromium is not installed")) return;
  const told = stdout.slice(stdout.indexOf("What the pages showed:"));
  for (const part of [
    "Page 1, about:blank\n  title: Shop\n  focus: input How many\n  text: Fruit How many wrapped Buy There are no pears. apples",
    '  alert: There are no pears.\n  field: How many = "seven"\n  field: wrapped = on\n  disabled: Buy\n',
    "Page 2, data:text/html,",
    "  text: Elsewhere\n",
    "  console: error: out of pears",
  ]) {
    assert.ok(told.includes(part), `${part} is not in ${told}`);
  }
  assert.ok(told.length < 6000, "long texts are cut");
  assert.is(closing, "1 passed, 1 failed");
});

test.run();
