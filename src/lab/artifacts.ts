import { type FileHandle, mkdtemp, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { syncFolder } from "../files/durable.js";

/** A file being written; its final name appears only once it is complete and synced. */
export class ArtifactFile {
  constructor(
    private readonly handle: FileHandle,
    private readonly partial: string,
    private readonly final: string,
  ) {}

  /** Writes all the bytes at a position of the file. */
  async write(bytes: Uint8Array, position: number): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await this.handle.write(bytes, done, bytes.length - done, position + done);
      done += bytesWritten;
    }
  }

  async commit(): Promise<void> {
    await this.handle.sync();
    await this.handle.close();
    await rename(this.partial, this.final);
  }

  async discard(): Promise<void> {
    await this.handle.close().catch(() => {});
    await rm(this.partial, { force: true });
  }
}

/** The files of an operation, which chooses their names but not their folder. */
export class Artifacts {
  readonly names: string[] = [];

  /** @param unfinished suffix of files that are being written; unique if several processes may write the same file */
  constructor(
    private readonly folder: string,
    private readonly unfinished = ".partial",
  ) {}

  /** A temporary folder, removed after `use`. */
  async scratch<T>(use: (folder: string) => Promise<T>): Promise<T> {
    const folder = await mkdtemp(join(this.folder, "scratch-"));
    try {
      return await use(folder);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** Creates a file atomically: complete if `write` succeeds, absent if it fails. */
  async create(name: string, write: (file: ArtifactFile) => Promise<void>): Promise<void> {
    const final = join(this.folder, name);
    const partial = `${final}${this.unfinished}`;
    const file = new ArtifactFile(await open(partial, "wx", 0o600), partial, final);
    try {
      await write(file);
      await file.commit();
    } catch (error) {
      await file.discard();
      throw error;
    }
    await syncFolder(this.folder);
    this.names.push(name);
  }
}
