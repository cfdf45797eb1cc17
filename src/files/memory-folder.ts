import { existsSync } from "node:fs";
import { tmpdir } from "node:os";

/** The folder for files that need not outlive the machine's memory: /dev/shm, or the temporary folder where there is none. */
export function memoryFolder(): string {
  return existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
}
