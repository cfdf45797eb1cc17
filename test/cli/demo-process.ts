import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync } from "node:fs";
import { join } from "node:path";
import * as assert from "uvu/assert";
import { program } from "../support/program.js";
import { until } from "../support/until.js";
import { canListProcesses, processesMarked } from "./processes.js";

/** `tapline demo` in a separate process. */
export interface Run {
  child: ChildProcess;
  /** Occurs in the environment of every process of this run. */
  mark: string;
  /** Where the demo was started. */
  folder: string;
  /** The run's own folder for temporary files. */
  temporary: string;
  ended: Promise<{ code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string }>;
}

/** Starts it in a new folder below `root`. */
export function demo(root: string, words: string[] = [], environment: Record<string, string> = {}): Run {
  const folder = mkdtempSync(join(root, "run-"));
  const temporary = join(folder, "tmp");
  mkdirSync(temporary);
  const mark = `TAPLINE_TEST_RUN=${randomUUID()}`;
  const child = spawn(process.execPath, [...program, "demo", ...words], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      FORCE_COLOR: "0",
      TAPLINE_HOME: join(folder, "home"),
      TMPDIR: temporary,
      TAPLINE_TEST_RUN: mark.split("=")[1],
      ...environment,
    },
  });
  const output = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk) => {
    output.stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    output.stderr += chunk;
  });
  const ended = once(child, "close").then(([code, signal]) => ({ code, signal, ...output }));
  return { child, mark, folder, temporary, ended };
}

/** No process, no temporary file (tsx keeps its own cache there), nothing half-written. */
export async function assertNothingLeft({ mark, temporary, folder }: Run): Promise<void> {
  if (canListProcesses) {
    await until(() => processesMarked(mark).length === 0).catch(() => {
      assert.equal(processesMarked(mark), []);
    });
  }
  assert.equal(
    readdirSync(temporary).filter((name) => !name.startsWith("tsx-") && name !== "node-compile-cache"),
    [],
  );
  const written = readdirSync(folder, { recursive: true, encoding: "utf8" });
  assert.equal(
    written.filter((name) => name.endsWith(".part")),
    [],
  );
  assert.not(existsSync(join(folder, "home")), "the user's own jobs are not touched");
}
