/**
 * What ggml's kernels in a released addon are compiled for; native/levels chooses at start. Nothing else is compiled more
 * than once: native/numbers has its own kernels for each instruction set, and nothing else is hot.
 * @typedef {object} Level
 * @property {string} name
 * @property {string[]} needs features that a processor must have, by Linux's names
 * @property {string[]} options of ggml, those that are on; on arm64 the one architecture
 */

/** What ggml's options mean to the compiler. */
const flags = /** @type {Record<string, string[]>} */ ({
  GGML_SSE42: ["-msse4.2"],
  GGML_AVX: ["-mavx"],
  GGML_F16C: ["-mf16c"],
  GGML_FMA: ["-mfma"],
  GGML_BMI2: ["-mbmi2"],
  GGML_AVX2: ["-mavx2"],
  GGML_AVX_VNNI: ["-mavxvnni"],
  GGML_AVX512: ["-mavx512f", "-mavx512cd", "-mavx512vl", "-mavx512dq", "-mavx512bw"],
  GGML_AVX512_VBMI: ["-mavx512vbmi"],
  GGML_AVX512_VNNI: ["-mavx512vnni"],
  GGML_AVX512_BF16: ["-mavx512bf16"],
});

const v2 = ["cx16", "lahf_lm", "popcnt", "ssse3", "sse4_1", "sse4_2"];
const v3 = [...v2, "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"];
const alderLake = [...v3, "avx_vnni"];
const v4 = [...v3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"];
const iceLake = [...v4, "avx512vbmi", "avx512_vnni"];
const zen4 = [...iceLake, "avx512_bf16"];

const avx2 = ["GGML_SSE42", "GGML_AVX", "GGML_F16C", "GGML_FMA", "GGML_BMI2", "GGML_AVX2"];
const avx2Vnni = [...avx2, "GGML_AVX_VNNI"];
const avx512 = [...avx2, "GGML_AVX512"];
const vnni = [...avx512, "GGML_AVX512_VBMI", "GGML_AVX512_VNNI"];
const bf16 = [...vnni, "GGML_AVX512_BF16"];

/** @type {Level[]} the best first: x86-64's levels, and the extensions beyond the last that ggml has kernels for */
const x64 = [
  { name: "x86-64-v4-bf16", needs: zen4, options: bf16 },
  { name: "x86-64-v4-vnni", needs: iceLake, options: vnni },
  { name: "x86-64-v4", needs: v4, options: avx512 },
  { name: "x86-64-v3-vnni", needs: alderLake, options: avx2Vnni },
  { name: "x86-64-v3", needs: v3, options: avx2 },
  { name: "x86-64-v2", needs: v2, options: ["GGML_SSE42"] },
  { name: "x86-64", needs: [], options: [] },
];

/**
 * Levels of arm64: extensions that ggml has kernels for, by the portable compiler's names.
 * @type {Level[]}
 */
const arm64 = [
  {
    name: "arm64-sve2",
    needs: ["asimd", "asimddp", "i8mm", "sve", "sve2", "svei8mm"],
    options: ["generic+dotprod+i8mm+sve2"],
  },
  { name: "arm64-i8mm", needs: ["asimd", "asimddp", "i8mm"], options: ["generic+dotprod+i8mm"] },
  { name: "arm64-dotprod", needs: ["asimd", "asimddp"], options: ["generic+dotprod"] },
  { name: "arm64", needs: [], options: ["generic"] },
];

/** Every option that a level may have on, to be off where it has not. */
const all = [...new Set(x64.flatMap(({ options }) => options))];

/** The level of x86-64 in addons with one level: of AVX2, which processors have had since 2013 to 2015. */
export const usualLevel = "x86-64-v3";

/**
 * The levels of a release for a platform. Only Linux reports processor features in a file. Other platforms get one level,
 * whose addon loads nowhere else (native/levels/one_level.cpp), so that an install compiles there.
 * @param {string} platform
 * @param {string} arch
 * @returns {Level[]} the best first
 */
export function levelsFor(platform, arch) {
  const levels = arch === "x64" ? x64 : arch === "arm64" ? arm64 : [{ name: arch, needs: [], options: [] }];
  if (platform === "linux") return levels;
  const one = levels.find(({ name }) => name === usualLevel) ?? levels.at(-1);
  return one === undefined ? [] : [{ ...one, needs: [] }];
}

/**
 * @param {Level} level
 * @param {string} platform
 * @param {string} arch
 * @returns {string} for TAPLINE_CMAKE_OPTIONS
 */
export function cmakeOptions(level, platform, arch) {
  const x64 = all.map((name) => `${name}=${level.options.includes(name) ? "ON" : "OFF"}`);
  const arm64 = level.options.map((name) => `GGML_CPU_ARM_ARCH=${name}`);
  const chosen = arch === "x64" ? x64 : arch === "arm64" && platform === "linux" ? arm64 : [];
  return ["GGML_NATIVE=OFF", ...chosen].join(" ");
}

/**
 * @param {Level[]} levels the best first; the last one is compiled with `cmakeOptions`
 * @returns {string} for CMake's TAPLINE_LEVELS
 */
export function levelList(levels) {
  return levels
    .map(({ name, options, needs }) => {
      const compiler = options.flatMap((each) => flags[each] ?? [`-march=${each}`]);
      return [name, compiler.join(","), needs.join(" ")].join("|");
    })
    .join("/");
}
