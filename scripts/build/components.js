/**
 * What the addon is linked with statically, for its licences and its list of components. NOTICE names each.
 * @typedef {object} Component
 * @property {string} name as in NOTICE
 * @property {string} version
 * @property {string} license an SPDX expression
 * @property {string} [purl] where the component is known by a package URL
 * @property {string} [text] file with the licence, if its terms require that it travels along
 */
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { BuildError } from "./errors.js";
import { llamaCpp } from "./llama.js";

const resolve = createRequire(import.meta.url).resolve;

/**
 * @param {string} source llama.cpp's tree
 * @param {string} [zig] folder of the portable compiler, whose libraries a portable addon contains
 * @returns {Component[]}
 */
export function nativeComponents(source, zig) {
  const vendor = join(source, "vendor");
  const ggml = join(source, "ggml/CMakeLists.txt");
  return [
    {
      name: "llama.cpp",
      version: llamaCpp.version,
      license: "MIT",
      purl: `pkg:github/ggml-org/llama.cpp@v${llamaCpp.version}`,
      text: join(source, "LICENSE"),
    },
    {
      name: "ggml",
      version: versionIn(
        ggml,
        /GGML_VERSION_MAJOR (\d+)\)\s+set\(GGML_VERSION_MINOR (\d+)\)\s+set\(GGML_VERSION_PATCH (\d+)/,
      ),
      license: "MIT",
      text: join(source, "LICENSE"),
    },
    {
      name: "llamafile sgemm",
      version: llamaCpp.version,
      license: "MIT",
      text: join(source, "ggml/src/ggml-cpu/llamafile/sgemm.cpp"),
    },
    {
      name: "cpp-httplib",
      version: versionIn(join(vendor, "cpp-httplib/httplib.h"), /define CPPHTTPLIB_VERSION "([\d.]+)"/),
      license: "MIT",
      purl: "pkg:github/yhirose/cpp-httplib",
      text: join(vendor, "cpp-httplib/LICENSE"),
    },
    {
      name: "nlohmann/json",
      version: versionIn(
        join(vendor, "nlohmann/json.hpp"),
        /VERSION_MAJOR (\d+)[^\n]*\n#define NLOHMANN_JSON_VERSION_MINOR (\d+)[^\n]*\n#define NLOHMANN_JSON_VERSION_PATCH (\d+)/,
      ),
      license: "MIT",
      purl: "pkg:github/nlohmann/json",
      text: join(source, "licenses/LICENSE-jsonhpp"),
    },
    {
      name: "miniaudio",
      version: versionIn(
        join(vendor, "miniaudio/miniaudio.h"),
        /MA_VERSION_MAJOR +(\d+)\s+#define MA_VERSION_MINOR +(\d+)\s+#define MA_VERSION_REVISION +(\d+)/,
      ),
      license: "Unlicense OR MIT-0",
      purl: "pkg:github/mackron/miniaudio",
    },
    {
      name: "stb_image",
      version: versionIn(join(vendor, "stb/stb_image.h"), /stb_image - v([\d.]+)/),
      license: "MIT OR Unlicense",
      purl: "pkg:github/nothings/stb",
    },
    { name: "sheredom/subprocess.h", version: llamaCpp.version, license: "Unlicense" },
    { name: "SHA-256", version: llamaCpp.version, license: "LicenseRef-public-domain" },
    {
      name: "rotate-bits",
      version: llamaCpp.version,
      license: "MIT",
      text: join(vendor, "hash/rotate-bits/LICENSE.md"),
    },
    npmPackage("node-addon-api", "LICENSE.md"),
    npmPackage("node-api-headers", "LICENSE"),
    ...(zig === undefined ? [] : compilerLibraries(zig)),
  ];
}

/**
 * SQLite's addon in a wheel, compiled like ours.
 * @returns {Component[]}
 */
export function sqliteComponents() {
  const own = npmPackage("@photostructure/sqlite", "LICENSE");
  const header = join(dirname(resolve("@photostructure/sqlite/package.json")), "src/upstream/sqlite3.h");
  return [
    own,
    {
      name: "SQLite",
      version: versionIn(header, /define SQLITE_VERSION +"([\d.]+)"/),
      license: "blessing",
      purl: "pkg:github/sqlite/sqlite",
    },
  ];
}

/**
 * What NVIDIA's headers compile into kernels. Its libraries are not in the package.
 * @param {string} home the toolkit's folder
 * @returns {Component[]}
 */
export function cudaComponents(home) {
  const folder = join(home, "include/cccl/cub");
  const number = Number(versionIn(join(folder, "version.cuh"), /define CUB_VERSION (\d+)/));
  return [
    {
      name: "CUB and libcu++",
      version: [Math.floor(number / 100_000), Math.floor(number / 100) % 1000, number % 100].join("."),
      license: "BSD-3-Clause AND Apache-2.0 WITH LLVM-exception",
      purl: "pkg:github/nvidia/cccl",
      text: join(folder, "cub.cuh"),
    },
  ];
}

/** @param {string} zig @returns {Component[]} */
function compilerLibraries(zig) {
  const folder = join(zig, "ziglang");
  const version = versionIn(
    join(folder, "lib/libcxx/include/__config"),
    /define _LIBCPP_VERSION (\d+)/,
  ).replace(/^(\d+)(\d\d)(\d\d)$/, (_, major, minor, patch) => [major, minor, patch].map(Number).join("."));
  const license = "Apache-2.0 WITH LLVM-exception";
  const purl = "pkg:github/llvm/llvm-project";
  return [
    ...["libcxx", "libcxxabi", "libunwind"].map((name) => ({
      name: name.replace("libcxx", "libc++"),
      version,
      license,
      purl,
      text: join(folder, "lib", name, "LICENSE.TXT"),
    })),
    {
      name: "Zig's compiler-rt",
      version: /zig-([\d.]+)/.exec(zig)?.[1] ?? "",
      license: "MIT",
      purl: "pkg:pypi/ziglang",
      text: join(folder, "LICENSE"),
    },
  ];
}

/**
 * @param {string} name
 * @param {string} license its file
 * @returns {Component}
 */
function npmPackage(name, license) {
  const file = resolve(`${name}/package.json`);
  const about = JSON.parse(readFileSync(file, "utf8"));
  return {
    name,
    version: about.version,
    license: about.license,
    purl: `pkg:npm/${name.replace("@", "%40")}`,
    text: join(dirname(file), license),
  };
}

/**
 * @param {string} file
 * @param {RegExp} pattern with one group per number
 */
function versionIn(file, pattern) {
  const found = existsSync(file) ? pattern.exec(readFileSync(file, "utf8")) : null;
  if (found === null) throw new BuildError(`The version of a component was not found in ${file}.`);
  return found.slice(1).join(".");
}

/**
 * The licence of a component: its file, or of a source file the comment at its beginning.
 * @param {string} path
 */
export function licenceText(path) {
  const text = readFileSync(path, "utf8");
  if (!/\.(c|cpp|cuh|h)$/.test(path)) return text;
  const block = /^\/\*+\n([\s\S]*?)\n[ *]*\*\//.exec(text)?.[1];
  if (block !== undefined) return `${block.replaceAll(/^ \* ?/gm, "")}\n`;
  const lines = text.split("\n");
  const end = lines.findIndex((line) => !line.startsWith("//"));
  return `${lines
    .slice(0, end)
    .map((line) => line.replace(/^\/\/ ?/, ""))
    .join("\n")}\n`;
}
