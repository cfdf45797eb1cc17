import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { program } from "../support/program.js";
import { until } from "../support/until.js";

const script = fileURLToPath(new URL("../support/in-terminal.py", import.meta.url));

/** Whether this machine can run a command in a separate terminal. */
export const canPty = process.platform !== "win32" && spawnSync("python3", ["-c", "import pty"]).status === 0;

export const keys = { interrupt: "\u0003", end: "\u0004", enter: "\r", up: "\u001b[A" } as const;

/** `tapline` in a terminal: its input, its output, its end. */
export interface TerminalRun {
  /** Everything that was written to the terminal so far, colours and all. */
  readonly shown: string;
  type(text: string): void;
  /** Waits until the terminal shows a text behind everything that was waited for before. */
  shows(text: string | RegExp): Promise<void>;
  readonly ended: Promise<number | null>;
  readonly pid: number;
  kill(): void;
}

export function inTerminal(
  words: string[],
  options: { columns?: number; env?: Record<string, string>; cwd?: string } = {},
): TerminalRun {
  const { columns = 80, env = {}, cwd } = options;
  const command = [process.execPath, ...program, ...words];
  const child = spawn("python3", [script, String(columns), "24", ...command], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, TERM: "xterm-256color", FORCE_COLOR: "0", ...env },
    ...(cwd === undefined ? {} : { cwd }),
  });
  let shown = "";
  let seen = 0;
  child.stdout.on("data", (chunk) => {
    shown += chunk;
  });
  const ended = once(child, "close").then(([code]) => code as number | null);
  return {
    get shown() {
      return shown;
    },
    type: (text) => void child.stdin.write(text),
    async shows(text) {
      const find = () => {
        const rest = shown.slice(seen);
        const match = typeof text === "string" ? rest.indexOf(text) : (text.exec(rest)?.index ?? -1);
        if (match === -1) return undefined;
        const length =
          typeof text === "string" ? text.length : (text.exec(rest) as RegExpExecArray)[0].length;
        seen += match + length;
        return true;
      };
      await until(find).catch(() => {
        throw new Error(
          `The terminal does not show ${String(text)} behind: ${JSON.stringify(shown.slice(seen))}`,
        );
      });
    },
    ended,
    pid: child.pid as number,
    kill: () => void child.kill("SIGKILL"),
  };
}
