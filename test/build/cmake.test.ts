import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import { delimiter, join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { configure, explainFailure } from "../../scripts/build/cmake.js";

const test = suite<{ folder: string }>("cmake");

test.before.each((context) => {
  context.folder = mkdtempSync(join(os.tmpdir(), "tapline-cmake-"));
});
test.after.each(({ folder }) => rmSync(folder, { recursive: true, force: true }));

/** A CMake that notes each run; as the real one it deletes CMakeFiles where it finds no cache, and writes one. */
function standIn(folder: string, tree: string): NodeJS.ProcessEnv {
  const bin = join(folder, "bin");
  mkdirSync(bin);
  const script = `#!/bin/sh
case "$1" in --version) echo "cmake version 3.25.1"; exit 0;; esac
case "$*" in *--help*) exit 0;; esac
echo "$*" >> "${join(folder, "runs")}"
mkdir -p "${tree}"
test -e "${join(tree, "CMakeCache.txt")}" || rm -rf "${join(tree, "CMakeFiles")}"
echo "$*" > "${join(tree, "CMakeCache.txt")}"
`;
  writeFileSync(join(bin, "cmake"), script);
  chmodSync(join(bin, "cmake"), 0o755);
  return { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}`, CMAKE_GENERATOR: "Unix Makefiles" };
}

if (process.platform !== "win32") {
  test("configure keeps objects when options change and starts afresh when one is gone", async ({
    folder,
  }) => {
    const tree = join(folder, "tree");
    const object = join(tree, "CMakeFiles", "tapline.dir", "native", "a.cpp.o");
    const check = join(tree, "CMakeFiles", "3.25.1", "CMakeCXXCompiler.cmake");
    const build = {
      tree,
      log: join(folder, "log"),
      cmake: "cmake",
      jobs: 1,
      llamaCpp: "0.5.0",
      generator: "Unix Makefiles",
      env: standIn(folder, tree),
      onLine: () => {},
    };
    /** Configures, and tells whether CMake ran, what it was told and which earlier files are left. */
    const configured = async (definitions: Record<string, string>, env = build.env) => {
      const runs = () => (existsSync(join(folder, "runs")) ? readFileSync(join(folder, "runs"), "utf8") : "");
      const before = runs();
      await configure({ ...build, definitions, env });
      const left = [object, check].map((path) => existsSync(path));
      for (const path of [object, check]) {
        mkdirSync(join(path, ".."), { recursive: true });
        writeFileSync(path, "made before");
      }
      return { told: runs().slice(before.length), left };
    };
    await configured({ GGML_AVX2: "OFF" });
    assert.equal(await configured({ GGML_AVX2: "OFF" }), { told: "", left: [true, true] });

    const changed = await configured({ GGML_AVX2: "ON", GGML_FMA: "ON" });
    assert.match(changed.told, /-DGGML_AVX2=ON -DGGML_FMA=ON/);
    assert.equal(changed.left, [true, true], "objects stay for Ninja or make to judge");

    // CMake would keep what it is not told any more, and looks at its tools only once.
    assert.equal((await configured({ GGML_AVX2: "ON" })).left, [false, false]);
    assert.equal((await configured({ GGML_AVX2: "ON", CMAKE_AR: "/ar" })).left, [false, false]);
    const other = { ...build.env, CC: "/other/cc" };
    assert.equal((await configured({ GGML_AVX2: "ON", CMAKE_AR: "/ar" }, other)).left, [false, false]);
  });
}

test("explainFailure shows the reason that follows a CMake error", () => {
  const lines = [
    "-- Detecting CXX compile features - done",
    "CMake Error at CMakeLists.txt:19 (message):",
    "  TAPLINE_BACKEND is cpu, cuda, metal or vulkan, not 'gpu'.",
    "",
    "",
    "-- Configuring incomplete, errors occurred!",
    "ERROR OMG Process terminated: 1",
  ];
  assert.is(
    explainFailure(lines, { log: "cpu.log", jobs: 4 }),
    `The build failed; its whole output is in cpu.log.
  CMake Error at CMakeLists.txt:19 (message):
    TAPLINE_BACKEND is cpu, cuda, metal or vulkan, not 'gpu'.`,
  );
});

test("explainFailure shows all paragraphs of a CMake error and its call stack", () => {
  const lines = [
    "CMake Error at /usr/share/cmake/Modules/FindCUDA.cmake:3 (message):",
    "  Could NOT find CUDAToolkit",
    "",
    "  (missing: CUDA_CUDART)",
    "Call Stack (most recent call first):",
    "  ggml/CMakeLists.txt:9 (find_package)",
  ];
  assert.is(
    explainFailure(lines, { log: "x", jobs: 1 }).split("\n").slice(1).join("\n"),
    `  CMake Error at /usr/share/cmake/Modules/FindCUDA.cmake:3 (message):
    Could NOT find CUDAToolkit
    (missing: CUDA_CUDART)`,
  );
});

test.run();
