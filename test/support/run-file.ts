import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";

/** What one test file came to. `problem` is set when the file failed other than by a failing test. */
export interface FileResult {
  file: string;
  passed: number;
  failed: number;
  skipped: number;
  seconds: number;
  output: string;
  problem?: string;
}

/** For as long, a file may take to end behind its closing lines, and a process that it has told to end behind the file. */
const drainMs = 60_000;

const typescript = new URL("./typescript.js", import.meta.url).href;

/** The processes to end when the runner itself is ended. */
const running = new Set<number>();

/**
 * Runs one file in a process of its own. It passes only if it ends by itself with code 0 in time and uvu reported
 * as many passed tests as there are, and at least one: uvu alone exits with 0 when a file forgets `test.run()` or
 * when a `before` hook throws.
 */
export async function runFile(
  file: string,
  timeoutMs: number,
  options: RunFileOptions = {},
): Promise<FileResult> {
  const started = Date.now();
  const { output, code, signal, timedOut } = await runProcess(file, timeoutMs, options);
  const result = judge(file, output);
  result.seconds = (Date.now() - started) / 1000;
  if (timedOut) {
    result.problem = `did not end within ${timeoutMs / 1000} s`;
  } else if (signal) {
    result.problem = `was ended by ${signal}`;
  } else if (code !== 0 && !result.problem && result.failed === 0) {
    result.problem = `exited with code ${code}`;
  }
  if (result.problem && result.failed === 0) {
    result.failed = 1;
  }
  return result;
}

export interface RunFileOptions {
  /** Words for Node before the file (default: those that let it run TypeScript). */
  node?: readonly string[];
  /** Ends the file at its first failing test. */
  untilFailure?: boolean;
}

interface Ending {
  output: string;
  code: number | null;
  signal: NodeJS.Signals | null;
  timedOut: boolean;
}

function runProcess(
  file: string,
  timeoutMs: number,
  { node = ["--import", typescript], untilFailure = false }: RunFileOptions,
): Promise<Ending> {
  // A process group of its own, so that what a hanging test has started ends with it.
  const detached = process.platform !== "win32";
  const child = spawn(process.execPath, [...node, file], {
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      ...{ FORCE_COLOR: process.stdout.isTTY ? "1" : "0", TAPLINE_TEST: "1" },
      TAPLINE_TEST_LIMIT_MS: String(timeoutMs),
    },
    detached,
  });
  running.add(child.pid ?? 0);
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    if (untilFailure && chunk.includes("✘")) end(child.pid ?? 0);
    if (lingering === undefined && closingLines.test(plainText(Buffer.concat(chunks.slice(-3)).toString()))) {
      lingering = setTimeout(() => {
        chunks.push(
          Buffer.from("\nThe file reported its result, but did not end: something is still open.\n"),
        );
        end(child.pid ?? 0);
      }, drainMs);
    }
  });
  child.stderr.on("data", (chunk: Buffer) => chunks.push(chunk));
  let lingering: NodeJS.Timeout | undefined;
  return new Promise((done, fail) => {
    let timedOut = false;
    let drained: NodeJS.Timeout | undefined;
    const timer = setTimeout(() => {
      timedOut = true;
      end(child.pid ?? 0);
    }, timeoutMs);
    const finish = (code: number | null, signal: NodeJS.Signals | null) => {
      clearTimeout(timer);
      clearTimeout(drained);
      clearTimeout(lingering);
      running.delete(child.pid ?? 0);
      done({ output: Buffer.concat(chunks).toString(), code, signal, timedOut });
    };
    child.on("error", fail);
    child.on("close", finish);
    // A process that the test left behind keeps the pipes open, and would keep us waiting.
    child.on("exit", (code, signal) => {
      drained = setTimeout(() => {
        end(child.pid ?? 0);
        chunks.push(Buffer.from("\nThe file ended, but a process that it started was still running.\n"));
        finish(code || 1, signal);
      }, drainMs);
    });
  });
}

function end(pid: number): void {
  try {
    process.kill(process.platform === "win32" ? pid : -pid, "SIGKILL");
  } catch {
    // it has ended meanwhile
  }
}

process.on("exit", () => running.forEach(end));
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => process.exit(1));
}

/** What uvu prints when all suites of a file have run. */
const closingLines = /^ {2}Total: +(\d+)\n {2}Passed: +(\d+)\n {2}Skipped: +(\d+)$/m;

function plainText(output: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours start with an escape character
  return output.replace(/\u001b\[[0-9;]*m/g, "");
}

function judge(file: string, output: string): FileResult {
  const match = closingLines.exec(plainText(output));
  const base = { file, output, seconds: 0 };
  if (!match) {
    const problem = "reported no result: does it call test.run(), and does it run to its end?";
    return { ...base, passed: 0, failed: 1, skipped: 0, problem };
  }
  const [total, passed, skipped] = match.slice(1).map(Number) as [number, number, number];
  const failed = total - passed;
  if (total === 0) {
    return {
      ...base,
      passed,
      failed: skipped > 0 ? 0 : 1,
      skipped,
      ...(skipped > 0 ? {} : { problem: "holds no test" }),
    };
  }
  if (passed + skipped === 0 && !/^\s*FAIL /m.test(plainText(output))) {
    const problem =
      "no test began: a `before` hook threw, of which uvu says nothing (is the addon of this tree built?)";
    return { ...base, passed, failed, skipped, problem };
  }
  const forgotten = suitesNotRun(readFileSync(file, "utf8"));
  if (forgotten > 0) {
    return {
      ...base,
      passed,
      failed: failed + forgotten,
      skipped,
      problem: `${forgotten} suite(s) never run()`,
    };
  }
  return { ...base, passed, failed, skipped };
}

/** A second suite in a file can be forgotten unnoticed: uvu then reports only the first. */
function suitesNotRun(source: string): number {
  const suites = source.match(/=\s*suite(<[^>(]*>)?\(/g)?.length ?? 0;
  const runs = source.match(/\.run\(\s*\)/g)?.length ?? 0;
  return Math.max(0, suites - runs);
}
