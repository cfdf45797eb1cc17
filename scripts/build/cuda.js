import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BuildError } from "./errors.js";
import { installPythonPackages } from "./python-packages.js";
import { cacheFolder } from "./source.js";

/**
 * NVIDIA's compiler, runtime and cuBLAS as packages of the Python index, for x86-64 Linux. CUDA 13.0 is the oldest whose
 * packages include nvcc, and addons made with it run with drivers from 580.
 */
const packages = [
  pinned("nvidia-cuda-nvcc", "13.0.88", "56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03"),
  pinned("nvidia-nvvm", "13.0.88", "c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0"),
  pinned("nvidia-cuda-crt", "13.0.88", "2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4"),
  pinned(
    "nvidia-cuda-runtime",
    "13.0.96",
    "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
  ),
  pinned("nvidia-cuda-cccl", "13.0.85", "e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649"),
  pinned("nvidia-cublas", "13.0.2.14", "0cf238ffdbe46c00cb9aa98e7bca745c223a5ca5a53e686ac8b3e5a08fe80d6c"),
];

/**
 * The cards that a released addon with CUDA is compiled for, in CMake's words: Turing as code that the driver compiles at
 * the first start, for Turing and later cards; Ampere, Ada, Hopper and Blackwell as machine code.
 */
export const cudaArchitectures = "75-virtual;80-real;86-real;89-real;90-real;120a-real";

/** @param {string} name @param {string} version @param {string} sha256 */
function pinned(name, version, sha256) {
  return { name, version, sha256: [sha256] };
}

/**
 * Installs a toolkit that needs no GPU, no driver and no installation by the system.
 * @param {(sentence: string) => void} say
 * @returns {{ home: string, flags: Record<string, string>, definitions: Record<string, string> }} its folder, and what
 *   names it for our build and for CMake, which would otherwise take one on the PATH
 */
export function cudaToolkit(say) {
  const folder = join(cacheFolder(process.env), `cuda-${packages[0]?.version}`);
  const what = `NVIDIA's compiler, runtime and cuBLAS for CUDA 13.0 (530 MB to download, 1 GB)`;
  const home = (/** @type {string} */ at) => join(at, "nvidia", "cu13");
  installPythonPackages(folder, packages, { what, say, finish: (at) => complete(home(at)) });
  const nvcc = join(home(folder), "bin", "nvcc");
  return {
    home: home(folder),
    flags: { CUDACXX: nvcc, CUDA_PATH: home(folder) },
    definitions: { CUDAToolkit_ROOT: home(folder) },
  };
}

/**
 * Adds what NVIDIA's installer would: names without versions, which linkers look for, and a stub of the driver's library.
 * @param {string} home
 */
function complete(home) {
  symlinkSync("lib", join(home, "lib64"));
  for (const name of ["libcudart.so", "libcublas.so", "libcublasLt.so"]) {
    symlinkSync(`${name}.13`, join(home, "lib", name));
  }
  const stubs = join(home, "lib", "stubs");
  mkdirSync(stubs);
  const source = join(stubs, "libcuda.c");
  writeFileSync(source, driverStub(declarations(home)));
  execFileSync(process.env.CC || "cc", [
    "-shared",
    "-fPIC",
    "-w",
    "-Wl,-soname,libcuda.so.1",
    "-o",
    join(stubs, "libcuda.so"),
    source,
  ]);
  rmSync(source);
}

/**
 * The driver's functions as its header declares them, under the names that programs call: the header renames many,
 * for example cuMemAlloc to cuMemAlloc_v2.
 * @param {string} home
 */
function declarations(home) {
  const header = join(home, "include", "cuda.h");
  const text = execFileSync(process.env.CC || "cc", ["-E", "-P", header], {
    encoding: "utf8",
    maxBuffer: 2 ** 28,
  });
  const names = functionsOf(text);
  if (names.length < 300) {
    throw new BuildError(
      `${header} declares ${names.length} functions of the driver, and at least 300 are expected.`,
    );
  }
  return names;
}

/** @param {string} text a preprocessed header @returns {string[]} */
export function functionsOf(text) {
  return [
    ...new Set([...text.matchAll(/\bCUresult\s+(cu[A-Z]\w*)\s*\(/g)].map((match) => match[1] ?? "")),
  ].sort();
}

/**
 * A library to link with and not to run: each function returns the code of a missing device.
 * @param {string[]} names
 */
export function driverStub(names) {
  return `${names.map((name) => `int ${name}(void) { return 100; }`).join("\n")}\n`;
}

/**
 * Checks architectures in CMake's words.
 * @param {string} list e.g. "80-real;90"
 */
export function checkArchitectures(list) {
  const unknown = list.split(";").find((each) => !/^\d{2,3}[af]?(-real|-virtual)?$/.test(each));
  if (unknown === undefined) return list;
  throw new BuildError(
    `--cuda-architectures takes CMake's names such as 90 or "80-real;90-virtual", not "${unknown}".`,
  );
}
