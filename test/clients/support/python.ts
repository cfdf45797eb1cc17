import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../..", import.meta.url));

/** Where the clients' sources are, for PYTHONPATH. */
export const clientSources = ["tapline_lab", "agent_research"].map(
  (name) => `${root}clients/python/${name}/src`,
);

/**
 * A Python of at least 3.10 that can import the modules, where there is one: TAPLINE_PYTHON first.
 * @throws where there is no such Python at all: without one the clients are not tested, and that is a failure
 */
export function findPython(...modules: string[]): string | undefined {
  const candidates = [process.env.TAPLINE_PYTHON, "python3", "/usr/bin/python3", "python"].filter(
    (name) => name !== undefined && name !== "",
  ) as string[];
  const runs = (python: string, program: string) =>
    spawnSync(python, ["-c", program], { stdio: "ignore" }).status === 0;
  const recent = candidates.filter((python) =>
    runs(python, "import sys; assert sys.version_info >= (3, 10)"),
  );
  if (recent.length === 0) {
    throw new Error(
      `The Python clients cannot be tested: none of ${candidates.join(", ")} is Python 3.10 or newer. Install one, or ` +
        "name it in TAPLINE_PYTHON.",
    );
  }
  return recent.find((python) => modules.length === 0 || runs(python, `import ${modules.join(", ")}`));
}

/** TAPLINE_PYTHON, or one with NumPy where there is one: without, the tests of arrays are skipped. */
export function pythonForTests(): string {
  const named = process.env.TAPLINE_PYTHON;
  const any = findPython() as string;
  return any === named ? any : (findPython("numpy") ?? any);
}

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs a program to its end. The environment is this process's with changes; undefined removes. */
export function runProgram(
  program: string,
  words: string[],
  options: { environment?: Record<string, string | undefined>; folder?: string } = {},
): Promise<Ended> {
  const child = spawn(program, words, {
    cwd: options.folder,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1", PYTHONUTF8: "1", ...options.environment },
  });
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text) => {
      output[name] += text;
    });
  }
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, ...output }));
  });
}
