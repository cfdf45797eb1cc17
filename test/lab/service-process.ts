import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { program } from "../support/program.js";
import { type Answer, send } from "../support/request.js";

/** `tapline lab` in a separate process. */
export interface ServiceProcess {
  child: ChildProcess;
  /** Origin, once it is ready. */
  url: string;
  request(method: string, path: string, body?: unknown): Promise<Answer>;
  /** Sends a signal and waits for the end. */
  end(signal: NodeJS.Signals): Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

/** Runs `tapline` with the given words until it ends. */
export async function runTapline(
  words: string[],
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = start(words, {});
  const output = collect(child);
  const [code] = (await once(child, "close")) as [number | null];
  return { code, ...output };
}

/** Starts `tapline lab` and waits for the line that reports it ready. */
export async function startService(
  home: string,
  options: { words?: string[]; environment?: Record<string, string> } = {},
): Promise<ServiceProcess> {
  const words = ["lab", "--port", "0", "--home", home, ...(options.words ?? [])];
  const child = start(words, options.environment ?? {});
  const output = collect(child);
  const ended = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout?.on("data", () => {
      const match = /^tapline lab is ready at (http:\S+)/m.exec(output.stdout);
      if (match !== null) resolve(match[1] as string);
    });
    void ended.then(() => reject(new Error(`the service ended early: ${output.stderr}`)));
  });
  return {
    child,
    url,
    request: (method, path, body) => send(`${url}/lab/v1${path}`, method, body),
    async end(signal) {
      child.kill(signal);
      const [code, by] = await ended;
      return { code, signal: by };
    },
  };
}

function start(words: string[], environment: Record<string, string>): ChildProcess {
  return spawn(process.execPath, [...program, ...words], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...environment },
  });
}

function collect(child: ChildProcess): { stdout: string; stderr: string } {
  const output = { stdout: "", stderr: "" };
  child.stdout?.on("data", (chunk) => {
    output.stdout += chunk;
  });
  child.stderr?.on("data", (chunk) => {
    output.stderr += chunk;
  });
  return output;
}
