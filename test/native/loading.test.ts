/** Which addon is loaded, how, and what is said where none can be: on files that are no addons. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
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
const { addonFiles, addonInUse, binding } = await import("../../src/native/load.js");
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

test("the addon that is named is the only one; else the one that was compiled here comes first", () => {
  assert.is(process.env.GGML_NO_BACKTRACE, "1", "no debugger is forked in a crash");
  const path = named();
  assert.equal(addonFiles(), { files: [{ path, variant: "named by TAPLINE_ADDON" }], refused: [] });
  delete process.env.TAPLINE_ADDON;
  const compiled = fileURLToPath(new URL("../../.build/tapline.node", import.meta.url));
  assert.ok(existsSync(compiled));
  assert.equal(addonFiles(), { files: [{ path: compiled, variant: "compiled here" }], refused: [] });
});

test("where none loads, it is said whether there is none or why it does not, and what to do", () => {
  const how = "run `npm rebuild tapline`, or `npm run build:native` in a clone";
  named();
  assert.is(
    refusal(),
    `AddonError: The native addon is not built; ${how} (npm 12 skips install scripts until \`npm install-scripts approve tapline\`).`,
  );
  named('throw new Error("GLIBC_9 is not there\\nsecond line");');
  assert.is(
    refusal(),
    `AddonError: The native addon does not load (GLIBC_9 is not there); to build it for this machine, ${how}.`,
  );
  named('throw "no error";');
  assert.match(refusal(), "does not load (no error)");
  assert.is(process.env.GOMP_SPINCOUNT, undefined, "what was set for it is taken back");
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
    `AddonError: The native addon does not load (libcuda.so.1: ${cannot}); it was built for CUDA and this machine has no NVIDIA driver: install the driver, or build for the CPU with \`TAPLINE_BACKEND=cpu npm rebuild tapline\`.`,
  );
  assert.match(refused("libcublas.so.13"), "the CUDA runtime is not on the library path");
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
