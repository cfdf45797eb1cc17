import { chmodSync, existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BuildError } from "./errors.js";
import { installPythonPackages } from "./python-packages.js";
import { cacheFolder } from "./source.js";

/** The oldest C library that released addons load with, that of Debian 10, RHEL 8 and Ubuntu 18.10. */
export const oldestGlibc = "2.28";

/** Zig's C and C++ compiler (clang) with headers and stubs of every glibc, as a package of the Python index. */
const zig = {
  name: "ziglang",
  version: "0.17.1",
  sha256: [
    "ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54", // x86-64 Linux
    "b7c5f02fccd40f89b999ee16a1f5ddced56e6182370f8affe494bcf8a28cf07e", // arm64 Linux
  ],
};

/** The names of processors outside of Node.js. */
export const processors = /** @type {Record<string, string>} */ ({ x64: "x86_64", arm64: "aarch64" });

/**
 * @typedef {object} Toolchain
 * @property {Record<string, string>} flags environment variables that name the compilers
 * @property {Record<string, string>} definitions CMake's -D options
 * @property {string} [folder] the compiler's
 */

/**
 * A compiler for Linux that links the C++ and OpenMP runtimes statically and needs no newer glibc than `oldestGlibc`,
 * on any machine.
 * @param {string} arch Node's name of the processor to compile for
 * @param {(sentence: string) => void} say
 * @returns {Toolchain}
 */
export function portableToolchain(arch, say) {
  const processor = processors[arch];
  if (process.platform !== "linux" || processor === undefined) {
    throw new BuildError(
      `Portable addons are compiled on Linux for x64 or arm64, got ${process.platform} and ${arch}.`,
    );
  }
  const target = `${processor}-linux-gnu.${oldestGlibc}`;
  const { folder, tool, flags } = zigCompiler(target, say);
  return {
    folder,
    flags: {
      ...flags,
      CCACHE_BASEDIR: "", // with one, the compiler gets relative paths, and __FILE__ is different without ccache
      SOURCE_DATE_EPOCH: process.env.SOURCE_DATE_EPOCH ?? "0",
    },
    definitions: {
      TAPLINE_PORTABLE: "ON",
      TAPLINE_COMPILER_FOLDER: folder,
      CMAKE_AR: tool("ar", "ar"),
      CMAKE_RANLIB: tool("ranlib", "ranlib"),
      ...(arch !== process.arch && { CMAKE_SYSTEM_NAME: "Linux", CMAKE_SYSTEM_PROCESSOR: processor }),
    },
  };
}

/**
 * Zig's C and C++ compiler for a target, e.g. "aarch64-macos": the environment variables that name it, and a function that
 * returns the path of another of its tools under a given name.
 * @param {string} target
 * @param {(sentence: string) => void} say
 */
export function zigCompiler(target, say) {
  const cache = cacheFolder(process.env);
  const what = `the portable compiler (ziglang ${zig.version}, 100 MB)`;
  const folder = installPythonPackages(join(cache, `zig-${zig.version}`), [zig], { what, say });
  const wrappers = join(folder, target);
  mkdirSync(wrappers, { recursive: true });
  /** @param {string} name @param {string} command */
  const tool = (name, command) => {
    const path = join(wrappers, name);
    if (!existsSync(path)) {
      writeFileSync(`${path}.${process.pid}`, `#!/bin/sh\nexec "${folder}/ziglang/zig" ${command} "$@"\n`);
      chmodSync(`${path}.${process.pid}`, 0o755);
      renameSync(`${path}.${process.pid}`, path);
    }
    return path;
  };
  const flags = {
    CC: tool("clang", `cc -target ${target}`), // a name by which ccache knows the compiler
    CXX: tool("clang++", `c++ -target ${target}`),
    CCACHE_COMPILERCHECK: `string:ziglang ${zig.version} ${target}`,
    ZIG_GLOBAL_CACHE_DIR: join(cache, "zig-cache"),
    ZIG_LOCAL_CACHE_DIR: join(cache, "zig-cache"),
  };
  return { folder, tool, flags };
}
