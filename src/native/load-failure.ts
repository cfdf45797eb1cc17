import { compileCommand, type Installation, installation } from "./installed.js";

/** Errors of the system's loader with better remedies than rebuilding the addon. */
const remedies: readonly { message: RegExp; remedy: (compile: string) => string }[] = [
  { message: /^TAPLINE_LEVEL is /, remedy: () => "unset the variable, or name a level of the addon" },
  {
    message: /\blibgomp\.so\.1\b/,
    remedy: () =>
      "install GCC's OpenMP library, which it is linked with (`sudo apt-get install libgomp1` or `sudo dnf install libgomp`)",
  },
  {
    message: /\b(libcuda\.so\.1|nvcuda\.dll)\b/,
    remedy: (compile) =>
      `it was built for CUDA and this machine has no NVIDIA driver: install the driver, or build for the CPU with ${compile}`,
  },
  {
    message: /\b(libcudart|libcublas|libcublasLt)\.so\.(\d+)\b/,
    remedy: (compile) =>
      `it was built for CUDA and the CUDA runtime is not on the library path: add the toolkit's lib64 folder to LD_LIBRARY_PATH, or build for the CPU with ${compile}`,
  },
];

/**
 * @param message of the loader, e.g. "libcuda.so.1: cannot open shared object file: No such file or directory"
 * @returns a remedy, or undefined if it is a build for this machine
 */
export function remedyFor(message: string, how: Installation = installation()): string | undefined {
  const compile = compileCommand("TAPLINE_BACKEND=cpu", how);
  return remedies.find((each) => each.message.test(message))?.remedy(compile);
}
