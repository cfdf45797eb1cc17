import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { checkDisk, checkToolchain } from "../../scripts/build/toolchain.js";

const test = suite<{ bin: string }>("toolchain");
const posix = process.platform !== "win32";

test.before.each((context) => {
  context.bin = mkdtempSync(join(os.tmpdir(), "tapline-bin-"));
});
test.after.each(({ bin }) => rmSync(bin, { recursive: true, force: true }));

function put(bin: string, ...names: string[]) {
  for (const name of names) {
    const version = name === "cmake" ? "echo cmake version 3.25.1" : "true";
    writeFileSync(join(bin, name), `#!/bin/sh\n${version}\n`);
    chmodSync(join(bin, name), 0o755);
  }
}

function sentence(bin: string, backend = "cpu", platform = "linux"): string {
  try {
    checkToolchain(backend, { env: { PATH: bin }, platform });
    return "";
  } catch (error) {
    assert.is((error as Error).name, "BuildError");
    return (error as Error).message;
  }
}

test("no CMake: one sentence with the platform's command", ({ bin }) => {
  assert.is(
    sentence(bin),
    "CMake is not on the PATH: install it (`sudo apt-get install cmake` or your distribution's package) and run `npm run build:native` again.",
  );
  assert.match(sentence(bin, "cpu", "darwin"), /`brew install cmake`/);
  assert.match(sentence(bin, "cpu", "win32"), /`winget install Kitware\.CMake`/);
});

if (posix) {
  test("an old CMake reports the required version", ({ bin }) => {
    put(bin, "cmake");
    writeFileSync(join(bin, "cmake"), "#!/bin/sh\necho cmake version 3.18.4\n");
    assert.match(sentence(bin), /^CMake 3\.18 is too old \(3\.21 or newer is needed\): /);
  });

  test("a CMake that does not run is not reported as old", ({ bin }) => {
    put(bin, "cmake");
    writeFileSync(join(bin, "cmake"), "#!/bin/sh\nexit 1\n");
    assert.match(sentence(bin), /^\S+cmake does not run: install it /);
  });

  test("no compiler, no make: one sentence each", ({ bin }) => {
    put(bin, "cmake");
    assert.match(
      sentence(bin),
      /^No C\+\+ compiler is on the PATH: install it \(`sudo apt-get install g\+\+`/,
    );
    put(bin, "c++");
    assert.match(sentence(bin), /^No C compiler is on the PATH: install it \(`sudo apt-get install gcc`/);
    put(bin, "cc");
    assert.match(sentence(bin), /^Neither Ninja nor make is on the PATH: install it /);
    put(bin, "make");
    assert.is(sentence(bin), "");
  });

  test("ccache and Ninja are used when present", ({ bin }) => {
    put(bin, "cmake", "c++", "cc", "ninja", "ccache");
    const tools = checkToolchain("cpu", { env: { PATH: bin }, platform: "linux" });
    assert.equal(tools, {
      cmake: join(bin, "cmake"),
      ninja: join(bin, "ninja"),
      ccache: join(bin, "ccache"),
    });
  });

  test("a backend that cannot be built here lists its requirements", ({ bin }) => {
    put(bin, "cmake", "c++", "cc", "ninja");
    assert.match(sentence(bin, "vulkan"), /^TAPLINE_BACKEND=vulkan needs the Vulkan SDK/);
    assert.match(sentence(bin, "metal"), /^TAPLINE_BACKEND=metal works on macOS only/);
    if (!existsSync("/usr/local/cuda/bin/nvcc")) {
      assert.match(sentence(bin, "cuda"), /^TAPLINE_BACKEND=cuda needs NVIDIA's CUDA toolkit/);
    }
  });

  test("a CUDA toolkit without cuBLAS is refused before anything is compiled", ({ bin }) => {
    put(bin, "cmake", "c++", "cc", "ninja", "nvcc");
    const check = (found: string[]) =>
      checkToolchain("cuda", {
        env: { PATH: bin },
        platform: "linux",
        exists: (path) => [join(bin, "nvcc"), ...found].includes(path),
      });
    assert.throws(
      () => check([]),
      (error: Error) =>
        error.message ===
        `TAPLINE_BACKEND=cuda needs cuBLAS, and the CUDA toolkit of ${join(bin, "nvcc")} comes without its headers: install NVIDIA's full toolkit (or its package libcublas-dev), or build for the CPU with TAPLINE_BACKEND=cpu.`,
    );
    assert.not.throws(() => check(["/usr/local/cuda/include/cublas_v2.h"]));
  });
}

test("a full disk: one sentence with the folder", ({ bin }) => {
  assert.throws(
    () => checkDisk(bin, "cpu", () => 1e6),
    /^Error: Less than 500 MB are free in |Less than 500 MB are free in /,
  );
  assert.not.throws(() => checkDisk(bin, "cpu", () => 1e12));
});

test.run();
