import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";

/** Debian's package for each Python module that a check may want. */
const packages: Record<string, string> = {
  numpy: "python3-numpy",
  scipy: "python3-scipy",
  sklearn: "python3-sklearn",
  torch: "python3-torch",
};

export class MissingPackage extends Error {}

/**
 * The first interpreter that imports all modules: $TAPLINE_PYTHON alone if it is set, else python3 and /usr/bin/python3.
 * @throws MissingPackage with a sentence that names what to install.
 */
export function findPython(modules: readonly string[]): string {
  const chosen = process.env.TAPLINE_PYTHON;
  const candidates = chosen ? [chosen] : ["python3", "/usr/bin/python3"];
  const imports = modules.length === 0 ? "pass" : `import ${modules.join(", ")}`;
  const found = candidates.find((python) => spawnSync(python, ["-c", imports]).status === 0);
  if (found !== undefined) return found;
  const wanted = modules.map((name) => packages[name] ?? name).join(" ");
  throw new MissingPackage(
    `No Python (${candidates.join(", ")}) can import ${modules.join(", ")}: install Debian's ${wanted}, ` +
      "or name an interpreter in TAPLINE_PYTHON.",
  );
}

/** Runs a script of this folder and returns the JSON that it prints. */
export async function runPython(python: string, script: URL, args: string[]): Promise<unknown> {
  const { stdout } = await promisify(execFile)(python, ["-B", script.pathname, ...args], {
    maxBuffer: 1 << 26,
  });
  return JSON.parse(stdout);
}
