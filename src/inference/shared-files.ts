import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { type FileHandle, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { forwardLimits } from "../contracts/forward-limits.js";
import { isRunning } from "../files/running.js";
import { HttpError } from "../http/index.js";

const prefix = "tapline-forward-";

/**
 * Results that cross to a client on this machine through shared memory: files in /dev/shm, or in the temporary folder where
 * there is none. The folder and its files are this user's only. A client opens and deletes its file, so its pages are freed
 * with its mapping, even after a kill; what nobody fetches is deleted after a while, and with the process. The next start
 * deletes what a killed process left.
 */
export class SharedFiles {
  readonly #parent: string;
  #folder: string | undefined;
  readonly #expiring = new Set<NodeJS.Timeout>();

  constructor(parent: string = existsSync("/dev/shm") ? "/dev/shm" : tmpdir()) {
    this.#parent = parent;
  }

  /** @throws HttpError 503 if the result does not fit */
  async write(
    head: Buffer,
    parts: readonly Buffer[],
    bytes: number,
  ): Promise<{ path: string; bytes: number }> {
    const folder = this.#open();
    const held = readdirSync(folder).reduce((sum, name) => sum + sizeOf(join(folder, name)), 0);
    if (held + bytes > forwardLimits.file_bytes) {
      throw this.#full(bytes, `${held} bytes wait for their clients, of at most ${forwardLimits.file_bytes}`);
    }
    const path = join(folder, `${randomBytes(12).toString("hex")}.safetensors`);
    let file: FileHandle | undefined;
    try {
      file = await open(path, "wx", 0o600);
      for (const part of [head, ...parts]) await writeWhole(file, part);
    } catch (error) {
      await rm(path, { force: true });
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
      throw this.#full(bytes, "no space is left");
    } finally {
      await file?.close();
    }
    const timer = setTimeout(() => {
      this.#expiring.delete(timer);
      void rm(path, { force: true });
    }, 1000 * forwardLimits.file_seconds);
    timer.unref();
    this.#expiring.add(timer);
    return { path, bytes };
  }

  /** Deletes all files. */
  close(): void {
    for (const timer of this.#expiring) clearTimeout(timer);
    this.#expiring.clear();
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true, force: true });
    this.#folder = undefined;
  }

  #full(bytes: number, why: string): HttpError {
    return new HttpError(
      503,
      `The result's ${bytes} bytes do not fit into ${this.#parent}: ${why}; use transfer: stream.`,
      {
        headers: { "Retry-After": "1" },
      },
    );
  }

  #open(): string {
    if (this.#folder !== undefined) return this.#folder;
    for (const name of readdirSync(this.#parent)) {
      const [, pid] = new RegExp(`^${prefix}(\\d+)-`).exec(name) ?? [];
      if (pid === undefined || isRunning(Number(pid))) continue;
      try {
        rmSync(join(this.#parent, name), { recursive: true, force: true });
      } catch {
        // Another user's.
      }
    }
    this.#folder = mkdtempSync(join(this.#parent, `${prefix}${process.pid}-`));
    process.once("exit", () => this.close());
    return this.#folder;
  }
}

/** A full file system takes a part of a buffer before it reports that it is full. */
async function writeWhole(file: FileHandle, buffer: Buffer): Promise<void> {
  for (let at = 0; at < buffer.length; ) at += (await file.write(buffer, at)).bytesWritten;
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
