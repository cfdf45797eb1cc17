/** How `npm run verify:compiles` makes another compiler's arguments of CMake's. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { compilation, shellWords } from "../verify/compiles/arguments.js";

test("words are divided as a shell would", () => {
  assert.equal(shellWords(String.raw`cc -DNAME=\"cpu\" "-DTEXT=a \"b\"" -I/a\ b  x.cpp`), [
    "cc",
    '-DNAME="cpu"',
    '-DTEXT=a "b"',
    "-I/a b",
    "x.cpp",
  ]);
});

test("definitions and includes stay, and options of this machine go", () => {
  const command =
    "/usr/bin/ccache /usr/bin/c++ -DNAPI_VERSION=9 -D_GNU_SOURCE -D_XOPEN_SOURCE=600 -Inative -I../llama.cpp-v1.0.0/ggml/src -isystem /llama/src " +
    "-include fix.h -O3 -march=native -fPIC -fopenmp -std=gnu++17 -Wall -Wno-maybe-uninitialized -o x.o -c /r/native/a/x.cpp";
  const entry = { directory: "/r/.build/cpu", command, file: "/r/native/a/x.cpp" };
  const made = compilation(entry, "/r", "/tmp/out.o");
  assert.is(made?.file, "native/a/x.cpp");
  assert.equal(made?.args, [
    ...["-DNAPI_VERSION=9", "-Inative", "-isystem", "../llama.cpp-v1.0.0/ggml/src"],
    ...["-isystem", "/llama/src", "-include", "fix.h", "-std=gnu++17"],
    ...["-Wno-maybe-uninitialized", "-O2", "-Wall", "-Wextra", "-Werror"],
    ...["-c", "/r/native/a/x.cpp", "-o", "/tmp/out.o"],
  ]);
});

test("files of llama.cpp and those for Linux releases only are left out", () => {
  for (const file of [
    "/r/.build/llama.cpp/src/llama.cpp",
    "/r/native/openmp/team.cpp",
    "/r/native/levels/levels.cpp",
  ])
    assert.is(compilation({ directory: "/r", command: `cc -c ${file}`, file }, "/r", "o"), undefined, file);
  const everywhere = "/r/native/levels/one_level.cpp";
  const command = { directory: "/r", command: `cc -c ${everywhere}`, file: everywhere };
  assert.is.not(compilation(command, "/r", "o"), undefined);
});

test.run();
