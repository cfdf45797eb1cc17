import { spawnSync } from "node:child_process";

/**
 * A Python 3 that can import all the named modules, or nothing. TAPLINE_PYTHON is tried first; several Pythons on
 * one machine, only one of which has NumPy, are common.
 */
export function pythonWith(...modules: string[]): string | undefined {
  const program = modules.length > 0 ? `import ${modules.join(", ")}` : "pass";
  const candidates = [process.env.TAPLINE_PYTHON, "python3", "/usr/bin/python3", "python"];
  return candidates.find((python) => {
    return python !== undefined && spawnSync(python, ["-c", program], { stdio: "ignore" }).status === 0;
  });
}
