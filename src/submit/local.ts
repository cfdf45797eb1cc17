import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { UserError } from "../contracts/user-error.js";
import { endTree, startOf } from "../files/process-tree.js";
import { shellWord } from "../text/shell.js";
import { listed } from "../text/words.js";
import { type Engine, partCommands } from "./engine.js";
import { logOf, partsFolder, partsOf, type Submission } from "./submission.js";

/**
 * Processes on this machine: each worker takes the next waiting part whenever it is free, on its own device or share of the
 * cores. A waiting part is a file in a queue; the worker that renames it has it.
 */
export function localEngine(program: readonly string[]): Engine {
  const scriptOf = (submission: Submission, copies = false) => {
    const [before, after] = logOf(submission, "\0", copies).split("\0") as [string, string];
    const [note, compute] = partCommands(submission, "part", { program, copies });
    return [
      "#!/bin/bash",
      "# A worker: it takes waiting parts, the first one first, until there are none.",
      `queue=${shellWord(queueOf(submission, copies))}`,
      "while :; do",
      "  part=",
      `  for waiting in $(ls "$queue" | grep -x '[0-9]*' | sort -n); do`,
      "    # Of several workers only one can rename the file.",
      '    if mv "$queue/$waiting" "$queue/$waiting.$$" 2>/dev/null; then part=$waiting; break; fi',
      "  done",
      '  [ -n "$part" ] || exit 0',
      `  ${note}`,
      `  ${compute} >>${shellWord(before)}"$part"${shellWord(after)} 2>&1`,
      '  rm -f "$queue/$part.$$"',
      "done",
      "",
    ].join("\n");
  };
  return {
    script: (submission) =>
      [
        `# Parts ${listed(partsOf(submission).map(String))} wait in ${queueOf(submission)}.`,
        ...freePlaces(submission, submission.parts).map(
          (place) => `# ${[...prefixOf(submission, place), "bash <this script>"].join(" ")}`,
        ),
        scriptOf(submission),
      ].join("\n"),
    async start(submission, parts, copies = false) {
      if (process.platform === "win32") {
        throw new UserError("Windows has no bash, which runs the workers of --submit local; use WSL.");
      }
      const path = join(partsFolder(submission), copies ? "extract-copy.sh" : "extract.sh");
      await writeFile(path, scriptOf(submission, copies), { mode: 0o700 });
      const queue = queueOf(submission, copies);
      await mkdir(queue, { recursive: true, mode: 0o700 });
      // Of workers that have ended.
      for (const { name, part } of await claimsIn(queue, [])) {
        if (parts.includes(part)) await rm(join(queue, name), { force: true });
      }
      for (const part of parts) await writeFile(join(queue, String(part)), "");
      const log = openSync(join(partsFolder(submission), "workers.log"), "a");
      try {
        const started = freePlaces(submission, parts.length).flatMap((place): Worker[] => {
          const args = [...prefixOf(submission, place), "bash", path];
          // A separate process group: Ctrl-C in this terminal does not reach it.
          const child = spawn("env", args, { detached: true, stdio: ["ignore", log, log] });
          child.on("error", () => {}); // seen as parts that are not active
          child.unref();
          const { pid } = child;
          return pid === undefined ? [] : [{ pid, started: startOf(pid), place, queue }];
        });
        return JSON.stringify(started);
      } finally {
        closeSync(log);
      }
    },
    async active({ batches }) {
      const parts = new Set<number>();
      for (const [queue, workers] of byQueue(running(batches))) {
        for (const part of await waitingIn(queue)) parts.add(part);
        for (const { part, worker } of await claimsIn(queue, workers)) if (worker) parts.add(part);
      }
      return parts;
    },
    busy: async ({ batches }) => running(batches).length,
    async stop({ batches }, parts) {
      const stopped: Worker[] = [];
      for (const [queue, workers] of byQueue(running(batches))) {
        for (const part of await waitingIn(queue)) {
          if (parts?.includes(part) !== false) await rm(join(queue, String(part)), { force: true });
        }
        const claims = await claimsIn(queue, workers);
        stopped.push(
          ...workers.filter(
            (each) =>
              parts === undefined ||
              claims.some(({ part, worker }) => worker === each && parts.includes(part)),
          ),
        );
      }
      await Promise.all(stopped.map(({ pid }) => endTree(pid)));
    },
  };
}

/** The folder of waiting parts: a file each, named by its number; a part that a worker has taken is named `part.pid`. */
const queueOf = (submission: Pick<Submission, "out">, copies = false) =>
  join(partsFolder(submission), copies ? "queue-copies" : "queue");

async function waitingIn(queue: string): Promise<number[]> {
  return (await readdir(queue).catch(() => [])).filter((name) => /^\d+$/.test(name)).map(Number);
}

/** The parts that workers have taken; without `worker` if that has ended. */
async function claimsIn(queue: string, workers: readonly Worker[]) {
  return (await readdir(queue).catch(() => [])).flatMap((name) => {
    const [, part, pid] = /^(\d+)\.(\d+)$/.exec(name) ?? [];
    if (part === undefined) return [];
    return { name, part: Number(part), worker: workers.find((worker) => worker.pid === Number(pid)) };
  });
}

function byQueue(workers: readonly Worker[]): Map<string, Worker[]> {
  const found = new Map<string, Worker[]>();
  for (const worker of workers) found.set(worker.queue, [...(found.get(worker.queue) ?? []), worker]);
  return found;
}

/** Places without a worker, at most `most`: numbers of devices or shares of the cores. */
function freePlaces({ workers, batches }: Submission, most: number): number[] {
  const taken = new Set(running(batches).map(({ place }) => place));
  return Array.from({ length: workers }, (_, place) => place)
    .filter((place) => !taken.has(place))
    .slice(0, most);
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
  /** The number of its device or share of the cores. */
  place: number;
  /** The folder of the parts that it takes. */
  queue: string;
}

const running = (batches: Submission["batches"]) =>
  batches
    .flatMap(({ handle }) => JSON.parse(handle) as Worker[])
    .filter(({ pid, started }) => started !== "" && startOf(pid) === started);
