import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  writev as queueWritev,
  readdirSync,
  rmSync,
  writevSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { forwardLimits } from "../contracts/forward-limits.js";
import { memoryFolder } from "../files/memory-folder.js";
import { isRunning } from "../files/running.js";
import { HttpError } from "../http/index.js";

const writev = promisify(queueWritev);

const prefix = "tapline-forward-";
/** A file of up to this size is written synchronously: passing its parts to another thread would take longer. */
const syncBytes = 1 << 20;
const defaults = {
  bytes: forwardLimits.file_bytes as number,
  seconds: forwardLimits.file_seconds as number,
  sweepMs: 1000,
};

interface Written {
  readonly name: string;
  readonly bytes: number;
  /** By `performance.now()`; undefined while it is being written. */
  expires?: number;
}

/**
 * Results that cross to a client on this machine through shared memory: files in /dev/shm, or in the temporary folder where
 * there is none. The folder and its files are this user's only. A client opens and deletes its file, so its pages are freed
 * with its mapping, even after a kill; what nobody fetches is deleted after a while, and with the process. The next start
 * deletes what a killed process left.
 */
export class SharedFiles {
  readonly #parent: string;
  readonly #limits: typeof defaults;
  #folder: string | undefined;
  #next = 0;
  /** Files that may still be in the folder, and the sum of their bytes. */
  readonly #written = new Set<Written>();
  #bytes = 0;
  #sweeping: NodeJS.Timeout | undefined;

  /**
   * @param parent folder of the folder
   * @param limits bytes of all files, seconds after which one is deleted, milliseconds between two looks
   */
  constructor(parent: string = memoryFolder(), limits: Partial<typeof defaults> = {}) {
    this.#parent = parent;
    this.#limits = { ...defaults, ...limits };
  }

  /** @throws HttpError 503 if the result does not fit */
  async write(
    head: Buffer,
    parts: readonly Buffer[],
    bytes: number,
  ): Promise<{ path: string; bytes: number }> {
    const folder = this.#open();
    const file = this.#reserve(folder, bytes);
    const path = join(folder, file.name);
    try {
      await write(path, [head, ...parts], bytes <= syncBytes);
    } catch (error) {
      this.#forget(file);
      rmSync(path, { force: true });
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
      throw this.#full(bytes, "no space is left");
    }
    file.expires = performance.now() + 1000 * this.#limits.seconds;
    return { path, bytes };
  }

  /** Deletes all files. */
  close(): void {
    clearTimeout(this.#sweeping);
    this.#sweeping = undefined;
    for (const file of this.#written) this.#forget(file);
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true, force: true });
    this.#folder = undefined;
  }

  /** @throws HttpError 503 */
  #reserve(folder: string, bytes: number): Written {
    if (this.#bytes + bytes > this.#limits.bytes) this.#forgetFetched(folder);
    if (this.#bytes + bytes > this.#limits.bytes) {
      throw this.#full(
        bytes,
        `${this.#bytes} bytes wait for their clients, of at most ${this.#limits.bytes}`,
      );
    }
    const file = { name: `${this.#next++}.safetensors`, bytes };
    this.#written.add(file);
    this.#bytes += bytes;
    this.#sweeping ??= setTimeout(() => this.#sweep(folder), this.#limits.sweepMs).unref();
    return file;
  }

  /** Deletes files that no client fetched in time. One timer for all: there may be a thousand files per second. */
  #sweep(folder: string): void {
    this.#sweeping = undefined;
    this.#forgetFetched(folder);
    const now = performance.now();
    for (const file of this.#written) {
      if (file.expires === undefined || file.expires > now) continue;
      this.#forget(file);
      void rm(join(folder, file.name), { force: true });
    }
    if (this.#written.size > 0)
      this.#sweeping = setTimeout(() => this.#sweep(folder), this.#limits.sweepMs).unref();
  }

  /** Forgets the files that their clients have deleted. */
  #forgetFetched(folder: string): void {
    const present = new Set(existsSync(folder) ? readdirSync(folder) : []);
    for (const file of this.#written) {
      if (file.expires !== undefined && !present.has(file.name)) this.#forget(file);
    }
  }

  #forget(file: Written): void {
    if (this.#written.delete(file)) this.#bytes -= file.bytes;
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

/** @param sync whether to write on this thread */
async function write(path: string, buffers: readonly Buffer[], sync: boolean): Promise<void> {
  const file = openSync(path, "wx", 0o600);
  try {
    // All buffers in one call: passing each to another thread would take longer than writing it.
    for (let rest = [...buffers]; rest.length > 0; ) {
      rest = after(sync ? writevSync(file, rest) : (await writev(file, rest)).bytesWritten, rest);
    }
  } finally {
    closeSync(file);
  }
}

/** The rest of buffers after `bytes` of them: a full file system takes a part before it reports that it is full. */
function after(bytes: number, buffers: readonly Buffer[]): Buffer[] {
  let left = bytes;
  const at = buffers.findIndex(({ length }) => {
    if (length > left) return true;
    left -= length;
    return false;
  });
  if (at === -1) return [];
  return [(buffers[at] as Buffer).subarray(left), ...buffers.slice(at + 1)];
}
