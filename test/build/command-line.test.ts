import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { suite } from "uvu";
import * as assert from "uvu/assert";

const root = fileURLToPath(new URL("../..", import.meta.url));
const test = suite<{ folder: string }>("command line");

test.before.each((context) => {
  context.folder = mkdtempSync(join(os.tmpdir(), "tapline-cli-"));
  cpSync(join(root, "bin"), join(context.folder, "bin"), { recursive: true });
  writeFileSync(join(context.folder, "package.json"), '{ "type": "module" }\n');
});
test.after.each(({ folder }) => rmSync(folder, { recursive: true, force: true }));

function run(script: string, args: string[] = [], env: NodeJS.ProcessEnv = {}) {
  const { stdout, stderr, status } = spawnSync(process.execPath, [script, ...args], {
    encoding: "utf8",
    env: { ...process.env, ...env },
  });
  return { stdout, stderr, status };
}

/** A program that replaces the compiled command line. */
function putProgram(folder: string) {
  mkdirSync(join(folder, "dist", "cli"), { recursive: true });
  writeFileSync(
    join(folder, "dist", "cli", "main.js"),
    'console.log("ran", process.argv.slice(2).join(" "));\n',
  );
}

test("tapline without its JavaScript names the command to run", ({ folder }) => {
  const { stderr, status } = run(join(folder, "bin", "tapline.js"), ["demo"]);
  assert.is(status, 1);
  assert.match(stderr, /^tapline: its JavaScript is not built; run `npm run build` .*\n$/);
});

test("tapline with its JavaScript runs; a command that needs the addon asks for it", ({ folder }) => {
  putProgram(folder);
  assert.is(run(join(folder, "bin", "tapline.js"), ["demo", "--port", "1"]).stdout, "ran demo --port 1\n");
});

test("the install script can be told to leave the build for later", () => {
  const { stdout, status } = run(join(root, "scripts/build/install.js"), [], { TAPLINE_SKIP_BUILD: "1" });
  assert.is(status, 0);
  assert.match(
    stdout,
    /^tapline: TAPLINE_SKIP_BUILD=1, so the addon is not built; `npm run build:native` does it later\n$/,
  );
});

test("the install script answers a wrong setting with one sentence and exit code 1", () => {
  const { stderr, status } = run(join(root, "scripts/build/install.js"), [], { TAPLINE_BACKEND: "gpu" });
  assert.is(status, 1);
  assert.is(stderr, 'tapline: TAPLINE_BACKEND is cpu, cuda, metal or vulkan, not "gpu".\n');
});

test.run();
