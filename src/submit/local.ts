import { execFileSync, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { processStat } from "../files/running.js";
import { shellWord } from "../text/shell.js";
import { type Engine, partCommand } from "./engine.js";
import { logOf, partsFolder, partsOf, type Submission, settingsFile } from "./submission.js";

/** Processes on this machine: each worker computes its parts one after another, on its own device or share of the cores. */
export function localEngine(program: readonly string[]): Engine {
  const scriptOf = (submission: Submission) => {
    const [before, after] = logOf(submission, "\0").split("\0") as [string, string];
    return [
      "#!/bin/bash",
      "# The arguments are the parts of one worker.",
      'for part in "$@"; do',
      `  ${partCommand(submission, "part", {
        program,
        settings: settingsFile(submission),
        folder: partsFolder(submission),
      })} >>${shellWord(before)}"$part"${shellWord(after)} 2>&1`,
      "done",
      "",
    ].join("\n");
  };
  return {
    script: (submission) =>
      [
        ...assigned(submission, partsOf(submission)).map(
          (parts, worker) =>
            `# ${[...prefixOf(submission, worker), "bash <this script>", ...parts].join(" ")}`,
        ),
        scriptOf(submission),
      ].join("\n"),
    async start(submission, parts) {
      const path = join(partsFolder(submission), "extract.sh");
      await writeFile(path, scriptOf(submission), { mode: 0o700 });
      const log = openSync(join(partsFolder(submission), "workers.log"), "a");
      try {
        const started = assigned(submission, parts).flatMap((own, worker): Worker[] => {
          const args = [...prefixOf(submission, worker), "bash", path, ...own.map(String)];
          // A separate process group: Ctrl-C in this terminal does not reach it.
          const child = spawn("env", args, { detached: true, stdio: ["ignore", log, log] });
          child.on("error", () => {}); // seen as parts that are not active
          child.unref();
          const { pid } = child;
          return pid === undefined ? [] : [{ pid, started: startOf(pid), parts: own }];
        });
        return JSON.stringify(started);
      } finally {
        closeSync(log);
      }
    },
    async active({ batches }) {
      return new Set(
        workersOf(batches).flatMap(({ pid, started, parts }) => (startOf(pid) === started ? parts : [])),
      );
    },
    async stop({ batches }) {
      for (const { pid, started } of workersOf(batches)) {
        if (startOf(pid) !== started) continue;
        try {
          process.kill(-pid, "SIGTERM");
        } catch {
          // it has ended
        }
      }
    },
  };
}

/** Each worker's parts. */
function assigned({ workers }: Submission, parts: readonly number[]): number[][] {
  const lists = Array.from({ length: Math.min(workers, parts.length) }, () => [] as number[]);
  for (const [n, part] of parts.entries()) (lists[n % lists.length] as number[]).push(part);
  return lists;
}

/** What keeps a worker to its device, or to its share of the cores. */
function prefixOf({ engineOptions: devices, workers }: Submission, worker: number): string[] {
  if (devices.length > 0) return [`CUDA_VISIBLE_DEVICES=${devices[worker % devices.length]}`];
  const cores = allowedCores();
  const share = Math.floor(cores.length / workers);
  if (share === 0) return [];
  return ["taskset", "--cpu-list", cores.slice(worker * share, (worker + 1) * share).join(",")];
}

/** The processors that this process may use, on Linux; elsewhere none are assigned. */
function allowedCores(): number[] {
  if (process.platform !== "linux") return [];
  const list = /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "";
  const cores = list.split(",").flatMap((range) => {
    const [from, to = from] = range.split("-").map(Number) as [number, number?];
    return Array.from({ length: to - from + 1 }, (_, n) => from + n);
  });
  return cores.slice(0, Math.max(availableParallelism(), 1));
}

/** When a process started, so that a reused id is not taken for it; empty if it has ended. */
function startOf(pid: number): string {
  if (process.platform === "linux") {
    const { state, started } = processStat(pid);
    return state === "Z" || state === "X" ? "" : (started ?? "");
  }
  try {
    return execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" }).trim();
  } catch {
    return "";
  }
}

/** A batch's handle is a list of these in JSON. */
interface Worker {
  pid: number;
  started: string;
  parts: number[];
}

const workersOf = (batches: Submission["batches"]) =>
  batches.flatMap(({ handle }) => JSON.parse(handle) as Worker[]);
