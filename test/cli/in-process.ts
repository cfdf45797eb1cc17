/** Commands within the test's own process: a fresh program each, without the cost of a new process. */
import { runProgram } from "../../src/cli/program.js";

export interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

// Every command listens for signals.
process.setMaxListeners(0);

/** Does something whose output is kept from the terminal; its own exit code is what it set. */
export async function capturing(work: () => unknown): Promise<Outcome> {
  const { exitCode, stdout, stderr } = process;
  const written = { stdout: "", stderr: "" };
  const keep = (name: "stdout" | "stderr") =>
    ((chunk: string | Uint8Array, ...rest: unknown[]) => {
      written[name] += typeof chunk === "string" ? chunk : Buffer.from(chunk).toString();
      for (const done of rest) if (typeof done === "function") done();
      return true;
    }) as typeof stdout.write;
  const [writeOut, writeError, env] = [stdout.write, stderr.write, process.env.FORCE_COLOR];
  process.exitCode = 0;
  process.env.FORCE_COLOR = "0";
  stdout.write = keep("stdout");
  stderr.write = keep("stderr");
  try {
    await work();
    return { code: Number(process.exitCode), ...written };
  } finally {
    stdout.write = writeOut;
    stderr.write = writeError;
    process.exitCode = exitCode ?? 0;
    if (env === undefined) delete process.env.FORCE_COLOR;
    else process.env.FORCE_COLOR = env;
  }
}

/** Runs `tapline` with these words until it would exit. One at a time; its output is captured. */
export function command(words: string[]): Promise<Outcome> {
  return capturing(() => runProgram(["node", "tapline", ...words]));
}
