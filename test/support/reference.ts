import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";

/** Arrays for a Python program, written as files of raw little-endian numbers, and other values as JSON. */
export type ReferenceInput = Record<
  string,
  Float32Array | Float64Array | Int32Array | Uint8Array | number | string | boolean
>;

const kinds = [
  [Float32Array, "<f4"],
  [Float64Array, "<f8"],
  [Int32Array, "<i4"],
] as const;

/**
 * Runs a Python program of test/verify with one argument, a folder that holds `input.json` (numbers, and for each
 * array its NumPy type; its data is in a file of its name), and parses what it prints as JSON.
 */
export function reference<T>(
  python: string,
  program: string,
  input: ReferenceInput,
  env: NodeJS.ProcessEnv = {},
): T {
  const folder = mkdtempSync(path.join(os.tmpdir(), "tapline-reference-"));
  try {
    const plain: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(input)) {
      if (typeof value !== "object") {
        plain[name] = value;
        continue;
      }
      const type = kinds.find(([kind]) => value instanceof kind)?.[1] ?? "u1";
      writeFileSync(path.join(folder, name), value);
      plain[name] = { array: type };
    }
    writeFileSync(path.join(folder, "input.json"), JSON.stringify(plain));
    const { status, stdout, stderr } = spawnSync(python, ["-B", program, folder], {
      encoding: "utf8",
      maxBuffer: 1 << 28,
      env: { ...process.env, ...env },
    });
    if (status !== 0) throw new Error(`${path.basename(program)} failed: ${stderr.trim()}`);
    return JSON.parse(stdout) as T;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
