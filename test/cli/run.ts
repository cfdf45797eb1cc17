import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import * as assert from "uvu/assert";
import { program } from "../support/program.js";
import { canListProcesses, processesMarked } from "./processes.js";

export interface RunOptions {
  input?: string;
  cwd?: string;
  env?: Record<string, string>;
  /** Sent when `when` appears on standard error. */
  signal?: { when: RegExp; name: NodeJS.Signals };
  /** Standard output is closed when this appears on it, as `head` does. */
  enough?: RegExp;
}

export interface Ran {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
  /** Whatever this command started has ended. */
  assertNothingLeft(): void;
}

/** Runs `tapline` in a separate process until it exits, with unused addresses as defaults. */
export async function tapline(words: string[], options: RunOptions = {}): Promise<Ran> {
  const mark = randomUUID();
  const child = spawn(process.execPath, [...program, ...words], {
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, FORCE_COLOR: "0", TAPLINE_TEST_RUN: mark, ...options.env },
  });
  const output = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk) => {
    output.stdout += chunk;
    if (options.enough?.test(output.stdout)) child.stdout.destroy();
  });
  let sent = false;
  child.stderr.on("data", (chunk) => {
    output.stderr += chunk;
    if (options.signal === undefined || sent || !options.signal.when.test(output.stderr)) return;
    sent = true;
    child.kill(options.signal.name);
  });
  child.stdin.on("error", () => {}); // it may end without having read everything
  child.stdin.end(options.input ?? "");
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  const assertNothingLeft = () => {
    if (canListProcesses) assert.equal(processesMarked(`TAPLINE_TEST_RUN=${mark}`), []);
  };
  return { code, signal, ...output, assertNothingLeft };
}
