/** What the system's loader reports, and what helps better than to build the addon again. */
const remedies: readonly { message: RegExp; remedy: string }[] = [
  {
    message: /\blibgomp\.so\.1\b/,
    remedy:
      "install GCC's OpenMP library, which it is linked with (`sudo apt-get install libgomp1` or `sudo dnf install libgomp`)",
  },
  {
    message: /\b(libcuda\.so\.1|nvcuda\.dll)\b/,
    remedy:
      "it was built for CUDA and this machine has no NVIDIA driver: install the driver, or build for the CPU with `TAPLINE_BACKEND=cpu npm rebuild tapline`",
  },
  {
    message: /\b(libcudart|libcublas|libcublasLt)\.so\.(\d+)\b/,
    remedy:
      "it was built for CUDA and the CUDA runtime is not on the library path: add the toolkit's lib64 folder to LD_LIBRARY_PATH, or build for the CPU with `TAPLINE_BACKEND=cpu npm rebuild tapline`",
  },
];

/**
 * @param message the loader's own, e.g. "libcuda.so.1: cannot open shared object file: No such file or directory"
 * @returns what to do about it, or nothing if building for this machine is the remedy
 */
export function remedyFor(message: string): string | undefined {
  return remedies.find((each) => each.message.test(message))?.remedy;
}
