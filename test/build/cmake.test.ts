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

/** A CMake that notes each run and writes the cache that the real one would. */
function standIn(folder: string, tree: string): NodeJS.ProcessEnv {
  const bin = join(folder, "bin");
  mkdirSync(bin);
  const script = `#!/bin/sh
case "$1" in --version) echo "cmake version 3.25.1"; exit 0;; esac
case "$*" in *--help*) exit 0;; esac
echo "$*" >> "${join(folder, "runs")}"
mkdir -p "${tree}" && echo "# cache" > "${join(tree, "CMakeCache.txt")}"
`;
  writeFileSync(join(bin, "cmake"), script);
  chmodSync(join(bin, "cmake"), 0o755);
  return { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}`, CMAKE_GENERATOR: "Unix Makefiles" };
}

if (process.platform !== "win32") {
  test("configure keeps objects and drops CMake's cache when an option changes", async ({ folder }) => {
    const tree = join(folder, "tree");
    const files = {
      object: join(tree, "CMakeFiles", "tapline.dir", "native", "a.cpp.o"),
      check: join(tree, "CMakeFiles", "3.25.1", "CMakeCXXCompiler.cmake"),
      cache: join(tree, "CMakeCache.txt"),
    };
    const build = {
      tree,
      log: join(folder, "log"),
      cmake: "cmake",
      jobs: 1,
      llamaCpp: "0.5.0",
      definitions: { GGML_AVX2: "OFF" } as Record<string, string>,
      generator: "Unix Makefiles",
      env: standIn(folder, tree),
      onLine: () => {},
    };
    await configure(build);
    for (const path of [files.object, files.check]) {
      mkdirSync(join(path, ".."), { recursive: true });
      writeFileSync(path, "made before");
    }
    const runs = () => readFileSync(join(folder, "runs"), "utf8").trim().split("\n").length;
    const first = runs();
    await configure(build);
    assert.is(runs(), first, "nothing changed, so CMake does not run");

    writeFileSync(files.cache, "stale");
    await configure({ ...build, definitions: { GGML_AVX2: "ON" } });
    assert.ok(runs() > first, "CMake runs again");
    assert.is(readFileSync(files.cache, "utf8"), "# cache\n", "its cache is a new one");
    assert.not.ok(existsSync(files.check), "the compilers are looked at again");
    assert.ok(existsSync(files.object), "objects stay for Ninja or make to judge");
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
