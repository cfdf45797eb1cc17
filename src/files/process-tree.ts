import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { processStat } from "./running.js";

/** A process and when it started, so that a reused id is not taken for it. */
interface Process {
  pid: number;
  parent: number;
  started: string;
}

/** When a process started; empty if it has ended. */
export function startOf(pid: number): string {
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

/**
 * Ends a process group and everything that its processes have started, also what is stopped or in another group: first
 * with SIGTERM, and after a while with SIGKILL.
 * @param pid the group's leader
 */
export async function endTree(pid: number, patienceMs = 10_000): Promise<void> {
  const tree = treeOf(pid);
  const alive = () => tree.filter((one) => startOf(one.pid) === one.started);
  send(-pid, "SIGTERM");
  // Stopped processes receive it only after they continue.
  for (const one of alive()) send(one.pid, "SIGCONT");
  const deadline = performance.now() + patienceMs;
  while (alive().length > 0 && performance.now() < deadline) await sleep(50);
  for (const one of alive()) send(one.pid, "SIGKILL");
  while (alive().length > 0 && performance.now() < deadline + patienceMs) await sleep(10);
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // it has ended
  }
}

/** A process and its descendants. */
function treeOf(root: number): Process[] {
  const all = processes();
  const tree = all.filter(({ pid }) => pid === root);
  for (const { pid } of tree) tree.push(...all.filter(({ parent }) => parent === pid));
  return tree;
}

function processes(): Process[] {
  if (process.platform === "linux") {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .flatMap((name) => {
        const { started, parent } = processStat(Number(name));
        return started === null || parent === null ? [] : [{ pid: Number(name), parent, started }];
      });
  }
  return execFileSync("ps", ["-axo", "pid=,ppid=,lstart="], { encoding: "utf8" })
    .split("\n")
    .flatMap((line) => {
      const [, pid, parent, started] = /^\s*(\d+)\s+(\d+)\s+(.*?)\s*$/.exec(line) ?? [];
      return started === undefined ? [] : [{ pid: Number(pid), parent: Number(parent), started }];
    });
}
