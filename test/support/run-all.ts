import os from "node:os";
import { relative } from "node:path";
import { type FileResult, runGroup } from "./run-file.js";

interface RunOptions {
  root: string;
  jobs: number;
  timeoutMs: number;
  verbose: boolean;
  write: (text: string) => void;
}

/** Runs groups of files, each in one process, a few at a time, prints a line for each as it ends and repeats what failed at the end. */
export async function runAll(groups: readonly string[][], options: RunOptions) {
  const { root, jobs, timeoutMs, verbose, write } = options;
  const results: FileResult[] = [];
  const started = Date.now();
  const loadBefore = load();
  const waiting = [...groups];
  const worker = async () => {
    for (let group = waiting.shift(); group !== undefined; group = waiting.shift()) {
      for (const result of await runGroup(group, timeoutMs)) {
        results.push(result);
        write(line(result, root));
        if (verbose && result.failed === 0) write(result.output);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(jobs, groups.length) }, worker));

  for (const result of results.filter(({ failed }) => failed > 0)) {
    write(`\n--- ${relative(root, result.file)}${result.problem ? `: ${result.problem}` : ""}\n`);
    write(`${result.output.trim()}\n`);
  }
  const longest = results.toSorted((a, b) => b.seconds - a.seconds).slice(0, 3);
  write(
    `\n${groups.length} processes, ${jobs} at a time on ${os.availableParallelism()} cores, took ${((Date.now() - started) / 1000).toFixed(0)} s, ` +
      `load ${loadBefore} before and ${load()} after; longest: ` +
      `${longest.map(({ file, seconds }) => `${relative(root, file)} ${seconds.toFixed(0)} s`).join(", ")}\n`,
  );
  const failures = results.filter(({ failed }) => failed > 0).map(({ file }) => relative(root, file));
  write(failures.length > 0 ? `\nFailed: ${failures.join(", ")}\n` : "\n");
  return {
    passed: sum(results, "passed"),
    failed: sum(results, "failed"),
    skipped: sum(results, "skipped"),
  };
}

/** What else this machine has to do: a slow run on a busy one says nothing about the tests. */
function load(): string {
  return (os.loadavg()[0] as number).toFixed(1);
}

function line({ file, passed, failed, skipped, seconds, problem }: FileResult, root: string): string {
  const counts = `${passed} passed${failed > 0 ? `, ${failed} FAILED` : ""}${skipped > 0 ? `, ${skipped} skipped` : ""}`;
  const mark = failed > 0 ? "✘" : "•";
  return `${mark} ${relative(root, file)}  ${counts}  (${seconds.toFixed(1)} s)${problem ? `  ${problem}` : ""}\n`;
}

function sum(results: FileResult[], key: "passed" | "failed" | "skipped"): number {
  return results.reduce((total, result) => total + result[key], 0);
}
