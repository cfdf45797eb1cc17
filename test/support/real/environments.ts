import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { withLock } from "../../../scripts/build/lock.js";
import { realFolder, runProgram } from "./cache.js";

/** The tools that tapline is measured against, each in a separate virtual environment; one for notebooks; OpenAI's client. */
export const environmentNames = [
  "transformers",
  "transformer-lens",
  "nnsight",
  "steering-vectors",
  "repeng",
  "saelens",
  "bitsandbytes",
  "interp-engine",
  "notebooks",
  "openai",
  "lm-eval",
  "inspect",
  "scale",
  "circuit-tracer",
] as const;
export type EnvironmentName = (typeof environmentNames)[number];

/** A Python from 3.10 on that can make virtual environments. */
export function environmentPython(): string {
  const test = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
  const candidates = ["python3", "/usr/bin/python3", "python3.12", "python3.11"];
  const found = candidates.find((python) => spawnSync(python, ["-c", test]).status === 0);
  if (found === undefined) {
    throw new Error(
      `No Python from 3.10 on with venv and pip (${candidates.join(", ")}): install Debian's python3-venv.`,
    );
  }
  return found;
}

/** An environment's packages, and where it is or will be. */
async function described(name: EnvironmentName) {
  const list = fileURLToPath(new URL(`./environments/${name}.txt`, import.meta.url));
  const text = await readFile(list, "utf8");
  const stamp = createHash("sha256").update(text).digest("hex");
  const folder = join(realFolder, "environments", name);
  const stampFile = join(folder, "tapline-stamp");
  const made = (await readFile(stampFile, "utf8").catch(() => "")) === stamp;
  return { list, text, stamp, folder, python: join(folder, "bin", "python"), stampFile, made };
}

/**
 * The interpreter of a tool's environment, made on first use with the versions of `environments/NAME.txt`. One that has been
 * made and has these versions among others serves, too. The line of torch, where there is one, goes first: what asks for torch
 * without a version would bring another build.
 */
export async function environment(name: EnvironmentName): Promise<string> {
  const { list, text, stamp, folder, python, stampFile, made } = await described(name);
  if (made) return python;
  const packages = text.trim().split("\n");
  for (const other of environmentNames) {
    const larger = await described(other);
    const all = new Set(larger.text.split("\n"));
    if (larger.made && packages.every((line) => all.has(line))) return larger.python;
  }
  const waiting = (pid: number) =>
    console.error(`Waiting for process ${pid}, which makes the environment of ${name}.`);
  return withLock(`${folder}.lock`, waiting, async () => {
    if ((await described(name)).made) return python;
    console.error(`Making the environment of ${name} in ${folder}.`);
    await rm(folder, { recursive: true, force: true });
    await runProgram(environmentPython(), ["-m", "venv", folder]);
    const torch = text.split("\n").find((line) => line.startsWith("torch=="));
    if (torch !== undefined) await runProgram(python, ["-m", "pip", "install", "-q", torch]);
    await runProgram(python, ["-m", "pip", "install", "-q", "--no-deps", "-r", list]);
    await writeFile(stampFile, stamp);
    return python;
  });
}
