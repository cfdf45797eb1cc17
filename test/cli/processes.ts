import { existsSync, readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";

/** Whether this system shows the environments of processes. */
export const canListProcesses = existsSync("/proc/self/environ");

/** Command lines of all processes whose environment holds `mark`. */
export function processesMarked(mark: string): Array<{ pid: number; command: string }> {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        if (!readFileSync(`/proc/${name}/environ`, "latin1").includes(mark)) return [];
        const command = readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim();
        return command === "" ? [] : [{ pid: Number(name), command }]; // a zombie has no command line
      } catch {
        return []; // it has ended meanwhile, or belongs to another user
      }
    });
}

/** Whether anything listens at an origin. */
export function isOpen(origin: string): Promise<boolean> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
