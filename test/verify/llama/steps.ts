import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";

/** The result of a check; `different` is the first difference. */
export interface Row {
  check: string;
  result: "holds" | "differs" | "not run";
  seconds: number;
  different: string;
}

/** Runs a check and times it. An exception counts as a difference. @param run returns the differences in order */
export async function timed(check: string, run: () => Promise<string[]> | string[]): Promise<Row> {
  const started = Date.now();
  const problems = await Promise.resolve()
    .then(run)
    .catch((error: Error) => [error.message]);
  const seconds = (Date.now() - started) / 1000;
  const [first = "", ...more] = problems.map((each) => each.trim().replace(/\s+/g, " "));
  const different = more.length > 0 ? `${first} (and ${more.length} more)` : first;
  return { check, result: problems.length === 0 ? "holds" : "differs", seconds, different };
}

/**
 * Runs a program and writes its output to a log.
 * @param telling matches lines that name a difference
 * @returns empty if it succeeded, else those lines or the last line
 */
export async function runProgram(
  command: string,
  args: readonly string[],
  options: { log: string; env: NodeJS.ProcessEnv; cwd: string; telling: RegExp },
): Promise<string[]> {
  await mkdir(dirname(options.log), { recursive: true });
  const log = createWriteStream(options.log);
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: options.env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      log.write(text);
    });
  }
  const [code, signal] = await once(child, "close");
  log.end();
  if (code === 0) return [];
  const lines = output.split("\n").filter((line) => line.trim() !== "");
  const telling = lines.filter((line) => options.telling.test(line));
  return telling.length > 0
    ? telling
    : [`ended with ${signal ?? code}: ${lines.at(-1) ?? "it says nothing"}`];
}

const widths = (rows: readonly Row[]) => Math.max(...rows.map(({ check }) => check.length), 5);

/** One line per check. */
export function printTable(rows: readonly Row[]): string {
  const width = widths(rows);
  const line = (check: string, result: string, seconds: string, different: string) =>
    `${check.padEnd(width)}  ${result.padEnd(7)}  ${seconds.padStart(7)}  ${different}`.trimEnd();
  return [
    line("check", "result", "seconds", "first difference"),
    ...rows.map(({ check, result, seconds, different }) =>
      line(check, result, result === "not run" ? "" : seconds.toFixed(1), different),
    ),
  ].join("\n");
}
