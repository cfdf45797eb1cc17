import { execFileSync, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { type Engine, partCommand } from "./engine.js";
import { logOf, partsFolder, type Submission, settingsFile } from "./submission.js";

/** Processes on this machine: each worker computes its parts one after another, on its own device or share of the cores. */
export function localEngine(program: readonly string[]): Engine {
  const scriptOf = (submission: Submission) =>
    [
      "#!/bin/bash",
      "# The arguments are the parts of one worker.",
      'for part in "$@"; do',
      `  ${partCommand(submission, "part", {
        program,
        settings: settingsFile(submission),
        folder: partsFolder(submission),
      })} >>"${logOf(submission, "$part")}" 2>&1`,
      "done",
      "",
    ].join("\n");
  return {
    script: (submission) =>
      [
        ...assigned(submission, all(submission)).map(
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
        const started = assigned(submission, parts).map((own, worker) => {
          const [command, ...args] = [
            "env",
            ...prefixOf(submission, worker),
            "bash",
            path,
            ...own.map(String),
          ];
          // A separate process group: Ctrl-C in this terminal does not reach it.
          const child = spawn(command as string, args, { detached: true, stdio: ["ignore", log, log] });
          child.on("error", () => {}); // seen as a worker that is not alive
          child.unref();
          return { pid: child.pid, own };
        });
        return started
          .filter(({ pid }) => pid !== undefined)
          .map(({ pid, own }) => `${pid}@${startOf(pid as number)}:${own.join("+")}`)
          .join(",");
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

const all = ({ parts }: Submission) => Array.from({ length: parts }, (_, part) => part);

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

/** When a process started, in the kernel's clock, so that a reused id is not taken for it; empty if it has ended. */
function startOf(pid: number): string {
  try {
    if (process.platform !== "linux") {
      return execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" }).replace(
        /\D/g,
        "",
      );
    }
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
    return fields[0] === "Z" ? "" : (fields[19] ?? "");
  } catch {
    return "";
  }
}

interface Worker {
  pid: number;
  started: string;
  parts: number[];
}

function workersOf(batches: Submission["batches"]): Worker[] {
  return batches.flatMap(({ handle }) =>
    handle
      .split(",")
      .filter((each) => each !== "")
      .map((each) => {
        const [, pid, started, parts] = /^(\d+)@(\d*):([\d+]*)$/.exec(each) as unknown as [
          string,
          string,
          string,
          string,
        ];
        return { pid: Number(pid), started, parts: parts.split("+").map(Number) };
      }),
  );
}
