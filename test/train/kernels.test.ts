import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { trainKernels } from "../../src/native/train.js";

/** Slowest first. The trainers' own tests run with the last one that this machine has. */
const sets = ["portable", "avx2", "avx512"];

const run = (name: string, args: string[]) =>
  spawnSync(process.execPath, ["--import", "tsx", ...args], {
    encoding: "utf8",
    env: { ...process.env, TAPLINE_KERNELS: name },
  });

const module = new URL("../../src/native/train.ts", import.meta.url).href;
const chosen = (name: string) =>
  run(name, [
    "--input-type=module",
    "-e",
    `console.log((await import("${module}")).trainKernels())`,
  ]).stdout.trim();

const best = trainKernels();
for (const name of sets.filter((each) => each !== best)) {
  const here = chosen(name) === name;
  test(`${name}: ${here ? "trainer tests hold with its kernels" : "unavailable here"}`, () => {
    if (!here) return;
    for (const file of ["probe", "sae"]) {
      const path = fileURLToPath(new URL(`./${file}.test.ts`, import.meta.url));
      const { status, stdout, stderr } = run(name, [path]);
      assert.is(status, 0, `${stdout}${stderr}`.slice(-2000));
      assert.match(stdout, /Passed: +[1-9]/);
    }
  });
}

test("without a choice the fastest kernels of this machine run", () => {
  assert.is(
    best,
    [...sets].reverse().find((name) => chosen(name) === name),
  );
});

test.run();
