import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("./docstrings.py", import.meta.url));

/** The Python packages' pages, by their path in the repository. @throws if the program fails */
export function pythonPages(root: string, python: string): Record<string, string> {
  const { stdout, stderr, status } = spawnSync(python, ["-B", program, join(root, "clients/python")], {
    encoding: "utf8",
    env: { ...process.env, PYTHONIOENCODING: "utf-8" },
    maxBuffer: 2 ** 24,
  });
  if (status !== 0) throw new Error(`docstrings.py failed: ${stderr}`);
  return JSON.parse(stdout);
}
