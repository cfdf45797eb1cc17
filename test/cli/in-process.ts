/** Commands within the test's own process: a fresh copy of the program each, without the cost of a new process. */
import { fileURLToPath } from "node:url";

export interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

const main = new URL("../../src/cli/main.ts", import.meta.url).href;
let copies = 0;
// Every command listens for signals of its own.
process.setMaxListeners(0);

/** Runs `tapline` with these words until it would end. One at a time; what it prints is kept from the terminal. */
export async function command(words: string[]): Promise<Outcome> {
  const { argv, exitCode, stdout, stderr } = process;
  const written = { stdout: "", stderr: "" };
  const keep = (name: "stdout" | "stderr") =>
    ((chunk: string | Uint8Array, ...rest: unknown[]) => {
      written[name] += typeof chunk === "string" ? chunk : Buffer.from(chunk).toString();
      for (const done of rest) if (typeof done === "function") done();
      return true;
    }) as typeof stdout.write;
  const [writeOut, writeError, env] = [stdout.write, stderr.write, process.env.FORCE_COLOR];
  process.argv = [argv[0] as string, fileURLToPath(main), ...words];
  process.exitCode = 0;
  process.env.FORCE_COLOR = "0";
  stdout.write = keep("stdout");
  stderr.write = keep("stderr");
  try {
    await import(`${main}?copy=${copies++}`);
    return { code: Number(process.exitCode), ...written };
  } finally {
    stdout.write = writeOut;
    stderr.write = writeError;
    process.argv = argv;
    process.exitCode = exitCode ?? 0;
    if (env === undefined) delete process.env.FORCE_COLOR;
    else process.env.FORCE_COLOR = env;
  }
}
