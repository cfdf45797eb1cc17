import { readFileSync } from "node:fs";
import { closingLines, plainText, type RunFileOptions, runProcess } from "./run-process.js";

/** The outcome of one test file. `problem` is set when the file failed other than by a failing test. */
export interface FileResult {
  file: string;
  passed: number;
  failed: number;
  skipped: number;
  seconds: number;
  output: string;
  problem?: string;
}

/**
 * Runs one file in a separate process. It passes only if it ends by itself with code 0 in time and uvu reported
 * as many passed tests as there are, and at least one: uvu alone exits with 0 when a file forgets `test.run()` or
 * when a `before` hook throws.
 */
export async function runFile(
  file: string,
  timeoutMs: number,
  options: RunFileOptions = {},
): Promise<FileResult> {
  const [result] = await runGroup([file], timeoutMs, options);
  return result as FileResult;
}

/**
 * Runs files in one process, one after another. Where the process ends before it comes to some of them (a crash, a file
 * that hangs), another process runs those.
 * @param timeoutMs per file
 */
export async function runGroup(
  files: readonly string[],
  timeoutMs: number,
  options: RunFileOptions = {},
): Promise<FileResult[]> {
  const started = Date.now();
  const { output, code, signal, timedOut } = await runProcess(files, timeoutMs, options);
  const parts = files.length === 1 ? [{ text: output, end: undefined }] : split(output, files);
  const results = parts.map(({ text, end }, index): FileResult => {
    const file = files[index] as string;
    const result = judge(file, text);
    result.seconds = end === undefined ? (Date.now() - started) / 1000 : end.seconds;
    const last = index === parts.length - 1;
    const exit = end?.code || (last ? code : 0);
    if (last && timedOut) {
      result.problem = `did not end within ${timeoutMs / 1000} s`;
    } else if (last && signal) {
      result.problem = `was ended by ${signal}`;
    } else if (!result.problem && result.failed === 0 && exit !== 0) {
      result.problem = `exited with code ${exit}`;
    }
    if (result.problem && result.failed === 0) result.failed = 1;
    return result;
  });
  const left = files.slice(parts.length);
  return left.length === 0 ? results : [...results, ...(await runGroup(left, timeoutMs, options))];
}

/** The output of each file that a process of several files began, with how it ended. */
function split(output: string, files: readonly string[]) {
  const [before = "", ...sections] = output.split(/^<<< .*\n/m);
  if (sections.length === 0) return [{ text: before, end: undefined }];
  return sections.slice(0, files.length).map((section) => {
    const match = /^>>> (\d+) (\d+)\n/m.exec(section);
    const end = match === null ? undefined : { code: Number(match[1]), seconds: Number(match[2]) / 1000 };
    return { text: section.replace(match?.[0] ?? "", ""), end };
  });
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
