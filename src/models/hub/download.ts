import { createHash, type Hash } from "node:crypto";
import { mkdir, open, rename, rm, stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "../../contracts/user-error.js";
import type { CachedRepository } from "./cache.js";
import { HubFault, RangeIgnored } from "./fault.js";
import { underLock } from "./lock.js";
import type { HubFile, Repository } from "./repository.js";

export interface DownloadOptions {
  /** Called with the bytes of the file on disk, and how many of them were downloaded in this call. */
  onBytes: (bytes: number, received: number) => void;
  signal?: AbortSignal;
}

/** Consecutive attempts without progress before giving up. */
const attempts = 6;
const backOffMs = (failures: number) => (failures === 0 ? 0 : Math.min(8000, 250 * 2 ** failures));

/**
 * Downloads a file from the hub into the cache and verifies it. Resumes an earlier partial download; if several processes
 * need the file, one downloads and the others wait.
 * @throws UserError
 */
export async function downloadFile(
  repository: Repository,
  cached: CachedRepository,
  file: HubFile,
  options: DownloadOptions,
): Promise<void> {
  const blob = cached.blob(file.hash);
  const partial = cached.incomplete(file.hash);
  const size = (path: string) =>
    stat(path)
      .then(({ size: bytes }) => bytes)
      .catch(() => undefined);
  const isHere = async () => (await size(blob)) === file.size;
  if (await isHere()) return options.onBytes(file.size, 0);
  await mkdir(dirname(blob), { recursive: true });
  let received = 0;
  await underLock(
    cached.lock(file.hash),
    async () => {
      if (await isHere()) return;
      const download = new Download(repository, file, partial, blob, options);
      await download.run().finally(() => {
        received = download.received;
      });
    },
    async () => {
      options.onBytes((await size(partial)) ?? 0, 0); // another process is downloading it
      return isHere();
    },
    options.signal,
  ).catch((error: unknown) => {
    throw diskFault(error, dirname(blob), file);
  });
  options.onBytes(file.size, received);
}

class Download {
  #hash: Hash;
  #bytes = 0;
  #received = 0;

  constructor(
    private readonly repository: Repository,
    private readonly file: HubFile,
    private readonly partial: string,
    private readonly blob: string,
    private readonly options: DownloadOptions,
  ) {
    this.#hash = newHash(file);
  }

  async run(): Promise<void> {
    const found = await this.#readPartial();
    await this.#checkDisk();
    await this.#receive();
    if (this.#isRight()) return this.#finish();
    // The earlier partial file may be damaged, so download everything again before giving up.
    if (found > 0) {
      this.#startOver();
      await this.#receive();
      if (this.#isRight()) return this.#finish();
    }
    await rm(this.partial, { force: true });
    throw new UserError(
      `${this.file.path} does not match the checksum given by ${this.repository.host}; ` +
        "it was discarded.",
    );
  }

  /** Bytes downloaded, including failed attempts. */
  get received(): number {
    return this.#received;
  }

  #startOver(): void {
    this.#hash = newHash(this.file);
    this.#bytes = 0;
  }

  #isRight(): boolean {
    return this.#hash.copy().digest("hex") === this.file.hash;
  }

  /** Reads the existing partial file. */
  async #readPartial(): Promise<number> {
    const file = await open(this.partial, "r").catch(() => undefined);
    if (file === undefined) return 0;
    try {
      if ((await file.stat()).size > this.file.size) return 0;
      for await (const chunk of file.createReadStream({ highWaterMark: 1 << 20 })) {
        this.options.signal?.throwIfAborted();
        this.#take(chunk as Buffer);
      }
      return this.#bytes;
    } finally {
      await file.close();
    }
  }

  async #checkDisk(): Promise<void> {
    const { bavail, bsize } = await statfs(dirname(this.partial));
    const missing = this.file.size - this.#bytes;
    if (bavail * bsize < missing) throw fullDisk(dirname(this.partial), this.file, bavail * bsize);
  }

  /** Downloads the remaining bytes, reconnecting as needed. */
  async #receive(): Promise<void> {
    let most = this.#bytes;
    for (let failures = 0; this.#bytes < this.file.size; ) {
      try {
        await this.#connection();
      } catch (error) {
        this.options.signal?.throwIfAborted();
        if (!(error instanceof RangeIgnored) && !(error instanceof HubFault && error.passing)) throw error;
        failures = this.#bytes > most ? 0 : failures + 1;
        most = Math.max(most, this.#bytes);
        if (error instanceof RangeIgnored) this.#startOver();
        if (failures >= attempts) throw error instanceof HubFault ? error : this.#cutOff();
        const wanted = error instanceof HubFault ? error.retryAfterMs : undefined;
        await sleep(wanted ?? backOffMs(failures), undefined, { signal: this.options.signal });
      }
    }
  }

  /** One connection, starting at the first missing byte. */
  async #connection(): Promise<void> {
    const disk = await open(this.partial, this.#bytes === 0 ? "w" : "r+");
    const stream = await this.repository.read(this.file, this.#bytes, this.options.signal);
    try {
      for await (const chunk of stream) {
        if (this.#bytes + chunk.length > this.file.size) throw this.#tooLong();
        // Write at the position, not append, so that a concurrent writer would only write the same bytes.
        for (let written = 0; written < chunk.length; ) {
          const { bytesWritten } = await disk.write(
            chunk,
            written,
            chunk.length - written,
            this.#bytes + written,
          );
          written += bytesWritten;
        }
        this.#received += chunk.length;
        this.#take(chunk);
      }
      if (this.#bytes < this.file.size) throw this.#cutOff();
    } finally {
      await disk.close();
    }
  }

  #take(chunk: Uint8Array): void {
    this.#hash.update(chunk);
    this.#bytes += chunk.length;
    this.options.onBytes(this.#bytes, this.#received);
  }

  #cutOff(): HubFault {
    return new HubFault(
      `The connection to ${this.repository.host} broke after ${this.#bytes} of ${this.file.size} bytes ` +
        `of ${this.file.path}; the next attempt resumes there.`,
      true,
    );
  }

  #tooLong(): UserError {
    return new UserError(
      `${this.repository.host} sent more than the ${this.file.size} bytes of ${this.file.path}.`,
    );
  }

  /** Syncs before renaming, so that a power failure cannot leave an incomplete file under the final name. */
  async #finish(): Promise<void> {
    const disk = await open(this.partial, "a"); // also creates empty files
    try {
      await disk.sync();
    } finally {
      await disk.close();
    }
    await rename(this.partial, this.blob);
  }
}

/** SHA-256 for files in LFS; git's blob hash for others. */
function newHash(file: HubFile): Hash {
  return file.algorithm === "sha256"
    ? createHash("sha256")
    : createHash("sha1").update(`blob ${file.size}\0`);
}

function diskFault(error: unknown, folder: string, file: HubFile): unknown {
  switch ((error as NodeJS.ErrnoException | null)?.code) {
    case "ENOSPC":
    case "EDQUOT":
      return fullDisk(folder, file);
    case "EFBIG":
      return new UserError(`${file.path} exceeds the file size limit in ${folder}.`);
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return new UserError(`This user may not write to the cache ${folder} (set HF_HOME to use another).`);
    default:
      return error;
  }
}

function fullDisk(folder: string, file: HubFile, free?: number): UserError {
  const left = free === undefined ? "is full" : `has ${megabytes(free)} free`;
  return new UserError(
    `${file.path} needs ${megabytes(file.size)}, but the disk of ${folder} ${left}; ` +
      "free some space (tapline rm) or set HF_HOME to another disk.",
  );
}

const megabytes = (bytes: number) => `${Math.ceil(bytes / 1e6)} MB`;
