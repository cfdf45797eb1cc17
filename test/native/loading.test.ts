/** The choice of the addon, its loading, and the messages if none loads: on files that aren't addons. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";

const folder = mkdtempSync(join(tmpdir(), "tapline-loading-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));
delete process.env.GGML_NO_BACKTRACE;
delete process.env.OMP_WAIT_POLICY;
delete process.env.GOMP_SPINCOUNT;
const { addonFiles, addonInUse, binding, loadFailure } = await import("../../src/native/load.js");
const { installation } = await import("../../src/native/installed.js");
const { backendInfo } = await import("../../src/native/index.js");

/** Names a file of this text as the addon. */
function named(text?: string): string {
  const path = join(folder, `${Math.random()}.cjs`);
  if (text !== undefined) writeFileSync(path, text);
  process.env.TAPLINE_ADDON = path;
  return path;
}

const refusal = () => {
  try {
    binding();
  } catch (error) {
    return `${(error as Error).name}: ${(error as Error).message}`;
  }
  return "loaded";
};

test("a named addon is the only one; else the one compiled here comes first", () => {
  assert.is(process.env.GGML_NO_BACKTRACE, "1", "no debugger is forked in a crash");
  const path = named();
  assert.equal(addonFiles(), { files: [{ path, variant: "named by TAPLINE_ADDON" }], refused: [] });
  delete process.env.TAPLINE_ADDON;
  const compiled = fileURLToPath(new URL("../../.build/tapline.node", import.meta.url));
  assert.ok(existsSync(compiled));
  assert.equal(addonFiles(), { files: [{ path: compiled, variant: "compiled here" }], refused: [] });
});

test("a failed load reports whether the addon is missing or why it fails", () => {
  const how = "run `npm run build:native`";
  named();
  assert.is(refusal(), `AddonError: The native addon is not built; ${how}.`);
  named('throw new Error("GLIBC_9 is not there\\nsecond line");');
  assert.is(
    refusal(),
    `AddonError: The native addon does not load (GLIBC_9 is not there); to build it for this machine, ${how}.`,
  );
  named('throw "no error";');
  assert.match(refusal(), "does not load (no error)");
  assert.is(process.env.GOMP_SPINCOUNT, undefined, "the temporary setting is removed");
});

test("a missing library's remedy is named", () => {
  const cannot = "cannot open shared object file: No such file or directory";
  const refused = (library: string) => {
    named(`throw new Error("${library}: ${cannot}");`);
    return refusal();
  };
  assert.is(
    refused("libgomp.so.1"),
    `AddonError: The native addon does not load (libgomp.so.1: ${cannot}); install GCC's OpenMP library, which it is linked with (\`sudo apt-get install libgomp1\` or \`sudo dnf install libgomp\`).`,
  );
  assert.is(
    refused("libcuda.so.1"),
    `AddonError: The native addon does not load (libcuda.so.1: ${cannot}); it was built for CUDA and this machine has no NVIDIA driver: install the driver, or build for the CPU with \`TAPLINE_BACKEND=cpu npm run build:native\`.`,
  );
  assert.match(refused("libcublas.so.13"), "the CUDA runtime is not on the library path");
});

test("advice names the command for how tapline was installed", () => {
  const modules = join(folder, "node_modules", "tapline");
  mkdirSync(join(modules, "scripts", "build"), { recursive: true });
  mkdirSync(join(folder, "wheel"));
  assert.equal(
    [installation(modules), installation(join(folder, "wheel")), installation()],
    ["npm", "wheel", "clone"],
  );
  assert.is(
    loadFailure("Cannot find module 'x'", ["tapline-linux-x64 1.0.0 is not installed"], "npm"),
    "The native addon is not built (tapline-linux-x64 1.0.0 is not installed); run `npm rebuild tapline --build-from-source` (npm 12 skips install scripts until `npm install-scripts approve tapline`).",
  );
  assert.is(
    loadFailure("Cannot find module 'x'", [], "wheel"),
    "The native addon is missing; reinstall it with `pip install --force-reinstall tapline-lab`.",
  );
  assert.is(
    loadFailure("GLIBC_9 is not there", [], "wheel"),
    "The native addon does not load (GLIBC_9 is not there); reinstall it with `pip install --force-reinstall tapline-lab`.",
  );
  assert.match(
    loadFailure("libcuda.so.1: no such file", [], "npm"),
    /build for the CPU with `TAPLINE_BACKEND=cpu npm rebuild tapline --build-from-source`\.$/,
  );
});

test("an unknown level of kernels is refused, not replaced by the best", () => {
  named('module.exports = { backendInfo: () => ({ level: "x86-64-v3" }), endOperations() {} };');
  process.env.TAPLINE_LEVEL = "x86-64-v9";
  assert.is(
    refusal(),
    "AddonError: The native addon does not load (TAPLINE_LEVEL is x86-64-v9, and the addon's level is x86-64-v3); unset the variable, or name a level of the addon.",
  );
  delete process.env.TAPLINE_LEVEL;
});

test("the addon loads once, sets the spin count, and ends with the process", () => {
  const path = named(
    `const spins = process.env.GOMP_SPINCOUNT; let ended = 0;
     module.exports = { backendInfo: () => ({ spins, ended }), endOperations: () => void ended++ };`,
  );
  const before = new Set(process.rawListeners("exit"));
  assert.equal(addonInUse(), { path, variant: "named by TAPLINE_ADDON", passedOver: [] });
  const info = () => backendInfo() as unknown as { spins: string; ended: number };
  assert.equal(info(), { spins: "4000", ended: 0 });
  assert.is(process.env.GOMP_SPINCOUNT, undefined);
  const own = process.rawListeners("exit").filter((listener) => !before.has(listener));
  assert.is(own.length, 1);
  own[0]!.call(process, 0);
  assert.is(info().ended, 1);
  const first = binding();
  named();
  assert.is(binding(), first);
  assert.is(addonInUse().path, path);
});

test.run();
