import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { endTree, startOf } from "../files/process-tree.js";
import { shellWord } from "../text/shell.js";
import { type Engine, partCommands } from "./engine.js";
import { logOf, partsFolder, partsOf, type Submission } from "./submission.js";

/** Processes on this machine: each worker computes its parts one after another, on its own device or share of the cores. */
export function localEngine(program: readonly string[]): Engine {
  const scriptOf = (submission: Submission, copies = false) => {
    const [before, after] = logOf(submission, "\0", copies).split("\0") as [string, string];
    const [note, compute] = partCommands(submission, "part", { program, copies });
    return [
      "#!/bin/bash",
      "# The arguments are the parts of one worker.",
      'for part in "$@"; do',
      `  ${note}`,
      `  ${compute} >>${shellWord(before)}"$part"${shellWord(after)} 2>&1`,
      "done",
      "",
    ].join("\n");
  };
  return {
    script: (submission) =>
      [
        ...assigned(submission, partsOf(submission)).map(
          ({ parts, place }) =>
            `# ${[...prefixOf(submission, place), "bash <this script>", ...parts].join(" ")}`,
        ),
        scriptOf(submission),
      ].join("\n"),
    async start(submission, parts, copies = false) {
      const path = join(partsFolder(submission), copies ? "extract-copy.sh" : "extract.sh");
      await writeFile(path, scriptOf(submission, copies), { mode: 0o700 });
      const log = openSync(join(partsFolder(submission), "workers.log"), "a");
      try {
        const started = assigned(submission, parts).flatMap(({ parts, place }): Worker[] => {
          const args = [...prefixOf(submission, place), "bash", path, ...parts.map(String)];
          // A separate process group: Ctrl-C in this terminal does not reach it.
          const child = spawn("env", args, { detached: true, stdio: ["ignore", log, log] });
          child.on("error", () => {}); // seen as parts that are not active
          child.unref();
          const { pid } = child;
          return pid === undefined ? [] : [{ pid, started: startOf(pid), parts, place }];
        });
        return JSON.stringify(started);
      } finally {
        closeSync(log);
      }
    },
    active: async ({ batches }) => new Set(running(batches).flatMap(({ parts }) => parts)),
    busy: async ({ batches }) => running(batches).length,
    async stop({ batches }, parts) {
      const chosen = running(batches).filter(
        (worker) => parts === undefined || worker.parts.some((part) => parts.includes(part)),
      );
      await Promise.all(chosen.map(({ pid }) => endTree(pid)));
    },
  };
}

/** The parts of each new worker, and its place: the number of its device or share of the cores. */
function assigned(
  { workers, batches }: Submission,
  parts: readonly number[],
): { parts: number[]; place: number }[] {
  const taken = new Set(running(batches).map(({ place }) => place));
  const free = Array.from({ length: workers }, (_, place) => place).filter((place) => !taken.has(place));
  const places = (free.length === 0 ? [0] : free).slice(0, parts.length);
  return places.map((place, n) => ({ place, parts: parts.filter((_, at) => at % places.length === n) }));
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

/** A batch's handle is a list of these in JSON. */
interface Worker {
  pid: number;
  started: string;
  parts: number[];
  /** Missing in records of earlier versions. */
  place?: number;
}

const running = (batches: Submission["batches"]) =>
  batches
    .flatMap(({ handle }) => JSON.parse(handle) as Worker[])
    .filter(({ pid, started }) => started !== "" && startOf(pid) === started);
