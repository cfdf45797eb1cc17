import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** A file may take this long to end after its closing lines, and a process that it started after the file. */
const drainMs = 60_000;

const typescript = new URL("./typescript.js", import.meta.url).href;
const group = fileURLToPath(new URL("./group.ts", import.meta.url));

/** The processes to end when the runner itself ends. */
const running = new Set<number>();

export interface RunFileOptions {
  /** Options for Node before the file (default: those that let it run TypeScript). */
  node?: readonly string[];
  /** Ends the file at its first failing test. */
  untilFailure?: boolean;
}

/** How a process that ran one or more files ended. */
interface Ending {
  output: string;
  code: number | null;
  signal: NodeJS.Signals | null;
  timedOut: boolean;
}

/** What uvu prints when all suites of a file have run. */
export const closingLines = /^ {2}Total: +(\d+)\n {2}Passed: +(\d+)\n {2}Skipped: +(\d+)$/m;

export function plainText(output: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours start with an escape character
  return output.replace(/\u001b\[[0-9;]*m/g, "");
}

/** Lines that group.ts prints before and after each of several files. */
export const beginLine = (file: string) => `\n<<< ${file}`;
export const endLine = (code: number, ms: number) => `\n>>> ${code} ${ms}\n`;

/**
 * Runs files in one process, one after another (of several, by group.ts).
 * @param timeoutMs per file
 */
export function runProcess(
  files: readonly string[],
  timeoutMs: number,
  { node = ["--import", typescript], untilFailure = false }: RunFileOptions,
): Promise<Ending> {
  // A separate process group, so that everything that a hanging test started ends with it.
  const child = spawn(process.execPath, [...node, ...(files.length > 1 ? [group] : []), ...files], {
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      ...{ FORCE_COLOR: process.stdout.isTTY ? "1" : "0", TAPLINE_TEST: "1" },
      TAPLINE_TEST_LIMIT_MS: String(timeoutMs),
    },
    detached: process.platform !== "win32",
  });
  const pid = child.pid ?? 0;
  running.add(pid);
  const chunks: Buffer[] = [];
  let left = files.length;
  child.stdout.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    if (untilFailure && chunk.includes("✘")) end(pid);
    const recent = plainText(Buffer.concat(chunks.slice(-3)).toString());
    if (files.length > 1 && chunk.includes("\n>>> ")) {
      left -= chunk.toString().match(/^>>> /gm)?.length ?? 0;
      timer.refresh();
    } else if (files.length === 1 && closingLines.test(recent)) {
      left = 0;
    }
    if (left > 0) return;
    lingering ??= setTimeout(() => {
      const which =
        files.length === 1 ? "The file" : `One of these files left something open: ${files.join(", ")}. It`;
      chunks.push(Buffer.from(`\n${which} reported its result, but did not end: something is still open.\n`));
      end(pid);
    }, drainMs);
  });
  child.stderr.on("data", (chunk: Buffer) => chunks.push(chunk));
  let lingering: NodeJS.Timeout | undefined;
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    end(pid);
  }, timeoutMs);
  return new Promise((done, fail) => {
    let drained: NodeJS.Timeout | undefined;
    const finish = (code: number | null, signal: NodeJS.Signals | null) => {
      clearTimeout(timer);
      clearTimeout(drained);
      clearTimeout(lingering);
      running.delete(pid);
      done({ output: Buffer.concat(chunks).toString(), code, signal, timedOut });
    };
    child.on("error", fail);
    child.on("close", finish);
    // A process that the test left behind keeps the pipes open, and would keep us waiting.
    child.on("exit", (code, signal) => {
      drained = setTimeout(() => {
        end(pid);
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
